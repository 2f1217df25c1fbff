"""Forged model files: damaged, or altered with a valid checksum."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopefold.persistence import store

#: A placeholder for the JSON number 1e999, which overflows.
OVERFLOW = "an overflowing number"


def _nested(depth: int) -> Any:
    inside: Any = 1
    for _ in range(depth):
        inside = [inside]
    return inside


UNEXPECTED: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 2**31, 2**63, 2**64, 10**30, -(10**30)),
    *(0.5, -0.5, 1e-320, 1e308, float("nan"), float("inf"), OVERFLOW),
    *("", "a", "auto", "cuda:0", "meta", "int8", "float16", "joint", "kmeans", "<U1000000000"),
    *("O8,f4", "M8[s]", "V1000000000", "c16", "\u202e\x1b[31mü\0", "../../etc/passwd", "x" * 10**5),
    *("__import__('os').abort()", "os.system", "HOPE", "SHOPE", "LDA", "DeepMCML", "object"),
    *([], {}, [[]], [1, 2], [2, 1], [0, 10**18], ["a", "a"], [None], [1] * 1_000, ["b", "a", "c"]),
    *({"a": 1}, {"a": ["b"]}, {"__class__": "os"}, _nested(50), _nested(400)),
)

DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "C64", "F8_E4M3", "x", "")


def forged(content: bytes, other: bytes, rng: random.Random) -> tuple[str, bytes]:
    """The kind of forgery and the forged content; ``other`` is the file of another model."""
    name = rng.choice(list(FORGERIES))
    return name, FORGERIES[name](content, other, rng)


def _flip(content: bytes, _: bytes, rng: random.Random) -> bytes:
    altered = bytearray(content)
    for _number in range(rng.choice([1, 1, 2, 30])):
        altered[_position(content, rng)] ^= 1 << rng.randrange(8)
    return bytes(altered)


def _cut(content: bytes, _: bytes, rng: random.Random) -> bytes:
    return content[: _position(content, rng)]


def _lengthen(content: bytes, other: bytes, rng: random.Random) -> bytes:
    return content + rng.choice([b"\0", b"{}", other, bytes(10_000)])


def _splice(content: bytes, other: bytes, rng: random.Random) -> bytes:
    start, end = sorted(_position(content, rng) for _ in range(2))
    begin = _position(other, rng)
    return content[:start] + other[begin : begin + end - start] + content[end:]


def _other_length(content: bytes, _: bytes, rng: random.Random) -> bytes:
    length = rng.choice([0, 1, 7, 10**5, 10**8, 2**31, 2**63, 2**64 - 1, len(content) - 8])
    return struct.pack("<Q", length) + content[8:]


def _other_manifest(content: bytes, _: bytes, rng: random.Random) -> bytes:
    """Change, remove or add values of the manifest."""
    header, manifest, body = _parts(content)
    for _number in range(rng.choice([1, 1, 1, 2, 3])):
        container, key = rng.choice(list(_containers(manifest)))
        if rng.random() < 0.15:
            del container[key]
        elif rng.random() < 0.1:
            _add(container, rng)
        else:
            container[key] = _unexpected_value(rng)
        if not manifest:
            break
    return seal(header, manifest, body)


def _twice(content: bytes, _: bytes, rng: random.Random) -> bytes:
    """Repeat a name in the manifest or in the header."""
    header, manifest, body = _parts(content)
    key = rng.choice([key for key in manifest if key != "sha256"])
    text = json.dumps(manifest)
    if rng.random() < 0.5:
        text = f'{text[:-1]}, "{key}": {json.dumps(_unexpected_value(rng))}}}'
        return _sealed(header, text, body)
    entry = rng.choice(list(header))
    return _sealed(header, text, body, more=f', "{entry}": {json.dumps(header[entry])}')


def _other_header(content: bytes, _: bytes, rng: random.Random) -> bytes:
    """Change a tensor's entry in the header, but not the tensor."""
    header, manifest, body = _parts(content)
    entry = header[rng.choice(list(header))]
    what = rng.choice(["dtype", "shape", "data_offsets", "gone", "all"])
    if what == "dtype":
        entry["dtype"] = rng.choice(DTYPES)
    elif what == "gone":
        del entry[rng.choice(list(entry))]
    elif what == "all":
        header[rng.choice(list(header))] = _unexpected_value(rng)
    else:
        numbers = [*entry[what]] or [0]
        numbers[rng.randrange(len(numbers))] = rng.choice(
            [0, 1, -1, 10**6, 2**40, 2**63, 2**64 - 1, 1.5, None, "1"]
        )
        entry[what] = rng.choice([numbers, numbers, _unexpected_value(rng)])
    return seal(header, manifest, body)


def _other_tensor(content: bytes, _: bytes, rng: random.Random) -> bytes:
    """Change, remove or rename a tensor."""
    header, manifest, body = _parts(content)
    tensors = {name: _tensor(entry, body) for name, entry in header.items()}
    name = rng.choice(list(tensors))
    original = tensors[name]
    with np.errstate(all="ignore"):
        changed: dict[str, Callable[[], Any]] = {
            "values": lambda: _with_values(original, rng),
            "type": lambda: original.astype(rng.choice(["f8", "f4", "f2", "i8", "i1", "u1", "?"])),
            "rows": lambda: original[: rng.randrange(len(original) + 1)],
            "columns": lambda: original.T,
            "flat": lambda: original.reshape(-1),
            "deep": lambda: original.reshape(*original.shape, 1, 1),
            "scalar": lambda: original.reshape(-1)[:1].reshape(()),
            "long": lambda: np.zeros(rng.choice([0, 1, 10**5]), original.dtype),
            "wide": lambda: np.zeros((1, 10**5), original.dtype),
        }
        what = rng.choice([*changed, "gone", "renamed", "another"])
        if what in changed:
            tensors[name] = changed[what]()
        elif what == "gone":
            del tensors[name]
        elif what == "renamed":
            tensors[rng.choice(["map.evil", "../x", "exemplars", "", "fills"])] = original
        else:
            tensors[name] = tensors[rng.choice(list(tensors))]
    manifest.pop("sha256", None)
    manifest.pop("format", None)
    return store.to_bytes(manifest, tensors)


FORGERIES: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "bits": _flip,
    "cut": _cut,
    "more": _lengthen,
    "spliced": _splice,
    "length": _other_length,
    "manifest": _other_manifest,
    "manifest again": _other_manifest,  # drawn more often: most can go wrong here
    "manifest once more": _other_manifest,
    "twice": _twice,
    "header": _other_header,
    "tensor": _other_tensor,
    "tensor again": _other_tensor,
}

#: Forgeries that do not update the checksum: such a file must not give a different model.
DAMAGE = ("bits", "cut", "more", "spliced", "length")


def seal(header: dict[str, Any], manifest: Any, body: bytes) -> bytes:
    """A file of these parts with a valid checksum, whatever they are."""
    return _sealed(header, json.dumps(manifest), body)


def _sealed(header: dict[str, Any], manifest: str, body: bytes, more: str = "") -> bytes:
    text = json.dumps({"__metadata__": {store._KEY: _raw(manifest)}, **header})
    raw = _raw(f"{text[:-1]}{more}}}").encode()
    content = bytearray(struct.pack("<Q", len(raw)) + raw + body)
    place = store._checksum_of(content)
    content[place] = store._NO_CHECKSUM
    content[place] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def _raw(text: str) -> str:
    compact = text.replace('{"sha256": "', '{"sha256":"')
    return compact.replace(json.dumps(OVERFLOW), "1e999")


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header.pop("__metadata__")[store._KEY])
    return header, manifest, content[8 + length :]


def _tensor(entry: dict[str, Any], body: bytes) -> Any:
    types = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I8": "i1", "U8": "u1"}
    start, end = entry["data_offsets"]
    return np.frombuffer(body[start:end], types[entry["dtype"]]).reshape(entry["shape"])


def _with_values(original: Any, rng: random.Random) -> Any:
    values = original.copy().reshape(-1)
    if len(values):
        number = rng.choice([0, 1, -1, 127, 255, 1e30, 1e300, -1e38, np.nan, np.inf, 2**62])
        how_many = rng.choice([1, len(values)])
        values[:how_many] = np.full(how_many, number).astype(original.dtype)
    return values.reshape(original.shape)


def _containers(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each container and key in nested lists and dicts."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _containers(tree[key])


def _add(container: Any, rng: random.Random) -> None:
    if isinstance(container, list):
        container.append(_unexpected_value(rng))
    else:
        container[rng.choice(["hidden", "names", "values", "image_shape"])] = _unexpected_value(rng)


def _position(content: bytes, rng: random.Random) -> int:
    """A random position, with the header drawn as often as the numbers."""
    return rng.randrange(rng.choice([10, min(3_000, len(content)), len(content)]))


def _unexpected_value(rng: random.Random) -> Any:
    return json.loads(json.dumps(rng.choice(UNEXPECTED)))  # a copy, since it may be altered again
