"""What several processes gain, measured here; and what many machines would, reckoned from that.

`torchrun … -m hopefold.bench.scale` starts processes that are measured: the first of them is told
what to do by lines, and says when all of them have done it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.bench.records import append, read_lines
from hopefold.bench.tables import NOT_RUN, markdown
from hopefold.errors import LostProcess
from hopefold.evaluation import seconds_in_turns

if TYPE_CHECKING:
    from hopefold.bench.run import Tell

#: The rows that are learned from, the map's factors and units, and rows of a batch.
N_ROWS, WIDTH, SIZE = 24_000, 784, 400
BATCHES = (250, 500, 1_000, 2_000)

#: Processes, and threads of each.
WORLDS = ((1, 2), (1, 1), (2, 1), (3, 1))

#: How often each world is measured, in turns with the others: the quickest counts.
ROUNDS = 10

#: What is learned in the steps that are timed: as by default, and with the least work a step.
STEPS: dict[str, dict[str, Any]] = {
    "seconds_a_step": {},
    "seconds_a_bare_step": {"adversarial": 0, "input_dropout": 0},
}

#: Numbers of the gradients that are added up, what that is called, and how often it is done for
#: one time.
GRADIENTS = (WIDTH * SIZE, SIZE * SIZE, 2 * SIZE)
ADD_UP, SUMS = "add_up", 40

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
    found: list[dict[str, Any]] = [
        {"processes": processes, "threads": threads, "gradient_bytes": 4 * sum(GRADIENTS)}
        | {kind: {} for kind in STEPS}
        for processes, threads in WORLDS
    ]
    with ExitStack() as stack:
        teams = [stack.enter_context(Team(*world, n_rows)) for world in WORLDS]
        for kind, batch in product(STEPS, BATCHES):
            seconds = _in_turns(teams, kind, batch)
            for one, shortest in zip(found, seconds, strict=True):
                one[kind][str(batch)] = shortest / -(-n_rows // batch)
            each = zip(WORLDS, seconds, strict=True)
            rates = (f"{n_rows / s:,.0f} by {n} × {threads}" for (n, threads), s in each)
            tell(f"{kind}, batches of {batch}, rows/s: {', '.join(rates)} threads")
        for one, shortest in zip(found, _in_turns(teams, ADD_UP, SUMS), strict=True):
            one["add_up_seconds"] = shortest / SUMS
    line = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "worlds": found,
        "read_bytes_a_second": read_speed(min(READ_ROWS, 10 * n_rows)),
        "cores": os.cpu_count(),
    }
    append(scale_file(folder), json.dumps(line, sort_keys=True))


def _in_turns(teams: Sequence[Team], what: str, size: int) -> list[float]:
    """The shortest time that each team takes for something."""
    works = {place: partial(team.ask, what, size) for place, team in enumerate(teams)}
    for ask in works.values():
        ask()  # once to be warm
    return [min(times) for times in seconds_in_turns(works, repeats=ROUNDS).values()]


class Team:
    """Processes that do what they are asked to, and wait meanwhile."""

    def __init__(self, processes: int, threads: int, n_rows: int) -> None:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={processes}", "-m", "hopefold.bench.scale", str(n_rows)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._launcher = subprocess.Popen(command, **pipes, text=True, env=environment)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self._launcher.communicate()  # nothing more

    def ask(self, what: str, size: int) -> None:
        """Have it done by all processes."""
        requests, answers = self._launcher.stdin, self._launcher.stdout
        assert requests is not None
        assert answers is not None
        print(what, size, file=requests, flush=True)
        if not answers.readline():
            raise LostProcess(f"the processes that were asked for {what} have ended: see above.")


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


def work(n_rows: int) -> None:
    """In one of the processes: what the first of them is asked for, until nothing more is."""
    import torch

    from hopefold.bench.ruler import Work, one_pass
    from hopefold.estimators.hope import SHOPE
    from hopefold.training.distributed import Dealing, this_world

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    world = this_world()
    y = np.arange(n_rows) % 10
    X = np.random.RandomState(0).rand(n_rows, WIDTH).astype(np.float32)
    gradients = [torch.zeros(n_numbers) for n_numbers in GRADIENTS]

    def add_up(times: int) -> None:
        for _ in range(times):
            world.add_up(gradients)

    @lru_cache(maxsize=1)
    def work_of(what: str, size: int) -> Work:
        if what == ADD_UP:
            return partial(add_up, size)
        sizes: dict[str, Any] = {"n_factors": SIZE, "n_units": SIZE, "spare_components": 0}
        model = SHOPE(**sizes, **STEPS[what], batch_size=size, random_state=0)
        return one_pass(model, X, y, Dealing(world))

    while request := world.from_first(sys.stdin.readline() if world.is_first else ""):
        what, size = request.split()
        work_of(what, int(size))()
        if world.is_first:
            print("done", flush=True)


if __name__ == "__main__":
    work(int(sys.argv[1]))
