"""Images that are not what they say are not decoded."""

from __future__ import annotations

import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from faults import damaged_images as images
from hopefold.data import image_files
from hopefold.data.tables import read_table
from hopefold.errors import BrokenFile, InvalidParameter, NotEnoughMemory


@pytest.fixture
def folder(tmp_path):
    """Two classes, of one image each."""
    for number, name in enumerate("ab"):
        (tmp_path / name).mkdir()
        pixels = np.full((4, 5), 50 * number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / name / "image.png")
    return tmp_path


def claim(path, width, height):
    """A PNG file whose header says another size than it has."""
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)


def test_honest_images_are_read(folder):
    table = read_table(folder)
    assert table.X.tolist() == [[0] * 20, [50] * 20]
    assert table.image_shape == (4, 5)


@pytest.mark.parametrize(
    "size",
    [(8_000, 8_000), (10_000, 10_000), (20_000, 20_000), (10**9, 2)],
    ids=["of ours", "Pillow warns", "Pillow refuses", "long"],
)
@pytest.mark.parametrize("shape", [None, (2, 2)])
def test_a_bomb_is_named_and_not_decoded(folder, size, shape):
    claim(folder / "b" / "image.png", *size)
    with pytest.raises(BrokenFile, match=r"b/image\.png is not decoded, since its header"):
        read_table(folder, image_shape=shape)


def test_a_real_bomb_of_a_few_kilobytes_is_not_decoded(folder):
    Image.new("1", (9_000, 9_000)).save(folder / "a" / "image.png")
    assert (folder / "a" / "image.png").stat().st_size < 20_000
    with pytest.raises(BrokenFile, match=r"a/image\.png .*81,000,000 pixels"):
        read_table(folder)


def test_more_images_than_memory_are_told_before_they_are_decoded(folder, monkeypatch):
    monkeypatch.setattr(image_files, "_memory", lambda: 100)
    with pytest.raises(NotEnoughMemory, match=r"2 images of 4 × 5 pixels take about 240 bytes"):
        read_table(folder)


def test_a_size_that_is_vast_is_refused(folder):
    with pytest.raises(InvalidParameter, match="100,000 × 100,000 pixels are too large"):
        read_table(folder, image_shape=(100_000, 100_000))


def test_no_program_is_started_for_an_image(folder, tmp_path, monkeypatch):
    """PostScript is drawn by a program, which Pillow would start whatever the file is called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    drawing = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 4\n%%EndComments\nshowpage\n"
    (folder / "a" / "image.png").write_text(drawing)
    with pytest.raises(BrokenFile, match="cannot be read as an image"):
        read_table(folder, image_shape=(4, 5))
    assert not (tmp_path / "started").exists()


def test_damaged_images_are_read_or_are_one_of_our_errors(tmp_path):
    assert not images.damaged(200, tmp_path).broken
