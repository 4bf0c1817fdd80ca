"""Additive noise: the smallest scale of a random direction that changes the label."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .catalogue import ATTACKS
from .checks import Box, check_counts, check_generator
from .frame import UNIT, attack_correct, each
from .norms import euclidean
from .search import Grid, first_along


@ATTACKS.add("additive-gaussian")
def additive_gaussian(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    generator: torch.Generator | None = None,
    repeats: int = 3,
    smallest: float = 1e-2,
    largest: float = 2.0,
    levels: int = 30,
    halvings: int = 8,
) -> Tensor:
    """Gaussian noise: `repeats` fixed directions an image, the closest point that fools the network.

    Parameters
    ----------
    generator
        Where chance comes from; without one there is an error.
    smallest, largest
        Standard deviations between which to look, in units of the width of the box (of 1 without one).
        The noisy image is clipped to the box, so beyond 1 it is mostly black and white.
    levels, halvings
        Points of the grid, and bisections below the first that fools the network.
    """
    grid = Grid(smallest, largest, levels, halvings)
    return _closest(model, x, y, box, generator, repeats, torch.randn, grid)


@ATTACKS.add("additive-uniform")
def additive_uniform(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    generator: torch.Generator | None = None,
    repeats: int = 3,
    smallest: float = 1e-2,
    largest: float = 2.0,
    levels: int = 30,
    halvings: int = 8,
) -> Tensor:
    """Noise uniform on [-scale, scale], else as `additive_gaussian`."""
    grid = Grid(smallest, largest, levels, halvings)
    return _closest(model, x, y, box, generator, repeats, _symmetric, grid)


def _symmetric(shape: torch.Size, **place: Any) -> Tensor:
    return 2 * torch.rand(shape, **place) - 1


def _closest(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    box: Box,
    generator: torch.Generator | None,
    repeats: int,
    draw: Callable[..., Tensor],
    grid: Grid,
) -> Tensor:
    """The closest of the points found along `repeats` random directions."""
    chance = check_generator(generator)
    check_counts(repeats=repeats)

    def search(x: Tensor, y: Tensor) -> Tensor:
        best, least = x, torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
        for _ in range(repeats):
            noise = draw(x.shape, dtype=x.dtype, device=chance.device, generator=chance).to(x.device)
            found = first_along(model, x, y, noise, box, grid)
            distance = euclidean(found - x)
            closer = (distance > 0) & (distance < least)  # at distance 0 nothing was found
            least = distance.where(closer, least)
            best = found.where(each(closer, x), best)
        return best

    return attack_correct(model, x, y, box, search)
