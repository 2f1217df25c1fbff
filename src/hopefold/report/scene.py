"""The contents of a report as plain arrays: made from a model and rows, shown by `render`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold import checks
from hopefold.core.neighbors import shares_by_chunks
from hopefold.data import validation
from hopefold.data.rows import Rows
from hopefold.errors import InvalidParameter
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import PermutationTest, share_learned
from hopefold.report.backdrop import Backdrop, make_backdrop
from hopefold.report.distance import far_from_all
from hopefold.report.frame import closest_frame
from hopefold.report.inputs import (
    check_names,
    check_rows_and_labels,
    check_training,
    codes_of,
    without_warnings,
)
from hopefold.report.landmarks import choose_landmarks, parts_of_map
from hopefold.report.palette import PALETTE, UNLABELED_COLOR, class_colors
from hopefold.report.row_display import RowDisplay, make_display
from hopefold.report.scores import NeighborScores, Scores, score_neighbors, score_predictions
from hopefold.report.top_interactions import TopInteractions, find_top_interactions, n_layers_of

if TYPE_CHECKING:
    from numpy import ndarray

#: Maximum number of rows that are drawn; with more, a sample over the density of all rows.
MOST_ROWS = 200_000
SAMPLE = 100_000

#: Number of classes whose probabilities a card shows.
N_LEADING = 3

PACKAGES = ("hopefold", "torch", "numpy", "scikit-learn", "scipy")


@dataclass(frozen=True)
class Exemplars:
    """The points of the exemplars, and their classes.

    Without classes they are a few landmarks of all.
    """

    points: ndarray
    codes: ndarray | None
    n_all: int


@dataclass(frozen=True)
class Scene:
    """The contents of a report.

    Only rows that are drawn are included; ``numbers`` are their indices among all ``n_rows``. Codes
    are indices in ``classes``. ``leading`` are the most probable classes of a row, ``shares`` their
    probabilities. ``confusion`` counts rows that were not in the training data, or all rows if all
    were: rows are true classes, columns predicted ones. Rows without a label have the code
    ``unlabeled``, the last one; it is ``None`` if there are none.

    For a model that was learned without labels, all this is ``None``, and so is ``scores``.
    ``neighbor_scores`` is set if structure was preserved.
    """

    title: str
    method: str
    call: str
    n_rows: int
    n_unlabeled: int
    n_features: int
    classes: tuple[str, ...]
    numbers: ndarray
    ids: tuple[str, ...] | None
    points: ndarray
    true: ndarray
    unlabeled: int | None
    predicted: ndarray | None
    leading: ndarray | None
    shares: ndarray | None
    training: ndarray
    far: ndarray
    display: RowDisplay
    interactions: TopInteractions | None
    n_layers: int
    exemplars: Exemplars | None
    frame: tuple[ndarray, ndarray]
    backdrop: Backdrop
    confusion: ndarray | None
    scores: Scores | None
    neighbor_scores: NeighborScores | None
    history: tuple[dict[str, Any], ...]
    epochs_kept: int
    settings: dict[str, str]
    #: The name, the value and the reason of every setting that the fit has decided or used.
    plan: tuple[tuple[str, str, str], ...]
    versions: dict[str, str]
    commands: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """The classes that rows have."""
        return len(self.classes) - (self.unlabeled is not None)

    @property
    def colors(self) -> tuple[str, ...]:
        """One color per class; a muted one for rows without a label, if others have labels."""
        if self.unlabeled is None:
            return class_colors(self.n_classes)
        quiet = UNLABELED_COLOR if self.n_classes else PALETTE[0]
        return (*class_colors(self.n_classes), quiet)


def make_scene(
    model: SupervisedEmbedding,
    X: Any,
    y: Any = None,
    *,
    ids: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    training: ndarray | None = None,
    permutation: PermutationTest | None = None,
    commands: Sequence[str] = (),
) -> Scene:
    """Classify rows by a fitted model, and compute the contents of a report.

    Parameters
    ----------
    model : fitted estimator of hopefold
        With a map of two dimensions.
    X : array-like or CSR matrix of shape (n_rows, n_features)
        The rows, in the units that the model was fitted in.
    y : array-like of shape (n_rows,)
        Their labels; those that are missing are marked as for the fit. May be left out for a model
        that was learned without labels; where they are given, its map is colored by them.
    ids : sequence of str, optional
        The ids of the rows. Default: their numbers.
    names : sequence of str, optional
        Names of the columns. Default: those that the model was fitted with.
    image_shape : (int, int), optional
        Height and width, if rows are images. Default: that of the model.
    title : str, optional
        The title of the report.
    training : boolean array of shape (n_rows,), optional
        Which of the rows are training rows. Default: all of them if the model knows some
        (`hopefold.evaluation.share_learned`), to avoid an optimistic bias; else none.
    permutation : PermutationTest, optional
        The result of `hopefold.evaluation.permutation_test`. It fits the model many times, so it is
        not run here.
    commands : sequence of str, optional
        Commands that make the model and the report. Default: Python code.

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
    X, y, labeled = check_rows_and_labels(model, X, y)
    ids, names = check_names(ids, "ids", X.shape[0]), check_names(names, "names", X.shape[1])
    share = share_learned(model, X) if training is None else None
    training = check_training(training, len(labeled), bool(share))
    shape = image_shape or getattr(model, "image_shape", None)
    if shape is not None:
        checks.check_image_shape(shape)
        validation.check_pixels(shape, X.shape[1])
    if names is None:
        numbered = [f"column {number}" for number in range(X.shape[1])]
        names = tuple(map(str, getattr(model, "feature_names_in_", numbered)))

    points = without_warnings(model.transform, X)
    classes, true, unlabeled = codes_of(model.classes_, y, labeled)
    shown = sample_rows(true, MOST_ROWS, SAMPLE)
    verdict = _evaluate_rows(model, points, true, labeled, training, shown, permutation, share)
    predicted = verdict["predicted"]
    misclassified = np.zeros(len(shown), bool)
    if predicted is not None:
        misclassified = (true[shown] != predicted) & labeled[shown]
    exemplars, pictured, parts = _exemplars(model, points)
    low, high = closest_frame(points)
    rows = Rows(X, model.scale_)
    return Scene(
        **verdict,
        title=title,
        method=type(model).__name__,
        call=repr(model),
        n_rows=len(labeled),
        n_unlabeled=int((~labeled).sum()),
        n_features=X.shape[1],
        classes=classes,
        numbers=shown,
        ids=None if ids is None else tuple(ids[row] for row in shown),
        points=points[shown],
        true=true[shown],
        unlabeled=unlabeled,
        training=training[shown],
        far=far_from_all(model, rows, points, training)[shown],
        display=make_display(X, true if parts is None else parts, shown, pictured, names, shape),
        interactions=without_warnings(
            find_top_interactions, model, X, true, shown, misclassified, names, shape
        ),
        n_layers=n_layers_of(model),
        exemplars=exemplars,
        frame=(low, high),
        backdrop=make_backdrop(model, points, low, high, with_density=len(shown) < len(labeled)),
        neighbor_scores=score_neighbors(model, X, points, true, labeled, training, share),
        history=tuple(model.history_),
        epochs_kept=int(model.n_iter_ or 0),
        settings={name: repr(value) for name, value in model.settings_.items()},
        plan=() if model.plan_ is None else model.plan_.rows(),
        versions={"Python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        commands=tuple(commands),
    )


def _evaluate_rows(
    model: SupervisedEmbedding,
    points: ndarray,
    true: ndarray,
    labeled: ndarray,
    training: ndarray,
    shown: ndarray,
    permutation: PermutationTest | None,
    share: float | None,
) -> dict[str, Any]:
    """Return the evaluation of predicted classes; empty if the model has no classes."""
    said = ("predicted", "leading", "shares", "confusion", "scores")
    if not len(model.classes_):
        if permutation is not None:
            raise InvalidParameter(
                "a permutation test shuffles labels, and the model was learned without any: leave "
                "permutation out."
            )
        return dict.fromkeys(said)
    leading, shares = _classify_points(model, points)
    predicted = leading[:, 0]
    judged = labeled & (np.ones_like(training) if training[labeled].all() else ~training)
    n_classes = int(max(true[labeled].max() + 1, len(model.classes_)))
    some = (points[labeled], true[labeled], predicted[labeled], training[labeled])
    return {
        "predicted": predicted[shown],
        "leading": leading[shown],
        "shares": shares[shown],
        "confusion": count_pairs(true[judged], predicted[judged], n_classes),
        "scores": score_predictions(model, *some, permutation, share),
    }


def count_pairs(true: ndarray, predicted: ndarray, n_classes: int) -> ndarray:
    """How many rows of each class are taken for which."""
    counts = np.bincount(true * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)


def sample_rows(codes: ndarray, most: int, size: int) -> ndarray:
    """Return all rows, or, if there are too many, a stratified sample of about ``size``.

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


def _classify_points(model: SupervisedEmbedding, points: ndarray) -> tuple[ndarray, ndarray]:
    """Return the most probable classes of each point and their probabilities, in bounded memory."""
    n_leading = min(N_LEADING, len(model.classes_))
    leading, shares = [], []
    for some in shares_by_chunks(points, *model.references(), model.temperature_):
        leading.append(np.argsort(-some, axis=1, kind="stable")[:, :n_leading])
        shares.append(np.take_along_axis(some, leading[-1], axis=1))
    return np.concatenate(leading), np.concatenate(shares)


def _exemplars(
    model: SupervisedEmbedding, points: ndarray
) -> tuple[Exemplars | None, ndarray | None, ndarray | None]:
    """Return the exemplars; without classes a few landmarks, and the parts around them."""
    known = model.exemplars_
    if len(model.classes_):
        if known is None:
            return None, None, None
        codes = np.searchsorted(model.classes_, model.exemplar_labels_)
        return Exemplars(model.exemplar_embedding_, codes, len(codes)), known, None
    chosen = choose_landmarks(model)
    parts = parts_of_map(model, points, chosen)
    if known is None:
        return None, None, parts
    return Exemplars(model.exemplar_embedding_[chosen], None, len(known)), known[chosen], parts
