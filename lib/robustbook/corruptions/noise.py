"""Noise: Gaussian, shot and impulse (Hendrycks and Dietterich, 2019). Every channel has its own."""

from torch import Tensor

from .catalogue import COMMON, Level, Severities
from .draws import Draws

DEVIATION = Severities(cifar10=(0.04, 0.06, 0.08, 0.09, 0.10), imagenet=(0.08, 0.12, 0.18, 0.26, 0.38))
PHOTONS = Severities(cifar10=(500, 250, 100, 75, 50), imagenet=(60, 25, 12, 5, 3))
AMOUNT = Severities(cifar10=(0.01, 0.02, 0.03, 0.05, 0.07), imagenet=(0.03, 0.06, 0.09, 0.17, 0.27))


@COMMON.add("gaussian_noise")
def gaussian_noise(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Normal noise of the same deviation everywhere."""
    return x + DEVIATION[level] * draws.normal(*x.shape[1:]).to(x.device)


@COMMON.add("shot_noise")
def shot_noise(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Poisson counts of so many photons at full brightness: variance x / photons."""
    return draws.poisson((x * PHOTONS[level]).cpu()).to(x.device) / PHOTONS[level]


@COMMON.add("impulse_noise")
def impulse_noise(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Salt and pepper in equal parts: `amount` of all entries of all channels become 0 or 1."""
    chance, amount = draws.uniform(*x.shape[1:]).to(x.device), AMOUNT[level]
    return x.masked_fill(chance < amount / 2, 0.0).masked_fill(chance > 1 - amount / 2, 1.0)
