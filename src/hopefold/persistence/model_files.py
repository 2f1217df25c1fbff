"""Conversion between a fitted model and the contents of its file."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from hopefold.data import labels as label_checks
from hopefold.data.columns import Columns
from hopefold.data.scaling import Scale
from hopefold.errors import BrokenFile, InvalidType, NotEnoughMemory
from hopefold.persistence import quantization, soundness, store
from hopefold.specification import CHECKPOINT_PARAMETERS, METHODS, with_current_names
from hopefold.version import __version__

if TYPE_CHECKING:
    from numpy import ndarray


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to one file, atomically."""
    check_is_fitted(model)
    store.write(path, *_as_plain_data(model))


def size_of(model: Any) -> int:
    """Return the bytes of the file that `save` would write."""
    return len(store.to_bytes(*_as_plain_data(model)))


def _as_plain_data(model: Any) -> tuple[dict[str, Any], dict[str, ndarray]]:
    """Return the manifest and the tensors of a model."""
    tensors = {f"map.{name}": tensor.numpy() for name, tensor in model.map_.state_dict().items()}
    tensors |= {
        "class_weight": model.class_weight_,
        "scale.shift": model.scale_.shift,
        "scale.gain": model.scale_.gain,
        "references.embedding": model.reference_embedding_,
    }
    if model.reference_labels_ is not None:
        codes = np.searchsorted(model.classes_, model.reference_labels_)
        tensors["references.labels"] = codes
    if model.exemplars_ is not None:
        tensors["exemplars"] = model.exemplars_
    if model.seen_ is not None:
        tensors["seen"] = model.seen_
    if model.columns_ is not None and model.columns_.fills is not None:
        tensors["fills"] = model.columns_.fills
    if (precision := model.precision_) != "float32":
        tensors = _pack(model, tensors, precision)
    names = getattr(model, "feature_names_in_", None)
    manifest = {
        "kind": type(model).__name__,
        "version": __version__,
        "settings": _plain_settings(model),
        "classes": _plain_labels(model.classes_),
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "n_rows": model.n_rows_,
        "epochs": model.n_iter_,
        "validation_error": model.validation_error_,
        "n_held_out": model.n_held_out_,
        "validation_interval": model.validation_interval_,
        "train_error": model.train_error_,
        "trustworthiness": model.trustworthiness_,
        "temperature": model.temperature_,
        "calibration_error": model.calibration_error_,
        "structure": getattr(model, "structure_", 0.0),
        "precision": precision,
        "history": model.history_ if precision == "float32" else [],
    }
    if model.interrupted_:
        manifest["interrupted"] = True
    if model.columns_ is not None:
        manifest["columns"] = model.columns_.as_plain()
    if model.plan_ is not None and precision == "float32":
        manifest["plan"] = model.plan_.as_plain()
    return manifest, tensors


def _pack(model: Any, tensors: dict[str, ndarray], precision: str) -> dict[str, ndarray]:
    """Return the tensors of a model with a budget of bytes."""
    if model.exemplars_ is not None:
        tensors["exemplars"] = model.scale_.apply(model.exemplars_)
    packed = quantization.pack_scale(model.scale_)
    for name, tensor in tensors.items():
        if quantization.is_coarse(name):
            packed |= quantization.pack(name, tensor, precision)
        elif not name.startswith("scale."):
            packed[name] = tensor
    labels = tensors["references.labels"]
    packed["references.labels"] = labels.astype(quantization.label_type(len(model.classes_)))
    return packed


def _unpack(tensors: dict[str, ndarray]) -> dict[str, ndarray]:
    """Restore the result of `_pack`; exemplars are converted to the original units."""
    scale = quantization.unpack_scale(tensors)
    whole = {
        name: quantization.unpack(name, tensors) if quantization.is_coarse(name) else tensor
        for name, tensor in tensors.items()
        if not name.endswith(quantization.FACTOR) and name not in quantization.PACKED_SCALE
    }
    if "exemplars" in whole:
        whole["exemplars"] = scale.undo(whole["exemplars"])
    return whole | {"scale.shift": scale.shift, "scale.gain": scale.gain}


def load(path: str | PathLike[str]) -> Any:
    """Load a model that `save` has written.

    Runs no code from the file, and needs only the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE, load
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.hope"
    >>> SHOPE(random_state=0).fit(X, y).save(path)
    >>> load(path).predict(X[:3])
    array([0, 0, 0])

    """
    manifest, tensors = store.read(path)
    store.check_kind(manifest, METHODS, path)
    try:
        return _revive(manifest, tensors)
    except MemoryError as error:
        raise NotEnoughMemory(f"there is not enough memory for the model in {path}.") from error
    except Exception as error:  # the file is untrusted: any error is possible
        raise BrokenFile(
            f"{path} does not contain a valid model ({store.format_quoted(error)})."
        ) from error


def _revive(manifest: dict[str, Any], tensors: dict[str, ndarray]) -> Any:
    soundness.check_manifest(manifest, len(tensors))
    settings, n_features = manifest["settings"], manifest["n_features"]
    precision = manifest.get("precision", "float32")  # absent from older files
    if precision != "float32":
        soundness.check_packed(tensors, n_features)
        tensors = _unpack(tensors)
    n_references = len(tensors["references.embedding"])
    classes = soundness.make_classes(manifest["classes"], n_references)
    soundness.check_tensors(tensors, len(classes), n_features)
    if isinstance(settings.get("class_weight"), list):
        settings["class_weight"] = dict(settings["class_weight"])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    settings = with_current_names(settings)
    for name in CHECKPOINT_PARAMETERS:  # a file does not determine where the next fit writes
        settings.pop(name, None)
    kind = manifest["kind"]
    model = METHODS[kind].load_class()(**settings)
    model.settings_ = dict(model.request().parameters)
    model.n_features_in_ = n_features
    if manifest["feature_names"] is not None:
        model.feature_names_in_ = np.array(manifest["feature_names"], dtype=object)
    if "columns" in manifest:  # absent if the model was fitted on arrays
        columns = manifest["columns"], manifest["feature_names"], tensors.get("fills")
        model.columns_ = Columns.from_plain(*columns)
    model.classes_ = classes
    model.class_weight_ = tensors["class_weight"]
    model.n_rows_ = manifest.get("n_rows")  # absent from older files
    model.n_iter_ = manifest["epochs"]
    model.validation_error_ = manifest["validation_error"]
    model.n_held_out_ = manifest.get("n_held_out")
    interval = manifest.get("validation_interval")
    model.validation_interval_ = None if interval is None else tuple(interval)
    model.train_error_ = manifest.get("train_error")  # absent from older files
    model.trustworthiness_ = manifest.get("trustworthiness")
    model.structure_ = manifest.get("structure", 0.0)
    model.temperature_ = float(manifest.get("temperature", 1))  # absent from older files
    model.calibration_error_ = manifest.get("calibration_error")
    model.interrupted_ = bool(manifest.get("interrupted"))
    model.history_ = manifest["history"]
    if "plan" in manifest:  # absent from older and from small files
        model.restore_plan(manifest["plan"])
    model.precision_ = precision
    shift, gain = (1.0 * tensors[f"scale.{name}"] for name in ("shift", "gain"))
    model.scale_ = Scale(shift, gain)
    model.exemplars_ = tensors.get("exemplars")
    model.seen_ = tensors.get("seen")  # absent from older files
    model.reference_embedding_ = tensors["references.embedding"]
    soundness.check_coherence(model, tensors)
    codes = tensors.get("references.labels")
    model.reference_labels_ = None if codes is None else model.classes_[codes]
    model.map_ = _revive_map(model, tensors)
    return model


def _revive_map(model: Any, tensors: dict[str, ndarray]) -> nn.Module:
    """Return the map with the file's tensors; a size in the file is never used for allocation."""
    state = {
        name.removeprefix("map."): torch.from_numpy(tensor)
        for name, tensor in tensors.items()
        if name.startswith("map.")
    }
    with torch.device("meta"):
        map_ = model.empty_map(state)
    map_.load_state_dict(state, assign=True)
    return map_.requires_grad_(False)


def _plain_settings(model: Any) -> dict[str, Any]:
    """Return the constructor's arguments as JSON: as at fit, except those that `predict` uses.

    A RandomState is not saved, since the fit is over. NaN is written as None, an equivalent marker.
    """
    settings = dict(model.settings_)
    if label_checks.is_missing(settings.get("missing_label", ())):
        settings["missing_label"] = None
    settings |= {name: getattr(model, name) for name in ("n_neighbors", "device", "verbose")}
    settings = {name: _plain_setting(value) for name, value in settings.items()}
    settings["device"] = str(settings["device"])
    if not isinstance(settings["random_state"], int | None):
        settings["random_state"] = None
    if isinstance(settings["class_weight"], dict):
        settings["class_weight"] = [
            [_plain(label), float(weight)] for label, weight in settings["class_weight"].items()
        ]
    return settings


def _plain_setting(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_setting(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_labels(classes: ndarray) -> dict[str, Any]:
    """Return labels as JSON, and the dtype to restore."""
    values = [_plain(label) for label in classes.tolist()]
    return {"dtype": classes.dtype.str if classes.dtype != object else "O", "values": values}


def _plain(label: Any) -> str | int | float | bool:
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, str | int | float | bool):
        raise InvalidType(
            f"class {label!r} is of type {type(label).__name__}, which a model file cannot store: "
            "fit with labels that are text, numbers or booleans."
        )
    return label
