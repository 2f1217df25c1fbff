"""Tensors and a manifest in one file on disk.

A safetensors file whose header carries the manifest as JSON, with a SHA-256 over every byte of the
file. Reading runs no code: it is JSON and raw numbers, never pickle. Writing is atomic: the old
file or the new one is there, whole, and never a half.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import uuid
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise

from hopefold.errors import BrokenFile, InvalidParameter, NoSuchFolder

if TYPE_CHECKING:
    from numpy import ndarray

FORMAT = 1

#: Where the manifest lies in the header's metadata, and how it begins there. Quotes in user text
#: are escaped twice, so nothing that a user names can look like this.
_KEY = "hopefold"
_BEGINNING = rb"{\"sha256\":\""
_NO_CHECKSUM = b"0" * 64


def check_kind(
    manifest: Mapping[str, Any], kinds: Collection[str], path: str | PathLike[str]
) -> None:
    """Is what the file holds of a kind that is known?"""
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise BrokenFile(
            f"{path} holds a model of another kind ({kind!r}), which this hopefold does not know: "
            "pip install --upgrade hopefold."
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
    """The manifest and the tensors of a file, or a `BrokenFile` that says what is wrong with it."""
    content = Path(path).read_bytes()
    manifest = _manifest(content, os.fspath(path))
    if manifest["format"] > FORMAT:
        raise BrokenFile(
            f"{path} is of format {manifest['format']}, and this hopefold reads up to {FORMAT}: "
            "pip install --upgrade hopefold."
        )
    unsealed = bytearray(content)
    unsealed[_checksum_of(content)] = _NO_CHECKSUM
    if hashlib.sha256(unsealed).hexdigest() != manifest.pop("sha256", None):
        raise BrokenFile(
            f"{path} has been altered or damaged (its checksum is wrong): get a fresh copy."
        )
    try:
        return manifest, parse_tensors(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise BrokenFile(
            f"{path} is not a whole model file ({error}): get a fresh copy."
        ) from error


def write_atomically(path: str | PathLike[str], content: bytes) -> None:
    """Write beside the target, flush to the disk, then rename.

    A link is followed and the permissions of an existing file stay.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidParameter(f"cannot write {path!r}, which is a folder: name a file in it.")
    if target.exists() and not target.is_file():  # /dev/null would be gone
        raise InvalidParameter(f"cannot write {path}, which is a device or a pipe: name a file.")
    if not target.parent.is_dir():
        raise NoSuchFolder(f"cannot write {path}: make the folder {target.parent} first.")
    beside = target.with_name(f".{uuid.uuid4().hex[:12]}.part")
    try:
        with open(beside, "xb") as file:
            if target.is_file():
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _manifest(content: bytes, path: str) -> dict[str, Any]:
    """The manifest in the header, trusting nothing."""
    if content[8:9] != b"{":
        raise _not_a_model(content, path)
    (header_length,) = struct.unpack("<Q", content[:8])
    if header_length > len(content) - 8:
        raise BrokenFile(f"{path} is cut short ({len(content):,} bytes): get a fresh copy.")
    try:
        header = json.loads(content[8 : 8 + header_length])
        manifest = json.loads(header["__metadata__"][_KEY])
        ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        if not isinstance(manifest, dict) or not isinstance(manifest["format"], int):
            raise ValueError("no format version")
        wanted = 8 + header_length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise BrokenFile(f"{path} is not a hopefold model file.") from error
    if len(content) < wanted:
        raise BrokenFile(
            f"{path} is cut short ({len(content):,} of {wanted:,} bytes): get a fresh copy."
        )
    return manifest


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
