"""The colour primitive of PRIME: random maps of the colour range onto itself (thesis, equation 5.6)."""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .chance import integers, normal, uniform
from .checks import check_counts, check_generator, check_images, check_numbers, per_image

NODES = 16
"""Nodes of a table for each half-wave of the highest frequency: it errs by 4e-6 of a coefficient."""


@functools.lru_cache(maxsize=8)
def _tables(cut: int) -> tuple[Tensor, Tensor]:
    """sin(pi k v) and its slope a node, (cut, nodes + 1), at v = 0 .. 1; k = 1 .. cut."""
    step = 1 / (NODES * cut)
    frequencies = math.pi * torch.arange(1, cut + 1, dtype=torch.float64)[:, None]
    phase = frequencies * torch.arange(NODES * cut + 1) * step
    waves = phase.sin()
    waves[:, -1] = 0  # so that 1 stays 1
    return waves, frequencies * step * phase.cos()


def recoloured(x: Tensor, coefficients: Tensor) -> Tensor:
    """x + sum_k beta_k sin(pi k x) for `coefficients` beta (N, C, K), one an image and channel; not clipped.

    The map of a channel is tabulated once and read by cubic Hermite interpolation, a few passes instead
    of K sines a pixel.
    """
    count, channels, cut = coefficients.shape
    rows, nodes = count * channels, NODES * cut
    place = x.reshape(rows, -1) * nodes
    node = place.floor().clamp_(0, nodes - 1)
    t = place.sub_(node).flatten()
    interval = (node.long() + torch.arange(rows, device=x.device)[:, None] * nodes).flatten()
    cubics = _cubics(coefficients.flatten(0, 1))
    shift, *lower = (part.flatten().index_select(0, interval) for part in cubics)
    for part in lower:
        shift = torch.addcmul(part, shift, t)
    return x + shift.view(x.shape)


def _cubics(beta: Tensor) -> tuple[Tensor, ...]:
    """Polynomials for sum_k beta_k sin(pi k v) between nodes, (rows, nodes) each, highest power first."""
    waves, slopes = (table.to(beta) for table in _tables(beta.shape[1]))
    values, rises = beta @ waves, beta @ slopes
    v, r, next_r = values[:, :-1], rises[:, :-1], rises[:, 1:]
    rise = values[:, 1:] - v
    return r + next_r - 2 * rise, 3 * rise - 2 * r - next_r, r, v


def draw_coefficients(
    sigma: Tensor, first: Tensor, last: Tensor, cut: int, channels: int, generator: torch.Generator
) -> Tensor:
    """N(0, sigma^2) for the frequencies `first` .. `last` of each image, 0 elsewhere; (N, channels, cut)."""
    widest = int((last - first).max()) + 1
    beta = normal((len(sigma), channels, widest), generator, sigma) * sigma[:, None, None]
    index = first[:, None] - 1 + torch.arange(widest, device=sigma.device)
    beta = torch.where((index < last[:, None])[:, None], beta, 0.0)
    index = index.clamp_max(cut - 1)[:, None].expand(-1, channels, -1)
    return beta.new_zeros(len(sigma), channels, cut).scatter_add_(2, index, beta)


def colour(
    x: Tensor,
    *,
    strength: float | Tensor,
    smoothness: int | Tensor,
    bandwidth: int | None = None,
    generator: torch.Generator,
) -> Tensor:
    """Map the colours of each image, channel by channel, by a random map that fixes 0 and 1; clipped.

    Parameters
    ----------
    strength
        sigma_gamma, a standard deviation: one for all images, or a tensor (N,). 0 changes nothing.
    smoothness
        K_gamma, the highest frequency of the map: one for all images, or a tensor (N,).
    bandwidth
        Use so many consecutive frequencies, from one drawn in 1 .. K_gamma on (section 5.3.1), not all.
    """
    check_images(x)
    check_generator(generator)
    if bandwidth is not None:
        check_counts(bandwidth=bandwidth)
    sigma, cut = per_image("strength", strength, x), per_image("smoothness", smoothness, x, whole=True)
    return _colour(x, sigma, cut, int(cut.max()), bandwidth, generator)


def _colour(
    x: Tensor, sigma: Tensor, cut: Tensor, most: int, bandwidth: int | None, generator: torch.Generator
) -> Tensor:
    """`most` is the highest cut of all images, or a bound that stays, so that tables are reused."""
    first, last = torch.ones_like(cut), cut
    if bandwidth is not None:
        first = integers(1, cut, len(x), generator, x)
        last = torch.minimum(first + bandwidth - 1, cut)
    beta = draw_coefficients(sigma, first, last, most, x.shape[1], generator)
    return recoloured(x, beta).clamp_(0, 1)


@dataclass(frozen=True)
class RandomColour:
    """`colour` with its cut uniform on {1 .. cut} and its variance on (0, variance), for each image."""

    cut: int = 10
    variance: float = 0.01
    """Largest T = sigma_gamma^2 (gap U37)."""
    bandwidth: int | None = None

    def __post_init__(self) -> None:
        check_counts(cut=self.cut, bandwidth=1 if self.bandwidth is None else self.bandwidth)
        check_numbers(variance=self.variance)

    def draw(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Strengths and cuts for the images, (N,) each."""
        sigma = (self.variance * uniform((len(x),), generator, x)).sqrt()
        return sigma, integers(1, self.cut, len(x), generator, x)

    def __call__(self, x: Tensor, *, generator: torch.Generator, scale: float = 1.0) -> Tensor:
        """Recoloured images; `scale` multiplies the strengths (section 5.4.3)."""
        sigma, cut = self.draw(x, generator)
        return _colour(x, scale * sigma, cut, self.cut, self.bandwidth, generator)
