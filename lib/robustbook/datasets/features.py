"""Synthetic data with known discriminative features: T1 and T2 of the thesis, sections 4.2.2 and 4.4.1.

The text prints x1 = eps y, y = -1 or +1, but its tables have margins of eps/2: class means eps apart.
Here `gap` is the distance between the class means, so that eps = gap in the reading of the tables and
eps = gap/2 in the printed formula (gap C23).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError
from ..rehearsal import shrink
from ..spectral import random_basis


@dataclass(frozen=True, eq=False)
class Features:
    """Samples `x` (N, D) with labels `y` (N,) of 0 and 1; the columns of `basis` (D, D) are the u_i."""

    x: Tensor
    y: Tensor
    basis: Tensor

    def parts(self) -> Tensor:
        """The samples in the coordinates of the basis: x1, x2, ..."""
        return self.x @ self.basis


def _checked(count: int, dimension: int, least: int, **sizes: float) -> None:
    for name, value in sizes.items():
        if not 0 <= value < float("inf"):
            raise BookError(f"{name}={value!r}; give 0 or more")
    if dimension < least or count < 1:
        raise BookError(f"{count} samples of dimension {dimension}; give 1 or more of {least} or more")


def _rotated(parts: list[Tensor], y: Tensor, basis: Tensor) -> Features:
    return Features(torch.cat(parts, dim=1) @ basis.mT, y, basis)


def one_feature(
    count: int, gap: float, sigma: float, *, basis: Tensor, generator: torch.Generator
) -> Features:
    """T1: classes `gap` apart along u_1 and noise of standard deviation `sigma` along all else."""
    dimension, count = len(basis), shrink(count)
    _checked(count, dimension, 2, gap=gap, sigma=sigma)
    y = torch.randint(2, (count,), generator=generator)
    noise = sigma * torch.randn(count, dimension - 1, generator=generator)
    return _rotated([gap * (y[:, None] - 0.5), noise], y, basis)


def two_features(
    count: int,
    gap: float,
    rho: float,
    sigma: float,
    repeats: int,
    *,
    basis: Tensor,
    generator: torch.Generator,
) -> Features:
    """T2: separable along u_1 by `gap`, and by a pattern that alternates along u_2 every `rho` / 2.

    Class +1 is at rho k, class -1 at rho (k + 1/2), k from -repeats to repeats - 1.
    """
    dimension, count = len(basis), shrink(count)
    _checked(count, dimension, 3, gap=gap, rho=rho, sigma=sigma)
    y = torch.randint(2, (count,), generator=generator)
    k = torch.randint(-repeats, repeats, (count,), generator=generator)
    second = rho * (k + 0.5 * (1 - y))
    noise = sigma * torch.randn(count, dimension - 2, generator=generator)
    return _rotated([gap * (y[:, None] - 0.5), second[:, None], noise], y, basis)


def rotation(dimension: int, *, generator: torch.Generator) -> Tensor:
    """A random orthonormal basis (D, D) in single precision, for the functions above."""
    return random_basis(dimension, generator=generator).float()
