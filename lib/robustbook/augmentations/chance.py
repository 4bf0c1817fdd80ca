"""Random numbers, one or more for each image, from a generator and from nowhere else."""

import math

import torch
from torch import Tensor


def uniform(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Uniform on [0, 1), of the type and on the device of `like`."""
    return torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device)


def normal(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Standard normal."""
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def integers(low: int, high: Tensor | int, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """`count` whole numbers from `low` to `high`, both included; `high` may differ from one to the next."""
    wide = torch.rand(count, generator=generator, dtype=torch.float64, device=like.device)
    return low + (wide * (high - low + 1)).long()


def arcsine(count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """Beta(1/2, 1/2) on [0, 1]."""
    return (uniform((count,), generator, like) * (math.pi / 2)).sin().square()


def signs(count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """1 or -1, as likely."""
    return 1.0 - 2.0 * torch.randint(2, (count,), generator=generator, device=like.device).to(like.dtype)


def dirichlet(
    count: int, concentration: tuple[float, ...], generator: torch.Generator, like: Tensor
) -> Tensor:
    """`count` vectors of positive numbers that sum to 1, (count, parts)."""
    rates = torch.tensor(concentration, dtype=torch.float64, device=like.device).expand(count, -1)
    gammas = torch._standard_gamma(
        rates.contiguous(), generator
    )  # the public distributions take no generator
    gammas = gammas.clamp_min(torch.finfo(torch.float64).tiny)
    return (gammas / gammas.sum(1, keepdim=True)).to(like.dtype)
