"""How training scales with several processes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopefold.errors import LostProcess
from hopefold.evaluation import seconds_in_turns
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.records import append, read_lines
from hopefold_bench.scale_estimate import SIZE, WIDTH, constants, scale_file

if TYPE_CHECKING:
    from hopefold_bench.run import Report

#: Training rows, and rows per batch.
N_ROWS, BATCHES = 24_000, (250, 500, 1_000, 2_000)

#: Process groups: the number of processes, and the threads of each.
GROUPS = ((1, 2), (1, 1), (2, 1), (3, 1))

#: How often each group is timed, in turns with the others; the shortest time counts.
ROUNDS = 10

#: The settings of the timed steps: the defaults, and those with the least work per step.
STEPS: dict[str, dict[str, Any]] = {
    "seconds_per_step": {},
    "seconds_per_plain_step": {"adversarial": 0, "input_dropout": 0},
}

#: Sizes of the gradients, the name of the request to all-reduce them, and how often per request.
GRADIENTS = (WIDTH * SIZE, SIZE * SIZE, 2 * SIZE)
ALL_REDUCE, N_REDUCTIONS = "all_reduce", 40

#: The target for the rows per second of two processes, relative to one with two threads.
TARGET = 0.85

#: Rows of the Parquet file that is read.
READ_ROWS = 200_000


def measure(folder: Path, *, n_rows: int = N_ROWS, report: Report = print) -> None:
    """Measure all process groups and the speed of reading Parquet, and append one line."""
    found: list[dict[str, Any]] = [
        {"processes": processes, "threads": threads, "gradient_bytes": 4 * sum(GRADIENTS)}
        | {kind: {} for kind in STEPS}
        for processes, threads in GROUPS
    ]
    with ExitStack() as stack:
        groups = [stack.enter_context(ProcessGroup(*group, n_rows)) for group in GROUPS]
        for kind, batch in product(STEPS, BATCHES):
            seconds = _in_turns(groups, kind, batch)
            for one, shortest in zip(found, seconds, strict=True):
                one[kind][str(batch)] = shortest / -(-n_rows // batch)
            each = zip(GROUPS, seconds, strict=True)
            rates = (f"{n_rows / s:,.0f} by {n} × {threads}" for (n, threads), s in each)
            report(f"{kind}, batches of {batch}, rows/s: {', '.join(rates)} threads")
        for one, shortest in zip(found, _in_turns(groups, ALL_REDUCE, N_REDUCTIONS), strict=True):
            one["all_reduce_seconds"] = shortest / N_REDUCTIONS
    line = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "process_groups": found,
        "read_bytes_per_second": read_speed(min(READ_ROWS, 10 * n_rows)),
        "cores": os.cpu_count(),
    }
    append(scale_file(folder), json.dumps(line, sort_keys=True))


def _in_turns(groups: Sequence[ProcessGroup], what: str, size: int) -> list[float]:
    """The shortest time of each process group for a request."""
    requests = {place: partial(group.run, what, size) for place, group in enumerate(groups)}
    for request in requests.values():
        request()  # warm-up
    return [min(times) for times in seconds_in_turns(requests, repeats=ROUNDS).values()]


class ProcessGroup:
    """Processes that run what is requested, and wait in between."""

    def __init__(self, processes: int, threads: int, n_rows: int) -> None:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={processes}"]
        command += ["-m", "hopefold_bench.scale_worker", str(n_rows)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._launcher = subprocess.Popen(command, **pipes, text=True, env=environment)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self._launcher.communicate()  # closes standard input, and waits

    def run(self, what: str, size: int) -> None:
        """Run a request in all processes, and wait for its end."""
        requests, answers = self._launcher.stdin, self._launcher.stdout
        assert requests is not None
        assert answers is not None
        print(what, size, file=requests, flush=True)
        if not answers.readline():
            raise LostProcess(f"the processes ended during the request {what!r}: see above.")


def read_speed(n_rows: int) -> float:
    """Bytes per second of rows that are read from a Parquet file, on one thread."""
    from hopefold.data.streams import read_rows
    from hopefold_bench.footprint import WIDTH as READ_WIDTH
    from hopefold_bench.footprint import write_parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, n_rows)
        names = [f"x{place}" for place in range(READ_WIDTH)]
        start = time.perf_counter()
        n_read = sum(len(batch) for batch in read_rows(path, names))
        return 4 * READ_WIDTH * n_read / (time.perf_counter() - start)


def scale_table(folder: Path) -> str:
    """The measured and the estimated time per step of each process group."""
    lines = list(read_lines(scale_file(folder)))
    if not lines:
        return f"**Several processes**\n\n{NOT_RUN}"
    line = lines[-1]
    known = constants(line)
    rows = []
    for one in line["process_groups"]:
        steps = sorted(one["seconds_per_step"].items(), key=lambda pair: int(pair[0]))
        for batch, seconds in steps:
            n, threads = one["processes"], one["threads"]
            estimate = known.seconds_here(n, int(batch)) if threads == 1 else None
            rows.append(
                [
                    f"{n}",
                    f"{threads}",
                    f"{int(batch):,}",
                    f"{1e3 * seconds:.1f}",
                    "–" if estimate is None else f"{1e3 * estimate:.1f}",
                    f"{int(batch) / seconds:,.0f}",
                ]
            )
    headings = ["processes", "threads each", "batch", "ms per step", "estimate", "rows per second"]
    default, plain = (
        ", ".join(f"{relative_rate(line, batch, kind):.2f}" for batch in BATCHES) for kind in STEPS
    )
    facts = (
        f"The gradients are {known.gradient_bytes / 1e6:.1f} MB per step. Two processes all-reduce "
        f"them in {1e3 * known.all_reduce_here[2]:.1f} ms, and three in "
        f"{1e3 * known.all_reduce_here[3]:.1f} ms. Parquet is read at {known.read / 1e6:,.0f} MB "
        f"per second. From the smallest batch to the largest, two processes with one thread each "
        f"process {default} × the rows per second of one process with two threads (target: at "
        f"least {TARGET:.2f} ×). Without dropout and adversarial perturbation, which halves the "
        f"work per step, the ratios are {plain} ×."
    )
    title = f"**{N_ROWS:,} × {WIDTH}, {SIZE} factors and units, {known.cores} cores**"
    return f"{title}\n\n{markdown(headings, rows)}\n\n{facts}"


def relative_rate(line: dict[str, Any], batch: int, kind: str = "seconds_per_step") -> float:
    """Rows per second of two processes with one thread, relative to one with two threads."""
    groups = {(one["processes"], one["threads"]): one[kind] for one in line["process_groups"]}
    return float(groups[1, 2][str(batch)] / groups[2, 1][str(batch)])
