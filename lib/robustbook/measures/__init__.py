"""What is measured on a network: accuracy, and robustness to Gaussian noise."""

from .accuracy import accuracy
from .gaussian import expected_norm, gnr, kept_rate, noise_levels

__all__ = ["accuracy", "expected_norm", "gnr", "kept_rate", "noise_levels"]
