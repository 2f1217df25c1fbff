"""Files of models and of checkpoints: written, read, checked. No code is ever read from a file."""
