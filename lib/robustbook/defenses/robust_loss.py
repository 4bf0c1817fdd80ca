"""The generic robust loss of the framework (2020): Definition 4 (equation 7), equations 8 and 9 made smooth.

L = log loss - lambda R~. A generator g gives samples S(x) of each x of a batch (Figure 1); S_eps(x) are those
within eps; R~ averages H of their agreement with x over a set Sigma of radii, weighted by G.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..attacks.checks import check_counts
from ..errors import BookError, unknown

Sampler = Callable[[Tensor, int, torch.Generator], Tensor]
"""sampler(x, count, generator): points (count, N, ...) near each x (N, ...)."""


def copies(x: Tensor, count: int) -> Tensor:
    """Each point `count` times, (count, N, ...), without a copy in memory."""
    return x.expand(count, *x.shape)


@dataclass(frozen=True)
class Neighbours:
    """A transform for `fit` with `RobustLoss`: the batch, and then `count` samples of every point of it."""

    sampler: Sampler
    count: int

    def __call__(
        self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """(1 + count) N points, set after set, and N labels."""
        return torch.cat([x, self.sampler(x, self.count, generator).flatten(0, 1)]), y


def neighbours(sampler: Sampler, count: int) -> Neighbours:
    """`fit(..., transform=neighbours(sampler, 4), loss=robust_loss(0.5, radii))`."""
    check_counts(count=count)
    return Neighbours(sampler, count)


def minus_cross_entropy(own: Tensor, others: Tensor) -> Tensor:
    """-CE(f(x), f(x')): 0 for equal and certain outputs. (N, K) and (M, N, K) outputs give (M, N).

    The paper puts CE itself in place of the indicator of agreement. That is a disagreement, so it gets a
    minus sign here (gap C4): then equation (7) rewards agreement.
    """
    return (own.softmax(1) * others.log_softmax(2)).sum(2)


def agreement(own: Tensor, others: Tensor) -> Tensor:
    """The probability that labels drawn from both outputs are equal: a soft indicator within [0, 1]."""
    return (own.softmax(1) * others.softmax(2)).sum(2)


SOFT = {"cross-entropy": (minus_cross_entropy, 0.0), "agreement": (agreement, 1.0)}
"""Soft indicators by name, each with its value where nothing changes."""
LINKS = ("identity", "indicator")


@dataclass(frozen=True)
class RobustLoss:
    """Log loss minus `weight` times the soft sample score: equations 7 to 9.

    With the identity as link the mean over S_eps(x) counts, with the indicator the worst of S_eps(x).
    """

    weight: float
    radii: tuple[float, ...]
    link: str = "identity"
    soft: str = "cross-entropy"
    inverse: bool = False

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs for the N points themselves; `x` holds (1 + M) N points."""
        sets, rest = divmod(len(x), len(y))
        if rest or sets < 2:
            raise BookError(
                f"{len(x)} points for {len(y)} labels are no samples of them; use transform=neighbours(...)"
            )
        logits = model(x).view(sets, len(y), -1)
        points = x.view(sets, len(y), -1)
        distance = (points[1:] - points[0]).norm(dim=2)
        return cross_entropy(logits[0], y) - self.weight * self.score(logits, distance), logits[0]

    def score(self, logits: Tensor, distance: Tensor) -> Tensor:
        """R~ of equation (9), soft, from outputs (1 + M, N, K) and distances (M, N)."""
        measure, full = SOFT[self.soft]
        values = measure(logits[0], logits[1:])
        total = torch.zeros((), dtype=values.dtype, device=values.device)
        for eps in self.radii:
            near = distance < eps
            total = total + self._linked(values, near, full).mean() / (eps if self.inverse else 1.0)
        return total / len(self.radii)

    def _linked(self, values: Tensor, near: Tensor, full: float) -> Tensor:
        """Soft H(R_S(x, eps)) (N,); an empty S_eps(x) is perfectly robust (gap U10)."""
        if self.link == "indicator":
            return values.where(near, full).amin(0).clamp_max(full)
        count = near.sum(0)
        mean = values.where(near, 0.0).sum(0) / count.clamp_min(1)
        return torch.where(count > 0, mean, torch.full_like(mean, full))


def robust_loss(
    weight: float,
    radii: Sequence[float],
    *,
    link: str = "identity",
    soft: str = "cross-entropy",
    inverse: bool = False,
) -> RobustLoss:
    """The loss for `fit`, to be used with `neighbours`.

    Parameters
    ----------
    weight
        lambda of equation (7); 0 is the plain log loss.
    radii
        Sigma of equation (9). One large radius takes every sample.
    link
        H: "identity" (average case) or "indicator" (worst case).
    soft
        What stands for the indicator of agreement: "cross-entropy" as in the paper, or "agreement".
    inverse
        G(x, eps) = p(x)/eps, as for R4.
    """
    if not weight >= 0:
        raise BookError(f"weight={weight!r}; give a number, 0 or more")
    if not radii or not all(eps > 0 for eps in radii):
        raise BookError(f"radii={radii!r}; give one or more positive numbers")
    if link not in LINKS:
        raise unknown("link", link, LINKS)
    if soft not in SOFT:
        raise unknown("soft indicator", soft, SOFT)
    return RobustLoss(weight, tuple(radii), link, soft, inverse)
