"""The spectral primitive of PRIME: a random filter around the identity (thesis, equation 5.3)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..errors import BookError
from .chance import normal, uniform
from .checks import check_counts, check_generator, check_images, check_numbers, each, per_image


def filtered(x: Tensor, kernels: Tensor) -> Tensor:
    """Each image under its own kernel (N, K, K), the same for all channels; zeros around it, not clipped.

    One pass over the images a tap: several times as fast as a convolution in N groups.
    """
    size, (height, width) = kernels.shape[-1], x.shape[2:]
    around = pad(x, (size // 2,) * 4)
    taps = kernels.flatten(1).T
    result = torch.zeros_like(x)
    for index, tap in enumerate(taps):
        row, column = divmod(index, size)
        result.addcmul_(around[:, :, row : row + height, column : column + width], each(tap))
    return result


def draw_kernels(sigma: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """delta + N(0, sigma^2), (N, size, size): the unit tap is in the centre.

    The published code puts it at index ceil(K/2), in the corner for K = 3, which shifts the image (gap U39).
    """
    kernels = normal((len(sigma), size, size), generator, sigma) * sigma[:, None, None]
    kernels[:, size // 2, size // 2] += 1
    return kernels


def spectral(
    x: Tensor, *, strength: float | Tensor, smoothness: int = 3, generator: torch.Generator
) -> Tensor:
    """Filter each image by delta + omega', omega' of independent N(0, strength^2); clipped to [0, 1].

    Parameters
    ----------
    strength
        sigma_omega, a standard deviation: one for all images, or a tensor (N,). 0 changes nothing.
    smoothness
        K_omega, the side of the filter, odd; a larger one has a finer spectral resolution.
    """
    check_images(x)
    check_generator(generator)
    check_side(smoothness)
    return _spectral(x, per_image("strength", strength, x), smoothness, generator)


def _spectral(x: Tensor, sigma: Tensor, size: int, generator: torch.Generator) -> Tensor:
    return filtered(x, draw_kernels(sigma, size, generator)).clamp_(0, 1)


def check_side(size: int) -> None:
    """A filter has a centre."""
    check_counts(smoothness=size)
    if size % 2 == 0:
        raise BookError(f"smoothness={size}; a filter has a centre only where its side is odd")


@dataclass(frozen=True)
class RandomFilter:
    """`spectral` with strengths drawn from U(0, sigma), for each image its own."""

    sigma: float = 4.0
    """Largest strength, a standard deviation (gap U37)."""
    size: int = 3

    def __post_init__(self) -> None:
        check_numbers(sigma=self.sigma)
        check_side(self.size)

    def draw(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Strengths for the images, (N,)."""
        return self.sigma * uniform((len(x),), generator, x)

    def __call__(self, x: Tensor, *, generator: torch.Generator, scale: float = 1.0) -> Tensor:
        """Filtered images; `scale` multiplies the strengths (section 5.4.3)."""
        return _spectral(x, scale * self.draw(x, generator), self.size, generator)
