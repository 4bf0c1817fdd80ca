"""What classifiers are measured with: images and labels, what stands near them, and how much of all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from ..corruptions.common import NAMES, corrupt
from ..datasets import load
from ..defenses.manifold import manifold_sampler
from ..defenses.robust_loss import Sampler
from ..errors import BookError
from ..networks.wae import Autoencoder
from ..registry import Registry
from ..rehearsal import shrink
from ..training.stored import trained
from .subject import TRIED

SIGMA = 0.06
"""Noise in codes, as in section 7 of the framework (2020)."""


@dataclass(frozen=True)
class Budget:
    """How much is spent on one classifier.

    `images` for what is cheap, `attacked` for what takes hundreds of gradients an image; `steps` of the
    gradient attacks, `targets` and `queries` of AutoAttack, `levels` of noise, `severities` of corruptions,
    `samples` of the manifold at each of `radii` values of eps, `pool` images that stand for the data.
    """

    images: int
    attacked: int
    steps: int
    targets: int
    queries: int
    levels: int
    severities: tuple[int, ...]
    samples: int
    radii: int
    pool: int

    def shrunk(self) -> "Budget":
        """The same, or in a rehearsal next to nothing."""
        return Budget(
            images=shrink(self.images, at_most=4),
            attacked=shrink(self.attacked, at_most=2),
            steps=shrink(self.steps, at_most=2),
            targets=shrink(self.targets, at_most=2),
            queries=shrink(self.queries, at_most=2),
            levels=shrink(self.levels, at_most=2),
            severities=self.severities[: shrink(len(self.severities), at_most=1)],
            samples=shrink(self.samples, at_most=4),
            radii=shrink(self.radii, at_most=4),
            pool=shrink(self.pool, at_most=8),
        )


BUDGETS: Registry[Callable[[], Budget]] = Registry("budget")


@BUDGETS.add("budget-tiny")
def tiny() -> Budget:
    """A second or two for a small network: for tests and a first look."""
    return Budget(24, 6, 5, 2, 12, 5, (3,), 8, 20, 200)


@BUDGETS.add("budget-quick")
def quick() -> Budget:
    """Minutes for a convolutional network on CIFAR-10."""
    return Budget(500, 60, 80, 3, 500, 15, (1, 3, 5), 50, 200, 2_000)


@BUDGETS.add("budget-laptop")
def laptop() -> Budget:
    """Minutes for a small network on Fashion-MNIST, the book's own tables."""
    return Budget(1_000, 200, 100, 9, 1_000, 30, (1, 3, 5), 100, 1_000, 5_000)


@BUDGETS.add("budget-full")
def full() -> Budget:
    """All test images of the cheap measures, AutoAttack as published: for a GPU."""
    return Budget(10_000, 1_000, 200, 9, 5_000, 30, (1, 2, 3, 4, 5), 100, 1_000, 10_000)


@dataclass(frozen=True, eq=False)
class Bench:
    """Test images `x` in [0, 1] with labels `y`, and images of the data, `pool`, that R4 may use.

    `manifold` gives samples of the data's manifold near an image, if there is an auto-encoder of it.
    """

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    classes: int
    pool: Tensor = field(repr=False)
    checksum: str
    manifold: Sampler | None = None

    @property
    def eps(self) -> float:
        """The budget in linf that is usual for such images: 0.1 for grey ones, 8/255 for colours."""
        return 0.1 if self.x.shape[1] == 1 else 8 / 255

    @property
    def diameter(self) -> float:
        """d, the diameter of the unit cube: 28 for MNIST (gap U11)."""
        return math.sqrt(self.x[0].numel())

    @cached_property
    def _stacks(self) -> dict[tuple[int, tuple[int, ...]], Tensor]:
        return {}

    def corrupted(self, count: int, severities: tuple[int, ...]) -> Tensor:
        """The first `count` images under every corruption and severity, (K, N, C, H, W); made once."""
        key = (count, severities)
        if key not in self._stacks:
            names = NAMES[: shrink(len(NAMES), at_most=2)]
            x = self.x[:count]
            parts = [corrupt(x, name, s, seeds=range(len(x))) for name in names for s in severities]
            self._stacks[key] = torch.stack(parts)
        return self._stacks[key]


@lru_cache(maxsize=2)
def bench(data: str, budget: str, manifold: str = "") -> Bench:
    """The bench of a data set by name; `manifold` names the recipe of an auto-encoder, if there is one."""
    size = BUDGETS[budget]().shrunk()
    test = load(data, "test", limit=max(size.images, size.attacked, TRIED))
    train = load(data, "train", limit=size.pool)
    sampler = manifold_sampler(lambda: autoencoder(manifold), SIGMA) if manifold else None
    return Bench(test.x, test.y, len(test.classes), train.x, test.checksum, sampler)


def autoencoder(recipe: str) -> Autoencoder:
    """The stored auto-encoder of a recipe, seed 0."""
    model = trained(recipe, 0, progress=False)
    if not isinstance(model, Autoencoder):
        raise BookError(f"the recipe {recipe} makes a {type(model).__name__}; name one of an auto-encoder")
    return model
