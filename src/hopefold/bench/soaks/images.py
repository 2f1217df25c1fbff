"""Images from strangers: each is read, or refused by our own error that names it.

In a process of its own, whose address space is limited, and which is watched.
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

from hopefold.bench.faults import Outcome
from hopefold.bench.soaks.strangers import Watch, limit_memory, run_alone
from hopefold.data.tables import read_table
from hopefold.errors import HopefoldError

KINDS = ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm")

#: Where a PNG file tells its width and height, and the checksum of what tells it.
SIZE, TOLD, CHECKSUM = slice(16, 24), slice(12, 29), slice(29, 33)

DRAWING = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"


def damaged(times: int, folder: Path) -> Outcome:
    """Alter so many images and read each, in a process of its own."""
    return run_alone(__name__, times, folder)


def main() -> None:
    """Print a JSON list of what was wrong."""
    times, folder = int(sys.argv[1]), Path(sys.argv[2])
    target, chance, broken = folder / "image.png", random.Random(0), []
    originals = [make_image(kind) for kind in KINDS]
    for content in originals:  # whatever is imported is imported now
        target.write_bytes(content)
        read_table(folder)
    limit_memory()
    watch = Watch(target, ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "socket."))
    sys.addaudithook(watch)
    for number in range(times):
        target.write_bytes(alter(chance.choice(originals), chance))
        if wrong := whats_wrong_with(target, watch):
            broken.append(f"{number}: {wrong}"[:1_000])
    print(json.dumps(broken))


def whats_wrong_with(target: Path, watch: Watch) -> str | None:
    """Nothing, if the image is read, or refused by its name."""
    watch.seen.clear()
    try:
        with watch:
            read_table(target.parent)
    except HopefoldError as error:
        return None if str(target) in str(error) else f"it is not named: {error}"
    except BaseException as error:
        return repr(error)
    return str(watch.seen) if watch.seen else None


def alter(content: bytes, chance: random.Random) -> bytes:
    """Bytes are others, or missing; a size is claimed; another format has this name."""
    altered = bytearray(content)
    how = chance.choice(["bytes", "cut", "claim", "drawing"])
    if how == "drawing" and chance.random() < 0.1:
        return DRAWING
    if how == "claim" and content.startswith(b"\x89PNG"):
        sizes = [chance.choice([0, 1, 9, 7_000, 20_000, 2**31 - 1, 2**32 - 1]) for _ in range(2)]
        altered[SIZE] = struct.pack(">II", *sizes)
        altered[CHECKSUM] = struct.pack(">I", zlib.crc32(altered[TOLD]))
        return bytes(altered)
    for _ in range(chance.choice([1, 3, 20])):
        altered[chance.randrange(chance.choice([40, len(altered)]))] = chance.randrange(256)
    return bytes(altered[: chance.randrange(len(altered))] if how == "cut" else altered)


def make_image(kind: str) -> bytes:
    """Nine by nine pixels of noise."""
    from PIL import Image

    pixels = np.random.RandomState(0).randint(256, size=(9, 9)).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format=kind)
    return content.getvalue()


if __name__ == "__main__":
    main()
