"""The registry of common corruptions, and the form in which their published constants are written down."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..registry import Registry
from .draws import Draws

T = TypeVar("T")
SETS = ("cifar10", "imagenet")
"""The two sets of constants: those of CIFAR-10-C (32 px) and those of ImageNet-C (224 px)."""


class Level(NamedTuple):
    """Which constants, and how severe: 1 to 5."""

    constants: Literal["cifar10", "imagenet"]
    severity: int


@dataclass(frozen=True)
class Severities(Generic[T]):
    """A corruption's constants at severities 1 to 5, in both sets."""

    cifar10: tuple[T, T, T, T, T]
    imagenet: tuple[T, T, T, T, T]

    def __getitem__(self, level: Level) -> T:
        five = self.cifar10 if level.constants == "cifar10" else self.imagenet
        return five[level.severity - 1]


Corruption = Callable[[Tensor, Draws, Level], Tensor]
COMMON: Registry[Corruption] = Registry("corruption")
"""Common corruptions by their public names: from (N, C, H, W) in [0, 1] to the same, not yet clipped."""


def as_uint8(x: Tensor) -> Tensor:
    """Images of [0, 1] as the public files hold them: cut off, not rounded, to whole levels of 255.

    The little that is added keeps a level that single precision puts just below itself.
    """
    return (x * 255 + 1e-4).to(torch.uint8)


def cut_off(x: Tensor) -> Tensor:
    """Images of [0, 1], still as numbers of [0, 1], after a stay in unsigned bytes."""
    return as_uint8(x).to(x.dtype) / 255
