"""Does what a file says make sense? Whoever wrote it may not have been us.

All of it is looked at before anything is made of it, so that no number in a file can ask for memory
that the file itself does not have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.persistence import quantization

if TYPE_CHECKING:
    from numpy import ndarray

#: Bytes that the labels of all references may take: text has a fixed width in an array.
MOST_LABEL_BYTES = 2**28

#: The dtypes of labels, as NumPy writes them, and the devices that torch may be asked for.
LABELS = re.compile(r"O|[<>|=]?U\d{1,9}|[<>|=]?[iuf][1248]|\|b1")
DEVICES = re.compile(r"auto|(cpu|cuda|mps|xpu|hip)(:\d{1,3})?")

#: Of the tensors that are kept coarse, those that have a column for each feature.
OF_FEATURES = ("map.C", "map.below.0.C", "exemplars")

PRECISIONS = ("float32", *quantization.PRECISIONS)


def check_manifest(manifest: Mapping[str, Any], n_tensors: int) -> None:
    """Is every entry of the kind that `save` writes?"""
    settings, classes = manifest["settings"], manifest["classes"]
    names, history = manifest["feature_names"], manifest["history"]
    sound = {
        "settings": _is_dict(settings)
        and all(_is_setting(settings[k], n_tensors) for k in settings),
        "class_weight": _is_weight(settings.get("class_weight")),
        "device": isinstance(device := settings.get("device", "auto"), str)
        and bool(DEVICES.fullmatch(device)),
        "random_state": _is_whole(settings.get("random_state")),
        "classes": _is_dict(classes)
        and isinstance(classes["values"], list)
        and isinstance(classes["dtype"], str)
        and bool(LABELS.fullmatch(classes["dtype"])),
        "n_features": _is_whole(manifest["n_features"]) and manifest["n_features"] is not None,
        "feature names": names is None or is_list_of_text(names),
        "n_rows": _is_whole(manifest.get("n_rows")),
        "epochs": _is_whole(manifest["epochs"]),
        "errors": all(
            _is_number(manifest.get(which))
            for which in ("validation_error", "train_error", "trustworthiness", "structure")
        ),
        "precision": manifest.get("precision", "float32") in PRECISIONS,
        "history": isinstance(history, list)
        and all(_is_dict(line) and all(map(_is_number, line.values())) for line in history),
        "columns": _is_dict(manifest.get("columns", {})),
    }
    _refuse_unsound(sound)


def make_classes(classes: Mapping[str, Any], n_references: int) -> ndarray:
    """The labels in their own dtype, which has to hold them as they are written."""
    dtype, values = np.dtype(classes["dtype"]), classes["values"]
    n_bytes = dtype.itemsize * (len(values) + n_references)
    if dtype.kind == "U" and n_bytes > MOST_LABEL_BYTES:
        raise ValueError(f"its labels would take {n_bytes:,} bytes")
    if not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("its classes are no labels")
    made = np.array(values, dtype=dtype)
    if made.tolist() != values or values != sorted(set(values)) or len(values) == 1:
        raise ValueError("its classes are not sorted, or not of their dtype")
    return made


def check_packed(tensors: Mapping[str, ndarray], n_features: int) -> None:
    """Have the tensors of a small model the shapes and dtypes that `pack` gives them?"""
    for name, coarse in tensors.items():
        if not quantization.is_coarse(name):
            continue
        n_columns = coarse.shape[1] if coarse.ndim == 2 else -1
        factor = tensors.get(name + quantization.FACTOR)
        whole = coarse.dtype == np.int8 and factor is not None
        sound = coarse.dtype == np.float16 or (whole and factor.shape == coarse.shape[:1])  # type: ignore[union-attr]
        if not sound or n_columns < 0 or (name in OF_FEATURES and n_columns != n_features):
            raise ValueError(f"{name} is not packed as it should be")
    if "scale.codes" in tensors:
        kinds, codes = tensors["scale.kinds"], tensors["scale.codes"]
        if kinds.ndim != 2 or kinds.shape[1] != 2 or codes.shape != (n_features,):
            raise ValueError("its scale is not packed as it should be")


def check_tensors(tensors: Mapping[str, ndarray], n_classes: int, n_features: int) -> None:
    """Have all tensors the shapes that belong together, dtypes that can be used, finite numbers?"""
    n_references = tensors["references.embedding"].shape[0]
    codes = tensors.get("references.labels")
    if (codes is None) != (n_classes == 0):
        raise ValueError("it has classes without labels of references, or labels without classes")
    if codes is not None:
        _check_codes(codes, n_classes, n_references)
    shapes = {
        "class_weight": (n_classes,),
        "scale.shift": (n_features,),
        "scale.gain": (n_features,),
        "exemplars": (n_references, n_features),
        "fills": (n_features,),
    }
    for name, shape in shapes.items():
        if name in tensors and tensors[name].shape != shape:
            raise ValueError(f"{name} has the shape {tensors[name].shape} and not {shape}")
    for name, tensor in tensors.items():
        if name == "references.labels":
            continue
        if tensor.dtype != np.int64 if name == "seen" else not _is_usable(name, tensor):
            raise ValueError(f"{name} has the dtype {tensor.dtype}")
        if not np.isfinite(tensor).all():
            raise ValueError(f"{name} is not finite")


def _check_codes(codes: ndarray, n_classes: int, n_references: int) -> None:
    if codes.dtype.kind not in "iu" or codes.shape != (n_references,) or not len(codes):
        raise ValueError("its labels of references are no numbers of classes")
    if not 0 <= codes.min() <= codes.max() < n_classes:
        raise ValueError("its labels of references do not fit the rest")


def check_coherence(model: Any, tensors: Mapping[str, ndarray]) -> None:
    """Do the parts of a model belong together?"""
    embedding = tensors["references.embedding"]
    names = getattr(model, "feature_names_in_", None)
    sound = {
        "references": embedding.ndim == 2
        and embedding.shape[1] == model.n_components
        and len(embedding) > 0,
        "class weights": bool((model.class_weight_ > 0).all()),
        "feature names": names is None or len(names) == model.n_features_in_,
        "fingerprints": model.seen_ is None or (model.seen_.ndim == 1 and len(model.seen_) > 0),
        "exemplars": (model.exemplars is None) == (model.exemplars_ is None),
    }
    _refuse_unsound(sound)


def is_list_of_text(value: Any) -> bool:
    """A list, and nothing but text in it?"""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _refuse_unsound(sound: Mapping[str, bool]) -> None:
    for what, is_sound in sound.items():
        if not is_sound:
            raise ValueError(f"what it says of its {what} makes no sense")


def _is_usable(name: str, tensor: ndarray) -> bool:
    """Of the dtype that it is used in: weights and points are float32, all else is float, too.

    The scale of rows that do not vary at all was kept in whole numbers once.
    """
    if name.startswith("map.") or name == "references.embedding":
        return tensor.dtype == np.float32
    old = name in ("scale.shift", "scale.gain") and tensor.dtype == np.int64
    return old or tensor.dtype in (np.float32, np.float64)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_whole(value: Any) -> bool:
    """None, or a whole number from 0 on that an array could have as its size."""
    return value is None or (type(value) is int and 0 <= value < 2**63)


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def _is_setting(value: Any, n_tensors: int) -> bool:
    """A list tells sizes, of as many layers as there are tensors at the most; or class weights."""
    if not isinstance(value, list):
        return not isinstance(value, dict)
    pairs = all(isinstance(one, list) for one in value)
    return pairs or (len(value) <= n_tensors and all(type(one) in (int, float) for one in value))


def _is_weight(value: Any) -> bool:
    """As a constructor takes it: none, a word, or pairs of a label and its weight."""
    if not isinstance(value, list):
        return value is None or isinstance(value, str)
    return all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str | int | float)
        and type(pair[1]) in (int, float)
        for pair in value
    )
