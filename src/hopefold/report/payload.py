"""Serialization of a scene for a page: JSON, with arrays and images in base64."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from hopefold.report.backdrop import Backdrop
from hopefold.report.row_display import Columns, Images
from hopefold.report.scene import Scene
from hopefold.report.top_interactions import TopInteractions

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of thumbnails along each side of a sheet. A page decodes a sheet when it needs one.
SHEET_SIDE = 32

#: Number of pixels from which on thumbnails have 16 gray levels: half the size, no visible change.
MANY_PIXELS = 4_000_000

#: Opacity of regions, from the boundary of classes to certainty.
TINT = (8, 40)
DENSITY_GRAY = (122, 127, 138)

#: Characters that are escaped in a script element, even within a string.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_json(scene: Scene) -> str:
    """Return the scene as JSON that is safe within a script element."""
    text = json.dumps(payload(scene), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def payload(scene: Scene) -> dict[str, Any]:
    """Return the scene as plain data; thumbnails are separate, in `thumbnail_sheets`."""
    code = np.uint8 if len(scene.classes) <= 256 else np.uint16
    low, high = scene.frame
    sampled = len(scene.numbers) < scene.n_rows
    return {
        "classes": scene.classes,
        "colors": scene.colors,
        "n_rows": scene.n_rows,
        "n_leading": 0 if scene.leading is None else scene.leading.shape[1],
        "numbers": array(scene.numbers, np.uint32) if sampled else None,
        "ids": scene.ids,
        "x": array(scene.points[:, 0], np.float32),
        "y": array(scene.points[:, 1], np.float32),
        "true": array(scene.true, code),
        "unlabeled": scene.unlabeled,
        "predicted": None if scene.predicted is None else array(scene.predicted, code),
        "leading": None if scene.leading is None else array(scene.leading, code),
        "shares": None if scene.shares is None else array(_whole(scene.shares), np.uint16),
        "flags": array(scene.training + 2 * scene.far, np.uint8),
        "frame": [low.tolist(), high.tolist()],
        "backdrop": _backdrop(scene),
        "exemplars": _exemplars(scene, code),
        "interactions": _interactions(scene.interactions) if scene.interactions else None,
        "columns": _columns(scene.display) if isinstance(scene.display, Columns) else None,
        "images": _images(scene.display) if isinstance(scene.display, Images) else None,
    }


def array(values: ndarray, dtype: Any) -> dict[str, str]:
    """Encode an array: its type in JavaScript, and its bytes, little-endian."""
    small = np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<"))
    return {"type": np.dtype(dtype).name, "bytes": b64encode(small.tobytes()).decode()}


def _whole(shares: ndarray) -> ndarray:
    numbers: ndarray = np.rint(65_535 * shares)
    return numbers


def image_uri(pixels: ndarray) -> str:
    """Return an image as a data URI of lossless WebP."""
    return f"data:image/webp;base64,{_webp(Image.fromarray(pixels))}"


def thumbnail_sheets(display: Images) -> list[str]:
    """Return thumbnails, row by row, on sheets of equal width: WebP in base64."""
    images = display.thumbnails
    if images.size > MANY_PIXELS:
        images = (images // 16) * 17
    _, height, width = images.shape
    step = SHEET_SIDE**2
    sheets = []
    for start in range(0, len(images), step):
        some = images[start : start + step]
        n_lines = -(-len(some) // SHEET_SIDE)
        sheet = np.full((n_lines * SHEET_SIDE, height, width), 255, np.uint8)
        sheet[: len(some)] = some
        grid = sheet.reshape(n_lines, SHEET_SIDE, height, width).transpose(0, 2, 1, 3)
        sheets.append(_webp(Image.fromarray(grid.reshape(n_lines * height, SHEET_SIDE * width))))
    return sheets


def _webp(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", lossless=True, quality=50, method=2)
    return b64encode(buffer.getvalue()).decode()


def _backdrop(scene: Scene) -> dict[str, Any]:
    back = scene.backdrop
    return {
        "low": back.low.tolist(),
        "high": back.high.tolist(),
        "regions": None if back.codes is None else image_uri(_tinted(back, scene.colors)),
        "density": None if back.density is None else image_uri(_shaded(back.density)),
    }


def _tinted(back: Backdrop, names: tuple[str, ...]) -> ndarray:
    """Draw the regions in the colors of their classes, fainter near class boundaries."""
    assert back.codes is not None
    assert back.certainty is not None
    colors = np.array([[int(c[place : place + 2], 16) for place in (1, 3, 5)] for c in names])
    faint, strong = TINT
    alpha = faint + (strong - faint) * back.certainty
    return np.dstack([colors[back.codes], alpha]).astype(np.uint8)


def _shaded(density: ndarray) -> ndarray:
    """Draw the density of rows in gray, on a logarithmic scale."""
    shade = np.log1p(density) / np.log1p(density.max())
    gray = np.broadcast_to(DENSITY_GRAY, (*density.shape, 3))
    return np.dstack([gray, 150 * shade]).astype(np.uint8)


def _exemplars(scene: Scene, code: Any) -> dict[str, Any] | None:
    if scene.exemplars is None:
        return None
    points, codes = scene.exemplars.points, scene.exemplars.codes
    return {
        "x": array(points[:, 0], np.float32),
        "y": array(points[:, 1], np.float32),
        "codes": None if codes is None else array(codes, code),
    }


def _columns(columns: Columns) -> dict[str, Any]:
    # larger integers are not exact in float32
    large = np.abs(columns.values).max(initial=0) >= 2**24
    return {
        "names": columns.names,
        "separation": columns.separation.tolist(),
        "mean": columns.mean.tolist(),
        "deviation": columns.deviation.tolist(),
        "values": array(columns.values, np.float64 if large else np.float32),
    }


def _interactions(interactions: TopInteractions) -> dict[str, Any]:
    return {
        "names": interactions.names,
        "n_own": interactions.own.shape[1],
        "rows": array(interactions.rows, np.uint32),
        "own": array(interactions.own, np.uint8),
        "moves": array(interactions.moves, np.float32),
    }


def _images(images: Images) -> dict[str, Any]:
    _, height, width = images.thumbnails.shape
    return {"height": height, "width": width, "side": SHEET_SIDE, "is_ink": images.is_ink}
