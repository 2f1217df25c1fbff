"""Files of models and checkpoints. Reading a file never runs code from it."""
