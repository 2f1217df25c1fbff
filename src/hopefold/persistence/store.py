"""A file format for tensors and a manifest.

A safetensors file whose header contains the manifest as JSON, and a SHA-256 over the whole file.
Reading runs no code: the content is JSON and raw numbers, never pickle. Writing is atomic: either
the old or the new file exists, never a part of one.
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
from safetensors.numpy import save as serialize

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

#: The kind of file that is a checkpoint.
CHECKPOINT = "checkpoint"

#: The position of the manifest in the header's metadata, and how it begins there. Quotes in user
#: text are escaped twice, so no user text can look like this.
_KEY = "hopefold"
_BEGINNING = rb"{\"sha256\":\""
_NO_CHECKSUM = b"0" * 64

#: The maximum length of a header: a million feature names take a third of it.
LONGEST_HEADER = 100_000_000

#: Bytes read at once for a checksum, and the number of characters of untrusted text in a message.
PIECE, TOLD = 2**20, 200

#: The suffix of the temporary file next to the target, and the number of seconds without a change
#: after which it is considered left over by a killed process.
PART, STALE = ".part", 3_600


def check_kind(
    manifest: Mapping[str, Any], kinds: Collection[str], path: str | PathLike[str]
) -> None:
    """Check that the file contains a known kind of model."""
    kind = manifest.get("kind")
    if kind == CHECKPOINT:
        raise BrokenFile(
            f"{path} is not a model but the checkpoint of a fit: fit again with the same data and "
            "settings to resume."
        )
    if not isinstance(kind, str) or kind not in kinds:
        raise BrokenFile(
            f"{path} contains a model of another kind ({format_quoted(repr(kind))}), which this "
            "version of hopefold does not know: pip install --upgrade hopefold."
        )


def write(
    path: str | PathLike[str], manifest: Mapping[str, Any], tensors: Mapping[str, ndarray]
) -> None:
    """Write tensors and a manifest of plain JSON data to one file, atomically."""
    write_atomically(path, to_bytes(manifest, tensors))


def to_bytes(manifest: Mapping[str, Any], tensors: Mapping[str, ndarray]) -> bytes:
    """Return the content of the file that `write` writes."""
    sealed = {"sha256": _NO_CHECKSUM.decode(), **manifest, "format": FORMAT}
    metadata = {_KEY: json.dumps(sealed, allow_nan=False, separators=(",", ":"))}
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    content = bytearray(serialize(arrays, metadata=metadata))
    content[_checksum_of(content)] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, ndarray]]:
    """Read the manifest and the tensors of a file; raise `BrokenFile` if it is not valid.

    The header is validated first, on its own: the rest of the file must match it.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # reading a pipe would block
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
                f"{path} was modified or damaged (its checksum is wrong): get a fresh copy."
            )
        file.seek(0)
        try:
            return manifest, parse_tensors(file.read())
        except MemoryError as error:
            n_bytes = os.fstat(file.fileno()).st_size
            raise NotEnoughMemory(
                f"there is not enough memory for the {n_bytes:,} bytes of {path}: free some."
            ) from error
        except Exception as error:  # a third-party reader of an untrusted file
            raise BrokenFile(
                f"{path} is not a complete model file ({format_quoted(error)}): get a fresh copy."
            ) from error


def format_quoted(strange: object) -> str:
    """Format a value from a file for a message: short, on one line, without control characters."""
    text = str(strange)
    text = text if len(text) <= TOLD else f"{text[:TOLD]}…"
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def write_atomically(path: str | PathLike[str], content: bytes) -> None:
    """Write to a temporary file next to the target, flush it to disk, then rename it.

    Links are followed, and the permissions of an existing file are kept. Concurrent writes do not
    interfere: each has its own temporary file, and the last to finish wins. Temporary files that
    killed processes have left are removed by a later write of the same target.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidParameter(f"cannot write {path!r}, which is a folder: name a file in it.")
    if target.exists() and not target.is_file():  # or /dev/null would be replaced
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
    """Return the prefix of temporary files of this target; a hash, since names can be long."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"


def _sweep(target: Path) -> None:
    """Remove temporary files that killed writes of this target have left.

    The criterion is age: an active write has changed its file recently. If a write stalls for an
    hour, it fails, and the old file stays.
    """
    try:
        for part in target.parent.glob(f"{_part_of(target)}*{PART}"):
            if time.time() - part.stat().st_mtime > STALE:
                part.unlink()
    except OSError:  # cleanup is optional
        pass


def _forget(beside: Path) -> None:
    with suppress(OSError):  # keep the first error
        beside.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Flush the new name to disk, on systems that can flush folders."""
    with suppress(OSError, AttributeError):  # not on Windows
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_write(path: str | PathLike[str], n_bytes: int, error: OSError) -> CannotWrite:
    """Return an error with the system's message, the file, and what to do."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    wanted = f"{n_bytes:,} bytes are needed there; " if full else ""
    trouble = CannotWrite(
        f"cannot write {os.fspath(path)} ({error.strerror or error}): {wanted}"
        f"{'free some space, or ' if full else ''}choose another place."
    )
    trouble.errno = error.errno
    return trouble


def _read_header(file: BinaryIO, path: str) -> bytes:
    """Read the length of the header, and the header, if both are plausible."""
    size = os.fstat(file.fileno()).st_size
    beginning = file.read(9)
    if beginning[8:9] != b"{":
        raise _not_a_model(beginning, path)
    (length,) = struct.unpack("<Q", beginning[:8])
    if length > size - 8:
        raise BrokenFile(f"{path} is truncated ({size:,} bytes): get a fresh copy.")
    if length > LONGEST_HEADER:
        raise BrokenFile(f"{path} is not a hopefold model file (a header of {length:,} bytes).")
    return beginning + file.read(length - 1)


def _manifest(header: bytes, size: int, path: str) -> dict[str, Any]:
    """Parse the manifest in the header, without trusting it."""
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
        raise BrokenFile(f"{path} is truncated ({size:,} of {wanted:,} bytes): get a fresh copy.")
    if size > wanted:
        raise BrokenFile(
            f"{path} was modified or damaged ({size:,} bytes, and it should have {wanted:,}): "
            "get a fresh copy."
        )
    return manifest


def parse_json(text: bytes | str) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN, no infinity."""
    return json.loads(
        text if isinstance(text, str) else text.decode(),
        object_pairs_hook=_each_once,
        parse_constant=_finite,
        parse_float=_finite,
    )


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number


def _checksum(header: bytes, file: BinaryIO) -> str:
    """Return the checksum of the whole file, read in chunks, without the checksum itself."""
    unsealed = bytearray(header)
    unsealed[_checksum_of(header)] = _NO_CHECKSUM
    digest = hashlib.sha256(unsealed)
    while piece := file.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _checksum_of(content: bytes | bytearray) -> slice:
    """Return the position of the 64 digits of the checksum."""
    start = content.find(_BEGINNING) + len(_BEGINNING)
    return slice(start, start + 64)


def _not_a_model(content: bytes, path: str) -> BrokenFile:
    if content[:1] == b"\x80" or content[:2] in (b"PK", b"\x1f\x8b", b"x\x9c", b"x\x01"):
        return BrokenFile(
            f"{path} is a pickle or an archive, which hopefold never opens, since they can run "
            "code: write models with model.save(...)."
        )
    if len(content) < 9:
        return BrokenFile(f"{path} is truncated ({len(content)} bytes): get a fresh copy.")
    return BrokenFile(f"{path} is not a hopefold model file.")
