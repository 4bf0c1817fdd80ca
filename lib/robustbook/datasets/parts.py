"""Synthetic data whose parts are known: X = X_G + X_D + X_S of the idiosyncrasy paper (eq. 1, gap U23).

The paper's definition of the parts needs a model of human perception. Here they are made: X_G, large, is what
a person would see; X_D, small, follows the label; X_S, small, is noise.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError
from ..rehearsal import shrink

REGIMES = ("noise", "aligned", "opposed", "apart")


@dataclass(frozen=True, eq=False)
class Parts:
    """The three parts, (N, D) each, in double precision, and what is to be told, `y`: (N,) or (N, K)."""

    g: Tensor
    d: Tensor
    s: Tensor
    y: Tensor

    @property
    def x(self) -> Tensor:
        """The data: the sum of the parts."""
        return self.g + self.d + self.s


@dataclass(frozen=True)
class TwoClasses:
    """Two classes, y = -1 or 1, for Remark 1.

    The first coordinate is X_G: y `mean` plus noise of standard deviation `spread`. The `dimension` others
    hold X_D, y `size` along their diagonal, and X_S, noise of standard deviation `noise` in each.
    """

    mean: float = 2.0
    spread: float = 2.0
    size: float = 0.2
    noise: float = 0.1
    dimension: int = 20

    def __post_init__(self) -> None:
        for name in ("mean", "spread", "size", "noise"):
            if not 0 < getattr(self, name) < math.inf:
                raise BookError(f"{name}={getattr(self, name)!r}; give a positive number")
        if self.dimension < 1:
            raise BookError(f"dimension={self.dimension!r}; give 1 or more")

    def direction(self) -> Tensor:
        """The unit vector along which X_D lies."""
        along = torch.full((1 + self.dimension,), self.dimension**-0.5, dtype=torch.float64)
        along[0] = 0
        return along

    def weights(self, weight: float) -> Tensor:
        """The linear model that reads X_G with weight 1 and the direction of X_D with `weight`: (D,)."""
        w = weight * self.direction()
        w[0] = 1
        return w

    def best_weight(self) -> float:
        """The weight of X_D at which such a model is most accurate."""
        return self.size * self.spread**2 / (self.mean * self.noise**2)

    def sample(self, count: int, *, generator: torch.Generator) -> Parts:
        """`count` samples."""
        count = shrink(count)
        y = 2.0 * torch.randint(2, (count,), generator=generator).double() - 1
        normal = torch.randn(count, 1 + self.dimension, generator=generator, dtype=torch.float64)
        g, s = torch.zeros_like(normal), self.noise * normal
        g[:, 0] = y * self.mean + self.spread * normal[:, 0]
        s[:, 0] = 0
        return Parts(g, y[:, None] * self.size * self.direction(), s, y)


def regression(
    regime: str, size: float, *, samples: int, inputs: int, outputs: int, generator: torch.Generator
) -> Parts:
    """A regression problem for Lemmas 1 and 2: t = X_G B + e, and an X_D `size` times as large as X_G.

    Parameters
    ----------
    regime
        What X_D is. "noise": independent of everything, as the proofs treat it. "aligned" and "opposed": a
        multiple of the targets t, along the true weights B or against them. "apart": a multiple of e, the
        part of the targets that X_G does not tell, in coordinates of its own, where X_G is zero.
    size
        Root mean square of X_D relative to that of X_G (assumption A2: small).
    """
    if regime not in REGIMES:
        raise BookError(f"regime={regime!r}; give one of {', '.join(REGIMES)}")
    if not 0 < size < math.inf:
        raise BookError(f"size={size!r}; give a positive number")

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    g, truth, rest = normal(samples, inputs), normal(inputs, outputs), normal(samples, outputs)
    t = g @ truth + rest
    if regime == "apart":
        g, d = torch.cat([g, 0 * rest], dim=1), torch.cat([0 * g, rest], dim=1)
    else:
        along = t @ truth.mT
        d = {"noise": normal(samples, inputs), "aligned": along, "opposed": -along}[regime]
    d = d * (size * g.norm() / d.norm())
    return Parts(g, d, torch.zeros_like(g), t)
