"""Gaussian noise on part of the images: the baseline GAUSS of the framework paper (2021, section 4)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError
from .chance import normal, uniform


@dataclass(frozen=True)
class SomeNoise:
    """Noise of standard deviation `sigma` on every pixel of about the share `share` of the images.

    Pixels are not cut off at 0 and 1: the paper speaks of added noise and of nothing else.
    """

    sigma: float = 0.1
    share: float = 0.5

    def __post_init__(self) -> None:
        if not self.sigma >= 0 or not 0 <= self.share <= 1:
            raise BookError(
                f"sigma={self.sigma!r}, share={self.share!r}; give a deviation and a share of [0, 1]"
            )

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """A mix of clean and noisy images."""
        chosen = uniform((len(x), 1, 1, 1), generator, x) < self.share
        return x + self.sigma * normal(tuple(x.shape), generator, x) * chosen
