"""What is measured on a network: accuracy, noise, corruptions, distances of adversarial images, margins."""

from .accuracy import accuracy
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
from .distances import Distances, distances, fooled
from .gaussian import expected_norm, gnr, kept_rate, noise_levels
from .margins import Margins, directions, distribution, linear_margins, margins
from .sparsity import centre, most_salient, perturbed, perturbed_elements, perturbed_pixels, perturbed_share

__all__ = [
    "Distances",
    "Margins",
    "accuracy",
    "accuracy_by_group",
    "accuracy_by_severity",
    "accuracy_coordinate",
    "centre",
    "corruption_errors",
    "directions",
    "distances",
    "distribution",
    "expected_norm",
    "fooled",
    "gnr",
    "kept_rate",
    "linear_margins",
    "margins",
    "mce",
    "mean_errors",
    "most_salient",
    "noise_levels",
    "perturbed",
    "perturbed_elements",
    "perturbed_pixels",
    "perturbed_share",
    "relative_mce",
    "robustness_coordinate",
]
