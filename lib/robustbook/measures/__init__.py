"""What is measured on a network: accuracy, noise, corruptions, distances, margins, embeddings."""

from . import by_attacks, by_labels
from .accuracy import accuracy
from .agreement import rank_correlations
from .bench import BUDGETS, Bench, Budget, bench
from .benchmark import corruption_accuracies
from .catalogue import MEASURES, Measure, Value, value_of
from .corruption import (
    accuracy_by_group,
    accuracy_by_severity,
    accuracy_coordinate,
    corruption_errors,
    mce,
    mean_errors,
    relative_mce,
    robustness_coordinate,
)
from .coverage import Plane, cosine_distances, embed, nearest, principal_plane, total_variance
from .distances import Distances, distances, fooled
from .gaussian import expected_norm, gnr, kept_rate, noise_levels
from .margins import Margins, directions, distribution, linear_margins, margins
from .selection import at_closest_weights, closest_weights
from .sparsity import centre, most_salient, perturbed, perturbed_elements, perturbed_pixels, perturbed_share
from .subject import INPUTS, Subject, examine

__all__ = [
    "BUDGETS",
    "INPUTS",
    "MEASURES",
    "Bench",
    "Budget",
    "Distances",
    "Margins",
    "Measure",
    "Plane",
    "Subject",
    "Value",
    "accuracy",
    "accuracy_by_group",
    "accuracy_by_severity",
    "accuracy_coordinate",
    "at_closest_weights",
    "bench",
    "by_attacks",
    "by_labels",
    "centre",
    "closest_weights",
    "corruption_accuracies",
    "corruption_errors",
    "cosine_distances",
    "directions",
    "distances",
    "distribution",
    "embed",
    "examine",
    "expected_norm",
    "fooled",
    "gnr",
    "kept_rate",
    "linear_margins",
    "margins",
    "mce",
    "mean_errors",
    "most_salient",
    "nearest",
    "noise_levels",
    "perturbed",
    "perturbed_elements",
    "perturbed_pixels",
    "perturbed_share",
    "principal_plane",
    "rank_correlations",
    "relative_mce",
    "robustness_coordinate",
    "total_variance",
    "value_of",
]
