"""Families of kernels with a density over their parameter (framework 2021, Definition 4)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from ..errors import BookError
from .kernels import Kernel


class Density(Protocol):
    """How much each parameter of a family counts: a measure on A, of total `mass`."""

    @property
    def mass(self) -> float:
        """Its integral: 1 for a probability density."""

    def nodes(self, count: int, points: int, generator: torch.Generator) -> Iterator[tuple[Any, float]]:
        """Parameters and weights whose weighted sum stands for the integral."""


@dataclass(frozen=True)
class Interval:
    """Constant on [low, high]: with `mass` 1 the uniform density of 2021, with high - low the d-eps of 2020.

    Nodes are drawn for each point on its own, one in each of `count` equal parts of the interval (systematic
    sampling): means are unbiased, points stay independent, and little of the variance comes from the radius.
    """

    low: float
    high: float
    mass: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise BookError(f"an interval from {self.low} to {self.high}; the lower end comes first")

    def nodes(self, count: int, points: int, generator: torch.Generator) -> Iterator[tuple[Tensor, float]]:
        """`count` tensors (points,) of parameters, each of weight mass / count."""
        start = torch.rand(points, generator=generator, dtype=torch.float64)
        for part in range(count):
            yield self.low + (self.high - self.low) * (part + start) / count, self.mass / count

    def below(self, value: Tensor) -> Tensor:
        """The mass of the parameters below `value`."""
        share = (value.double() - self.low) / (self.high - self.low)
        return self.mass * share.clamp(0, 1)


@dataclass(frozen=True)
class Listed:
    """A few parameters with their probabilities; equal ones if not given."""

    values: Sequence[Any]
    probabilities: Sequence[float] | None = None
    mass: float = 1.0

    def __post_init__(self) -> None:
        shares = self._shares()
        fit = len(shares) == len(self.values) > 0 and min(shares) >= 0 and abs(sum(shares) - 1) < 1e-9
        if not fit:
            raise BookError(
                f"{len(shares)} probabilities for {len(self.values)} parameters; they must add up to 1"
            )

    def _shares(self) -> list[float]:
        count = len(self.values)
        return [1 / count for _ in range(count)] if self.probabilities is None else list(self.probabilities)

    def nodes(self, count: int, points: int, generator: torch.Generator) -> Iterator[tuple[Any, float]]:
        """All of them, whatever `count`."""
        yield from zip(self.values, self._shares())


def uniform(low: float, high: float) -> Interval:
    """The uniform density on [low, high]."""
    return Interval(low, high)


def lebesgue(low: float, high: float) -> Interval:
    """The plain integral over [low, high]: what the 2020 version has in place of a density."""
    return Interval(low, high, high - low)


@dataclass(frozen=True)
class Family:
    """Kernels Q_lambda, `make(lambda)`, and the density of lambda.

    `make` gets one number, or one (N,) a point: `Family(Ball, uniform(0, d))` is Q_[0,d] of Example 2.
    """

    make: Callable[[Any], Kernel]
    density: Density


def single(kernel: Kernel) -> Family:
    """A family of one kernel: Definition 3 as a case of Definition 4."""
    return Family(lambda _: kernel, Listed([None]))
