"""Transition kernels Q(. | x): how a point may be perturbed (framework 2021, Definition 1, Examples 1 to 4).

A kernel draws points for each x of a batch. A kernel conditioned on an event says which of its draws lie in
the event; only those count, so that conditioning is rejection and needs no new sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..attacks.norms import norm_called
from ..corruptions.mnist_c import corrupt_mnist
from ..defenses.robust_loss import copies
from ..errors import BookError
from .classifiers import Classifier

Radius = float | Tensor
"""One number, or one (N,) a point."""
Box = tuple[float, float] | None


class Draws:
    """Draws for N points: `points` (M, N, ...), and which of them count, `inside` (M, N)."""

    def __init__(self, points: Tensor, inside: Tensor | None = None) -> None:
        self.points = points
        everywhere = torch.ones(points.shape[:2], dtype=torch.bool, device=points.device)
        self.inside = everywhere if inside is None else inside

    def labels(self, f: Classifier) -> Tensor:
        """What `f` says of every draw, (M, N)."""
        return f(self.points.flatten(0, 1)).view(self.points.shape[:2])

    def where(self, event: Tensor) -> Draws:
        """The draws for which `event` (M, N) holds as well."""
        return Draws(self.points, self.inside & event)


class Kernel(Protocol):
    """A transition kernel: `draw` gives `count` independent draws from Q(. | x) for each x of a batch."""

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""


def spread(value: Radius, x: Tensor) -> Tensor:
    """A number, or one a point, in a shape that multiplies draws (M, N, ...)."""
    tensor = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    if tensor.dim() == 0:
        return tensor
    if tensor.shape != (len(x),):
        raise BookError(f"{tuple(tensor.shape)} radii for {len(x)} points; give one number, or one a point")
    return tensor.reshape(-1, *[1] * (x.dim() - 1))


def _checked(**named: Radius) -> None:
    ((name, value),) = named.items()
    if not (torch.as_tensor(value) >= 0).all():
        raise BookError(f"{name}={value!r}; give 0 or more")


@dataclass(frozen=True)
class Ball:
    """Q_eps (Example 1): uniform on the eps-ball around x, in "l2" or "linf".

    With a `box` the ball is that of the metric space box^m: what lies outside does not count. In l2 that is
    rejection, which in high dimension rejects everything near a corner; in linf the part inside is a box
    itself and is drawn from directly.
    """

    eps: Radius
    norm: str = "l2"
    box: Box = None

    def __post_init__(self) -> None:
        norm_called(self.norm)
        _checked(eps=self.eps)

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        many = copies(x, count)
        if self.norm == "linf" and self.box is not None:
            low, high = (x + side * spread(self.eps, x) for side in (-1, 1))
            low, high = low.clamp_min(self.box[0]), high.clamp_max(self.box[1])
            share = torch.rand(many.shape, dtype=x.dtype, generator=generator, device=x.device)
            return Draws(low + share * (high - low))
        unit = norm_called(self.norm).draw(many.flatten(0, 1), generator).view(many.shape)
        points = many + spread(self.eps, x) * unit
        if self.box is None:
            return Draws(points)
        within = ((points >= self.box[0]) & (points <= self.box[1])).flatten(2).all(2)
        return Draws(points, within)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of standard deviation `sigma` in every coordinate."""

    sigma: Radius

    def __post_init__(self) -> None:
        _checked(sigma=self.sigma)

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        many = copies(x, count)
        noise = torch.randn(many.shape, dtype=x.dtype, generator=generator, device=x.device)
        return Draws(many + spread(self.sigma, x) * noise)


@dataclass(frozen=True)
class Changed:
    """Any random change of a batch, such as a corruption: `change(x, generator)` gives points like `x`."""

    change: Callable[[Tensor, torch.Generator], Tensor]

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        many = copies(x, count)
        return Draws(self.change(many.flatten(0, 1), generator).view(many.shape))


def corruption(name: str, severity: int | None = None) -> Changed:
    """A corruption of MNIST-C as a kernel; None is the severity of the published set."""
    return Changed(lambda x, generator: corrupt_mnist(x, name, severity, generator=generator))


@dataclass(frozen=True)
class Still:
    """The kernel that moves nothing."""

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        return Draws(copies(x, count))


@dataclass(frozen=True)
class Mixed:
    """With probability `share` a draw of `second`, else one of `first`."""

    first: Kernel
    second: Kernel
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise BookError(f"share={self.share!r}; give a probability")

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        one, two = (kernel.draw(x, count, generator) for kernel in (self.first, self.second))
        chosen = torch.rand(one.inside.shape, generator=generator, device=x.device) < self.share
        points = torch.where(chosen.reshape(*chosen.shape, *[1] * (x.dim() - 1)), two.points, one.points)
        return Draws(points, torch.where(chosen, two.inside, one.inside))


Event = Callable[[Tensor, Draws], Tensor]
"""event(x, draws): for which draws (M, N) it holds."""


@dataclass(frozen=True)
class Conditioned:
    """Q | A: the kernel conditioned on an event (the notation P|A of Example 4)."""

    kernel: Kernel
    event: Event = field(repr=False)

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...); those outside the event do not count."""
        draws = self.kernel.draw(x, count, generator)
        return draws.where(self.event(x, draws))


def within(kernel: Kernel, eps: Radius, norm: str = "l2") -> Conditioned:
    """The kernel conditioned on the open eps-ball around x, as all of the 2020 version is."""
    size = norm_called(norm).size
    _checked(eps=eps)

    def near(x: Tensor, draws: Draws) -> Tensor:
        count = len(draws.points)
        distance = size((draws.points - x).flatten(0, 1)).view(count, len(x))
        return distance < torch.as_tensor(eps, dtype=x.dtype, device=x.device)

    return Conditioned(kernel, near)


def label_aware(kernel: Kernel, truth: Classifier, labels: Tensor | None = None) -> Conditioned:
    """The kernel conditioned on the true label staying as it is: Q_{eps, Y} of Example 4 (type 3).

    Parameters
    ----------
    truth
        The true labelling Y: points -> labels.
    labels
        Y(x) (N,), where it is known without asking `truth`.
    """

    def same(x: Tensor, draws: Draws) -> Tensor:
        return draws.labels(truth) == (truth(x) if labels is None else labels)

    return Conditioned(kernel, same)
