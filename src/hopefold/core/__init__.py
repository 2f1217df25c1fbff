"""The paper: maps, kernels, objectives, exemplars and neighbours, as functions of tensors."""
