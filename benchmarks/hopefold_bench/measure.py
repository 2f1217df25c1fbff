"""One run: fit, transform, count misclassified rows, and record time and memory."""

from __future__ import annotations

import inspect
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn
import torch

import hopefold
from hopefold.core.exemplars import kmeans_per_class
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import kept_by_model, misclassified_rows
from hopefold_bench.convnet import Convnet
from hopefold_bench.models import MODELS, SHOWN, model_file
from hopefold_bench.plans import Job
from hopefold_bench.records import Record, pack
from hopefold_bench.splits import Splits, load_splits

if TYPE_CHECKING:
    from numpy import ndarray

N_NEIGHBORS = 5

#: k-means centers per class: 20 exemplars for ten classes.
CENTERS = 2


def measure(job: Job, models: Path = MODELS) -> Record:
    """Fit a method and record its errors on new rows.

    ``models`` is the folder of saved networks and models.
    """
    splits = load_splits(job.data, job.split, final=job.final, quick=job.quick, models=models)
    model = job.make()
    start = time.perf_counter()
    model.fit(splits.X, splits.y)
    fitted = time.perf_counter()
    points = model.transform(splits.X_new)
    embedded = time.perf_counter()
    peak = peak_memory_mb()  # of fit and transform, before the neighbor search
    mistakes = count_mistakes(model, splits, points, job.split)
    keep(model, job, models)
    return Record(
        method=job.method,
        data=job.data,
        split=job.split,
        part=job.part,
        quick=job.quick,
        settings=settings_of(job.make()),
        errors={name: float(wrong.mean()) for name, wrong in mistakes.items()},
        mistakes={name: pack(wrong) for name, wrong in mistakes.items()},
        n_train=len(splits.y),
        n_new=len(splits.y_new),
        seconds_fit=round(fitted - start, 3),
        seconds_transform=round(embedded - fitted, 4),
        peak_memory_mb=peak,
        epochs=_number(model, "n_iter_", int),
        validation_error=_number(model, "validation_error_", float),
        model_bytes=kept_by_model(model).bytes if isinstance(model, SupervisedEmbedding) else None,
        versions=versions(),
        machine=machine(),
    )


def keep(model: Any, job: Job, models: Path = MODELS) -> None:
    """Save the models that the figures show, and the network whose features are a data set."""
    if job.quick or job.changes or job.split:
        return
    if isinstance(model, Convnet):
        model.keep(job.part, models)
    elif job.method in SHOWN:
        path = model_file(job.data, job.method, job.part, models)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)


def count_mistakes(model: Any, splits: Splits, points: ndarray, seed: int) -> dict[str, ndarray]:
    """Which new rows are misclassified, by the references of the k-NN rule."""

    def misclassified(references: ndarray, labels: ndarray) -> ndarray:
        return misclassified_rows(references, labels, points, splits.y_new, N_NEIGHBORS)

    mistakes = {"all": misclassified(model.transform(splits.X), splits.y)}
    own = getattr(model, "exemplars_", None) is not None
    if own and model.get_params().get("exemplars") == "kmeans":
        return mistakes | {
            "kmeans": misclassified(model.reference_embedding_, model.reference_labels_)
        }
    centers, labels = kmeans_centers(splits.X, splits.y, seed)
    mistakes["kmeans"] = misclassified(model.transform(centers), labels)
    if own:
        mistakes["joint"] = misclassified(model.reference_embedding_, model.reference_labels_)
    if own or isinstance(model, Convnet):
        mistakes["predict"] = np.asarray(model.predict(splits.X_new) != splits.y_new)
    return mistakes


def kmeans_centers(X: ndarray, y: ndarray, seed: int) -> tuple[ndarray, ndarray]:
    """Two k-means centers per class, in the input space, and their labels."""
    classes, codes = np.unique(y, return_inverse=True)
    centers, labels = kmeans_per_class(
        lambda members: X[members].astype(np.float32),
        codes,
        np.minimum(np.bincount(codes), CENTERS).tolist(),
        np.random.RandomState(seed),
    )
    return centers, classes[labels]


def settings_of(estimator: Any) -> dict[str, Any]:
    """The estimator's class and all its settings, as JSON."""
    settings = {"estimator": type(estimator).__name__, **estimator.get_params(deep=False)}
    plain: dict[str, Any] = json.loads(json.dumps(settings, default=str, sort_keys=True))
    return plain


def departures(estimator: Any) -> set[str]:
    """The names of the settings that differ from their defaults."""
    parameters = inspect.signature(type(estimator)).parameters
    given = estimator.get_params(deep=False)
    return {name for name, value in given.items() if value != parameters[name].default}


def peak_memory_mb() -> float | None:
    """The peak memory of this process, or None where the system does not report it.

    On Linux `resource` includes the memory of the parent, so /proc is read first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if "VmHWM" in lines:
            return round(int(lines["VmHWM"].split()[0]) / 1024, 1)
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def versions() -> dict[str, str]:
    """The versions of the packages that determine the results."""
    modules = (hopefold, torch, sklearn, np, scipy)
    return {
        **{module.__name__: str(module.__version__) for module in modules},
        "python": platform.python_version(),
    }


def machine() -> dict[str, Any]:
    """The hardware, without the machine's name or any path."""
    return {
        "cpus": os.cpu_count(),
        "kind": platform.machine(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
    }


def _processor() -> str | None:
    """The processor's model name, if the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or None


def _number(model: Any, name: str, kind: type) -> Any:
    value = getattr(model, name, None)
    return None if value is None else kind(value)
