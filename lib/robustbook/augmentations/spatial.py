"""The spatial primitive of PRIME: random smooth displacements (thesis, equations 5.4 and 5.5).

They are the diffeomorphisms of maximum entropy of Petrini et al. (2021).
"""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from ..errors import BookError
from .chance import arcsine, integers, normal
from .checks import check_counts, check_generator, check_images, each, per_image

# ------------------------------------------------------------------------------------ displacements


@functools.lru_cache(maxsize=16)
def sine_basis(size: int) -> Tensor:
    """sin(pi i r) for i = 1 .. size - 2 at pixels r = 0 .. 1, (size, size - 2); exactly 0 at both ends."""
    pixels = torch.arange(size, dtype=torch.float64) / (size - 1)
    waves = torch.sin(math.pi * pixels[:, None] * torch.arange(1, size - 1))
    waves[0] = waves[-1] = 0
    return waves


def _fold(cut: int, size: int) -> Tensor:
    """Which wave of `sine_basis` a frequency 1 .. cut looks like on so many pixels, as a 0/1 matrix."""
    period = 2 * (size - 1)
    rest = torch.arange(1, cut + 1) % period
    alias = torch.minimum(rest, period - rest)
    return torch.nn.functional.one_hot(alias, size)[:, 1 : size - 1].double()


@functools.lru_cache(maxsize=128)
def amplitudes(height: int, width: int, cut: int) -> Tensor:
    """Standard deviations of the coefficients beta / sigma_tau of equation (5.5), for waves on the pixels.

    Frequencies beyond the pixel grid repeat those on it, up to their sign, which a normal coefficient does
    not feel: their variances add. A field with cut 100 on 32 pixels takes 900 random numbers, not 10,000,
    and has the same law. The radius is below cut + 1/2, as Petrini et al. have it.
    """
    squares = torch.arange(1, cut + 1, dtype=torch.float64).square()
    energy = squares[:, None] + squares
    variance = torch.where(energy < (cut + 0.5) ** 2, 1 / energy, 0.0)
    return (_fold(cut, height).T @ variance @ _fold(cut, width)).sqrt()


def draw_fields(
    shape: tuple[int, int], sigma: Tensor, cut: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Displacements in pixels, down and to the right, (N, H, W) each; zero on the border."""
    height, width = shape
    cuts, which = cut.unique(return_inverse=True)
    spread = torch.stack([amplitudes(height, width, k) for k in cuts.tolist()]).to(sigma)[which]
    beta = normal((2, len(sigma), *spread.shape[1:]), generator, sigma) * (spread * sigma[:, None, None])
    down, right = sine_basis(height).to(sigma) @ beta @ sine_basis(width).to(sigma).T
    return down * height, right * width


def displaced(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """x(r + tau'(r)): bilinear between pixels, coordinates held inside the image."""
    height, width = x.shape[2:]
    rows = torch.linspace(-1, 1, height, dtype=x.dtype, device=x.device)
    columns = torch.linspace(-1, 1, width, dtype=x.dtype, device=x.device)
    grid = x.new_empty(len(x), height, width, 2)
    torch.add(columns, right, alpha=2 / (width - 1), out=grid[..., 0])
    torch.add(rows[:, None], down, alpha=2 / (height - 1), out=grid[..., 1])
    return grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)


# --------------------------------------------------------------------------------------- primitive


def temperature_range(size: float, cut: Tensor) -> tuple[Tensor, Tensor]:
    """T1 and T2, bounds of sigma_tau^2 (gap U40): displacements of half a pixel, and no overhangs.

    T1 = 1 / (pi n^2 ln K), T2 = 4 / (pi^3 K^2 ln K). Where K > 2 n / pi, T1 is the larger one.
    T2 bounds typical slopes, not the steepest: at T2 some fields fold, six in ten at K = 2, one in ten at 10.
    """
    cut = cut.double()
    return 1 / (math.pi * size**2 * cut.log()), 4 / (math.pi**3 * cut.square() * cut.log())


def spatial(
    x: Tensor, *, strength: float | Tensor, smoothness: int | Tensor, generator: torch.Generator
) -> Tensor:
    """Move the pixels of each image by a random smooth field of its own.

    Parameters
    ----------
    strength
        sigma_tau, a standard deviation: one for all images, or a tensor (N,). 0 changes nothing.
    smoothness
        K_tau, the highest frequency of the field: one for all images, or a tensor (N,).
    """
    check_images(x)
    check_generator(generator)
    sigma, cut = per_image("strength", strength, x), per_image("smoothness", smoothness, x, whole=True)
    return _spatial(x, sigma, cut, generator)


def _spatial(x: Tensor, sigma: Tensor, cut: Tensor, generator: torch.Generator) -> Tensor:
    height, width = x.shape[2:]
    moved = displaced(x, *draw_fields((height, width), sigma, cut, generator)).clamp_(0, 1)
    if (sigma == 0).any():  # the sampler rounds coordinates
        moved = torch.where(each(sigma == 0), x, moved)
    return moved


@dataclass(frozen=True)
class RandomDiffeo:
    """`spatial` with cut and strength drawn for each image.

    As in the published code, which however draws once for all images of a batch: a largest cut uniform
    on {cut_min + 1 .. cut_max}, the cut between cut_min and it, and sigma_tau^2 between T1 and
    max(T1, T2). The last two by Beta(1/2, 1/2), which is what its parameters s = r = 1 amount to.
    """

    cut_min: int = 2
    cut_max: int = 100

    def __post_init__(self) -> None:
        check_counts(cut_min=self.cut_min, cut_max=self.cut_max)
        if not 2 <= self.cut_min <= self.cut_max:
            raise BookError(
                f"cuts from {self.cut_min} to {self.cut_max}; give 2 or more, the lower one first"
            )

    def draw(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Strengths and cuts for the images, (N,) each."""
        count, size = len(x), math.sqrt(x.shape[2] * x.shape[3])
        low = self.cut_min
        most = integers(min(low + 1, self.cut_max), self.cut_max, count, generator, x)
        cut = low + (arcsine(count, generator, x) * (most - low + 1)).long()
        cut = torch.minimum(cut, most)
        coldest, hottest = temperature_range(size, cut)
        rise = (hottest - coldest).clamp_min(0) * arcsine(count, generator, x)
        return (coldest + rise).sqrt().to(x.dtype), cut

    def __call__(self, x: Tensor, *, generator: torch.Generator, scale: float = 1.0) -> Tensor:
        """Deformed images; `scale` multiplies the strengths (section 5.4.3)."""
        sigma, cut = self.draw(x, generator)
        return _spatial(x, scale * sigma, cut, generator)
