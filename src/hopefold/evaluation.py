"""How good is it, and what does it save?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from hopefold import checks
from hopefold.core.neighbors import decide, nearest, vote
from hopefold.data import validation
from hopefold.data.fingerprints import share_seen
from hopefold.data.rows import Rows
from hopefold.errors import ChanceWarning, InvalidParameter, UnstableInteractionsWarning
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.estimators.explaining import Explaining, check_explains
from hopefold.explain.term_tables import Interactions
from hopefold.fitting.landmarks import trust
from hopefold.persistence.model_files import size_of

if TYPE_CHECKING:
    from numpy import ndarray

Name = TypeVar("Name")

#: Two fits that have a smaller share of their interactions in common do not agree.
STABLE = 0.5

#: Bytes of a number in float32.
FLOAT = 4


def knn_error(
    references: ndarray,
    reference_labels: ndarray,
    points: ndarray,
    labels: ndarray,
    n_neighbors: int = 5,
) -> float:
    """Share of the points that their nearest references misjudge; ties go to the nearer class.

    Examples
    --------
    >>> from hopefold.evaluation import knn_error
    >>> knn_error([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.4], [8.0]], ["a", "a"], n_neighbors=1)
    0.5

    """
    wrong = misjudged(references, reference_labels, points, labels, n_neighbors)
    return float(wrong.mean())


def misjudged(
    references: ndarray,
    reference_labels: ndarray,
    points: ndarray,
    labels: ndarray,
    n_neighbors: int = 5,
) -> ndarray:
    """Which points their nearest references misjudge: what `knn_error` is the share of."""
    classes, codes = np.unique(np.asarray(reference_labels), return_inverse=True)
    _, indices = nearest(points, references, min(n_neighbors, len(codes)))
    decisions = classes[vote(codes[indices], len(classes)).argmax(axis=1)]
    wrong: ndarray = decisions != np.asarray(labels)
    return wrong


def left_out_error(points: ndarray, labels: ndarray, n_neighbors: int = 5) -> float:
    """Share of the points that their nearest others misjudge: k-NN with each point left out.

    Examples
    --------
    >>> from hopefold.evaluation import left_out_error
    >>> left_out_error([[0.0], [1.0], [2.0], [9.0]], ["a", "a", "a", "b"], n_neighbors=1)
    0.25

    """
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    n_nearest = min(n_neighbors, len(codes) - 1)
    _, indices = nearest(points, points, n_nearest + 1)
    others = indices != np.arange(len(codes))[:, None]
    others[others.all(axis=1), -1] = False  # so many lie in the same place that it is not its own
    indices = indices[others].reshape(len(codes), n_nearest)
    decisions = vote(codes[indices], len(classes)).argmax(axis=1)
    return float((decisions != codes).mean())


def trustworthiness(model: SupervisedEmbedding, X: ndarray, points: ndarray) -> float | None:
    """How far neighbours in the map are neighbours among the rows: 1 if all are, 0.5 by chance.

    That of scikit-learn, in the scale of the model, with 12 neighbours; of 2,000 rows at the most,
    drawn at random. ``None`` for fewer than three rows. ``model.trustworthiness_`` is the same of
    rows that were held out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import trustworthiness
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0, max_epochs=10).fit(X)
    >>> trustworthiness(model, X, model.transform(X)) > 0.9
    True

    """
    return trust(Rows(X, model.scale_), np.arange(X.shape[0]), lambda some: points[some])


def labelled_rows(model: SupervisedEmbedding, y: ndarray) -> ndarray:
    """Which rows have a label: all but those with the model's marker of a missing one.

    For a model that was learned without labels, None and NaN are none, too.

    Examples
    --------
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import labelled_rows
    >>> labelled_rows(SHOPE(missing_label=-1), [0, -1, 1])
    array([ True, False,  True])

    """
    marker = getattr(model, "missing_label", ())
    if not validation.is_marker(marker):
        if len(getattr(model, "classes_", "?")):
            return np.ones(len(y), bool)
        marker = None
    return validation.split_labels(y, marker, len(y))[1]


class Calibration(NamedTuple):
    """How far probabilities can be believed, in bins of similar ones; empty bins are left out.

    ``error`` is the mean distance of what was promised and what came true, over all rows.
    """

    error: float
    promised: ndarray
    came_true: ndarray
    counts: ndarray


def calibration(probabilities: ndarray, right: ndarray, n_bins: int = 10) -> Calibration:
    """Are predictions of 90 % right in nine of ten cases?

    ``probabilities`` are those of the classes that are named, ``right`` whether they are the true
    ones. Bins are of equal width; the error is the expected calibration error.

    Examples
    --------
    >>> from hopefold.evaluation import calibration
    >>> calibration([0.6, 0.6, 0.6, 0.6, 0.6], [True, True, True, False, False]).error
    0.0

    """
    probabilities, right = np.asarray(probabilities, np.float64), np.asarray(right, np.float64)
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    full = counts > 0
    counts = counts[full]
    promised, came_true = (
        np.bincount(bins, weights, n_bins)[full] / counts for weights in (probabilities, right)
    )
    error = float(np.average(np.abs(promised - came_true), weights=counts))
    return Calibration(error, promised, came_true, counts)


def share_learned(model: SupervisedEmbedding, X: ndarray) -> float | None:
    """About what share of the rows a model has learned from; ``None`` for files that do not know.

    The model keeps fingerprints of a few of its rows: enough to tell how many are old, not which.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import share_learned
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0, max_epochs=10).fit(X[::2], y[::2])
    >>> share_learned(model, X[::2])
    1.0

    """
    return None if model.seen_ is None else share_seen(X, model.seen_)


def exemplar_distances(
    points: ndarray, labels: ndarray, exemplars: ndarray, exemplar_labels: ndarray
) -> ndarray:
    """How far each exemplar lies from the centre of its class in the map, in radii of the class.

    The centre is the mean of the points of the class, the radius the root of their mean squared
    distance to it. From a class in a single place, an exemplar is 0 or infinitely many radii off.

    Examples
    --------
    >>> from hopefold.evaluation import exemplar_distances
    >>> exemplar_distances([[0, 0], [0, 2]], ["a", "a"], [[0, 1], [3, 1]], ["a", "a"])
    array([0., 3.])

    """
    points, exemplars = (np.asarray(these, dtype=np.float64) for these in (points, exemplars))
    labels, exemplar_labels = np.asarray(labels), np.asarray(exemplar_labels)
    distances = np.empty(len(exemplars))
    for label in np.unique(exemplar_labels):
        members, own = points[labels == label], exemplar_labels == label
        if not len(members):
            raise InvalidParameter(f"no point is of the class {label}, which has exemplars.")
        centre = members.mean(axis=0)
        radius = np.sqrt(np.square(members - centre).sum(axis=1).mean())
        away = np.linalg.norm(exemplars[own] - centre, axis=1)
        distances[own] = away / radius if radius > 0 else np.where(away > 0, np.inf, 0)
    return distances


class PermutationTest(NamedTuple):
    """Held-out errors with the true labels and with shuffled ones, and how rare the true one is."""

    error: float
    permuted_errors: ndarray
    p_value: float


def permutation_test(
    model: SupervisedEmbedding,
    X: ndarray,
    y: ndarray,
    n_permutations: int = 20,
    random_state: int | None = 0,
) -> PermutationTest:
    """Does the map know anything that it would not find in labels dealt at random?

    The model is fitted anew, on the same rows, once with the labels ``y`` and ``n_permutations``
    times with shuffled ones; each time its own held-out error counts. The p-value is the share of
    all these errors that are as low as the true one, so it is never below 1 / (permutations + 1).
    The model itself stays as it is; its ``random_state`` holds for every fit, ``random_state`` here
    for the shuffling.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import permutation_test
    >>> X, y = load_iris(return_X_y=True)
    >>> result = permutation_test(SHOPE(max_epochs=10, random_state=0), X, y, n_permutations=4)
    >>> result.p_value
    0.2

    """
    checks.check_whole("n_permutations", n_permutations, at_least=1)
    if not isinstance(model, SupervisedEmbedding):
        raise InvalidParameter(
            f"{model!r} is not one of hopefold's own estimators, which hold rows out: give one of "
            "them, or use scikit-learn's permutation_test_score."
        )
    if not model.validation_fraction > 0:
        raise InvalidParameter(
            "the test compares held-out errors, but validation_fraction=0: set it, e.g. to 0.1."
        )
    random = validation.check_seed(random_state)
    labels = np.asarray(y)
    shuffled = [labels, *(random.permutation(labels) for _ in range(n_permutations))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChanceWarning)
        errors = np.array([_held_out_error(model, X, these) for these in shuffled])
    return PermutationTest(float(errors[0]), errors[1:], float((errors <= errors[0]).mean()))


def _held_out_error(model: SupervisedEmbedding, X: ndarray, y: ndarray) -> float:
    error: float | None = clone(model).set_params(refit=False).fit(X, y).validation_error_
    if error is None:
        raise InvalidParameter("no row could be held out: give more rows, or fewer exemplars.")
    return error


class Stability(NamedTuple):
    """The products of features that two fits name, and the share of them that both do."""

    overlap: float
    shared: tuple[str, ...]
    fits: tuple[Interactions, Interactions]


def interaction_stability(
    model: Explaining,
    X: ndarray,
    y: ndarray,
    top: int = 20,
    random_states: tuple[int, int] = (0, 1),
) -> Stability:
    """Do two fits that differ in their seed alone agree on what drives the map?

    The model is fitted anew twice, and the ``top`` interactions on the rows are compared. Warns
    (`UnstableInteractionsWarning`) if less than half of them are the same: then the products stand
    in for each other, and no single one of them should be believed. The model stays as it is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> from hopefold.evaluation import interaction_stability
    >>> X, y = load_iris(return_X_y=True)
    >>> interaction_stability(HOPE(order=1, max_epochs=20), X, y, top=4).overlap
    1.0

    """
    if not isinstance(model, Explaining):
        raise InvalidParameter(f"{model!r} multiplies no features: give a HOPE or a SHOPE.")
    check_explains(model._n_layers)
    checks.check_whole("top", top, at_least=1)
    one, other = (
        clone(model).set_params(random_state=seed).fit(X, y).interactions(top, X, y)
        for seed in random_states
    )
    shared = tuple(name for name in one.names if name in other.names)
    overlap = len(shared) / max(len(one), 1)
    if overlap < STABLE:
        warnings.warn(
            f"of the {len(one)} products that drive the map most, only {len(shared)} are the same "
            f"in two fits with the seeds {random_states[0]} and {random_states[1]}: do not read "
            "meaning into single ones; give more rows, a lower order, or fewer columns that say "
            "the same.",
            UnstableInteractionsWarning,
            stacklevel=2,
        )
    return Stability(overlap, shared, (one, other))


class Kept(NamedTuple):
    """What has to be kept to judge new rows, in numbers of rows and in bytes of float32."""

    rows: int
    bytes: int


def kept_by_neighbors(X: ndarray) -> Kept:
    """k-NN keeps all training rows."""
    return Kept(X.shape[0], FLOAT * X.shape[0] * X.shape[1])


def kept_by_model(model: SupervisedEmbedding) -> Kept:
    """A model keeps its references in the map, the map, and the scale of the columns.

    One that was fitted within a budget keeps what is in its file.
    """
    if model.precision_ != "float32":
        return Kept(len(model.reference_embedding_), size_of(model))
    weights = sum(parameter.numel() for parameter in model.map_.parameters())
    scale = 2 * model.n_features_in_
    references = model.reference_embedding_.size
    return Kept(len(model.reference_embedding_), FLOAT * (weights + scale + references))


class Cost(NamedTuple):
    """What it takes to judge new rows: ``search_only`` leaves out their embedding."""

    search_only: float
    end_to_end: float


class SpeedUp(NamedTuple):
    """How many times cheaper than brute-force k-NN among all raw training rows.

    ``search_only`` leaves out the embedding of the new rows; ``end_to_end`` has it.
    """

    search_only: float
    end_to_end: float


def operations(model: SupervisedEmbedding, n_references: int | None = None) -> Cost:
    """Multiply-adds to judge a row, by the model's references or by as many in its map."""
    n_references = n_references or len(model.reference_embedding_)
    search = n_references * model.reference_embedding_.shape[1]
    embedding = sum(weights.numel() for weights in model.map_.parameters() if weights.ndim > 1)
    return Cost(search, search + embedding)


def counted_speed_up(model: SupervisedEmbedding, n_rows: int) -> SpeedUp:
    """The speed-up over k-NN among ``n_rows`` training rows, in multiply-adds."""
    brute_force, mine = n_rows * model.n_features_in_, operations(model)
    return SpeedUp(brute_force / mine.search_only, brute_force / mine.end_to_end)


def measured_speed_up(
    model: SupervisedEmbedding, X: ndarray, y: ndarray, X_new: ndarray
) -> SpeedUp:
    """The speed-up over scikit-learn's brute-force 5-NN, by the clock, on the rows ``X_new``.

    By the shortest of a few runs each: the one least disturbed by the rest of the machine.
    """
    neighbors = KNeighborsClassifier(5, algorithm="brute").fit(X, y)
    points, references = model.transform(X_new), model._references()
    works = {
        "brute force": lambda: neighbors.predict(X_new),
        "search only": lambda: decide(points, *references),
        "end to end": lambda: model.predict(X_new),
    }
    seconds = {name: min(times) for name, times in seconds_in_turns(works).items()}
    brute_force = seconds["brute force"]
    return SpeedUp(brute_force / seconds["search only"], brute_force / seconds["end to end"])


def seconds_in_turns(
    works: Mapping[Name, Callable[[], object]], *, repeats: int = 5
) -> dict[Name, list[float]]:
    """How long each takes, a few times; in turns, so that a busy minute is everybody's."""
    times: dict[Name, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return times
