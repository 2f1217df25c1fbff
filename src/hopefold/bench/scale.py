"""What several processes gain, measured here; and what many machines would, reckoned from that.

`torchrun … -m hopefold.bench.scale` is the work of the processes that are measured: the first of
them prints its figures as one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.bench.records import append, read_lines
from hopefold.bench.tables import NOT_RUN, markdown

if TYPE_CHECKING:
    from hopefold.bench.run import Tell

#: The rows that are learned from, the map's factors and units, and rows of a batch.
N_ROWS, WIDTH, SIZE = 24_000, 784, 400
BATCHES = (250, 500, 1_000, 2_000)

#: Processes, and threads of each.
WORLDS = ((1, 2), (1, 1), (2, 1), (3, 1))

#: How often each world is measured, in turns with the others: the quickest counts.
ROUNDS = 3

#: What is learned in the steps that are timed: as by default, and with the least work a step.
STEPS: dict[str, dict[str, Any]] = {
    "seconds_a_step": {},
    "seconds_a_bare_step": {"nudge": 0, "input_dropout": 0},
}

#: Two processes must learn from this share of the rows that one with two threads does.
BAR = 0.85

#: Rows of the Parquet file that is read, and of those to be reckoned with.
READ_ROWS = 200_000

#: What is reckoned: rows, features, machines, cores of each, rows of a batch for each core.
MANY_ROWS, MANY_FEATURES, MACHINES, CORES = 10**9, 1_000, (8, 64, 512), 16
BATCHES_RECKONED = (2_000, 20_000, 200_000)

#: A network as one can rent it: bytes a second, and seconds until the first byte is there.
BANDWIDTH, LATENCY = 1.25e9, 5e-5


@dataclass(frozen=True)
class Constants:
    """What the reckoning rests on, all of it measured here on one core."""

    #: Seconds of a step besides its rows, and of one row.
    step: float
    row: float
    #: Seconds in which two and three processes add up the gradients.
    add_up: dict[int, float]
    #: Bytes of the gradients, and bytes of Parquet read in a second.
    gradient_bytes: int
    read: float
    cores: int

    def seconds_here(self, processes: int, batch: int) -> float:
        """A step in so many processes on this machine."""
        crowded = max(1.0, processes / self.cores)
        compute = self.step + batch / processes * self.row
        return crowded * compute + self.add_up.get(processes, 0.0)

    def compute(self, machines: int, batch: int) -> float:
        """The products of a step on many machines, on all cores of each."""
        wider = multiply_adds(MANY_FEATURES) / multiply_adds(WIDTH)
        return self.step + batch / (machines * CORES) * self.row * wider

    def all_reduce(self, machines: int) -> float:
        """The gradients of a step, in a ring."""
        n_bytes = 4 * (MANY_FEATURES * SIZE + SIZE * SIZE)
        return 2 * (machines - 1) * (LATENCY + n_bytes / machines / BANDWIDTH)


def multiply_adds(width: int) -> int:
    """Of a row that is learned from: forth and back to all weights, to itself, and again nudged."""
    return 2 * (2 * width * SIZE + 3 * SIZE * SIZE) + width * SIZE


def scale_file(folder: Path) -> Path:
    """Where the measurements are."""
    return folder / "scale.jsonl"


def measure(folder: Path, *, n_rows: int = N_ROWS, tell: Tell = print) -> None:
    """Append one line: every world, and how quickly Parquet is read."""
    worlds: dict[tuple[int, int], dict[str, Any]] = {}
    for world in WORLDS * ROUNDS:
        found = run_world(*world, n_rows)
        worlds[world] = quicker(worlds[world], found) if world in worlds else found
        each = found["seconds_a_step"]
        tell(
            f"{world[0]} × {world[1]} threads: "
            + ", ".join(f"{int(batch) / s:,.0f} rows/s at {batch}" for batch, s in each.items())
        )
    line = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "worlds": list(worlds.values()),
        "read_bytes_a_second": read_speed(min(READ_ROWS, 10 * n_rows)),
        "cores": os.cpu_count(),
    }
    append(scale_file(folder), json.dumps(line, sort_keys=True))


def quicker(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two measurements of a world, the shorter time of each kind."""
    times = {"add_up_seconds": min(one["add_up_seconds"], other["add_up_seconds"])}
    steps = {
        kind: {batch: min(s, other[kind][batch]) for batch, s in one[kind].items()}
        for kind in STEPS
    }
    return one | times | steps


def run_world(processes: int, threads: int, n_rows: int) -> dict[str, Any]:
    """The figures of so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={processes}", "-m", "hopefold.bench.scale", str(n_rows)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"processes": processes, "threads": threads, **found}


def read_speed(n_rows: int) -> float:
    """Bytes of rows that come out of a Parquet file in a second, on one thread."""
    from hopefold.bench.footprint import WIDTH as READ_WIDTH
    from hopefold.bench.footprint import write_parquet
    from hopefold.data.streams import read_rows

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, n_rows)
        names = [f"x{place}" for place in range(READ_WIDTH)]
        start = time.perf_counter()
        n_read = sum(len(batch) for batch in read_rows(path, names))
        return 4 * READ_WIDTH * n_read / (time.perf_counter() - start)


def constants(line: dict[str, Any]) -> Constants:
    """A straight line through the steps of one process and thread, and the times to add up."""
    worlds = {(one["processes"], one["threads"]): one for one in line["worlds"]}
    alone = worlds[1, 1]["seconds_a_step"]
    row, step = np.polyfit([int(batch) for batch in alone], list(alone.values()), 1)
    return Constants(
        step=max(0.0, float(step)),
        row=float(row),
        add_up={n: one["add_up_seconds"] for (n, _), one in worlds.items() if n > 1},
        gradient_bytes=worlds[2, 1]["gradient_bytes"],
        read=line["read_bytes_a_second"],
        cores=line["cores"],
    )


def scale_table(folder: Path) -> str:
    """What was measured here, and what the reckoning says of it."""
    lines = list(read_lines(scale_file(folder)))
    if not lines:
        return f"**Several processes**\n\n{NOT_RUN}"
    line = lines[-1]
    known = constants(line)
    rows = []
    for one in line["worlds"]:
        for batch, seconds in sorted(one["seconds_a_step"].items(), key=lambda pair: int(pair[0])):
            n, threads = one["processes"], one["threads"]
            reckoned = known.seconds_here(n, int(batch)) if threads == 1 else None
            rows.append(
                [
                    f"{n}",
                    f"{threads}",
                    f"{int(batch):,}",
                    f"{1e3 * seconds:.1f}",
                    "–" if reckoned is None else f"{1e3 * reckoned:.1f}",
                    f"{int(batch) / seconds:,.0f}",
                ]
            )
    headings = ["processes", "threads each", "batch", "ms a step", "reckoned", "rows a second"]
    shares, bare = (
        ", ".join(f"{share_of_two(line, batch, kind):.2f}" for batch in BATCHES) for kind in STEPS
    )
    facts = (
        f"The gradients are {known.gradient_bytes / 1e6:.1f} MB a step, added up by two processes "
        f"in {1e3 * known.add_up[2]:.1f} ms and by three in {1e3 * known.add_up[3]:.1f} ms; "
        f"Parquet is read at {known.read / 1e6:,.0f} MB a second. Two processes of one thread "
        f"learn from {shares} × the rows of one with two threads, from the smallest batch to the "
        f"largest (at least {BAR:.2f} × is wanted); where nothing is dropped or nudged, which "
        f"leaves a step half of its work, from {bare} ×."
    )
    title = f"**{N_ROWS:,} × {WIDTH}, {SIZE} factors and units, {known.cores} cores**"
    return f"{title}\n\n{markdown(headings, rows)}\n\n{facts}"


def share_of_two(line: dict[str, Any], batch: int, kind: str = "seconds_a_step") -> float:
    """Rows of two processes with a thread each, against one with two threads."""
    worlds = {(one["processes"], one["threads"]): one[kind] for one in line["worlds"]}
    return float(worlds[1, 2][str(batch)] / worlds[2, 1][str(batch)])


def reckoned_table(folder: Path) -> str:
    """A pass over very many rows on many machines."""
    lines = list(read_lines(scale_file(folder)))
    if not lines:
        return f"**Many machines**\n\n{NOT_RUN}"
    known, rows = constants(lines[-1]), []
    for machines in MACHINES:
        reading = 4 * MANY_ROWS * MANY_FEATURES / (machines * CORES * known.read)
        for batch in BATCHES_RECKONED:
            compute, talk = known.compute(machines, batch), known.all_reduce(machines)
            seconds = MANY_ROWS / batch * (compute + talk)
            rows.append(
                [
                    f"{machines:,}",
                    f"{batch:,}",
                    f"{MANY_ROWS // batch:,}",
                    f"{1e3 * compute:.1f}",
                    f"{1e3 * talk:.1f}",
                    _hours(seconds),
                    _hours(reading),
                    "network" if talk > compute else "products",
                ]
            )
    headings = ["machines", "batch", "steps a pass", "products, ms a step", "network, ms a step"]
    headings += ["a pass", "reading, once", "bound by"]
    title = f"**10⁹ rows × {MANY_FEATURES:,} features, {CORES} cores a machine, 10 Gbit/s, 50 µs**"
    return f"{title}\n\n{markdown(headings, rows)}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"


def work(n_rows: int) -> dict[str, Any]:
    """In one of the processes: seconds of a step, and of adding up its gradients."""
    import torch

    from hopefold.bench.ruler import one_pass, seconds_of
    from hopefold.estimators.hope import SHOPE
    from hopefold.training.world import Dealing, this_world

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    world = this_world()
    random = np.random.RandomState(0)
    y = np.arange(n_rows) % 10
    X = random.rand(n_rows, WIDTH).astype(np.float32)
    steps: dict[str, dict[str, float]] = {kind: {} for kind in STEPS}
    for kind, batch in product(STEPS, BATCHES):
        model = SHOPE(
            n_factors=SIZE,
            n_units=SIZE,
            batch_size=batch,
            spare_components=0,
            random_state=0,
            **STEPS[kind],
        )
        a_pass = one_pass(model, X, y, Dealing(world))
        a_pass()
        seconds = min(seconds_of(a_pass) for _ in range(2))
        steps[kind][str(batch)] = seconds / -(-n_rows // batch)
    gradients = [torch.zeros(WIDTH, SIZE), torch.zeros(SIZE, SIZE), torch.zeros(2, SIZE)]
    times = [seconds_of(lambda: world.add_up(gradients)) for _ in range(40)]
    n_bytes = 4 * sum(one.numel() for one in gradients)
    return {
        "rank": world.rank,
        **steps,
        "add_up_seconds": float(np.median(times)),
        "gradient_bytes": n_bytes,
    }


def main(arguments: Sequence[str]) -> None:
    """The work of one process; the first one tells."""
    found = work(int(arguments[0]))
    if found.pop("rank") == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
