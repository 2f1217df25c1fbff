"""Every formula once more, slowly: in loops, from the paper, sharing nothing with the library."""

from __future__ import annotations

import itertools
import math

import numpy as np


def hope(x, C, c, P, order):
    """Eq. 1-3: the explicit sum over all products of `order` features, x with a 1 appended."""
    x, C = [*x, 1.0], [[*row, bias] for row, bias in zip(C, c, strict=True)]
    y = []
    for s in range(len(P)):
        total = 0.0
        for indices in itertools.product(range(len(x)), repeat=order):
            tensor_entry = sum(math.prod(C[f][i] for i in indices) * P[s][f] for f in range(len(C)))
            total += tensor_entry * math.prod(x[i] for i in indices)
        y.append(total)
    return y


def shope(x, C, c, W, b, P, order):
    """Eq. 5, unit by unit; each factor's power expanded into its products."""
    units = []
    for k in range(len(W)):
        (activation,) = hope(x, C, c, [W[k]], order)
        units.append(1 / (1 + math.exp(-(activation + b[k]))))
    return [sum(P[s][k] * units[k] for k in range(len(W))) for s in range(len(P))]


def stacked(x, layers, P):
    """Layer by layer; ``layers`` are (C, c, W, b, order), one's units are the next one's x."""
    for C, c, W, b, order in layers:
        each = [[float(i == k) for i in range(len(W))] for k in range(len(W))]
        x = shope(x, C, c, W, b, each, order)
    return [sum(p * unit for p, unit in zip(row, x, strict=True)) for row in P]


def secants(x, x0, layers, P):
    """Slopes of the coordinates by the inputs of the first sigmoids, between two rows.

    Each power and sigmoid has the slope of the line through its values at both rows; ``layers`` as
    in `stacked`. From the first sigmoids up, one unit's slope after the other.
    """
    chained = None
    for C, c, W, b, order in layers:
        (s, s0), k_units = (
            (
                [sum(w * v for w, v in zip(C[f], one, strict=True)) + c[f] for f in range(len(C))]
                for one in (x, x0)
            ),
            range(len(W)),
        )
        (a, a0) = (
            [sum(W[k][f] * one[f] ** order for f in range(len(C))) + b[k] for k in k_units]
            for one in (s, s0)
        )
        x, x0 = ([1 / (1 + math.exp(-value)) for value in one] for one in (a, a0))
        lines = [(x[k] - x0[k]) / (a[k] - a0[k]) for k in k_units]
        if chained is None:
            chained = [[lines[k] * (i == k) for i in k_units] for k in k_units]
            continue
        powers = [(s[f] ** order - s0[f] ** order) / (s[f] - s0[f]) for f in range(len(C))]
        chained = [
            [
                lines[k]
                * sum(
                    W[k][f] * powers[f] * C[f][j] * chained[j][i]
                    for f in range(len(C))
                    for j in range(len(chained))
                )
                for i in range(len(chained[0]))
            ]
            for k in k_units
        ]
    return [
        [sum(row[k] * chained[k][i] for k in range(len(row))) for i in range(len(chained[0]))]
        for row in P
    ]


def interactions(C, c, P, order):
    """All terms of eq. 3: from the features of a product to its coefficient in each coordinate.

    Every entry of the tensor is looked at, x with a 1 appended; entries of the same product are one
    term.
    """
    n_features, C = len(C[0]), [[*row, bias] for row, bias in zip(C, c, strict=True)]
    terms = {}
    for indices in itertools.product(range(n_features + 1), repeat=order):
        term = tuple(sorted(i for i in indices if i < n_features))
        entry = [
            sum(math.prod(C[f][i] for i in indices) * row[f] for f in range(len(C))) for row in P
        ]
        terms[term] = [a + b for a, b in zip(terms.get(term, [0.0] * len(P)), entry, strict=True)]
    return terms


def squared_slices(C, c, P, order):
    """The squares of all entries of the tensor that have a feature in the first place."""
    n_features, C = len(C[0]), [[*row, bias] for row, bias in zip(C, c, strict=True)]
    squares = [0.0] * n_features
    for first, *rest in itertools.product(range(n_features + 1), repeat=order):
        for row in P:
            entry = sum(math.prod(C[f][i] for i in (first, *rest)) * row[f] for f in range(len(C)))
            squares[first if first < n_features else 0] += entry**2 if first < n_features else 0
    return squares


def deep(x, layers, P):
    """Layer by layer, unit by unit; ``layers`` are pairs of weights and biases."""
    units = x
    for W, b in layers:
        inputs = [
            sum(w * u for w, u in zip(W[k], units, strict=True)) + b[k] for k in range(len(W))
        ]
        units = [math.tanh(value) for value in inputs]
    return [sum(p * u for p, u in zip(row, units, strict=True)) for row in P]


def squared_distance(a, b):
    return sum((u - v) ** 2 for u, v in zip(a, b, strict=True))


def student(a, b):
    return 1 / (1 + squared_distance(a, b))


def gaussian(a, b):
    return math.exp(-squared_distance(a, b))


def exemplar_q(y, exemplars, exemplar_weights=None, kernel=student):
    """q_{j|i} of one point over all exemplars."""
    weights = [1.0] * len(exemplars) if exemplar_weights is None else exemplar_weights
    similar = [w * kernel(y, e) for w, e in zip(weights, exemplars, strict=True)]
    return [k / sum(similar) for k in similar]


def collapse_onto_exemplars(
    y, labels, exemplars, exemplar_labels, weights=None, exemplar_weights=None
):
    """Eq. 9: mean over the points of KL(p || q), p uniform over the exemplars of the class."""
    total = 0.0
    for i in range(len(y)):
        q = exemplar_q(y[i], exemplars, exemplar_weights)
        mine = [j for j in range(len(exemplars)) if exemplar_labels[j] == labels[i]]
        p = 1 / len(mine)
        divergence = sum(p * math.log(p / q[j]) for j in mine)
        total += divergence * (1 if weights is None else weights[i])
    return total / len(y)


def class_probabilities(point, exemplars, exemplar_labels):
    """The share of each class in q."""
    q = exemplar_q(point, exemplars)
    return [
        sum(q[j] for j in range(len(q)) if exemplar_labels[j] == label)
        for label in range(max(exemplar_labels) + 1)
    ]


def pseudo_labels(y, exemplars, exemplar_labels, expected):
    """The likeliest class of each point, and how much likelier it is than the next one.

    Classes that the points would have more often than expected are less likely.
    """
    shares = [class_probabilities(point, exemplars, exemplar_labels) for point in y]
    often = [sum(column) for column in zip(*shares, strict=True)]
    found = []
    for row in shares:
        fair = [
            share * (len(y) * e + 1) / (o + 1)
            for share, e, o in zip(row, expected, often, strict=True)
        ]
        first, second = sorted([*fair, 0.0], reverse=True)[:2]
        found.append((fair.index(first), (first - second) / sum(fair)))
    return found


def spread_over_exemplars(
    y, labels, exemplars, exemplar_labels, weights=None, exemplar_weights=None, kernel=student
):
    """Mean of −log of the class's share of q."""
    total = 0.0
    for i in range(len(y)):
        q = exemplar_q(y[i], exemplars, exemplar_weights, kernel)
        share = sum(q[j] for j in range(len(q)) if exemplar_labels[j] == labels[i])
        total -= math.log(share) * (1 if weights is None else weights[i])
    return total / len(y)


def collapse_onto_pairs(y, labels, weights=None, *, conditional=False, kernel=student):
    """Eq. 8, with q joint (eq. 6) or conditional."""
    n = len(y)
    weights = [1.0] * n if weights is None else weights
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    same = [(i, j) for i, j in pairs if labels[i] == labels[j]]
    if not conditional:
        Z = sum(kernel(y[i], y[j]) for i, j in pairs)
        total_weight = sum(weights[i] for i, _ in same)
        loss = 0.0
        for i, j in same:
            p = weights[i] / total_weight
            loss += p * math.log(p / (kernel(y[i], y[j]) / Z))
        return loss
    rows = sorted({i for i, _ in same})
    total_weight = sum(weights[i] for i in rows)
    loss = 0.0
    for i in rows:
        Z = sum(kernel(y[i], y[j]) for j in range(n) if j != i)
        mine = [j for j in range(n) if j != i and labels[j] == labels[i]]
        p = 1 / len(mine)
        divergence = sum(p * math.log(p / (kernel(y[i], y[j]) / Z)) for j in mine)
        loss += divergence * weights[i] / total_weight
    return loss


def miss_neighbors(y, labels, weights=None, *, kernel):
    """NCA: one less the mean probability that the neighbor drawn is of the row's own class."""
    n = len(y)
    hits = 0.0
    for i in range(n):
        Z = sum(kernel(y[i], y[j]) for j in range(n) if j != i)
        for j in range(n):
            if j != i and labels[j] == labels[i]:
                hits += kernel(y[i], y[j]) / Z * (1 if weights is None else weights[i])
    return 1 - hits / n


def large_margin(y, labels, targets, weights=None, *, pull=0.5):
    """LMNN: each target neighbor pulls, each row of another class within the margin pushes."""
    total, pairs = 0.0, 0
    for i in range(len(y)):
        for target in targets[i]:
            near = squared_distance(y[i], target)
            push = 0.0
            for j in range(len(y)):
                if labels[j] != labels[i]:
                    push += max(0.0, 1 + near - squared_distance(y[i], y[j]))
            weight = 1 if weights is None else weights[i]
            total += weight * (pull * near + (1 - pull) * push)
            pairs += 1
    return total / pairs


def match_affinities(y, affinities):
    """t-SNE: KL(p || q) over all ordered pairs."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if i != j]
    Z = sum(student(y[i], y[j]) for i, j in pairs)
    loss = 0.0
    for i, j in pairs:
        if affinities[i][j] > 0:
            loss += affinities[i][j] * math.log(affinities[i][j] / (student(y[i], y[j]) / Z))
    return loss


def keep_near_landmarks(y, landmarks, affinities):
    """The mean over rows of KL(p_i || q_i), q the Student kernel over all landmarks."""
    loss = 0.0
    for i, point in enumerate(y):
        Z = sum(student(point, landmark) for landmark in landmarks)
        for j, landmark in enumerate(landmarks):
            if affinities[i][j] > 0:
                q = student(point, landmark) / Z
                loss += affinities[i][j] * math.log(affinities[i][j] / q) / len(y)
    return loss


def entropy(shares):
    return -sum(p * math.log(p) for p in shares if p > 0)


def conditional_affinities(x, perplexity):
    """p_{j|i}: a Gaussian around each row, as wide as makes its entropy log(perplexity)."""
    n = len(x)
    rows = []
    for i in range(n):
        squared = [squared_distance(x[i], x[j]) for j in range(n)]
        narrow, wide = 1e-6, 1e6  # standard deviations
        for _ in range(60):
            width = math.sqrt(narrow * wide)
            least = min(d for j, d in enumerate(squared) if j != i)
            similar = [
                0.0 if j == i else math.exp((least - squared[j]) / (2 * width**2)) for j in range(n)
            ]
            row = [s / sum(similar) for s in similar]
            if entropy(row) > math.log(perplexity):
                wide = width
            else:
                narrow = width
        rows.append(row)
    return rows


def nearest_of_the_class(x, labels, i, k):
    """Distances of row i to the k nearest other rows of its class."""
    mine = [j for j in range(len(x)) if j != i and labels[j] == labels[i]]
    return sorted(math.sqrt(squared_distance(x[i], x[j])) for j in mine)[:k]


def vote(distances, labels, n_neighbors):
    """The k nearest vote; among tied classes the one with the nearest reference wins."""
    order = sorted(range(len(distances)), key=lambda j: distances[j])[:n_neighbors]
    counts: dict[int, int] = {}
    for j in order:
        counts[labels[j]] = counts.get(labels[j], 0) + 1
    most = max(counts.values())
    return next(labels[j] for j in order if counts[labels[j]] == most)


def kernel_mass(point, references, labels, n_classes):
    q = exemplar_q(point, references)
    return np.array([sum(q[j] for j in range(len(q)) if labels[j] == k) for k in range(n_classes)])


def left_out_error(points, labels, n_neighbors):
    wrong = 0
    for i in range(len(points)):
        others = [j for j in range(len(points)) if j != i]
        distances = [squared_distance(points[i], points[j]) for j in others]
        wrong += vote(distances, [labels[j] for j in others], n_neighbors) != labels[i]
    return wrong / len(points)


def calibration_error(probabilities, right, n_bins):
    """Over bins: share of the rows × |mean probability − share of the right ones|."""
    total = 0.0
    for k in range(n_bins):
        last = k == n_bins - 1
        mine = [
            i
            for i, p in enumerate(probabilities)
            if k / n_bins <= p and (p < (k + 1) / n_bins or last)
        ]
        if mine:
            promised = sum(probabilities[i] for i in mine) / len(mine)
            came_true = sum(bool(right[i]) for i in mine) / len(mine)
            total += len(mine) / len(probabilities) * abs(promised - came_true)
    return total


def tempered(shares, temperature):
    """Probabilities in proportion to shares to the power of 1/T."""
    powers = [max(share, 1e-12) ** (1 / temperature) for share in shares]
    return [power / sum(powers) for power in powers]


def tempered_log_loss(shares, labels, weights, temperature):
    """Weighted mean of −log of the probability of the true class."""
    total = 0.0
    for row, label, weight in zip(shares, labels, weights, strict=True):
        total -= weight * math.log(tempered(row, temperature)[label])
    return total / sum(weights)
