"""Many input files: make the missing parts of the output folder, here or on a cluster."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hopefold
from hopefold.cli import outputs, reading, shown
from hopefold.cli.batch.parts import Made, Part, find_inputs, make, plan, read_note
from hopefold.errors import CannotWrite, InvalidParameter, NoSuchFolder

#: Written last: if it exists, all parts do. Readers of Parquet folders ignore such a name.
MANIFEST = "_manifest.json"

#: Temporary file of a killed write (`hopefold.persistence.store.write_atomically`).
LEFT_BEHIND = re.compile(r"\.[0-9a-f]{8}-[0-9a-f]{12}\.part")


def is_many(data: Path, output: Path) -> bool:
    """Whether the data are many files: a pattern, or a folder with a folder as output."""
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
    read_options: Mapping[str, Any],
) -> None:
    """Make all missing parts, then the manifest."""
    _check_folder(folder)
    reading.check_file(model)
    base, files = find_inputs(data)
    options = {name: value for name, value in read_options.items() if value}
    note = {"verb": verb, "model": _checksum(model), "options": options}
    parts = plan(base, files, folder, note)
    missing = _missing(folder, parts, note, force=force)
    if missing:
        _make_folders(folder, missing)
        if dask is None:
            fitted = reading.load_model(model)
            for part in missing:
                make(part, model=fitted, read_options=read_options)
        else:
            from hopefold.cli.batch.cluster import make_all

            make_all(
                missing, dask, load=lambda: reading.load_model(model), read_options=read_options
            )
    _finish(folder, parts, note, n_made=len(missing), model=model)


def _check_folder(folder: Path) -> None:
    if folder == outputs.STDOUT:
        raise InvalidParameter(
            "many input files give many output files: name a folder (-o FOLDER)."
        )
    if folder.is_dir():
        return
    if folder.exists() or folder.suffix.lower() in outputs.TABLES:
        raise InvalidParameter(
            f"many input files give many output files, not one ({folder}): name a folder (-o)."
        )
    if not folder.resolve().parent.is_dir():
        raise NoSuchFolder(f"cannot make {folder}: make the folder {folder.parent} first.")


def _missing(
    folder: Path, parts: Sequence[Part], note: Mapping[str, Any], *, force: bool
) -> list[Part]:
    """Return the missing parts; raise an error if the folder has files of another run.

    With ``force``, files of another run of hopefold are deleted; other files never are.
    """
    by_target = {part.target: part for part in parts}
    done, others = set(), []
    for path in _files_in(folder):
        wanted, why = by_target.get(path), _why_other(path, by_target.get(path), note)
        if why is not None:
            others.append(path)
            if not (force and _is_ours(path)):
                raise InvalidParameter(
                    f"{folder} has files of another run: "
                    f"{path.relative_to(folder.resolve())} {why}. "
                    "Choose an empty folder"
                    + (", or start over with --force." if _is_ours(path) else ".")
                )
        elif wanted is not None and read_note(path) is not None:
            done.add(path)
    missing = [part for part in parts if part.target not in done]
    if missing:
        others.append(folder.resolve() / MANIFEST)  # it is not valid until all parts are made
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
    made = read_note(path)
    return made is not None and made.note is not None


def _why_other(path: Path, wanted: Part | None, note: Mapping[str, Any]) -> str | None:
    """Return why a file is not of this run; ``None`` if it is, or if it is not complete."""
    if path.name == MANIFEST:
        return _difference(_read_manifest(path), note)
    made = read_note(path)
    if wanted is None:
        ours = made is not None and made.note is not None
        return "is for an input that is not given" if ours else "was not written by hopefold"
    return None if made is None else _difference(made.note, wanted.note)


def _difference(found: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str | None:
    if found is None:
        return "was not written by hopefold"
    differs = [name for name, value in wanted.items() if found.get(name) != value]
    words = {
        "verb": f"was made by {found.get('verb')}",
        "model": "was made by another model",
        "options": f"was made with other options ({json.dumps(found.get('options'))})",
    }
    return words.get(differs[0], "is for an input that has changed since") if differs else None


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "hopefold" in found else None


def _make_folders(folder: Path, parts: Sequence[Part]) -> None:
    """Make the folders here: a worker without access to them must fail."""
    with outputs.writing(folder):
        for place in {folder.resolve(), *(part.target.parent for part in parts)}:
            place.mkdir(parents=True, exist_ok=True)


def _finish(
    folder: Path, parts: Sequence[Part], note: Mapping[str, Any], *, n_made: int, model: Path
) -> None:
    """Read every part back, and write the manifest."""
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
        shown.print_remark(f"hopefold: {n_left_out:,} rows with missing values left out.")
    there = f", {len(parts) - n_made:,} of them already existed" if n_made < len(parts) else ""
    shown.print_line(f"wrote {folder} ({n_rows:,} rows in {len(parts):,} parts{there})")


def _seen(part: Part) -> Made:
    made = read_note(part.target)
    if made is None:
        raise CannotWrite(
            f"{part.target} was written by a worker and is not visible here: give the cluster "
            "a folder that all machines share."
        )
    return made


def _checksum(model: Path) -> str:
    with open(model, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
