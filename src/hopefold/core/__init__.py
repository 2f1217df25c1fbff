"""The paper's maps, kernels, objectives, exemplars and neighbors, as functions of tensors."""
