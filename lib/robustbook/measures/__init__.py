"""What is measured on a network: accuracy, robustness to Gaussian noise, distances of adversarial images."""

from .accuracy import accuracy
from .distances import Distances, distances, fooled
from .gaussian import expected_norm, gnr, kept_rate, noise_levels

__all__ = [
    "Distances",
    "accuracy",
    "distances",
    "expected_norm",
    "fooled",
    "gnr",
    "kept_rate",
    "noise_levels",
]
