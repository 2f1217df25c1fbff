"""What identifies a fit, so that its checkpoint is not used for another one."""

from __future__ import annotations

import hashlib

import numpy as np

from hopefold.fitting.plan_values import Request
from hopefold.fitting.task import Task
from hopefold.specification import CHECKPOINT_PARAMETERS

#: Rows by which the data of a checkpoint are recognized, in addition to the scale and all labels.
SAMPLED_ROWS = 100


def identify(request: Request, task: Task) -> str:
    """What two fits share whose checkpoints may be exchanged: settings, rows and labels."""
    apart = (*CHECKPOINT_PARAMETERS, "verbose", "device", "random_state")
    asked = request.parameters
    settings = {name: asked[name] for name in sorted(asked) if name not in apart}
    seed = None if asked["random_state"] is None else task.seed
    digest = hashlib.sha256(repr((request.method, settings, seed, task.classes)).encode())
    n_rows = len(task.labels)
    sample = task.rows.fetch(np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS)).astype(int))
    arrays = (task.labels, task.class_weights, task.scale.shift, task.scale.gain)
    for array in (*arrays, sample.cpu().numpy()):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
