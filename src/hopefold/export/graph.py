"""Export of a formula as an ONNX graph of basic operators, and its evaluation.

Only opset 13 and float32 are used, so that old and small runtimes support it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hopefold
from hopefold.core.calibration import LEAST_SHARE
from hopefold.core.neighbors import TIE_BONUS
from hopefold.errors import CannotExport, MissingPackage
from hopefold.export.formula import Formula, Layer
from hopefold.persistence.quantization import pack

if TYPE_CHECKING:
    from numpy import ndarray

OPSET, IR_VERSION = 13, 8

#: The size limit of protocol buffers.
MOST_BYTES = 2**31 - 1

INPUT, OUTPUTS = "rows", ("embedding", "label", "probabilities")


def need_onnx() -> tuple[Any, Any]:
    """Import both packages, or raise an error that says what to install."""
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise MissingPackage(
            f"ONNX files are written and checked with {error.name}, which is not installed: "
            "pip install 'hopefold[onnx]'."
        ) from error
    return onnx, onnxruntime


class Nodes:
    """A graph under construction: a name for every constant, a node for every operation."""

    def __init__(self) -> None:
        self.onnx, _ = need_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = {INPUT}

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = self.free(name or operator.lower())
        node = self.onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, name: str, value: Any, dtype: type | None = np.float32) -> str:
        """Add a constant of numbers, or of text (dtype None), and return its name."""
        name = self.free(name)
        if dtype is None:
            text = [label.encode() for label in value]
            kind = self.onnx.TensorProto.STRING
            tensor = self.onnx.helper.make_tensor(name, kind, [len(text)], text)
        else:
            array: ndarray = np.array(value, dtype=dtype, order="C")
            tensor = self.onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def free(self, name: str) -> str:
        """Return the name, with a number appended if it is in use."""
        found, number = name, 1
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found


def to_bytes(formula: Formula) -> bytes:
    """Return the content of an ONNX file from rows to points and, with classes, predictions."""
    n_bytes = sum(layer.weights.nbytes for layer in formula.layers)
    if n_bytes > MOST_BYTES:
        raise CannotExport(
            f"the weights take {n_bytes:,} bytes, and an ONNX file has at most "
            f"{MOST_BYTES:,}: fit with fewer factors, or max_bytes."
        )
    nodes = Nodes()
    units = _scaled(nodes, formula)
    for number, layer in enumerate(formula.layers):
        last = number == len(formula.layers) - 1
        units = _layer(nodes, layer, units, name=OUTPUTS[0] if last else f"units_{number}")
    if formula.names_classes:
        mass = _by_kernel if formula.n_neighbors is None else _by_vote
        _decided(nodes, formula, mass(nodes, formula, _distances(nodes, formula, units)))
    return _model(nodes, formula)


def _scaled(nodes: Nodes, formula: Formula) -> str:
    """Add (x − shift) · gain, after filling missing values."""
    rows, scale = INPUT, formula.scale
    if formula.fills is not None:
        fills = nodes.constant("fills", formula.fills)
        rows = nodes.add("Where", nodes.add("IsNaN", rows), fills, rows, name="filled")
    if scale.shifts:
        rows = nodes.add("Sub", rows, nodes.constant("shift", scale.shift), name="shifted")
    if not scale.is_none:
        rows = nodes.add("Mul", rows, nodes.constant("gain", scale.gain), name="scaled")
    return rows


def _layer(nodes: Nodes, layer: Layer, inputs: str, name: str) -> str:
    given = [inputs, _weights(nodes, layer)]
    if layer.bias is not None:
        given.append(nodes.constant("bias", layer.bias))
    plain = layer.shape == "plain" or (layer.shape, layer.order) == ("power", 1)
    sums = nodes.add("Gemm", *given, name=name if plain else f"{name}_sums", transB=1)
    if plain:
        return sums
    if layer.shape == "power":
        return _power(nodes, sums, layer.order, name)
    return nodes.add(layer.shape.capitalize(), sums, name=name)


def _weights(nodes: Nodes, layer: Layer) -> str:
    """Add weights in the precision of the model; runtimes convert them to float32 on loading."""
    if layer.precision == "float32":
        return nodes.constant("weights", layer.weights)
    packed = pack("weights", layer.weights, layer.precision)
    values = packed.pop("weights")
    coarse = nodes.constant("weights_coarse", values, values.dtype.type)
    weights = nodes.add("Cast", coarse, to=nodes.onnx.TensorProto.FLOAT, name="weights")
    for factor in packed.values():
        weights = nodes.add("Mul", weights, nodes.constant("factor", factor[:, None]))
    return weights


def _power(nodes: Nodes, base: str, order: int, name: str) -> str:
    """Add repeated products: Pow of a negative number is NaN in some runtimes, and slow in most."""
    power = base
    for binary_digit in bin(order)[3:]:
        power = nodes.add("Mul", power, power, name=f"{name}_square")
        if binary_digit == "1":
            power = nodes.add("Mul", power, base, name=f"{name}_product")
    return power


def _distances(nodes: Nodes, formula: Formula, points: str) -> str:
    """Add squared distances to all references, by differences, without cancellation."""
    axis = nodes.constant("last_axis", [2], np.int64)
    columns = nodes.add("Unsqueeze", points, axis, name="points")
    references = nodes.constant("references", formula.references.T[None])
    apart = nodes.add("Sub", columns, references, name="apart")
    squares = nodes.add("Mul", apart, apart, name="squares")
    coordinates = nodes.constant("coordinates", [1], np.int64)
    return nodes.add("ReduceSum", squares, coordinates, keepdims=0, name="distances")


def _by_kernel(nodes: Nodes, formula: Formula, distances: str) -> str:
    """Add Σ_j 1/(1 + d_ij) over the references of each class, times the class weights."""
    one = nodes.constant("one", 1)
    similarity = nodes.add("Reciprocal", nodes.add("Add", distances, one), name="similarity")
    membership = np.eye(len(formula.classes))[formula.codes] * formula.class_weights
    return nodes.add("MatMul", similarity, nodes.constant("membership", membership), name="mass")


def _by_vote(nodes: Nodes, formula: Formula, distances: str) -> str:
    """Votes of the nearest; the first of a class adds a little, so that it decides ties."""
    assert formula.n_neighbors is not None
    k = formula.n_neighbors
    codes = nodes.constant("codes", formula.codes, np.int64)
    voters = nodes.add("Gather", codes, _nearest(nodes, distances, k), name="voters")
    depth = nodes.constant("depth", len(formula.classes), np.int64)
    values = nodes.constant("no_and_yes", [0, 1])
    votes = nodes.add("OneHot", voters, depth, values, axis=-1, name="votes")
    ranks = nodes.constant("ranks", (TIE_BONUS / np.arange(1, k + 1))[:, None])
    early = nodes.add("Mul", votes, ranks, name="early")
    bonus = nodes.add("ReduceMax", early, axes=[1], keepdims=0, name="bonus")
    neighbors = nodes.constant("neighbors", [1], np.int64)
    counts = nodes.add("ReduceSum", votes, neighbors, keepdims=0, name="counts")
    mass = nodes.add("Add", counts, bonus, name="mass")
    if formula.is_weighted:
        weights = nodes.constant("class_weights", formula.class_weights)
        mass = nodes.add("Mul", mass, weights, name="weighted")
    return mass


def _nearest(nodes: Nodes, distances: str, k: int) -> str:
    """Add the indices of the nearest references, in ascending order of distance."""
    names = [nodes.free("nearest_distances"), nodes.free("nearest")]
    inputs = [distances, nodes.constant("k", [k], np.int64)]
    make = nodes.onnx.helper.make_node
    nodes.nodes.append(make("TopK", inputs, names, axis=1, largest=0, sorted=1, name="nearest"))
    return names[1]


def _decided(nodes: Nodes, formula: Formula, mass: str) -> None:
    """Shares of the mass, and the class that has the largest one."""
    classes = nodes.constant("classes_axis", [1], np.int64)
    total = nodes.add("ReduceSum", mass, classes, keepdims=1, name="total")
    plain = formula.temperature == 1
    shares = nodes.add("Div", mass, total, name=OUTPUTS[2] if plain else "shares")
    if not plain:
        _tempered(nodes, formula, shares)
    best = nodes.add("ArgMax", shares, axis=1, keepdims=0, name="best")
    dtype = None if formula.classes.dtype == object else formula.classes.dtype.type
    labels = nodes.constant("classes", formula.classes, dtype)
    nodes.add("Gather", labels, best, name=OUTPUTS[1])


def _tempered(nodes: Nodes, formula: Formula, shares: str) -> None:
    """Add the probabilities at the temperature, the softmax of log(shares) / T."""
    least = nodes.constant("least_share", LEAST_SHARE)
    logs = nodes.add("Log", nodes.add("Max", shares, least), name="log_shares")
    inverse = nodes.constant("inverse_temperature", 1 / formula.temperature)
    nodes.add("Softmax", nodes.add("Mul", logs, inverse), axis=1, name=OUTPUTS[2])


def _model(nodes: Nodes, formula: Formula) -> bytes:
    onnx = nodes.onnx
    kinds, make = onnx.TensorProto, onnx.helper.make_tensor_value_info
    label = {"O": kinds.STRING, "b": kinds.BOOL, "i": kinds.INT64, "f": kinds.DOUBLE}
    label_kind = label[formula.classes.dtype.kind]
    shapes: Sequence[Any] = (
        (kinds.FLOAT, ["n", formula.n_components]),
        (label_kind, ["n"]),
        (kinds.FLOAT, ["n", len(formula.classes)]),
    )
    outputs = zip(OUTPUTS, shapes, strict=True)
    graph = onnx.helper.make_graph(
        nodes.nodes,
        "hopefold",
        [make(INPUT, kinds.FLOAT, ["n", formula.n_features])],
        [make(name, *shape) for name, shape in outputs if name in outputs_of(formula)],
        nodes.constants,
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="hopefold",
        producer_version=hopefold.__version__,
    )
    onnx.helper.set_model_props(model, notes(formula))
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


def outputs_of(formula: Formula) -> tuple[str, ...]:
    """Return all three outputs; only the points without classes."""
    return OUTPUTS if formula.names_classes else OUTPUTS[:1]


def notes(formula: Formula) -> dict[str, str]:
    """Return the metadata of the file: the order and encoding of the features."""
    told = {
        "hopefold_version": hopefold.__version__,
        "method": formula.method,
        "classes": json.dumps(formula.classes.tolist()),
    }
    if formula.feature_names is not None:
        told["feature_names"] = json.dumps(formula.feature_names)
    if formula.columns is not None and formula.columns.values:
        told["encoded_columns"] = json.dumps(formula.columns.values)
        told["input"] = (
            "Numbers, in the order of feature_names. A text column is a feature for each of its "
            "values in encoded_columns: 1 for the value of the row, 0 for the others."
        )
    if formula.fills is not None:
        told["missing_values"] = "NaN is filled with the mean of the column."
    return told


class Session:
    """Return a function that evaluates an ONNX file."""

    def __init__(self, content: bytes) -> None:
        _, onnxruntime = need_onnx()
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # only errors, which are also raised
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )

        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, rows: ndarray) -> tuple[ndarray, ...]:
        """Return points, labels, probabilities; or only points."""
        return tuple(self._session.run(self._outputs, {INPUT: rows}))
