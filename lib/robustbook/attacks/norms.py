"""Norms of perturbations, each with what an attack needs to know of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import unknown
from .frame import each

TINY = 1e-30


@dataclass(frozen=True)
class Norm:
    """A norm of a batch of perturbations (N, ...).

    `size` and `dual` give (N,): the norm, and the dual norm of a gradient. `ascent` is the step of norm 1
    along which a linear function with that gradient rises most, by the dual norm. `project` gives the
    nearest perturbation within `eps` (N,); `draw` one at random within norm 1.
    """

    size: Callable[[Tensor], Tensor]
    dual: Callable[[Tensor], Tensor]
    ascent: Callable[[Tensor], Tensor]
    project: Callable[[Tensor, Tensor], Tensor]
    draw: Callable[[Tensor, torch.Generator], Tensor]


def largest(delta: Tensor) -> Tensor:
    """Largest absolute value of each image: the linf norm."""
    return delta.flatten(1).abs().amax(1)


def total(delta: Tensor) -> Tensor:
    """Sum of absolute values of each image: the l1 norm."""
    return delta.flatten(1).abs().sum(1)


def euclidean(delta: Tensor) -> Tensor:
    """Root of the sum of squares of each image: the l2 norm."""
    return delta.flatten(1).norm(dim=1)


def _clamp(delta: Tensor, eps: Tensor) -> Tensor:
    bound = each(eps, delta)
    return delta.clamp(-bound, bound)


def _uniform(x: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.rand(x.shape, dtype=x.dtype, device=generator.device, generator=generator)
    return (2 * drawn - 1).to(x.device)


def _unit(delta: Tensor) -> Tensor:
    return delta / each(euclidean(delta).clamp_min(TINY), delta)


def _shrink(delta: Tensor, eps: Tensor) -> Tensor:
    return delta * each((eps / euclidean(delta).clamp_min(TINY)).clamp_max(1), delta)


def _in_ball(x: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform in the ball: a uniform direction, and a radius whose n-th power is uniform."""
    place = generator.device
    direction = torch.randn(x.shape, dtype=x.dtype, device=place, generator=generator)
    radius = torch.rand(len(x), dtype=x.dtype, device=place, generator=generator) ** (1 / x[0].numel())
    return (_unit(direction) * each(radius, direction)).to(x.device)


NORMS = {
    "linf": Norm(largest, total, torch.sign, _clamp, _uniform),
    "l2": Norm(euclidean, euclidean, _unit, _shrink, _in_ball),
}


def norm_called(name: str) -> Norm:
    """The norm of that name."""
    if name not in NORMS:
        raise unknown("norm", str(name), NORMS)
    return NORMS[name]


class Geometry(NamedTuple):
    """What a step to a linear boundary needs of a norm; `size`, `dual` and `ascent` as in `Norm`."""

    size: Callable[[Tensor], Tensor]
    dual: Callable[[Tensor], Tensor]
    ascent: Callable[[Tensor], Tensor]


def _steepest(slope: Tensor) -> Tensor:
    """All along the value with the largest slope: the step of l1 norm 1."""
    flat = slope.flatten(1)
    first = flat.abs().argmax(1, keepdim=True)
    return torch.zeros_like(flat).scatter(1, first, flat.gather(1, first).sign()).reshape(slope.shape)


GEOMETRIES = {
    "l1": Geometry(total, largest, _steepest),
    "l2": Geometry(euclidean, euclidean, _unit),
    "linf": Geometry(largest, total, torch.sign),
}


def geometry_called(name: str) -> Geometry:
    """The geometry of the norm of that name."""
    if name not in GEOMETRIES:
        raise unknown("norm", str(name), GEOMETRIES)
    return GEOMETRIES[name]
