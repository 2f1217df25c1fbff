"""Maximally collapsing metric learning."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from hopefold.baselines.projection import LinearMethod
from hopefold.core.kernels import log_gaussian
from hopefold.core.objectives import collapse_onto_pairs
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.fitting.losses import Loss, onto_pairs
from hopefold.fitting.task import Task

if TYPE_CHECKING:
    from numpy import ndarray


class MCMLMethod(LinearMethod):
    """A linear map, and collapse onto pairs."""

    def make_loss(self, task: Task, training: ndarray) -> Loss:
        """Collapse onto pairs with a Gaussian kernel, row by row."""
        return onto_pairs(partial(collapse_onto_pairs, conditional=True, log_kernel=log_gaussian))


@dataclass(kw_only=True, eq=False, repr=False)
class MCML(SupervisedEmbedding):
    """Maximally collapsing metric learning: a linear map in which classes collapse.

    Collapse onto pairs with a Gaussian kernel, each row normalized by itself, on mini-batches.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    exemplars : {"kmeans", None}, default=None
        The references that new rows are compared with. ``"kmeans"``: the k-means centers of each
        class in the input space, mapped. ``None``: all embedded training rows.
    n_exemplars : int, default=2
        Exemplars per class. A class with fewer rows gets one exemplar per row.
    validation_fraction : float, default=0.1
        Fraction of the rows that is held out, stratified by class. The error on these rows is
        reported. A method that learns in epochs keeps the last epoch whose error is not
        significantly above the lowest one. 0 turns validation off.
    refit : bool, default=True
        After validation, train again on all rows, for the selected number of epochs.
    scale : {"auto", "standard", "range", None}, default="auto"
        How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.
    n_neighbors : int or "auto", default="auto"
        Neighbors that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the nearest
        neighbor wins.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective, in the validation error and in `predict`.
    device : str or torch.device, default="auto"
        Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers. The same int gives the same result.
    verbose : int, default=0
        1 shows a progress bar.
    max_epochs : int or "auto", default="auto"
        Maximum number of epochs. ``"auto"``: enough for about 2,000 steps, between 30 and 100; 50
        for the optimizers ``"cg"`` and ``"lbfgs"``.
    batch_size : int or "auto", default="auto"
        Rows per step. ``"auto"``: at most 250 with joint exemplars and 1,000 with pairs, fewer for
        small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.
    learning_rate : float, default=0.01
        Largest learning rate of Adam: a linear warm-up over the first tenth of the training, then a
        cosine decay.
    optimizer : {"adam", "cg", "lbfgs"}, default="adam"
        ``"cg"``: the paper's, conjugate gradient on each batch. ``"lbfgs"``: L-BFGS on each batch.
    batch_iterations : int, default=3
        Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.
    patience : int or "auto", default="auto"
        Stop after so many epochs without a lower validation error. ``"auto"``: half of
        ``max_epochs``, at least 10.
    weight_decay : float, default=0.0
        Decoupled weight decay of the matrices of the map (Adam only).
    checkpoint : path or None, default=None
        File for the state of the fit, written at the end of epochs. After a crash or Ctrl-C, the
        same fit resumes from this file and ends with the same weights.
    checkpoint_minutes : float, default=5.0
        After so many minutes, the checkpoint is also written in the middle of an epoch.

    Attributes
    ----------
    map_ : torch.nn.Module
        The learned map, for rows scaled by ``scale_``.
    exemplars_ : ndarray of shape (n_references, n_features) or None
        The exemplars in the units of the training data.
    exemplar_labels_, exemplar_embedding_ : ndarray or None
        The classes of the exemplars, and their points in the map.
    reference_embedding_, reference_labels_ : ndarray
        The points that `predict` compares with: the exemplars, or all training rows.
    classes_, class_weight_ : ndarray
        The sorted labels and their weights. Empty for a map learned without labels.
    validation_error_ : float or None
        Error on the held-out rows, before they are learned from. Rows are weighted by
        ``class_weight``. With Adam, they choose neither the epoch nor any setting.
    n_held_out_, validation_interval_ : int, (float, float) or None
        The number of rows that ``validation_error_`` was measured on, and its 95 % confidence
        interval. With fewer than 280 rows, it may be all rows: see ``validation_fraction``.
    temperature_ : float
        Temperature of the probabilities, learned from the held-out rows: the kernel's probabilities
        to the power of ``1 / temperature_``, divided by their sum. 1 where neighbors vote, or if
        fewer than 20 rows are held out.
    calibration_error_ : float or None
        Expected calibration error of the probabilities on the held-out rows, each half at the
        temperature of the other. Rows are weighted by ``class_weight``. ``None`` without held-out
        rows.
    trustworthiness_ : float or None
        Trustworthiness of the neighbors in the map, from 0 to 1, on held-out rows. ``None`` unless
        neighbors are part of the loss and at least 36 rows are held out.
    train_error_ : float
        Error on the training rows. The smaller it is compared with ``validation_error_``, the more
        the map overfits.
    n_iter_ : int
        The selected number of epochs.
    interrupted_ : bool
        Whether Ctrl-C has ended the fit early: then the map is the best one until then.
    history_ : list of dict
        One record per epoch: epoch, loss, learning_rate, validation_error.
    scale_ : Scale
        The scaling of the columns.
    columns_ : hopefold.data.columns.Columns or None
        How the columns of a table become features, if the model was fitted to a table.
    precision_ : {"float32", "float16", "int8"}
        How a model file stores the weights and the exemplars.
    n_features_in_, feature_names_in_ : int, ndarray of str
        As in scikit-learn.

    References
    ----------
    .. [1] A. Globerson and S. Roweis. Metric Learning by Collapsing Classes. NIPS, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import MCML
    >>> X, y = load_iris(return_X_y=True)
    >>> MCML(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    # Parameters, written by `make parameters`.
    n_components: int = field(default=2, kw_only=False)
    exemplars: str | None = None
    n_exemplars: int = 2
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0
    max_epochs: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float = 0.01
    optimizer: str = "adam"
    batch_iterations: int = 3
    patience: int | str = "auto"
    weight_decay: float = 0.0
    checkpoint: Any = None
    checkpoint_minutes: float = 5.0
    # End of the parameters.

    method: ClassVar = MCMLMethod
