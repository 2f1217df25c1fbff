"""Records as JSON lines: one line per run, appended and never changed."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.errors import BrokenFile
from hopefold.specification import with_current_names

if TYPE_CHECKING:
    from numpy import ndarray


#: The sigmoid units of the one layer that S-HOPE had by default before there was an ``effort``.
ONE_LAYER = 600


@dataclass(frozen=True)
class Record:
    """The result of one run."""

    method: str
    data: str
    split: int
    part: str
    quick: bool
    settings: dict[str, Any]
    #: Shares of the new rows that are misclassified: by 5-NN among "all" embedded training rows,
    #: the embedded "kmeans" centers or the "joint" exemplars, and by the model's own "predict".
    errors: dict[str, float]
    #: The misclassified rows, packed by `pack`.
    mistakes: dict[str, str]
    n_train: int
    n_new: int
    seconds_fit: float
    seconds_transform: float
    peak_memory_mb: float | None
    epochs: int | None
    validation_error: float | None
    model_bytes: int | None
    versions: dict[str, str]
    machine: dict[str, Any]

    def to_line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def append(path: Path, line: str) -> None:
    """Append a line and flush it to disk; an unfinished last line of a killed run is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        whole, _, rest = file.read().rpartition(b"\n")
        if rest and not _is_json(rest):
            file.truncate(len(whole) + 1 if whole else 0)
            rest = b""
        file.write(b"\n" * bool(rest) + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """All lines of a file, the oldest first, without an unfinished last line."""
    return (line for _, line in _numbered_lines(path))


def _numbered_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if _is_json(line):
            found = json.loads(line)
            if not isinstance(found, dict):
                raise BrokenFile(f"line {number} of {path} is not a record: remove it.")
            yield number, found
        elif number < len(lines):
            raise BrokenFile(f"line {number} of {path} is not JSON: remove it, and run it again.")


def results_file(folder: Path, data: str, *, quick: bool) -> Path:
    """The file of the runs on a data set; quick runs have files of their own."""
    return folder / ("quick" if quick else "results") / f"{data}.jsonl"


def read_records(folder: Path, data: str, *, quick: bool = False) -> list[Record]:
    """All runs on a data set, the oldest first."""
    path = results_file(folder, data, quick=quick)
    names = {field.name for field in fields(Record)}
    records = []
    for number, line in _numbered_lines(path):
        if strange := sorted(names ^ line.keys()):
            verb = "lacks" if strange[0] in names else "has"
            raise BrokenFile(
                f"line {number} of {path} is not a record of a run, since it {verb} "
                f"{strange[0]!r}: remove it, and run it again."
            )
        records.append(Record(**{**line, "settings": current_settings(line["settings"])}))
    return records


def current_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a record with today's names and meaning.

    Before there was an ``effort``, ``n_units="auto"`` was one layer for labels and joint exemplars.
    """
    settings = with_current_names(settings)
    usual = settings.get("exemplars") == "joint" and settings.get("max_bytes") is None
    if usual and "effort" not in settings and settings.get("n_units") == "auto":
        return settings | {"n_units": ONE_LAYER}
    return settings


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Do two settings agree in all common names except the seed?

    Settings that only one of them has are ignored: the defaults of new settings change nothing.
    """
    shared = (one.keys() & other.keys()) - {"random_state"}
    return all(one[name] == other[name] for name in shared)


def pack(mask: ndarray) -> str:
    """Compress a mask of rows to a short text."""
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


def unpack(text: str, n_rows: int) -> ndarray:
    """The mask that `pack` has compressed.

    Examples
    --------
    >>> from hopefold_bench.records import pack, unpack
    >>> unpack(pack([True, False, True]), 3)
    array([ True, False,  True])

    """
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(bits, count=n_rows).astype(bool)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
