"""The values that a parameter with a fixed set of choices can have."""

EXEMPLARS = ("kmeans", None)
EXEMPLARS_OR_JOINT = ("joint", *EXEMPLARS)
SCALES = ("auto", "standard", "range", None)
OPTIMIZERS = ("adam", "cg", "lbfgs")
OBJECTIVES = ("collapse", "spread")
EFFORTS = ("fast", "balanced", "best")
DISTORTIONS = ("affine", "elastic")
SOLVERS = ("auto", "exact", "batches")
GRAPHS = ("class", "neighbors")
BOOLEANS = (True, False)
AUTO_OR_FALSE = ("auto", False)

#: The highest order: float32 cannot hold powers of more features.
MAX_ORDER = 20
