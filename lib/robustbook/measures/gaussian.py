"""Robustness to Gaussian noise: the rate of kept predictions, and GNR, its mean over noise levels.

"Analytical moment regularizer", section 4. Noise is added to images in [0, 1] and never clipped.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..registry import Registry
from ..training.evaluation import predict

Draw = Callable[[Tensor, torch.Generator], Tensor]
NOISES: Registry[Draw] = Registry("noise")


@NOISES.add("gaussian")
def gaussian_noise(x: Tensor, generator: torch.Generator) -> Tensor:
    """Independent standard normal noise in the shape of `x`."""
    drawn = torch.randn(x.shape, dtype=x.dtype, device=generator.device, generator=generator)
    return drawn.to(x.device)


@NOISES.add("fixed-norm")
def fixed_norm_noise(x: Tensor, generator: torch.Generator) -> Tensor:
    """Noise in a uniformly random direction, of norm sqrt(n) exactly, for each image of n values."""
    noise = gaussian_noise(x, generator).flatten(1)
    return (noise * (math.sqrt(noise.shape[1]) / noise.norm(dim=1, keepdim=True))).reshape(x.shape)


def expected_norm(n: int, sigma: float = 1.0) -> float:
    """Mean norm of N(0, sigma^2 I) in n dimensions: sqrt(2) sigma Gamma((n+1)/2) / Gamma(n/2)."""
    if n < 1:
        raise BookError(f"n={n}; there is no norm in fewer than 1 dimension")
    if n > 1000:  # the two logarithms are large and nearly equal: their difference loses digits
        return sigma * math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (32 * n**2) + 5 / (128 * n**3))
    return math.sqrt(2) * sigma * math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2))


def noise_levels(levels: int = 30, top: float = 0.5) -> list[float]:
    """`levels` evenly spaced standard deviations from 0 to `top`, both included."""
    if levels < 2:
        raise BookError(f"levels={levels}; give at least 2, for 0 and {top}")
    return [top * step / (levels - 1) for step in range(levels)]


def kept_rate(
    model: nn.Module,
    x: Tensor,
    sigmas: Iterable[float],
    *,
    generator: torch.Generator,
    noise: str = "fixed-norm",
    samples: int = 1,
    every: bool = False,
    batch_size: int = 1000,
    device: torch.device | str | None = None,
) -> Tensor:
    """How often noise leaves the prediction as it is on the clean image, right or wrong (equation 4).

    Parameters
    ----------
    sigmas
        Standard deviations of the noise, in units of a pixel in [0, 1].
    noise
        "fixed-norm" (norm sigma sqrt(n), as published) or "gaussian".
    samples
        Noise vectors an image and level. The rate is their mean, or with `every=True` the fraction of
        images that keep their prediction under every one of them (the paper's m).

    Returns
    -------
    Tensor
        float64, one rate in [0, 1] a sigma.
    """
    if samples < 1:
        raise BookError(f"samples={samples}; give a whole number, 1 or more")
    draw, clean = NOISES[noise], _classes(model, x, batch_size, device)
    rates = []
    for sigma in sigmas:
        kept = torch.ones(1, dtype=torch.float64)
        if sigma > 0:
            noisy = (x + sigma * draw(x, generator) for _ in range(samples))
            same = [_classes(model, part, batch_size, device) == clean for part in noisy]
            kept = torch.stack(same).all(0).double() if every else torch.stack(same).double()
        rates.append(kept.mean().cpu())
    return torch.stack(rates) if rates else torch.empty(0, dtype=torch.float64)


def _classes(model: nn.Module, x: Tensor, batch_size: int, device: torch.device | str | None) -> Tensor:
    return predict(model, x, batch_size=batch_size, device=device).argmax(1)


def gnr(
    model: nn.Module,
    x: Tensor,
    *,
    generator: torch.Generator,
    levels: int = 30,
    top: float = 0.5,
    noise: str = "fixed-norm",
    samples: int = 1,
    every: bool = False,
    batch_size: int = 1000,
    device: torch.device | str | None = None,
) -> float:
    """Gaussian robustness in percent: the kept rate averaged over the noise levels, 0 included."""
    rates = kept_rate(
        model,
        x,
        noise_levels(levels, top),
        generator=generator,
        noise=noise,
        samples=samples,
        every=every,
        batch_size=batch_size,
        device=device,
    )
    return 100 * float(rates.mean())
