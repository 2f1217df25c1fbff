"""The usual settings of S-HOPE where every row has a label: two layers and a short schedule.

They depend on the numbers of rows and columns alone. They were chosen on validation parts of many
tables: ``python -m hopefold_bench front`` measures them, and docs/recipe.md has the figures.
"""

from __future__ import annotations

#: What an effort multiplies: the widths, and the number of epochs.
EFFORTS = {"fast": (0.5, 1 / 3), "balanced": (1.0, 1.0), "best": (2.0, 3.0)}

#: The widths of both layers: for few rows, from `MANY_ROWS` on, and for tables of `MANY_NUMBERS`.
NARROW, WIDE, WIDEST = 100, 200, 300
MANY_ROWS, MANY_NUMBERS = 4_000, 30_000_000

#: Batches: about so many per epoch, of between so many rows.
BATCHES, SMALLEST, LARGEST = 20, 32, 250

#: The number of epochs up to `FEW_ROWS` rows; beyond, it falls with the number of rows to a power.
#: The fewest epochs, and the fewest with adversarial perturbations.
EPOCHS, FEW_ROWS, POWER = 60, 6_000, 0.8
FEWEST_EPOCHS, FEWEST_ADVERSARIAL = 18, 11

#: The largest step of Adam with two layers; larger for narrower layers, smaller for wider ones.
LEARNING_RATE = 4e-3

#: More classes than these need more epochs to find their places in a plane, up to a factor.
MANY_CLASSES, MOST_FOR_CLASSES = 10, 3

#: For pixels: the radius of adversarial perturbations, as a share of the spread of all rows; the
#: share of the epochs that remains, as each takes twice as long; and the share of pixels dropped.
RADIUS, EPOCHS_LEFT, PIXEL_DROPOUT = 0.15, 2 / 3, 0.1

#: For sparse rows: the share of the features dropped, the share of the epochs, and how many times
#: larger the step is. Few features of a row differ from 0, so each is learned from few rows.
SPARSE_DROPOUT, SPARSE_EPOCHS, SPARSE_RATE = 0.5, 1 / 3, 2.0

#: Share of polynomial units that are dropped in training where there are few columns.
DROPOUT = 0.1


def layer_sizes(n_rows: int, n_columns: int, effort: str) -> tuple[int, int]:
    """The number of units in both layers, and of polynomial units in each of them."""
    usual = NARROW if n_rows < MANY_ROWS else WIDE
    if n_rows * n_columns >= MANY_NUMBERS:
        usual = WIDEST
    width = round(EFFORTS[effort][0] * usual)
    return width, width


def batch_size(n_rows: int) -> int:
    """The number of rows per step."""
    return min(max(n_rows // BATCHES, SMALLEST), LARGEST)


def epochs(
    n_rows: int, n_classes: int, effort: str, *, adversarial: bool = False, sparse: bool = False
) -> int:
    """The number of passes over the rows: row visits grow more slowly than the rows."""
    share = (EPOCHS_LEFT if adversarial else 1) * (SPARSE_EPOCHS if sparse else 1)
    fewest = FEWEST_ADVERSARIAL if adversarial else FEWEST_EPOCHS
    passes = max(fewest, share * EPOCHS * min(1.0, FEW_ROWS / n_rows) ** POWER)
    crowded = min(max(1, n_classes / MANY_CLASSES), MOST_FOR_CLASSES)
    return round(EFFORTS[effort][1] * crowded * passes)


def learning_rate(n_factors: int, *, sparse: bool = False) -> float:
    """The largest step for layers of so many polynomial units, the narrowest of them."""
    rate = LEARNING_RATE * (SPARSE_RATE if sparse else 1)
    wider = min(1.0, WIDE / n_factors) ** (2 / 3)
    return float(rate * wider * max(1.0, NARROW / n_factors) ** (1 / 3))
