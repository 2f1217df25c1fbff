"""Export of a formula as one C99 file: tables of numbers, and the functions that are needed.

The functions are in ``pieces/``. Here are the tables and the sequence of layers. Text of the user
is only written as escaped strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

import hopefold
from hopefold.core.calibration import LEAST_SHARE
from hopefold.core.neighbors import TIE_BONUS
from hopefold.errors import CannotExport
from hopefold.export.formula import Formula, Layer
from hopefold.persistence.quantization import label_type, pack, pack_scale

if TYPE_CHECKING:
    from numpy import ndarray

#: Maximum size of the tables in bytes: the memory of a large microcontroller.
MOST_BYTES = 2_000_000

#: The longest string that every C99 compiler supports.
LONGEST_TEXT = 4_095

#: The maximum line width of a table.
WIDTH = 96

TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.uint16): "unsigned short",
}

#: The C function of each layer type; its piece has the name of the type.
SHAPES = {"power": "power", "sigmoid": "sigmoid", "tanh": "hyperbolic_tangent"}

HEAD = """\
/* {method}, written by hopefold {version}.

   void hopefold_transform(const float *row, float *point);
       the HOPEFOLD_COMPONENTS coordinates of a row of HOPEFOLD_FEATURES numbers
{predict}
   {missing}
   Nothing is allocated, and nothing is kept between calls. {n_bytes} bytes of tables.
   To try it on rows of CSV: cc -std=c99 -O2 -DHOPEFOLD_MAIN FILE.c -o model -lm
*/
#include <math.h>
#include <stddef.h>
"""

PREDICT = """\
   int hopefold_predict(const float *row, float *probabilities);
       the number of its class in hopefold_classes, and HOPEFOLD_CLASSES probabilities;
       -1 if the row has a missing value, or lies so far outside that its point is not a number
"""

NO_CLASSES = """\
   It was learned without labels: HOPEFOLD_CLASSES is 0, and there is no hopefold_predict.
"""


def to_text(formula: Formula) -> str:
    """Return the content of the file."""
    tables, n_bytes = dict(_tables(formula)), bytes_of_tables(formula)
    if n_bytes > MOST_BYTES:
        raise CannotExport(
            f"the model has {n_bytes:,} bytes of numbers, and a C file has at most "
            f"{MOST_BYTES:,}: fit a smaller one (e.g. max_bytes=65536), or export it as .onnx."
        )
    parts = [
        _head(formula, n_bytes),
        _sizes(formula),
        *([_texts("hopefold_classes", _class_names(formula))] if formula.names_classes else []),
        *([_texts("hopefold_features", formula.feature_names)] if formula.feature_names else []),
        *(_table(name, table) for name, table in tables.items()),
        _scale(tables),
        *(_piece(name) for name in _pieces_of_layers(formula)),
        _transform(formula, tables),
        *map(_piece, _pieces_of_judging(formula)),
        _piece("main"),
    ]
    return "\n".join(parts)


def bytes_of_tables(formula: Formula) -> int:
    """Return the size of all tables in bytes."""
    return sum(table.nbytes for _, table in _tables(formula))


def _head(formula: Formula, n_bytes: int) -> str:
    filled = "A value that is not a number (NaN) is missing, and is filled with the column's mean."
    return HEAD.format(
        method=formula.method,
        version=hopefold.__version__,
        predict=PREDICT if formula.names_classes else NO_CLASSES,
        missing="There must be no missing value." if formula.fills is None else filled,
        n_bytes=f"{n_bytes:,}",
    )


def _sizes(formula: Formula) -> str:
    sizes = {
        "FEATURES": formula.n_features,
        "COMPONENTS": formula.n_components,
        "CLASSES": len(formula.classes),
    }
    if formula.names_classes:
        sizes["REFERENCES"] = len(formula.references)
    if formula.n_neighbors is not None:
        sizes["NEIGHBORS"] = formula.n_neighbors
    lines = [f"#define HOPEFOLD_{name} {size}" for name, size in sizes.items()]
    if formula.n_neighbors is not None:
        lines.append(f"#define HOPEFOLD_TIE_BONUS {_literal(TIE_BONUS)}")
    if formula.temperature != 1:
        lines.append(f"#define HOPEFOLD_TEMPERATURE {_literal(formula.temperature)}")
        lines.append(f"#define HOPEFOLD_LEAST_SHARE {_literal(LEAST_SHARE)}")
    return "\n".join(lines) + "\n"


def _tables(formula: Formula) -> Iterator[tuple[str, ndarray]]:
    """Yield all tables by name, in the types in which they are stored."""
    yield from _scale_tables(formula)
    for number, layer in enumerate(formula.layers):
        for name, table in _layer_tables(layer):
            yield f"layer_{number}_{name}", table
    if not formula.names_classes:
        return
    yield "references", formula.references.astype(np.float32)
    yield "reference_classes", formula.codes.astype(label_type(len(formula.classes)))
    yield "class_weights", formula.class_weights.astype(np.float32)


def _scale_tables(formula: Formula) -> Iterator[tuple[str, ndarray]]:
    """Yield shift and gain per feature, or per group of features if there are few distinct ones."""
    if formula.fills is not None:
        yield "fills", formula.fills.astype(np.float32)
    packed = pack_scale(formula.scale)
    if "scale.codes" in packed:
        yield "kinds", packed["scale.codes"]
        shift, gain = packed["scale.kinds"].T
    else:
        shift, gain = formula.scale.shift, formula.scale.gain
    yield "shift", shift.astype(np.float32)
    yield "gain", gain.astype(np.float32)


def _layer_tables(layer: Layer) -> Iterator[tuple[str, ndarray]]:
    """Yield the weights in input-major order; quantized ones with a factor per output."""
    if layer.precision == "int8":
        packed = pack("weights", layer.weights, "int8")
        yield "weights", packed.pop("weights").T
        yield "factor", next(iter(packed.values()))
    else:
        yield "weights", layer.weights.T
    if layer.bias is not None:
        yield "bias", layer.bias


def _scale(tables: dict[str, ndarray]) -> str:
    kind = "kinds[i]" if "kinds" in tables else "i"
    fill = "x != x ? fills[i] : x" if "fills" in tables else "x"
    return f"""\
/* (x - shift) * gain */
static void scale(const float *row, float *units)
{{
    size_t i;
    for (i = 0; i < HOPEFOLD_FEATURES; i++) {{
        const float x = row[i];
        units[i] = (({fill}) - shift[{kind}]) * gain[{kind}];
    }}
}}
"""


def _pieces_of_layers(formula: Formula) -> Iterable[str]:
    """Yield each piece once, and only those in use: compilers warn about unused functions."""
    coarse = {layer.precision == "int8" for layer in formula.layers}
    yield "weigh"  # used by the last layer at least
    if True in coarse:
        yield "weigh_int8"
    yield from dict.fromkeys(layer.shape for layer in formula.layers if layer.shape in SHAPES)


def _pieces_of_judging(formula: Formula) -> Iterable[str]:
    if not formula.names_classes:
        return
    yield from ("distance", "kernel" if formula.n_neighbors is None else "vote")
    if formula.temperature != 1:
        yield "temper"
    yield "predict"


def _transform(formula: Formula, tables: dict[str, ndarray]) -> str:
    """Return one or two lines per layer."""
    lines = [f"float units_0[{formula.n_features}]"]
    steps = ["scale(row, units_0);"]
    for number, layer in enumerate(formula.layers):
        n_sums, n_inputs = layer.weights.shape
        last = number == len(formula.layers) - 1
        sums = "point" if last else f"units_{number + 1}"
        names = [f"layer_{number}_{name}" for name in ("weights", "factor", "bias")]
        given = [name if name in tables else None for name in names]
        weigh, (weights, factor, bias) = "weigh_int8" if given[1] else "weigh", given
        bounds = [weights, *([factor] if factor else []), bias or "NULL"]
        inputs = f"units_{number}, {n_inputs}, {sums}, {n_sums}"
        steps.append(f"{weigh}({', '.join(map(str, bounds))}, {inputs});")
        if layer.shape in SHAPES:
            order = f", {layer.order}" if layer.shape == "power" else ""
            steps.append(f"{SHAPES[layer.shape]}({sums}, {n_sums}{order});")
        if not last:
            lines.append(f"{sums}[{n_sums}]")
    body = "\n".join(f"    {line}" for line in (f"{', '.join(lines)};", *steps))
    return f"void hopefold_transform(const float *row, float *point)\n{{\n{body}\n}}\n"


def _table(name: str, table: ndarray) -> str:
    """Format a table: references as points, other tables as flat arrays."""
    kind, size = TYPES[table.dtype], str(table.size)
    if name == "references":
        size = "HOPEFOLD_REFERENCES][HOPEFOLD_COMPONENTS"
        cells = [f"{{{', '.join(map(_literal, point))}}}" for point in table.tolist()]
    else:
        cells = [_literal(number) for number in table.ravel().tolist()]
    return f"static const {kind} {name}[{size}] = {{\n{_lines(cells)}\n}};\n"


def _lines(cells: Sequence[str]) -> str:
    lines, line = [], ""
    for cell in cells:
        if line and len(line) + len(cell) + 2 > WIDTH:
            lines.append(line)
            line = ""
        line += f"{', ' if line else ''}{cell}"
    return ",\n".join([*lines, line])


def _literal(number: float) -> str:
    """Format a number so that a compiler reads the same float32."""
    if isinstance(number, int):
        return str(number)
    text = f"{number:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _texts(name: str, texts: Sequence[str]) -> str:
    """Format an array of strings."""
    lines = ",\n".join(f"    {_quoted(text)}" for text in texts)
    return f"const char *const {name}[{len(texts)}] = {{\n{lines}\n}};\n"


def _quoted(text: str) -> str:
    """Format a C string: ASCII characters, and an octal escape for every other byte of UTF-8."""
    content = text.encode(errors="surrogatepass")
    if 0 in content or len(content) > LONGEST_TEXT:
        why = "contains a null character" if 0 in content else f"has {len(content):,} bytes"
        raise CannotExport(
            f"the name {text[:40]!r} {why}, which C strings cannot have: rename it, or export the "
            "model as .onnx."
        )
    plain = (chr(byte) if _is_plain(byte) else f"\\{byte:03o}" for byte in content)
    return f'"{"".join(plain)}"'


def _is_plain(byte: int) -> bool:
    return chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in " _-+.,:;()=<>")


def _class_names(formula: Formula) -> list[str]:
    return [str(label) for label in formula.classes.tolist()]


def _piece(name: str) -> str:
    return files("hopefold.export").joinpath("pieces", f"{name}.c").read_text()
