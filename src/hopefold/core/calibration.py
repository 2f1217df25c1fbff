"""Temperature scaling of class probabilities, and how well probabilities are calibrated.

Guo, Pleiss, Sun & Weinberger, "On calibration of modern neural networks" (ICML 2017).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray

#: The range of temperatures that `fit_temperature` chooses from. Below 1/e, its objective would not
#: be convex.
LOWEST, HIGHEST = math.exp(-1), 20.0

#: Standard deviation of the prior of log T: as if few rows had suggested a temperature near 1.
PRIOR_SPREAD = 0.5

#: Smaller class shares are replaced by this one: their logarithm would be infinite.
LEAST_SHARE = 1e-12

#: Newton's method takes less than ten steps, bisection to the ends of the range about forty.
MAX_STEPS, TOLERANCE = 100, 1e-12


def temper(shares: Float[ndarray, "n classes"], temperature: float) -> Float[ndarray, "n classes"]:
    r"""Return the class probabilities at a temperature.

    :math:`p_{ik} = s_{ik}^{1/T} / \sum_c s_{ic}^{1/T}`, with shares s of at least `LEAST_SHARE`.
    T > 1 makes probabilities less extreme, T < 1 more extreme. The most probable class stays
    the same, also where rounding would make it equal to another. ``shares`` are not changed.
    """
    if temperature == 1:
        return shares
    scaled = log_shares(shares)
    scaled /= temperature
    probabilities = _softmax(scaled)
    best = shares.argmax(axis=1)
    tied = np.flatnonzero(probabilities.argmax(axis=1) != best)
    probabilities[tied, best[tied]] = np.nextafter(probabilities[tied].max(axis=1), 1)
    return probabilities


def log_shares(shares: Float[ndarray, "n classes"]) -> Float[ndarray, "n classes"]:
    """Return the logarithms of the shares, none below that of `LEAST_SHARE`."""
    logs: ndarray = np.log(np.maximum(shares, LEAST_SHARE))
    return logs


def fit_temperature(
    shares: Float[ndarray, "n classes"],
    labels: Int[ndarray, " n"],
    weights: Float[ndarray, " n"],
) -> float:
    r"""Return the temperature with the smallest penalized log-loss, within its range.

    With the weights w of the rows, which sum to 1 here, and :math:`\beta = 1/T`, it minimizes

    .. math:: L(\beta) = \sum_i w_i \Bigl(\log \sum_c s_{ic}^\beta - \beta \log s_{iy_i}\Bigr)
              + \frac{\log^2 \beta}{2 \sigma^2 n}.

    The first term is the log-loss. The second is a normal prior of log T with standard deviation
    σ: without it, a few held-out rows that are all classified correctly would ask for T → 0.
    Both are convex in β up to e; the second derivative of the first is the mean variance of log s
    under the probabilities. Newton steps; where one would leave the interval that holds the
    minimum, bisection. Costs O(n classes) per step.
    """
    logs, weights = log_shares(shares), weights / weights.sum()
    true = weights @ logs[np.arange(len(labels)), labels]
    precision = 1 / (PRIOR_SPREAD**2 * len(labels))
    low, high, beta = 1 / HIGHEST, 1 / LOWEST, 1.0
    for _ in range(MAX_STEPS):
        probabilities = _softmax(beta * logs)
        mean = (probabilities * logs).sum(axis=1)
        variance = (probabilities * (logs - mean[:, None]) ** 2).sum(axis=1)
        log_beta = math.log(beta)
        slope = float(weights @ mean - true) + precision * log_beta / beta
        curvature = float(weights @ variance) + precision * (1 - log_beta) / beta**2
        low, high = (low, beta) if slope > 0 else (beta, high)
        following = beta - slope / curvature
        if not low <= following <= high:
            following = (low + high) / 2
        converged = abs(following - beta) < TOLERANCE
        beta = following
        if converged:
            break
    return 1 / beta


def _softmax(logits: Float[ndarray, "n classes"]) -> Float[ndarray, "n classes"]:
    exponentials: ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    exponentials /= exponentials.sum(axis=1, keepdims=True)
    return exponentials


class ReliabilityBins(NamedTuple):
    """Rows with similar probabilities of their predicted class; empty bins are omitted."""

    #: Mean probability of the predicted class, and share of correct predictions.
    confidence: Float[ndarray, " bins"]
    accuracy: Float[ndarray, " bins"]
    #: Sum of the weights of the rows, and number of rows.
    weights: Float[ndarray, " bins"]
    counts: Int[ndarray, " bins"]

    @property
    def error(self) -> float:
        r"""The expected calibration error, the mean of :math:`|confidence - accuracy|`."""
        return float(np.average(np.abs(self.confidence - self.accuracy), weights=self.weights))


def reliability_bins(
    confidence: Float[ndarray, " n"],
    correct: Bool[ndarray, " n"],
    n_bins: int,
    weights: Float[ndarray, " n"] | None = None,
) -> ReliabilityBins:
    """Return the bins of the expected calibration error, of equal width.

    ``confidence`` are the probabilities of the predicted classes, and ``correct`` is whether the
    predictions are. A probability on the border of two bins is in the upper one.
    """
    weights = np.ones(len(confidence)) if weights is None else weights
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    full = counts > 0
    total, probable, right = (
        np.bincount(bins, weights * values, n_bins)[full] for values in (1, confidence, correct)
    )
    return ReliabilityBins(probable / total, right / total, total, counts[full])
