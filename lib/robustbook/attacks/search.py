"""Where on a ray or a segment the label changes: a geometric grid, then bisection."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import BookError
from .checks import Box, check_counts, check_positive
from .frame import clip, crossed, each, width


@dataclass(frozen=True)
class Grid:
    """`levels` scales from `smallest` to `largest` in equal ratios; `halvings` below the first that works."""

    smallest: float
    largest: float
    levels: int
    halvings: int

    def __post_init__(self) -> None:
        check_positive(smallest=self.smallest, largest=self.largest)
        check_counts(levels=self.levels, halvings=self.halvings)
        if self.smallest >= self.largest:
            raise BookError(f"smallest={self.smallest!r} is not below largest={self.largest!r}")

    def scales(self) -> list[float]:
        """The levels, rising."""
        ratio = (self.largest / self.smallest) ** (1 / max(1, self.levels - 1))
        return [self.smallest * ratio**level for level in range(self.levels)]


@torch.no_grad()
def first_along(model: nn.Module, x: Tensor, y: Tensor, direction: Tensor, box: Box, grid: Grid) -> Tensor:
    """The first of x + scale * direction, clipped to the box, with another label; `x` where there is none.

    The scales of the grid are in units of the width of the box. An image leaves at the first that fools the
    network; what lies between that one and the one before is bisected.
    """

    def point(rows: Tensor, scale: Tensor) -> Tensor:
        return clip(x[rows] + each(scale, x) * width(box) * direction[rows], box)

    low = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    high = torch.full_like(low, torch.inf)
    rows = torch.arange(len(x), device=x.device)
    for level in grid.scales():
        scale = torch.full_like(low[rows], level)
        hit = crossed(model(point(rows, scale)), y[rows])
        high[rows[hit]], low[rows[~hit]] = scale[hit], scale[~hit]
        rows = rows[~hit]
        if len(rows) == 0:
            break
    found = high.isfinite().nonzero()[:, 0]
    result = x.clone()
    if len(found):
        _, scale = bisect(model, y[found], lambda s: point(found, s), low[found], high[found], grid.halvings)
        result[found] = point(found, scale)
    return result


@torch.no_grad()
def bisect(
    model: nn.Module,
    y: Tensor,
    point: Callable[[Tensor], Tensor],
    low: Tensor,
    high: Tensor,
    halvings: int,
) -> tuple[Tensor, Tensor]:
    """Close in on the change of label between `low` (N,), where it stands, and `high`, where it is gone."""
    for _ in range(halvings):
        middle = (low + high) / 2
        hit = crossed(model(point(middle)), y)
        low, high = low.where(hit, middle), middle.where(hit, high)
    return low, high
