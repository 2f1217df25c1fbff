"""Where the time of a pass goes, by kinds of work: what is not a matrix product can be saved."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hopefold.bench import ruler
from hopefold.bench.measure import machine, versions
from hopefold.bench.parts import load_parts
from hopefold.bench.records import append, read_lines
from hopefold.bench.run import Tell
from hopefold.bench.tables import NOT_RUN, markdown

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEventAvg

#: What torch calls the work of each kind; what is called otherwise is small things.
KINDS = {
    "matrix products": ("mm", "addmm", "mv", "addmv", "dot", "bmm"),
    "gathering and copying": ("index_select", "index", "cat", "copy_", "clone", "fill_", "zero_"),
    "masks": ("random_", "bernoulli_", "ge_", "randint"),
    "powers, sigmoids and their slopes": ("pow", "sigmoid", "sigmoid_", "sigmoid_backward", "mul"),
    "the optimizer": ("_fused_adamw_", "_foreach_add_"),
}
REST = "all else: the loss, sums, and Python between"


def profile_file(folder: Path) -> Path:
    """Where the profiles are."""
    return folder / "profile.jsonl"


def measure(folder: Path, name: str, *, data: str = "mnist", tell: Tell = print) -> None:
    """Append the share of each kind of work in the time of a pass with dropped features."""
    parts = load_parts(data, 0, final=False)
    X, y = ruler._float32(parts.X), parts.y
    work = ruler.one_pass(ruler._model(adversarial=0), X, y)
    work()  # once to be warm
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with (
        torch.profiler.profile(activities=cpu) as profiled,
        torch.profiler.record_function(name),
    ):
        work()
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
        tell(f"{kind}: {share:.1%}")


def shares_of(events: list[FunctionEventAvg], whole: str) -> dict[str, float]:
    """The share of each kind in the time of the event that holds all others."""
    total = next(event.cpu_time_total for event in events if event.key == whole)
    own: dict[str, float] = {
        str(event.key).removeprefix("aten::"): event.self_cpu_time_total for event in events
    }
    shares = {
        kind: sum(own.get(work, 0.0) for work in works) / total for kind, works in KINDS.items()
    }
    return shares | {REST: 1 - sum(shares.values())}


def profile_table(folder: Path) -> str:
    """The last profile of each name, in the order in which names came up."""
    lines: dict[str, dict[str, Any]] = {
        line["name"]: line["shares"] for line in read_lines(profile_file(folder))
    }
    if not lines:
        return f"**Profile**\n\n{NOT_RUN}"
    rows = [
        [kind, *(f"{shares[kind]:.1%}" for shares in lines.values())] for kind in (*KINDS, REST)
    ]
    return markdown(["share of the time of a pass", *lines], rows)
