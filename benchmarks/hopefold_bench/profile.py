"""Where the time of an epoch goes, by kinds of operations."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import machine, versions
from hopefold_bench.one_pass import as_float32, one_pass, timed_model
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report
from hopefold_bench.splits import load_splits

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEventAvg

#: Names of torch operations, by kind; all others are small.
KINDS = {
    "matrix products": ("mm", "addmm", "mv", "addmv", "dot", "bmm"),
    "gathering and copying": ("index_select", "index", "cat", "copy_", "clone", "fill_", "zero_"),
    "masks": ("random_", "bernoulli_", "ge_", "randint"),
    "powers, sigmoids and their gradients": (
        "pow",
        "sigmoid",
        "sigmoid_",
        "sigmoid_backward",
        "mul",
    ),
    "the optimizer": ("_fused_adamw_", "_foreach_add_"),
}
OTHER = "other: the loss, sums, and Python between the operations"


def profile_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "profile.jsonl"


def measure(folder: Path, name: str, *, data: str = "mnist", report: Report = print) -> None:
    """Profile an epoch with feature dropout, and append the share of each kind of operations."""
    splits = load_splits(data, 0, final=False)
    epoch = one_pass(timed_model(adversarial=0), as_float32(splits.X), splits.y)
    epoch()  # warm-up
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with (
        torch.profiler.profile(activities=cpu) as profiled,
        torch.profiler.record_function(name),
    ):
        epoch()
    shares = shares_of(profiled.key_averages(), name)
    line = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "name": name,
        "data": data,
        "shares": shares,
        "versions": versions(),
        "machine": machine(),
    }
    append(profile_file(folder), json.dumps(line, sort_keys=True))
    for kind, share in shares.items():
        report(f"{kind}: {share:.1%}")


def shares_of(events: list[FunctionEventAvg], whole: str) -> dict[str, float]:
    """The share of each kind in the time of the event that contains all others."""
    total = next(event.cpu_time_total for event in events if event.key == whole)
    own: dict[str, float] = {
        str(event.key).removeprefix("aten::"): event.self_cpu_time_total for event in events
    }
    shares = {
        kind: sum(own.get(name, 0.0) for name in names) / total for kind, names in KINDS.items()
    }
    return shares | {OTHER: 1 - sum(shares.values())}


def profile_table(folder: Path) -> str:
    """The last profile of each name, in the order of their first appearance."""
    lines: dict[str, dict[str, Any]] = {
        line["name"]: line["shares"] for line in read_lines(profile_file(folder))
    }
    if not lines:
        return f"**Profile**\n\n{NOT_RUN}"
    rows = [
        [kind, *(f"{shares[kind]:.1%}" for shares in lines.values())] for kind in (*KINDS, OTHER)
    ]
    return markdown(["share of the time of an epoch", *lines], rows)
