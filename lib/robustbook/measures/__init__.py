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

__all__ = [
    "Distances",
    "Margins",
    "accuracy",
    "accuracy_by_group",
    "accuracy_by_severity",
    "accuracy_coordinate",
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
    "noise_levels",
    "relative_mce",
    "robustness_coordinate",
]
