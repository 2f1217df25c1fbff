"""What one process and several of them must agree on; run by torchrun, and by the tests alone."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
import torch

from hopefold import HOPE, SHOPE
from hopefold.core.maps import SigmoidHighOrder
from hopefold.core.masks import MaskSampler
from hopefold.fitting.batch import Batch, GlobalBatch
from hopefold.fitting.losses import ExemplarLoss, HighOrderLoss, PairLoss
from hopefold.training import shared_memory
from hopefold.training.distributed import current_process_group
from hopefold.training.loop import minimize
from hopefold.training.progress import Progress
from hopefold.training.settings import Training
from hopefold.training.sharding import Sharding

#: 101 rows in batches of 10: the last one has 1 row or 11, and some processes none.
N_ROWS, N_FEATURES = 101, 5

SETTINGS = Training(
    max_epochs=1,
    batch_size=10,
    learning_rate=0.01,
    optimizer="adam",
    batch_iterations=2,
    weight_decay=0.0,
    patience=9,
)


def table():
    random = np.random.RandomState(0)
    y = np.arange(N_ROWS) % 3
    X = 3 * random.normal(size=(3, N_FEATURES))[y] + random.normal(size=(N_ROWS, N_FEATURES))
    return X, y


def ten_steps(objective, bounds, batch_size=10):
    """The first gradient and the weights after ten steps, in float64, of a map with dropout."""
    group = current_process_group()
    sharding = Sharding(group, bounds)
    X, y = (torch.from_numpy(values) for values in table())
    map_ = SigmoidHighOrder(N_FEATURES, 2, 2, 7, 6, input_dropout=0.2, dropout=0.1).double()
    map_.start(X[:50], torch.Generator().manual_seed(0))
    exemplars = torch.nn.Parameter(X[:6].clone())
    groups = {"map": list(map_.parameters())}
    if objective == "exemplars":
        groups["exemplars"] = [exemplars]
        loss = HighOrderLoss(ExemplarLoss(spread=False), radius=0.1)
    else:
        exemplars = torch.empty(0, N_FEATURES, dtype=torch.float64)
        loss = HighOrderLoss(PairLoss(conditional=objective == "conditional"), radius=0.1)
    chances, gradients = MaskSampler(0), []
    weights = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)

    def loss_of(numbers, seed, _done):
        places, gather = sharding.share(numbers.numpy())
        places = torch.from_numpy(places)
        here, labels = numbers[places], y[numbers]
        batch = Batch(
            numbers=here.numpy(),
            table=torch.cat([X[here], torch.empty_like(exemplars)]),
            labels=y[here],
            weights=weights[y[here]],
            exemplars=exemplars,
            varies=torch.ones(N_FEATURES, dtype=torch.float64),
            exemplar_labels=y[: len(exemplars)],
            exemplar_weights=weights[y[: len(exemplars)]],
            whole=GlobalBatch(places, labels, weights[labels], gather) if group.size > 1 else None,
        )
        masks = chances.masks(seed, len(numbers), places if group.size > 1 else None)
        known = loss(map_, batch, masks)
        group.all_reduce([known.value, *known.gradients.values()])
        if not gradients:
            gradients.extend(slope.clone() for slope in known.gradients.values())
        return known

    with Progress("", 1, verbose=False) as progress:
        generator = torch.Generator().manual_seed(0)
        minimize(loss_of, groups, N_ROWS, SETTINGS, generator, progress)
    numbers = [*gradients, *map_.parameters(), exemplars]
    return np.concatenate([values.detach().numpy().ravel() for values in numbers])


METHODS = {
    "shope": SHOPE(max_epochs=4, random_state=0),
    "hope": HOPE(max_epochs=4, random_state=0, class_weight="balanced"),
    "pairs": SHOPE(max_epochs=4, random_state=0, exemplars=None, batch_size=30),
    "kmeans": SHOPE(max_epochs=4, random_state=0, exemplars="kmeans", conditional=True),
    "cg": SHOPE(max_epochs=2, random_state=0, optimizer="cg"),
    "layers": SHOPE(max_epochs=2, random_state=0, n_units=(7, 6), n_factors=5, adversarial=0.1),
    "some": SHOPE(max_epochs=3, random_state=0, missing_label=2, structure=0.5),
    "near": SHOPE(max_epochs=3, random_state=0, exemplars=None, structure=0.5, batch_size=30),
    "small": SHOPE(max_epochs=3, random_state=0, max_bytes=9_000),
}


def whole_fits(parquet):
    """The maps of whole fits, from arrays that each process has, and from a folder of files."""
    X, y = table()
    found = {}
    for name, method in METHODS.items():
        found[f"{name} arrays"] = method.fit(X, y).transform(X)
        found[f"{name} files"] = method.fit(parquet, "label").transform(parquet)
        found[f"{name} error"] = np.array([method.validation_error_, method.train_error_])
    for source, rows in (("arrays", (X, y)), ("files", (parquet, "label"))):
        model = HOPE(max_epochs=3, random_state=0, validation_fraction=0.3).fit(*rows)
        found[f"calibration {source}"] = np.array([model.temperature_, model.calibration_error_])
    return found


STEPS = {
    f"{objective} {dealt}": partial(ten_steps, objective)
    for objective in ("exemplars", "pairs", "conditional")
    for dealt in ("dealt", "read")
}


def without_shared_memory(bounds):
    """Ten steps of processes that have to send each other their gradients."""
    with patch.object(shared_memory, "SHARES_MEMORY", False), patch.dict(shared_memory._reducers):
        shared_memory._reducers.clear()
        return ten_steps("exemplars", bounds)


STEPS["exemplars sent"] = without_shared_memory


def bounds_for(group):
    """Unequal shards: the first process has few rows, and nearly all are the last one's."""
    return (0, 7, *([30] if group.size == 3 else []), N_ROWS)


def main(parquet, output):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    group = current_process_group()
    found = {
        name: steps(bounds_for(group) if name.endswith("read") else None)
        for name, steps in STEPS.items()
    }
    found |= whole_fits(parquet)
    assert all(shared_memory._reducers.values()), "shared memory was not used"
    same = {
        name: len({v.tobytes() for v in group.all_gather_object(values)})
        for name, values in found.items()
    }
    assert set(same.values()) == {1}, same
    if group.is_first:
        np.savez(output, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
