"""What a report shows, as plain arrays: made from a model and labelled rows, read by `render`."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefold.core.neighbors import shares_by_chunks
from hopefold.data.rows import Rows
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.estimators import checks
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import PermutationTest, share_learned
from hopefold.report.backdrop import Backdrop, make_backdrop
from hopefold.report.distance import far_from_all
from hopefold.report.forces import Forces, find_forces, n_layers_of
from hopefold.report.frame import closest_frame
from hopefold.report.judgement import Judgement, judge
from hopefold.report.looks import Looks, look_at

if TYPE_CHECKING:
    from numpy import ndarray

#: More rows than this are not drawn one by one: a sample of them is, over the density of all.
MOST_ROWS = 200_000
SAMPLE = 100_000

#: Classes whose probabilities a card tells.
N_LEADING = 3

PACKAGES = ("hopefold", "torch", "numpy", "scikit-learn", "scipy")


@dataclass(frozen=True)
class Exemplars:
    """Where the exemplars lie, and their classes."""

    points: ndarray
    codes: ndarray


@dataclass(frozen=True)
class Scene:
    """Everything that a report shows.

    Rows are those that are drawn, ``numbers`` are their places among all ``n_rows``. Codes are
    places in ``classes``. ``leading`` are the most probable classes of a row, ``shares`` their
    probabilities. ``confusion`` counts rows that were not learned from, or all if all were: a row a
    true class, a column a predicted one.
    """

    title: str
    method: str
    call: str
    n_rows: int
    n_features: int
    classes: tuple[str, ...]
    numbers: ndarray
    ids: tuple[str, ...] | None
    points: ndarray
    true: ndarray
    predicted: ndarray
    leading: ndarray
    shares: ndarray
    training: ndarray
    far: ndarray
    looks: Looks
    forces: Forces | None
    n_layers: int
    exemplars: Exemplars | None
    frame: tuple[ndarray, ndarray]
    backdrop: Backdrop
    confusion: ndarray
    judgement: Judgement
    history: tuple[dict[str, Any], ...]
    epochs_kept: int
    settings: dict[str, str]
    versions: dict[str, str]
    commands: tuple[str, ...]


def make_scene(
    model: SupervisedEmbedding,
    X: Any,
    y: Any,
    *,
    ids: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    training: ndarray | None = None,
    permutation: PermutationTest | None = None,
    commands: Sequence[str] = (),
) -> Scene:
    """Judge labelled rows by a fitted model, and gather what a report shows of them.

    Parameters
    ----------
    model : fitted estimator of hopefold
        With a map of two dimensions.
    X : array-like or CSR matrix of shape (n_rows, n_features)
        The rows, in the units that the model was fitted in.
    y : array-like of shape (n_rows,)
        Their labels.
    ids : sequence of str, optional
        What the rows are called. Default: their numbers.
    names : sequence of str, optional
        Names of the columns. Default: those that the model was fitted with.
    image_shape : (int, int), optional
        Height and width, if rows are images. Default: that of the model.
    title : str, optional
        What is written above.
    training : boolean array of shape (n_rows,), optional
        Which of the rows the model has learned from. Default: all of them if the model knows some
        (`hopefold.evaluation.share_learned`), so that it is not flattered; else none.
    permutation : PermutationTest, optional
        What `hopefold.evaluation.permutation_test` has found. It fits the model many times, so it
        is not run here.
    commands : sequence of str, optional
        How to make the model and the report again on a command line. Default: told in Python.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.report.scene import make_scene
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0).fit(X[::2], y[::2])
    >>> scene = make_scene(model, X[1::2], y[1::2], title="Irises")
    >>> scene.points.shape, scene.confusion.sum()
    ((75, 2), np.int64(75))

    """
    X, y = _check(model, X, y)
    ids, names = _check_names(ids, "ids", X.shape[0]), _check_names(names, "names", X.shape[1])
    share = share_learned(model, X) if training is None else None
    training = _check_training(training, len(y), bool(share))
    shape = image_shape or getattr(model, "image_shape", None)
    if shape is not None:
        checks.check_image_shape(shape)
        checks.check_pixels(shape, X.shape[1])
    if names is None:
        numbered = [f"column {number}" for number in range(X.shape[1])]
        names = tuple(map(str, getattr(model, "feature_names_in_", numbered)))

    points = _quietly(model.transform, X)
    classes, true = _codes(model.classes_, y)
    leading, shares = _judge_points(model, points)
    predicted = leading[:, 0]
    shown = sample_rows(true, MOST_ROWS, SAMPLE)
    judged = np.ones_like(training) if training.all() else ~training
    mistaken = (true != predicted)[shown]
    low, high = closest_frame(points)
    rows = Rows(X, model.scale_)
    return Scene(
        title=title,
        method=type(model).__name__,
        call=repr(model),
        n_rows=len(y),
        n_features=X.shape[1],
        classes=classes,
        numbers=shown,
        ids=None if ids is None else tuple(ids[row] for row in shown),
        points=points[shown],
        true=true[shown],
        predicted=predicted[shown],
        leading=leading[shown],
        shares=shares[shown],
        training=training[shown],
        far=far_from_all(model, rows, points, training)[shown],
        looks=look_at(X, true, shown, model.exemplars_, names, shape),
        forces=_quietly(find_forces, model, X, true, shown, mistaken, names, shape),
        n_layers=n_layers_of(model),
        exemplars=_exemplars(model),
        frame=(low, high),
        backdrop=make_backdrop(model, points, low, high, with_density=len(shown) < len(y)),
        confusion=count_pairs(true[judged], predicted[judged], len(classes)),
        judgement=judge(model, points, true, predicted, training, permutation, share),
        history=tuple(model.history_),
        epochs_kept=int(model.n_iter_ or 0),
        settings={name: repr(value) for name, value in model.settings_.items()},
        versions={"Python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        commands=tuple(commands),
    )


def count_pairs(true: ndarray, predicted: ndarray, n_classes: int) -> ndarray:
    """How many rows of each class are taken for which."""
    counts = np.bincount(true * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)


def sample_rows(codes: ndarray, most: int, size: int) -> ndarray:
    """All rows if they are not too many; else about ``size``, the same share of each class.

    Of every class at least one row is there.
    """
    if len(codes) <= most:
        return np.arange(len(codes))
    random, share = np.random.RandomState(0), size / len(codes)
    chosen = []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        wanted = max(1, round(share * len(members)))
        chosen.append(random.choice(members, wanted, replace=False))
    return np.sort(np.concatenate(chosen))


def _check(model: Any, X: Any, y: Any) -> tuple[Any, ndarray]:
    if not isinstance(model, SupervisedEmbedding):
        raise InvalidParameter(f"{model!r} is no estimator of hopefold: give a fitted one.")
    check_is_fitted(model)
    if (n_components := model.reference_embedding_.shape[1]) != 2:
        raise InvalidParameter(
            f"a report draws a map of two dimensions, but this one has {n_components}: "
            "fit with n_components=2."
        )
    X = _quietly(checks.check_rows, model, X, fitting=False)
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise InvalidInput(f"there are {X.shape[0]} rows and labels of shape {y.shape}.")
    return X, y


def _quietly(work: Any, *arguments: Any, **options: Any) -> Any:
    """Rows may come as a bare array, with names apart; scikit-learn would warn of it each time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return work(*arguments, **options)


def _check_names(names: Any, what: str, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != n:
        raise InvalidParameter(f"{what} has {len(names)} entries for {n}: give one each.")
    return tuple(map(str, names))


def _check_training(training: Any, n_rows: int, known: bool) -> ndarray:
    if training is None:
        return np.full(n_rows, known)
    training = np.asarray(training)
    if training.dtype != bool or training.shape != (n_rows,):
        raise InvalidParameter(
            f"training is of type {training.dtype} and shape {training.shape}: give True or False "
            f"for each of the {n_rows} rows."
        )
    return training


def _codes(known: ndarray, y: ndarray) -> tuple[tuple[str, ...], ndarray]:
    """The classes of the model, then labels that it does not know; and the place of each label."""
    values, places = np.unique(y, return_inverse=True)
    order = {label: code for code, label in enumerate(known.tolist())}
    for label in values.tolist():
        order.setdefault(label, len(order))
    codes = np.array([order[label] for label in values.tolist()])
    return tuple(map(str, order)), codes[places]


def _judge_points(model: SupervisedEmbedding, points: ndarray) -> tuple[ndarray, ndarray]:
    """The most probable classes of each point, and their probabilities, in bounded memory."""
    n_leading = min(N_LEADING, len(model.classes_))
    leading, shares = [], []
    for some in shares_by_chunks(points, *model._references()):
        leading.append(np.argsort(-some, axis=1, kind="stable")[:, :n_leading])
        shares.append(np.take_along_axis(some, leading[-1], axis=1))
    return np.concatenate(leading), np.concatenate(shares)


def _exemplars(model: SupervisedEmbedding) -> Exemplars | None:
    if model.exemplars_ is None:
        return None
    codes = np.searchsorted(model.classes_, model.exemplar_labels_)
    return Exemplars(model.exemplar_embedding_, codes)
