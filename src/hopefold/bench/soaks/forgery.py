"""Model files that somebody else has made of ours: damaged, or altered under a right checksum."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopefold.persistence import store

#: What stands for a number that is written as no reader should take it.
BEYOND = "a number beyond all numbers"


def _nested(depth: int) -> Any:
    inside: Any = 1
    for _ in range(depth):
        inside = [inside]
    return inside


NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 2**31, 2**63, 2**64, 10**30, -(10**30)),
    *(0.5, -0.5, 1e-320, 1e308, float("nan"), float("inf"), BEYOND),
    *("", "a", "auto", "cuda:0", "meta", "int8", "float16", "joint", "kmeans", "<U1000000000"),
    *("O8,f4", "M8[s]", "V1000000000", "c16", "\u202e\x1b[31mü\0", "../../etc/passwd", "x" * 10**5),
    *("__import__('os').abort()", "os.system", "HOPE", "SHOPE", "LDA", "DeepMCML", "object"),
    *([], {}, [[]], [1, 2], [2, 1], [0, 10**18], ["a", "a"], [None], [1] * 1_000, ["b", "a", "c"]),
    *({"a": 1}, {"a": ["b"]}, {"__class__": "os"}, _nested(50), _nested(400)),
)

DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "C64", "F8_E4M3", "x", "")


def forged(content: bytes, other: bytes, chance: random.Random) -> tuple[str, bytes]:
    """A file that is not as it was, and a word for what was done; ``other`` is another model."""
    name = chance.choice(list(FORGERIES))
    return name, FORGERIES[name](content, other, chance)


def _flip(content: bytes, _: bytes, chance: random.Random) -> bytes:
    altered = bytearray(content)
    for _number in range(chance.choice([1, 1, 2, 30])):
        altered[_place(content, chance)] ^= 1 << chance.randrange(8)
    return bytes(altered)


def _cut(content: bytes, _: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _lengthen(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content + chance.choice([b"\0", b"{}", other, bytes(10_000)])


def _splice(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = sorted(_place(content, chance) for _ in range(2))
    begin = _place(other, chance)
    return content[:start] + other[begin : begin + end - start] + content[end:]


def _other_length(content: bytes, _: bytes, chance: random.Random) -> bytes:
    length = chance.choice([0, 1, 7, 10**5, 10**8, 2**31, 2**63, 2**64 - 1, len(content) - 8])
    return struct.pack("<Q", length) + content[8:]


def _other_manifest(content: bytes, _: bytes, chance: random.Random) -> bytes:
    """A value of the manifest is another, or gone, or one more."""
    header, manifest, body = _parts(content)
    for _number in range(chance.choice([1, 1, 1, 2, 3])):
        holder, key = chance.choice(list(_places(manifest)))
        if chance.random() < 0.15:
            del holder[key]
        elif chance.random() < 0.1:
            _add(holder, chance)
        else:
            holder[key] = _nasty(chance)
        if not manifest:
            break
    return seal(header, manifest, body)


def _twice(content: bytes, _: bytes, chance: random.Random) -> bytes:
    """A name is there twice, in the manifest or in the header."""
    header, manifest, body = _parts(content)
    key = chance.choice([key for key in manifest if key != "sha256"])
    text = json.dumps(manifest)
    if chance.random() < 0.5:
        text = f'{text[:-1]}, "{key}": {json.dumps(_nasty(chance))}}}'
        return _sealed(header, text, body)
    entry = chance.choice(list(header))
    return _sealed(header, text, body, more=f', "{entry}": {json.dumps(header[entry])}')


def _other_header(content: bytes, _: bytes, chance: random.Random) -> bytes:
    """What the header says of a tensor is not what is there."""
    header, manifest, body = _parts(content)
    entry = header[chance.choice(list(header))]
    what = chance.choice(["dtype", "shape", "data_offsets", "gone", "all"])
    if what == "dtype":
        entry["dtype"] = chance.choice(DTYPES)
    elif what == "gone":
        del entry[chance.choice(list(entry))]
    elif what == "all":
        header[chance.choice(list(header))] = _nasty(chance)
    else:
        numbers = [*entry[what]] or [0]
        numbers[chance.randrange(len(numbers))] = chance.choice(
            [0, 1, -1, 10**6, 2**40, 2**63, 2**64 - 1, 1.5, None, "1"]
        )
        entry[what] = chance.choice([numbers, numbers, _nasty(chance)])
    return seal(header, manifest, body)


def _other_tensor(content: bytes, _: bytes, chance: random.Random) -> bytes:
    """A tensor is another, or gone, or has another's name."""
    header, manifest, body = _parts(content)
    tensors = {name: _tensor(entry, body) for name, entry in header.items()}
    name = chance.choice(list(tensors))
    was = tensors[name]
    with np.errstate(all="ignore"):
        changed: dict[str, Callable[[], Any]] = {
            "values": lambda: _with_values(was, chance),
            "type": lambda: was.astype(chance.choice(["f8", "f4", "f2", "i8", "i1", "u1", "?"])),
            "rows": lambda: was[: chance.randrange(len(was) + 1)],
            "columns": lambda: was.T,
            "flat": lambda: was.reshape(-1),
            "deep": lambda: was.reshape(*was.shape, 1, 1),
            "scalar": lambda: was.reshape(-1)[:1].reshape(()),
            "long": lambda: np.zeros(chance.choice([0, 1, 10**5]), was.dtype),
            "wide": lambda: np.zeros((1, 10**5), was.dtype),
        }
        what = chance.choice([*changed, "gone", "renamed", "another"])
        if what in changed:
            tensors[name] = changed[what]()
        elif what == "gone":
            del tensors[name]
        elif what == "renamed":
            tensors[chance.choice(["map.evil", "../x", "exemplars", "", "fills"])] = was
        else:
            tensors[name] = tensors[chance.choice(list(tensors))]
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
    "manifest again": _other_manifest,  # where most can go wrong
    "manifest once more": _other_manifest,
    "twice": _twice,
    "header": _other_header,
    "tensor": _other_tensor,
    "tensor again": _other_tensor,
}

#: What is done without a new checksum: if such a file loads, it is the same model.
DAMAGE = ("bits", "cut", "more", "spliced", "length")


def seal(header: dict[str, Any], manifest: Any, body: bytes) -> bytes:
    """A file of these parts under a right checksum, whatever they are."""
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
    return compact.replace(json.dumps(BEYOND), "1e999")


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header.pop("__metadata__")[store._KEY])
    return header, manifest, content[8 + length :]


def _tensor(entry: dict[str, Any], body: bytes) -> Any:
    types = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I8": "i1", "U8": "u1"}
    start, end = entry["data_offsets"]
    return np.frombuffer(body[start:end], types[entry["dtype"]]).reshape(entry["shape"])


def _with_values(was: Any, chance: random.Random) -> Any:
    values = was.copy().reshape(-1)
    if len(values):
        number = chance.choice([0, 1, -1, 127, 255, 1e30, 1e300, -1e38, np.nan, np.inf, 2**62])
        how_many = chance.choice([1, len(values)])
        values[:how_many] = np.full(how_many, number).astype(was.dtype)
    return values.reshape(was.shape)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested lists and dicts: what holds it, and its key there."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _add(holder: Any, chance: random.Random) -> None:
    if isinstance(holder, list):
        holder.append(_nasty(chance))
    else:
        holder[chance.choice(["hidden", "names", "values", "image_shape"])] = _nasty(chance)


def _place(content: bytes, chance: random.Random) -> int:
    """Anywhere, but as often in the header as in the numbers."""
    return chance.randrange(chance.choice([10, min(3_000, len(content)), len(content)]))


def _nasty(chance: random.Random) -> Any:
    return json.loads(json.dumps(chance.choice(NASTY)))  # a copy: it may be altered in its turn
