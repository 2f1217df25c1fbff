"""Untrusted images: each is read, or a hopefold error names the file.

The test runs in a process of its own, with limited memory and an audit hook.
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

from faults.outcome import Outcome
from faults.processes import AuditHook, limit_memory, run_in_process
from hopefold.data.tables import read_table
from hopefold.errors import HopefoldError

#: Audit events that no image may cause.
FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "socket.")

FORMATS = ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm")

#: In a PNG file: the width and height, the bytes under the checksum, and the checksum.
SIZE, CHECKED, CHECKSUM = slice(16, 24), slice(12, 29), slice(29, 33)

#: An EPS file, which Pillow would give to Ghostscript.
DRAWING = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"


def damaged(times: int, folder: Path) -> Outcome:
    """Alter and read this many images, in a process of its own."""
    return run_in_process(__name__, times, folder)


def main() -> None:
    """Print a JSON list of the broken cases."""
    times, folder = int(sys.argv[1]), Path(sys.argv[2])
    target, rng, broken = folder / "image.png", random.Random(0), []
    originals = [make_image(name) for name in FORMATS]
    for content in originals:  # so that all imports are done before the hook is active
        target.write_bytes(content)
        read_table(folder)
    limit_memory()
    hook = AuditHook(target, FORBIDDEN)
    sys.addaudithook(hook)
    for number in range(times):
        target.write_bytes(alter(rng.choice(originals), rng))
        if problem := find_problem(target, hook):
            broken.append(f"{number}: {problem}"[:1_000])
    print(json.dumps(broken))


def find_problem(target: Path, hook: AuditHook) -> str | None:
    """None if the image is read, or an error names it; else the broken promise."""
    hook.seen.clear()
    try:
        with hook:
            read_table(target.parent)
    except HopefoldError as error:
        return None if str(target) in str(error) else f"the error does not name the file: {error}"
    except BaseException as error:
        return repr(error)
    return str(hook.seen) if hook.seen else None


def alter(content: bytes, rng: random.Random) -> bytes:
    """Change or cut bytes, claim another size, or put another format into the file."""
    altered = bytearray(content)
    change = rng.choice(["bytes", "cut", "claim", "drawing"])
    if change == "drawing" and rng.random() < 0.1:
        return DRAWING
    if change == "claim" and content.startswith(b"\x89PNG"):
        sizes = [rng.choice([0, 1, 9, 7_000, 20_000, 2**31 - 1, 2**32 - 1]) for _ in range(2)]
        altered[SIZE] = struct.pack(">II", *sizes)
        altered[CHECKSUM] = struct.pack(">I", zlib.crc32(altered[CHECKED]))
        return bytes(altered)
    for _ in range(rng.choice([1, 3, 20])):
        altered[rng.randrange(rng.choice([40, len(altered)]))] = rng.randrange(256)
    return bytes(altered[: rng.randrange(len(altered))] if change == "cut" else altered)


def make_image(image_format: str) -> bytes:
    """An image of 9 × 9 pixels of noise."""
    from PIL import Image

    pixels = np.random.RandomState(0).randint(256, size=(9, 9)).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format=image_format)
    return content.getvalue()


if __name__ == "__main__":
    main()
