"""Parts: one output file per input file, and how one is made.

A part is a Parquet file with a note in its metadata: the verb, the checksum of the model, the
options, and the name, size and time of the input. The notes show which parts of a folder are
missing and which belong to another run, so an interrupted run can resume.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hopefold.cli import outputs, reading, results
from hopefold.errors import DataNotFound, InvalidInput, InvalidParameter

#: Metadata keys of the note, and of the number of rows left out.
NOTE, LEFT_OUT = "hopefold", "hopefold.left_out"


@dataclass(frozen=True)
class Part:
    """An input file, its output file, and the note in the output."""

    #: Absolute paths, as workers may run in another folder, and a short name of the input.
    source: Path
    target: Path
    name: str
    note: Mapping[str, Any]


class Made(NamedTuple):
    """An existing part: its note, if it has one, and its number of rows."""

    note: dict[str, Any] | None
    n_rows: int
    n_left_out: int


def find_inputs(data: Path) -> tuple[Path, list[Path]]:
    """Return the files of a pattern, a folder or a path, and the folder their names start from."""
    from hopefold.data.sources import READERS

    if data.is_file():
        return data.parent, [data]
    if data.is_dir():
        base, found = data, data.iterdir()
    else:
        steps = data.parts
        first = next(
            (n for n, step in enumerate(steps) if reading.WILD & set(step)), len(steps) - 1
        )
        base = Path(*steps[:first])
        found = base.glob("/".join(steps[first:]))
    files = sorted(path for path in found if path.is_file() and path.name[0] not in "._")
    if data.is_dir():
        files = [path for path in files if path.name.lower().endswith(tuple(READERS))]
    if not files:
        what = "the folder has no tables" if data.is_dir() else "there is no such file"
        raise DataNotFound(f"{data}: {what}; give files that end in {', '.join(READERS)}.")
    strange = [path for path in files if not path.name.lower().endswith(tuple(READERS))]
    if strange:
        raise InvalidInput(
            f"{strange[0]} has no known extension: give files that end in {', '.join(READERS)}."
        )
    return base, files


def plan(base: Path, files: Sequence[Path], folder: Path, note: Mapping[str, Any]) -> list[Part]:
    """Return one part per input, named after it."""
    parts = []
    for path in files:
        name = path.relative_to(base).as_posix()
        target = name if name.lower().endswith(".parquet") else f"{name}.parquet"
        mine = {**note, "input": name, **_state(path)}
        parts.append(Part(path.resolve(), folder.resolve() / target, name, mine))
    by_target = {part.target: part for part in parts}
    for part in parts:
        if by_target[part.target] is not part:
            raise InvalidParameter(
                f"{part.name} and {by_target[part.target].name} would both become "
                f"{part.target.name}: rename one of them."
            )
        if folder.resolve() in part.source.parents:
            raise InvalidParameter(
                f"{folder} is the output folder, but {part.name} is read from it: choose a folder "
                "without inputs."
            )
    return parts


def make(part: Part, *, model: Any, read_options: Mapping[str, Any]) -> str:
    """Make one part, whole or not at all; this runs on a worker."""
    from hopefold.persistence.store import write_atomically

    table = reading.read_for(model, part.source, may_be_empty=True, **read_options)
    found = results.RESULTS[part.note["verb"]](model, table)
    columns, _ = results.with_ids(table, found)
    if any(part.note[name] != value for name, value in _state(part.source).items()):
        raise InvalidInput(
            f"{part.source} has changed during the run: run again when it is no longer written to."
        )
    notes = {NOTE: json.dumps(part.note), LEFT_OUT: str(table.n_dropped)}
    write_atomically(part.target, outputs.parquet_with_notes(columns, notes))
    return part.name


def read_note(path: Path) -> Made | None:
    """Read the note of a Parquet file; return ``None`` if the file is not complete."""
    from pyarrow import parquet  # type: ignore[import-untyped]

    try:
        with parquet.ParquetFile(path) as file:
            notes, n_rows = file.schema_arrow.metadata or {}, file.metadata.num_rows
    except (OSError, ValueError):
        return None
    try:
        note = json.loads(notes[NOTE.encode()])
        return Made(note, n_rows, int(notes[LEFT_OUT.encode()]))
    except (LookupError, ValueError):
        return Made(None, n_rows, 0)


def _state(path: Path) -> dict[str, int]:
    """Return what identifies the state of an input: its size and its time."""
    found = path.stat()
    return {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}
