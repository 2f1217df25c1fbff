"""Tensors and a manifest in one file on disk.

A safetensors file whose header carries the manifest as JSON, with a SHA-256 over every byte of the
file. Reading runs no code: it is JSON and raw numbers, never pickle. Writing is atomic: the old
file or the new one is there, whole, and never a half.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import struct
import time
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise

from hopefold.errors import (
    BrokenFile,
    CannotWrite,
    InvalidParameter,
    NoSuchFolder,
    NotEnoughMemory,
)

if TYPE_CHECKING:
    from numpy import ndarray

FORMAT = 1

#: What a file is that holds how far a fit has come.
CHECKPOINT = "checkpoint"

#: Where the manifest lies in the header's metadata, and how it begins there. Quotes in user text
#: are escaped twice, so nothing that a user names can look like this.
_KEY = "hopefold"
_BEGINNING = rb"{\"sha256\":\""
_NO_CHECKSUM = b"0" * 64

#: The longest header that is read: a million names of features take a third of it.
LONGEST_HEADER = 100_000_000

#: Bytes that are read at once for a checksum, and signs of a file's own that a message shows.
PIECE, TOLD = 2**20, 200

#: How the file ends that is written beside its target, and after how many seconds without a change
#: it is taken for one that a kill has left.
PART, STALE = ".part", 3_600


def check_kind(
    manifest: Mapping[str, Any], kinds: Collection[str], path: str | PathLike[str]
) -> None:
    """Is what the file holds of a kind that is known?"""
    kind = manifest.get("kind")
    if kind == CHECKPOINT:
        raise BrokenFile(
            f"{path} is not a model but the checkpoint of a fit: fit again with the same data and "
            "settings, and it goes on from there."
        )
    if not isinstance(kind, str) or kind not in kinds:
        raise BrokenFile(
            f"{path} holds a model of another kind ({format_quoted(repr(kind))}), which this "
            "version of hopefold does not know: pip install --upgrade hopefold."
        )


def write(
    path: str | PathLike[str], manifest: Mapping[str, Any], tensors: Mapping[str, ndarray]
) -> None:
    """Write tensors and a manifest of plain JSON data to one file, atomically."""
    write_atomically(path, to_bytes(manifest, tensors))


def to_bytes(manifest: Mapping[str, Any], tensors: Mapping[str, ndarray]) -> bytes:
    """The content of the file that `write` writes."""
    sealed = {"sha256": _NO_CHECKSUM.decode(), **manifest, "format": FORMAT}
    metadata = {_KEY: json.dumps(sealed, allow_nan=False, separators=(",", ":"))}
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    content = bytearray(serialise(arrays, metadata=metadata))
    content[_checksum_of(content)] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, ndarray]]:
    """The manifest and the tensors of a file, or a `BrokenFile` that says what is wrong with it.

    The header is judged first, by itself: what it says of the rest has to be what is there.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise BrokenFile(
            f"{path} is not a file but a folder, a device or a pipe: name a model file."
        )
    with open(path, "rb") as file:
        header = _read_header(file, os.fspath(path))
        manifest = _manifest(header, os.fstat(file.fileno()).st_size, os.fspath(path))
        if manifest["format"] > FORMAT:
            raise BrokenFile(
                f"{path} has format {format_quoted(manifest['format'])}, and this "
                f"version of hopefold reads up to {FORMAT}: pip install --upgrade hopefold."
            )
        if _checksum(header, file) != manifest.pop("sha256", None):
            raise BrokenFile(
                f"{path} has been altered or damaged (its checksum is wrong): get a fresh copy."
            )
        file.seek(0)
        try:
            return manifest, parse_tensors(file.read())
        except MemoryError as error:
            n_bytes = os.fstat(file.fileno()).st_size
            raise NotEnoughMemory(
                f"there is not enough memory for the {n_bytes:,} bytes of {path}: free some."
            ) from error
        except Exception as error:  # a reader of somebody else's, on a file of somebody else's
            raise BrokenFile(
                f"{path} is not a whole model file ({format_quoted(error)}): get a fresh copy."
            ) from error


def format_quoted(strange: object) -> str:
    """What a file holds, for a message: not long, on one line, and no control characters."""
    text = str(strange)
    text = text if len(text) <= TOLD else f"{text[:TOLD]}…"
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def write_atomically(path: str | PathLike[str], content: bytes) -> None:
    """Write beside the target, flush to the disk, then rename.

    A link is followed and the permissions of an existing file stay. Two at once do not mix: each
    has a file of its own beside the target, and the last one to end is the one that is there. What
    a kill has left there is in nobody's way, and is swept by a later write of the same target.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidParameter(f"cannot write {path!r}, which is a folder: name a file in it.")
    if target.exists() and not target.is_file():  # /dev/null would be gone
        raise InvalidParameter(f"cannot write {path}, which is a device or a pipe: name a file.")
    if not target.parent.is_dir():
        raise NoSuchFolder(f"cannot write {path}: make the folder {target.parent} first.")
    _sweep(target)
    beside = target.with_name(f"{_part_of(target)}{uuid.uuid4().hex[:12]}{PART}")
    try:
        with open(beside, "xb") as file:
            if target.is_file():
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        _forget(beside)
        raise _cannot_write(path, len(content), error) from error
    except BaseException:
        _forget(beside)
        raise
    _flush_folder(target.parent)


def _part_of(target: Path) -> str:
    """How parts of this target begin; not with its name, which may be as long as names can be."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"


def _sweep(target: Path) -> None:
    """Remove what killed writes of this target have left.

    By age: one that is still under way has written a moment ago. If it has not, for an hour, it
    fails, and the old file stays.
    """
    try:
        for part in target.parent.glob(f"{_part_of(target)}*{PART}"):
            if time.time() - part.stat().st_mtime > STALE:
                part.unlink()
    except OSError:  # another one sweeps, or the folder cannot be read: it is not what was asked
        pass


def _forget(beside: Path) -> None:
    with suppress(OSError):  # the folder may be gone, or read-only by now: tell the first trouble
        beside.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Have the new name on the disk, too, where folders can be flushed."""
    with suppress(OSError, AttributeError):  # Windows has no such thing
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_write(path: str | PathLike[str], n_bytes: int, error: OSError) -> CannotWrite:
    """The disk's own words, the file, and what to do."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    wanted = f"{n_bytes:,} bytes are wanted there; " if full else ""
    trouble = CannotWrite(
        f"cannot write {os.fspath(path)} ({error.strerror or error}): {wanted}"
        f"{'make room, or ' if full else ''}choose another place."
    )
    trouble.errno = error.errno
    return trouble


def _read_header(file: BinaryIO, path: str) -> bytes:
    """The length of the header, and the header, if both can be what they say."""
    size = os.fstat(file.fileno()).st_size
    beginning = file.read(9)
    if beginning[8:9] != b"{":
        raise _not_a_model(beginning, path)
    (length,) = struct.unpack("<Q", beginning[:8])
    if length > size - 8:
        raise BrokenFile(f"{path} is cut short ({size:,} bytes): get a fresh copy.")
    if length > LONGEST_HEADER:
        raise BrokenFile(f"{path} is not a hopefold model file (a header of {length:,} bytes).")
    return beginning + file.read(length - 1)


def _manifest(header: bytes, size: int, path: str) -> dict[str, Any]:
    """The manifest in the header, trusting nothing."""
    try:
        entries = parse_json(header[8:])
        manifest = parse_json(entries.pop("__metadata__")[_KEY])
        ends = [entry["data_offsets"][1] for entry in entries.values()]
        version = manifest["format"] if isinstance(manifest, dict) else None
        if type(version) is not int or version < 1:
            raise ValueError("no format version")
        wanted = int(len(header) + max(ends, default=0))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BrokenFile(f"{path} is not a hopefold model file.") from error
    if size < wanted:
        raise BrokenFile(f"{path} is cut short ({size:,} of {wanted:,} bytes): get a fresh copy.")
    if size > wanted:
        raise BrokenFile(
            f"{path} has been altered or damaged ({size:,} bytes, and it should have {wanted:,}): "
            "get a fresh copy."
        )
    return manifest


def parse_json(text: bytes | str) -> Any:
    """JSON that says one thing to every reader: no name twice, no NaN, no infinity."""
    return json.loads(
        text if isinstance(text, str) else text.decode(),
        object_pairs_hook=_each_once,
        parse_constant=_finite,
        parse_float=_finite,
    )


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number


def _checksum(header: bytes, file: BinaryIO) -> str:
    """That of the whole file, a piece at a time; the file stands behind its header."""
    unsealed = bytearray(header)
    unsealed[_checksum_of(header)] = _NO_CHECKSUM
    digest = hashlib.sha256(unsealed)
    while piece := file.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _checksum_of(content: bytes | bytearray) -> slice:
    """Where the 64 digits of the checksum lie."""
    start = content.find(_BEGINNING) + len(_BEGINNING)
    return slice(start, start + 64)


def _not_a_model(content: bytes, path: str) -> BrokenFile:
    if content[:1] == b"\x80" or content[:2] in (b"PK", b"\x1f\x8b", b"x\x9c", b"x\x01"):
        return BrokenFile(
            f"{path} is a pickle or an archive, and hopefold never opens those, as they can run "
            "code: write models with model.save(...)."
        )
    if len(content) < 9:
        return BrokenFile(f"{path} is cut short ({len(content)} bytes): get a fresh copy.")
    return BrokenFile(f"{path} is not a hopefold model file.")
