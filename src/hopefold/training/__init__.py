"""Training: settings, the training loop, optimizers, checkpoints, distributed data, progress."""
