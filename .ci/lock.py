"""Write requirements.lock: what constraints.txt pins, with the checksums of all its files.

    python .ci/lock.py

torch is left out: each platform has a build of its own. Everything else is installed only if it is
one of these files, whatever the platform.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
INDEX = "https://pypi.org/simple"
WITHOUT_HASHES = ("torch",)
FILE = re.compile(r'href="[^"#]*/([^"/#]+)#sha256=([0-9a-f]{64})"')


def main() -> None:
    """Ask the index for every pin, and write the lock."""
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    lines = ["# Made by .ci/lock.py of constraints.txt."]
    for pin in pins:
        name, version = pin.split(";")[0].strip().split("==")
        if name in WITHOUT_HASHES:
            continue
        hashes = hashes_of(name, version)
        if not hashes:
            sys.exit(f"the index has no files of {name} {version}.")
        lines.append(" \\\n".join([pin, *(f"    --hash=sha256:{one}" for one in hashes)]))
        print(f"{name} {version}: {len(hashes)} files")
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n")


def hashes_of(name: str, version: str) -> list[str]:
    """Checksums of the wheels and of the source archive of a version."""
    address = f"{INDEX}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with urlopen(address, timeout=60) as answer:
        page = unescape(answer.read().decode())
    return sorted({digest for file, digest in FILE.findall(page) if is_of(file, name, version)})


def is_of(file: str, name: str, version: str) -> bool:
    """Is it a file of this version?"""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    plain = re.sub(r"[-_.]+", "_", file.split(f"-{version}", maxsplit=1)[0]).lower()
    return plain == stem and bool(re.search(rf"-{re.escape(version)}(-|\.tar\.gz|\.zip)", file))


if __name__ == "__main__":
    main()
