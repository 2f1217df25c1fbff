"""Validation of the contents of a model file, which is untrusted.

Everything is validated before it is used, so that no number in a file can cause an allocation
larger than the file itself.
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

#: Maximum size of the labels of all references in bytes: text in an array has a fixed width.
MOST_LABEL_BYTES = 2**28

#: The dtypes of labels, as NumPy names them, and the supported devices.
LABELS = re.compile(r"O|[<>|=]?U\d{1,9}|[<>|=]?[iuf][1248]|\|b1")
DEVICES = re.compile(r"auto|(cpu|cuda|mps|xpu|hip)(:\d{1,3})?")

#: Of the quantized tensors, those with one column per feature.
OF_FEATURES = ("map.C", "map.below.0.C", "exemplars")

#: Temperatures that can be divided by; fits choose from a much smaller range.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-6, 1e6

PRECISIONS = ("float32", *quantization.PRECISIONS)


def check_manifest(manifest: Mapping[str, Any], n_tensors: int) -> None:
    """Check that every entry has the type that `save` writes."""
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
        "n_held_out": _is_whole(manifest.get("n_held_out")),
        "validation interval": _is_interval(manifest.get("validation_interval")),
        "epochs": _is_whole(manifest["epochs"]),
        "errors": all(
            _is_number(manifest.get(which))
            for which in (
                *("validation_error", "train_error", "trustworthiness", "structure"),
                "calibration_error",
            )
        ),
        "temperature": _is_temperature(manifest.get("temperature", 1)),
        "precision": manifest.get("precision", "float32") in PRECISIONS,
        "history": isinstance(history, list)
        and all(_is_dict(line) and all(map(_is_number, line.values())) for line in history),
        "columns": _is_dict(manifest.get("columns", {})),
    }
    _refuse_unsound(sound)


def make_classes(classes: Mapping[str, Any], n_references: int) -> ndarray:
    """Return the labels in their own dtype, after checking that it represents them."""
    dtype, values = np.dtype(classes["dtype"]), classes["values"]
    n_bytes = dtype.itemsize * (len(values) + n_references)
    if dtype.kind == "U" and n_bytes > MOST_LABEL_BYTES:
        raise ValueError(f"its labels would take {n_bytes:,} bytes")
    if not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("its classes are not labels")
    made = np.array(values, dtype=dtype)
    if made.tolist() != values or values != sorted(set(values)) or len(values) == 1:
        raise ValueError("its classes are not sorted, or not of their dtype")
    return made


def check_packed(tensors: Mapping[str, ndarray], n_features: int) -> None:
    """Check that the tensors of a small model have the shapes and dtypes of `pack`."""
    for name, coarse in tensors.items():
        if not quantization.is_coarse(name):
            continue
        n_columns = coarse.shape[1] if coarse.ndim == 2 else -1
        factor = tensors.get(name + quantization.FACTOR)
        whole = coarse.dtype == np.int8 and factor is not None
        sound = coarse.dtype == np.float16 or (whole and factor.shape == coarse.shape[:1])  # type: ignore[union-attr]
        if not sound or n_columns < 0 or (name in OF_FEATURES and n_columns != n_features):
            raise ValueError(f"{name} is not packed correctly")
    if "scale.codes" in tensors:
        kinds, codes = tensors["scale.kinds"], tensors["scale.codes"]
        if kinds.ndim != 2 or kinds.shape[1] != 2 or codes.shape != (n_features,):
            raise ValueError("its scale is not packed correctly")


def check_tensors(tensors: Mapping[str, ndarray], n_classes: int, n_features: int) -> None:
    """Check that tensors have consistent shapes, valid dtypes, and finite values."""
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
            raise ValueError(f"{name} has shape {tensors[name].shape} and not {shape}")
    for name, tensor in tensors.items():
        if name == "references.labels":
            continue
        if tensor.dtype != np.int64 if name == "seen" else not _is_usable(name, tensor):
            raise ValueError(f"{name} has dtype {tensor.dtype}")
        if not np.isfinite(tensor).all():
            raise ValueError(f"{name} is not finite")


def _check_codes(codes: ndarray, n_classes: int, n_references: int) -> None:
    if codes.dtype.kind not in "iu" or codes.shape != (n_references,) or not len(codes):
        raise ValueError("its labels of references are not class numbers")
    if not 0 <= codes.min() <= codes.max() < n_classes:
        raise ValueError("its labels of references are inconsistent with the rest")


def check_coherence(model: Any, tensors: Mapping[str, ndarray]) -> None:
    """Check that the parts of a model are consistent."""
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
    """Return whether a value is a list that contains only text."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _refuse_unsound(sound: Mapping[str, bool]) -> None:
    for what, is_sound in sound.items():
        if not is_sound:
            raise ValueError(f"its {what} are invalid")


def _is_usable(name: str, tensor: ndarray) -> bool:
    """Convert a tensor to its dtype in use: float32 for weights and points, else float.

    Older versions saved the scale of constant rows as integers.
    """
    if name.startswith("map.") or name == "references.embedding":
        return tensor.dtype == np.float32
    old = name in ("scale.shift", "scale.gain") and tensor.dtype == np.int64
    return old or tensor.dtype in (np.float32, np.float64)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_whole(value: Any) -> bool:
    """Return whether a value is None, or a nonnegative integer that is a possible array size."""
    return value is None or (type(value) is int and 0 <= value < 2**63)


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def _is_interval(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return value is None or (is_pair and all(one is not None and _is_number(one) for one in value))


def _is_temperature(value: Any) -> bool:
    is_number = type(value) in (int, float)
    return is_number and LEAST_TEMPERATURE <= value <= MOST_TEMPERATURE


def _is_setting(value: Any, n_tensors: int) -> bool:
    """A list tells sizes, of as many layers as there are tensors at the most; or class weights."""
    if not isinstance(value, list):
        return not isinstance(value, dict)
    pairs = all(isinstance(one, list) for one in value)
    return pairs or (len(value) <= n_tensors and all(type(one) in (int, float) for one in value))


def _is_weight(value: Any) -> bool:
    """Convert to the constructor's form: None, a string, or pairs of a label and its weight."""
    if not isinstance(value, list):
        return value is None or isinstance(value, str)
    return all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str | int | float)
        and type(pair[1]) in (int, float)
        for pair in value
    )
