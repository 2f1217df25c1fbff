"""Evaluation of a map: errors, calibration, quality, stability, and cost."""

from hopefold.evaluation.accuracy import (
    Calibration,
    PermutationTest,
    calibration,
    knn_error,
    labeled_rows,
    left_out_error,
    misclassified_rows,
    permutation_test,
)
from hopefold.evaluation.cost import (
    Cost,
    Kept,
    SpeedUp,
    counted_speed_up,
    kept_by_model,
    kept_by_neighbors,
    measured_speed_up,
    operations,
    seconds_in_turns,
)
from hopefold.evaluation.map_quality import exemplar_distances, share_learned, trustworthiness
from hopefold.evaluation.stability import Stability, interaction_stability

__all__ = [
    "Calibration",
    "Cost",
    "Kept",
    "PermutationTest",
    "SpeedUp",
    "Stability",
    "calibration",
    "counted_speed_up",
    "exemplar_distances",
    "interaction_stability",
    "kept_by_model",
    "kept_by_neighbors",
    "knn_error",
    "labeled_rows",
    "left_out_error",
    "measured_speed_up",
    "misclassified_rows",
    "operations",
    "permutation_test",
    "seconds_in_turns",
    "share_learned",
    "trustworthiness",
]
