"""Augmentation off-line (thesis, section 5.4.4): copies made once, before training, not at every step."""

import functools
from typing import Any

import torch
from torch import Tensor

from .catalogue import Augmentation
from .checks import check_counts, check_images

PART = 500
"""How many images are augmented at once."""

Pair = tuple[Tensor, Tensor]


class Copies:
    """A data set `count` + 1 times as large: the images, and so many augmented copies of each.

    Copies are kept as bytes, as they would be on a disk. They are made when the first batch is taken, from
    `seed` alone.
    """

    def __init__(self, clean: Pair, augment: Augmentation, count: int, seed: int) -> None:
        self.clean = clean
        self.augment, self.count, self.seed = augment, count, seed

    def __len__(self) -> int:
        return (self.count + 1) * len(self.clean[1])

    @functools.cached_property
    def stored(self) -> Tensor:
        """All copies, uint8 (count * N, C, H, W), one copy of all images after the other."""
        generator, x = torch.Generator().manual_seed(self.seed), self.clean[0]
        parts = [part for _ in range(self.count) for part in x.split(PART)]
        return torch.cat([_bytes(self.augment(part, generator=generator)) for part in parts])

    def take(self, indices: Tensor) -> Pair:
        """Images and labels at these indices; the first N of all are the clean ones."""
        x, y = self.clean
        source = indices % len(y)
        images, copied = x[source], indices >= len(y)
        images[copied] = self.stored[indices[copied] - len(y)].to(x.dtype) / 255
        return images, y[source]

    def over(self, clean: Pair) -> "Copies":
        """Copies of other images."""
        return Copies(clean, self.augment, self.count, self.seed)


def _bytes(x: Tensor) -> Tensor:
    return (255 * x).round().to(torch.uint8)


def copies(data: Any, augment: Augmentation, count: int, *, seed: int) -> Copies:
    """`fit(model, copies(data, prime_cifar(), 4, seed=0), ...)`: the images and four copies of each.

    What `fit` holds out for validation is held out before copying, and stays clean.
    """
    x, y = data
    check_counts(count=count)
    check_images(x[:1])
    return Copies((x, y), augment, count, seed)
