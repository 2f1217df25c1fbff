"""Grayscale images. A small file can claim to be a huge image: its size is checked first."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.errors import (
    BrokenFile,
    HopefoldError,
    InvalidInput,
    InvalidParameter,
    MissingPackage,
    NotEnoughMemory,
)

if TYPE_CHECKING:
    from numpy import ndarray

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm")

#: Accepted formats, whatever the file extension: some formats of Pillow start other programs.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")

#: Maximum number of pixels of an image.
MOST_PIXELS = 50_000_000

#: Bytes per pixel during reading: two copies as bytes and a float.
PER_PIXEL = 6


def common_shape(files: Sequence[Path]) -> tuple[int, int]:
    """Return the height and width of all images, according to their headers."""
    shapes = [_shape(path) for path in files]
    for path, (h2, w2) in zip(files, shapes, strict=True):
        h, w = shapes[0]
        if (h, w) != (h2, w2):
            raise InvalidInput(
                f"images differ in size: {files[0]} is {h} × {w} (height × width) and {path} "
                f"{h2} × {w2}: give a size to which all are resized, e.g. --image-shape {h},{w}."
            )
    return shapes[0]


def check_room(n_images: int, height: int, width: int) -> None:
    """Check that all images of a size fit into memory."""
    if height * width > MOST_PIXELS:
        raise InvalidParameter(
            f"images of {height:,} × {width:,} pixels are too large: give a smaller size, e.g. "
            "--image-shape 28,28."
        )
    wanted, there = PER_PIXEL * n_images * height * width, _memory()
    if there is not None and wanted > there:
        raise NotEnoughMemory(
            f"{n_images:,} images of {height:,} × {width:,} pixels take about {wanted:,} bytes, "
            f"and there are {there:,}: give a smaller size, e.g. --image-shape 28,28."
        )


def read_image(path: Path, shape: tuple[int, int]) -> ndarray:
    """Read images in grayscale, resized to the given shape."""
    with _opened(path) as image:
        gray = image.convert("L")
        if gray.size != shape[::-1]:
            gray = gray.resize(shape[::-1])
        return np.asarray(gray)


def _shape(path: Path) -> tuple[int, int]:
    with _opened(path) as image:
        return image.height, image.width


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open an image whose header is valid, and which is not too large to be decoded."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackage(
            "images are read with pillow, which is not installed: pip install 'hopefold[cli]'."
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about tags, which are not used
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                _check_pixels(path, image.height * image.width)
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise _too_large(path, str(error).split(",")[0]) from error
    except HopefoldError:
        raise
    except Exception as error:  # a damaged file can raise any error
        raise BrokenFile(f"{path} cannot be read as an image ({error}).") from error


def _check_pixels(path: Path, n_pixels: int) -> None:
    if n_pixels > MOST_PIXELS:
        raise _too_large(path, f"{n_pixels:,} pixels, of at most {MOST_PIXELS:,}")


def _too_large(path: Path, what: str) -> BrokenFile:
    return BrokenFile(
        f"{path} is not decoded, since its header claims a huge image ({what}): leave it out, or "
        "make it smaller."
    )


def _memory() -> int | None:
    """Return the physical memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
