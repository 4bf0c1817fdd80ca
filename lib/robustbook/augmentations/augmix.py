"""AugMix (Hendrycks et al., 2020): chains of simple operations, mixed with the clean image.

The nine operations that do not overlap with the corruption benchmarks, with the published ranges. Every
image has operations, levels and signs of its own; all that go through tables are done together, and so are
all that move pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..errors import BookError, unknown
from .catalogue import AUGMENTATIONS
from .chance import signs, uniform
from .checks import check_numbers
from .mixing import Mixture
from .operations import (
    LEVELS,
    autocontrast_tables,
    equalize_tables,
    levels_of,
    look_up,
    posterize_tables,
    rotations,
    shears,
    solarize_tables,
    translations,
    warp,
)

POINT = ("autocontrast", "equalize", "posterize", "solarize")
GEOMETRIC = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")
OPERATIONS = (*POINT, *GEOMETRIC)
LEAST, HIGHEST = 0.1, 10.0
"""Levels are drawn from U(0.1, severity) and count in tenths of an operation's range."""
BITS, DEGREES, SLOPE, PART = 4, 30, 0.3, 1 / 3


@dataclass(frozen=True)
class AugMix:
    """AugMix as an augmentation: `augmix(x, generator=...)` for images (N, C, H, W) in [0, 1]."""

    severity: float = 3.0
    operations: Sequence[str] = OPERATIONS
    mixture: Mixture = field(default_factory=lambda: Mixture(mixing="beta"))

    def __post_init__(self) -> None:
        check_numbers(severity=self.severity)
        if not LEAST <= self.severity <= HIGHEST:
            raise BookError(f"severity={self.severity!r}; give a number from {LEAST:g} to {HIGHEST:g}")
        if isinstance(self.operations, str) or not self.operations:
            raise BookError(f"operations={self.operations!r}; give a tuple with one name or more")
        for name in self.operations:
            if name not in OPERATIONS:
                raise unknown("operation", str(name), OPERATIONS)

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """The augmented images, laid out in memory as `x`."""
        return self.mixture(x, self._apply, len(self.operations), generator)

    def draw(self, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """Levels as a part of an operation's range, (count,)."""
        level = LEAST + (self.severity - LEAST) * uniform((count,), generator, like)
        return level / HIGHEST

    def _apply(self, images: Tensor, kinds: Tensor, generator: torch.Generator) -> None:
        """One operation for each image, at a level of its own."""
        level = self.draw(len(images), generator, images)
        sign = signs(len(images), generator, images)
        numbers = torch.tensor([OPERATIONS.index(name) for name in self.operations], device=images.device)
        number = numbers[kinds].where(kinds >= 0, kinds)
        rows = ((number >= 0) & (number < len(POINT))).nonzero()[:, 0]
        if len(rows):
            images.index_copy_(0, rows, _points(images.index_select(0, rows), number[rows], level[rows]))
        rows = (number >= len(POINT)).nonzero()[:, 0]
        if len(rows):
            moved = _moves(images.index_select(0, rows), number[rows] - len(POINT), level[rows], sign[rows])
            images.index_copy_(0, rows, moved)


def _points(x: Tensor, number: Tensor, level: Tensor) -> Tensor:
    """The point operation `number` on each image: tables of its own, then one look-up for all."""
    levels, channels = levels_of(x), x.shape[1]
    number, level = number.repeat_interleave(channels), level.repeat_interleave(channels)
    stretch, equal, poster, solar = ((number == kind).nonzero()[:, 0] for kind in range(len(POINT)))
    tables = levels.new_empty(len(levels), LEVELS)
    tables[stretch] = autocontrast_tables(levels[stretch])
    tables[equal] = equalize_tables(levels[equal])
    tables[poster] = posterize_tables(BITS - (level[poster] * BITS).long())
    tables[solar] = solarize_tables(LEVELS - (level[solar] * LEVELS).long())
    return look_up(x, levels, tables)


def _moves(x: Tensor, number: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """The geometric operation `number` on each image: own matrices, then one resampling for all."""
    height, width = x.shape[2:]
    degrees, slopes = sign * (level * DEGREES).floor(), sign * level * SLOPE
    across, down = sign * (level * width * PART).floor(), sign * (level * height * PART).floor()
    choices = torch.stack(
        [
            rotations(degrees, height, width),
            shears(slopes, 0),
            shears(slopes, 1),
            translations(across, 0),
            translations(down, 1),
        ]
    )
    return warp(x, choices[number, torch.arange(len(x), device=x.device)])


@AUGMENTATIONS.add("augmix-cifar")
def augmix_cifar(*, mixing: str = "beta") -> AugMix:
    """AugMix for CIFAR-10 and CIFAR-100: severity 3."""
    return AugMix(3.0, mixture=Mixture(mixing=mixing))


@AUGMENTATIONS.add("augmix-imagenet")
def augmix_imagenet(*, mixing: str = "beta") -> AugMix:
    """AugMix for ImageNet: severity 1."""
    return AugMix(1.0, mixture=Mixture(mixing=mixing))
