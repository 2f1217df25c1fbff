"""An estimate of training on many machines, computed from the measurements of `scale`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.records import read_lines

#: Features of the measured rows, and factors and units of the map.
WIDTH, SIZE = 784, 400

#: The estimated fits: rows, features, machines, cores per machine, rows per batch.
MANY_ROWS, MANY_FEATURES, MACHINES, CORES = 10**9, 1_000, (8, 64, 512), 16
LARGE_BATCHES = (2_000, 20_000, 200_000)

#: A common network: bytes per second, and seconds until the first byte arrives.
BANDWIDTH, LATENCY = 1.25e9, 5e-5


@dataclass(frozen=True)
class Constants:
    """The constants of the estimate, all measured on one core of this machine."""

    #: Seconds per step without its rows, and seconds per row.
    step: float
    row: float
    #: Seconds in which two and three processes all-reduce the gradients.
    all_reduce_here: dict[int, float]
    #: Bytes of the gradients, and bytes per second at which Parquet is read.
    gradient_bytes: int
    read: float
    cores: int

    def seconds_here(self, processes: int, batch: int) -> float:
        """Seconds per step of several processes on this machine."""
        oversubscription = max(1.0, processes / self.cores)
        compute = self.step + batch / processes * self.row
        return oversubscription * compute + self.all_reduce_here.get(processes, 0.0)

    def compute(self, machines: int, batch: int) -> float:
        """Seconds per step for the products, on all cores of many machines."""
        wider = multiply_adds(MANY_FEATURES) / multiply_adds(WIDTH)
        return self.step + batch / (machines * CORES) * self.row * wider

    def all_reduce(self, machines: int) -> float:
        """Seconds per step for a ring all-reduce of the gradients."""
        n_bytes = 4 * (MANY_FEATURES * SIZE + SIZE * SIZE)
        return 2 * (machines - 1) * (LATENCY + n_bytes / machines / BANDWIDTH)


def multiply_adds(width: int) -> int:
    """Multiply-adds per training row.

    Two forward and backward passes (the second one on perturbed rows), and the gradient with
    respect to the row.
    """
    return 2 * (2 * width * SIZE + 3 * SIZE * SIZE) + width * SIZE


def scale_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "scale.jsonl"


def constants(line: dict[str, Any]) -> Constants:
    """Fit a line to the steps of one process with one thread; the rest is as measured."""
    groups = {(one["processes"], one["threads"]): one for one in line["process_groups"]}
    alone = groups[1, 1]["seconds_per_step"]
    row, step = np.polyfit([int(batch) for batch in alone], list(alone.values()), 1)
    return Constants(
        step=max(0.0, float(step)),
        row=float(row),
        all_reduce_here={n: one["all_reduce_seconds"] for (n, _), one in groups.items() if n > 1},
        gradient_bytes=groups[2, 1]["gradient_bytes"],
        read=line["read_bytes_per_second"],
        cores=line["cores"],
    )


def estimate_table(folder: Path) -> str:
    """An epoch over very many rows on many machines."""
    lines = list(read_lines(scale_file(folder)))
    if not lines:
        return f"**Many machines**\n\n{NOT_RUN}"
    known, rows = constants(lines[-1]), []
    for machines in MACHINES:
        reading = 4 * MANY_ROWS * MANY_FEATURES / (machines * CORES * known.read)
        for batch in LARGE_BATCHES:
            compute, network = known.compute(machines, batch), known.all_reduce(machines)
            seconds = MANY_ROWS / batch * (compute + network)
            rows.append(
                [
                    f"{machines:,}",
                    f"{batch:,}",
                    f"{MANY_ROWS // batch:,}",
                    f"{1e3 * compute:.1f}",
                    f"{1e3 * network:.1f}",
                    _duration(seconds),
                    _duration(reading),
                    "network" if network > compute else "products",
                ]
            )
    headings = ["machines", "batch", "steps per epoch", "products, ms per step"]
    headings += ["network, ms per step", "one epoch", "reading, once", "bound by"]
    title = (
        f"**10⁹ rows × {MANY_FEATURES:,} features, {CORES} cores per machine, 10 Gbit/s, 50 µs**"
    )
    return f"{title}\n\n{markdown(headings, rows)}"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"
