"""Many files at once: what is missing in the output folder is made, here or on a cluster."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hopefold
from hopefold.cli import outputs, reading, shown
from hopefold.cli.batch.parts import Made, Part, find_inputs, look_at, make, plan
from hopefold.errors import CannotWrite, InvalidParameter, NoSuchFolder

#: Written last: where it is, all parts are. Readers of Parquet folders pass over such a name.
MANIFEST = "_manifest.json"

#: What a write that was killed may have left (`hopefold.persistence.store.write_atomically`).
LEFT_BEHIND = re.compile(r"\.[0-9a-f]{8}-[0-9a-f]{12}\.part")


def is_many(data: Path, output: Path) -> bool:
    """Are many files meant: a pattern, or a folder whose results go to a folder?"""
    if data.is_dir():
        return output != outputs.STDOUT and output.suffix.lower() not in outputs.TABLES
    return reading.is_pattern(data)


def work(
    verb: str,
    model: Path,
    data: Path,
    folder: Path,
    dask: str | None,
    *,
    force: bool,
    wishes: Mapping[str, Any],
) -> None:
    """Make every part that is not there yet, then the manifest."""
    _check_folder(folder)
    reading.check_file(model)
    base, files = find_inputs(data)
    options = {name: value for name, value in wishes.items() if value}
    note = {"verb": verb, "model": _checksum(model), "options": options}
    parts = plan(base, files, folder, note)
    missing = _missing(folder, parts, note, force=force)
    if missing:
        _make_folders(folder, missing)
        if dask is None:
            fitted = reading.load_model(model)
            for part in missing:
                make(part, model=fitted, wishes=wishes)
        else:
            from hopefold.cli.batch.cluster import make_all

            make_all(missing, dask, load=lambda: reading.load_model(model), wishes=wishes)
    _finish(folder, parts, note, n_made=len(missing), model=model)


def _check_folder(folder: Path) -> None:
    if folder == outputs.STDOUT:
        raise InvalidParameter("many files become many: give a folder for them (-o FOLDER).")
    if folder.is_dir():
        return
    if folder.exists() or folder.suffix.lower() in outputs.TABLES:
        raise InvalidParameter(f"many files become many, and {folder} is one: give a folder (-o).")
    if not folder.resolve().parent.is_dir():
        raise NoSuchFolder(f"cannot make {folder}: make the folder {folder.parent} first.")


def _missing(
    folder: Path, parts: Sequence[Part], note: Mapping[str, Any], *, force: bool
) -> list[Part]:
    """The parts that are not there, if all that is there is of this run.

    What is of another run of hopefold makes way if it must (``force``); what is not ours never.
    """
    by_target = {part.target: part for part in parts}
    done, others = set(), []
    for path in _files_in(folder):
        wanted, why = by_target.get(path), _why_other(path, by_target.get(path), note)
        if why is not None:
            others.append(path)
            if not (force and _is_ours(path)):
                raise InvalidParameter(
                    f"{folder} is of another run: {path.relative_to(folder.resolve())} {why}. "
                    "Choose an empty folder"
                    + (", or begin anew with --force." if _is_ours(path) else ".")
                )
        elif wanted is not None and look_at(path) is not None:
            done.add(path)
    missing = [part for part in parts if part.target not in done]
    if missing:
        others.append(folder.resolve() / MANIFEST)  # what it says is not so until the end
    for path in others:
        path.unlink(missing_ok=True)
    return missing


def _files_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.resolve().rglob("*")):
        if not path.is_dir() and not LEFT_BEHIND.fullmatch(path.name):
            yield path


def _is_ours(path: Path) -> bool:
    if path.name == MANIFEST:
        return _read_manifest(path) is not None
    made = look_at(path)
    return made is not None and made.note is not None


def _why_other(path: Path, wanted: Part | None, note: Mapping[str, Any]) -> str | None:
    """Why a file is not of this run; ``None`` if it is, or is not whole."""
    if path.name == MANIFEST:
        return _difference(_read_manifest(path), note)
    made = look_at(path)
    if wanted is None:
        ours = made is not None and made.note is not None
        return "is of an input that is not given" if ours else "is nothing that it would write"
    return None if made is None else _difference(made.note, wanted.note)


def _difference(found: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str | None:
    if found is None:
        return "is nothing that hopefold has written"
    differs = [name for name, value in wanted.items() if found.get(name) != value]
    words = {
        "verb": f"is by {found.get('verb')}",
        "model": "is by another model",
        "options": f"is made with other options ({json.dumps(found.get('options'))})",
    }
    return words.get(differs[0], "is of an input that has changed since") if differs else None


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "hopefold" in found else None


def _make_folders(folder: Path, parts: Sequence[Part]) -> None:
    """Here and not by workers: one that sees other folders is to say so."""
    with outputs.writing(folder):
        for place in {folder.resolve(), *(part.target.parent for part in parts)}:
            place.mkdir(parents=True, exist_ok=True)


def _finish(
    folder: Path, parts: Sequence[Part], note: Mapping[str, Any], *, n_made: int, model: Path
) -> None:
    """Look at every part once more, as the next one will who reads them, and write the manifest."""
    made = [_seen(part) for part in parts]
    n_rows = sum(one.n_rows for one in made)
    n_left_out = sum(one.n_left_out for one in made)
    manifest = {
        "hopefold": hopefold.__version__,
        **note,
        "model_file": model.name,
        "rows": n_rows,
        "parts": [
            {
                **{name: part.note[name] for name in ("input", "bytes", "modified_ns")},
                "output": part.target.relative_to(folder.resolve()).as_posix(),
                "rows": one.n_rows,
                "rows_left_out": one.n_left_out,
            }
            for part, one in zip(parts, made, strict=True)
        ],
    }
    outputs.write(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    if n_left_out:
        shown.tell(f"hopefold: {n_left_out:,} rows with missing values left out.")
    there = f", {len(parts) - n_made:,} of them there before" if n_made < len(parts) else ""
    shown.say(f"wrote {folder} ({n_rows:,} rows in {len(parts):,} parts{there})")


def _seen(part: Part) -> Made:
    made = look_at(part.target)
    if made is None:
        raise CannotWrite(
            f"{part.target} was written by a worker and cannot be seen from here: give the cluster "
            "a folder that all machines share."
        )
    return made


def _checksum(model: Path) -> str:
    with open(model, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
