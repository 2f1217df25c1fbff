"""A fitted model as plain arrays: the scale, a sequence of layers, and the classifier.

Both exports, ONNX and C, are generated from this; neither depends on the estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefold.core.layers import Sigmoids
from hopefold.core.maps import Deep, EncoderDecoder, HighOrder, Linear, SigmoidHighOrder, Stacked
from hopefold.data.columns import Columns
from hopefold.data.scaling import Scale
from hopefold.errors import CannotExport, InvalidType
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray
    from torch import Tensor

#: Every row is compared with every reference: with more of them, a batch could fill the memory.
MOST_REFERENCES = 10_000


@dataclass(frozen=True)
class Layer:
    """h ← shape(weights h + bias)."""

    weights: Float[ndarray, "units inputs"]
    bias: Float[ndarray, " units"] | None = None
    #: ``"plain"``, ``"power"`` (of the order), ``"sigmoid"`` or ``"tanh"``.
    shape: str = "plain"
    order: int = 1
    #: The lossless storage type of the weights: float32, or the precision of the model.
    precision: str = "float32"


@dataclass(frozen=True)
class Formula:
    """Everything that an export contains.

    Missing values of a row are filled. The row is scaled, mapped by the layers to a point, and
    classified: by the Student kernel's mass of each class's references, or by a vote of the nearest
    ones. The kernel's probabilities are those at the temperature. A model that was learned without
    labels has no classes and no codes.
    """

    method: str
    scale: Scale
    #: Replacements of missing values, if the model fills them.
    fills: Float[ndarray, " features"] | None
    layers: tuple[Layer, ...]
    references: Float[ndarray, "references d"]
    #: The class number of each reference.
    codes: Int[ndarray, " references"]
    class_weights: Float[ndarray, " classes"]
    #: The number of neighbors that vote; ``None``: kernel mass.
    n_neighbors: int | None
    #: Of the kernel's probabilities (`hopefold.core.calibration.temper`); 1 for votes.
    temperature: float
    #: Text, int64, float64 or bool.
    classes: ndarray
    feature_names: tuple[str, ...] | None
    columns: Columns | None

    @property
    def n_features(self) -> int:
        """Number of input features."""
        return self.layers[0].weights.shape[1]

    @property
    def n_components(self) -> int:
        """Number of coordinates of a point."""
        return self.layers[-1].weights.shape[0]

    @property
    def names_classes(self) -> bool:
        """Whether the model was learned from labels."""
        return len(self.classes) > 0

    @property
    def is_weighted(self) -> bool:
        """Whether class weights differ."""
        return bool((self.class_weights != 1).any())


def formula_of(model: SupervisedEmbedding) -> Formula:
    """Return the formula of a fitted model, or raise `CannotExport` with the reason."""
    if not isinstance(model, SupervisedEmbedding):
        raise InvalidType(
            f"{type(model).__name__} is not a hopefold model and cannot be exported: give one that "
            "is, such as the last step of a pipeline."
        )
    check_is_fitted(model)
    references, codes, class_weights, n_neighbors = _judges(model)
    names = getattr(model, "feature_names_in_", None)
    _check_scale(model.scale_, names)
    columns = model.columns_
    return Formula(
        method=type(model).__name__,
        scale=model.scale_,
        fills=None if columns is None else columns.fills,
        layers=tuple(layers_of(model.map_, model.precision_)),
        references=references,
        codes=codes,
        class_weights=class_weights,
        n_neighbors=None if n_neighbors is None else min(n_neighbors, len(references)),
        temperature=model.temperature_ if n_neighbors is None else 1.0,
        classes=plain_classes(model.classes_),
        feature_names=None if names is None else tuple(map(str, names)),
        columns=columns,
    )


def _judges(model: SupervisedEmbedding) -> tuple[ndarray, ndarray, ndarray, int | None]:
    """Return the references, their classes and weights; without labels, only the references."""
    if not len(model.classes_):
        return model.reference_embedding_, np.empty(0, int), np.empty(0), None
    judges = model.references()
    if len(judges[0]) > MOST_REFERENCES:
        raise CannotExport(
            f"the model compares each row with {len(judges[0]):,} training rows, and an exported "
            f"one with {MOST_REFERENCES:,} references at most: fit with exemplars "
            "(exemplars='kmeans', or HOPE and SHOPE with their own)."
        )
    return judges


def _check_scale(scale: Scale, names: ndarray | None) -> None:
    """Check that shift and gain are finite in float32."""
    with np.errstate(over="ignore"):
        sound = np.isfinite(np.stack([scale.shift, scale.gain]).astype(np.float32)).all(axis=0)
    if not sound.all():
        column = int(np.flatnonzero(~sound)[0])
        name = column if names is None else repr(str(names[column]))
        raise CannotExport(
            f"column {name} is scaled by numbers beyond those of float32, in which an export "
            "takes rows: fit with the column in other units."
        )


def layers_of(map_: Any, precision: str = "float32") -> Iterator[Layer]:
    """Return the layers of a map. A new type of map needs a function in `WALKS`."""
    if type(map_) not in WALKS:
        raise CannotExport(
            f"a map of the kind {type(map_).__name__} cannot be exported, since its layers are "
            f"unknown: {', '.join(kind.__name__ for kind in WALKS)} can be."
        )
    return WALKS[type(map_)](map_, precision)


def _linear(map_: Any, _precision: str) -> Iterator[Layer]:
    yield Layer(_numbers(map_.P))


def _high_order(map_: Any, precision: str) -> Iterator[Layer]:
    yield from _hidden(map_, precision)
    yield Layer(_numbers(map_.P))


def _stacked(map_: Any, precision: str) -> Iterator[Layer]:
    for layer in map_.layers:
        yield from _hidden(layer, precision)
    yield Layer(_numbers(map_.P))


def _hidden(layer: Any, precision: str) -> Iterator[Layer]:
    """Return the layers of powers of sums and, if there are any, sigmoids."""
    yield Layer(_numbers(layer.C), _numbers(layer.c), "power", layer.order, precision)
    if isinstance(layer, Sigmoids):
        yield Layer(_numbers(layer.W), _numbers(layer.b), "sigmoid", precision=precision)


def _deep(map_: Any, _precision: str) -> Iterator[Layer]:
    for W, b in zip(map_.W, map_.b, strict=True):
        yield Layer(_numbers(W), _numbers(b), "tanh")
    yield Layer(_numbers(map_.P))


def _encoder(map_: Any, precision: str) -> Iterator[Layer]:
    """Return the layers of the encoder."""
    return _deep(map_.encoder, precision)


WALKS: dict[type, Callable[[Any, str], Iterator[Layer]]] = {
    Linear: _linear,
    HighOrder: _high_order,
    SigmoidHighOrder: _high_order,
    Stacked: _stacked,
    Deep: _deep,
    EncoderDecoder: _encoder,
}


def plain_classes(classes: ndarray) -> ndarray:
    """Return labels as text, int64, float64 or booleans."""
    labels = classes.tolist()
    for kinds, dtype in LABELS.items():
        if all(isinstance(label, kinds) for label in labels):
            return _classes_of(labels, dtype)
    strange = next(label for label in labels if not isinstance(label, str | int | float))
    raise InvalidType(
        f"class {strange!r} is of type {type(strange).__name__}, which cannot be exported: fit "
        "with labels that are text, numbers or booleans."
    )


#: Kinds of labels, and the dtypes in which they are exported; the first that applies to all.
LABELS: dict[Any, Any] = {str: object, bool: bool, int: np.int64, int | float: np.float64}


def _classes_of(labels: list[Any], dtype: Any) -> ndarray:
    for label in labels:
        try:
            label.encode() if dtype is object else np.array(label, dtype)
        except (UnicodeEncodeError, OverflowError) as error:
            raise CannotExport(
                f"class {label!r} is neither text that UTF-8 can hold nor a number of 64 bits: fit "
                "with other labels."
            ) from error
    return np.array(labels, dtype=dtype)


def _numbers(weights: Tensor) -> ndarray:
    numbers: ndarray = weights.detach().cpu().numpy()
    return numbers
