"""Two arcs in the unit square: data whose density, labels and manifold are known.

A class is a half-circle; points lie around it with Gaussian noise. The label of any point of the square is
that of the nearer arc: it is a function Y of the point, known everywhere, also where there is no data.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError

CENTRES = ((0.38, 0.44), (0.62, 0.56))
RADIUS = 0.24
NODES = 400
"""Points of an arc in the sum that stands for the integral along it: closer than the noise is wide."""


@dataclass(frozen=True)
class Arcs:
    """The upper half-circle around the first centre (label 0) and the lower one around the second (label 1).

    `sigma` is the standard deviation of the noise; what falls outside the square is drawn again.
    """

    sigma: float = 0.035

    def __post_init__(self) -> None:
        if not 0 < self.sigma < 0.5:
            raise BookError(f"sigma={self.sigma!r}; give a number above 0 and below 0.5")

    def sample(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Points (N, 2) drawn from P, and their labels (N,)."""
        found = torch.empty(0, 2)
        while len(found) < count:
            side = torch.randint(2, (count,), generator=generator)
            angle = math.pi * (torch.rand(count, generator=generator) + side)
            x = arc_point(side, angle) + self.sigma * torch.randn(count, 2, generator=generator)
            found = torch.cat([found, x[((x >= 0) & (x <= 1)).all(1)]])
        return found[:count], self.label(found[:count])

    def label(self, x: Tensor) -> Tensor:
        """Y(x), for points (N, 2): which arc is nearer."""
        return (arc_distance(x, 1) < arc_distance(x, 0)).long()

    def density(self, x: Tensor) -> Tensor:
        """p(x) (N,) relative to the uniform distribution on the square."""
        return self._around(x) / self._inside()

    def _around(self, x: Tensor) -> Tensor:
        angle = math.pi * (torch.arange(NODES) + 0.5) / NODES
        total = torch.zeros(len(x), dtype=torch.float64)
        for side in (0, 1):
            nodes = arc_point(torch.full((NODES,), side), angle + math.pi * side).double()
            square = torch.cdist(x.double(), nodes).square()
            total += torch.exp(-square / (2 * self.sigma**2)).mean(1)
        return total / 2 / (2 * math.pi * self.sigma**2)

    def _inside(self) -> Tensor:
        """The share of the noise that stays in the square."""
        angle = math.pi * (torch.arange(NODES) + 0.5) / NODES
        shares = []
        for side in (0, 1):
            nodes = arc_point(torch.full((NODES,), side), angle + math.pi * side).double()
            edges = torch.stack([(0 - nodes) / self.sigma, (1 - nodes) / self.sigma])
            low, high = torch.special.ndtr(edges)
            shares.append((high - low).prod(1).mean())
        return torch.stack(shares).mean()


def arc_point(side: Tensor, angle: Tensor) -> Tensor:
    """Points (N, 2) of the arcs: angles from 0 to pi on the first, from pi to 2 pi on the second."""
    centre = torch.tensor(CENTRES)[side]
    return centre + RADIUS * torch.stack([angle.cos(), angle.sin()], 1)


def arc_distance(x: Tensor, side: int) -> Tensor:
    """Distance (N,) of points (N, 2) from an arc: from its circle, or from the nearer end."""
    sign = 1 - 2 * side
    away = x - torch.tensor(CENTRES[side], dtype=x.dtype)
    ring = (away.norm(dim=1) - RADIUS).abs()
    ends = (away.abs() - torch.tensor([RADIUS, 0.0], dtype=x.dtype)).norm(dim=1)
    return torch.where(sign * away[:, 1] >= 0, ring, ends)


def square_grid(side: int) -> Tensor:
    """Centres (side^2, 2) of the cells of a grid over the square; row after row, from the bottom."""
    steps = (torch.arange(side) + 0.5) / side
    rows, columns = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack([columns.flatten(), rows.flatten()], 1)
