"""Random numbers of each image's own: what happens to an image does not depend on its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


class Draws:
    """One stream of random numbers for each image of a batch.

    Every method returns a tensor whose first dimension runs over the images; image `i` gets the numbers that
    its own seed gives, in the order of the calls.
    """

    def __init__(self, seeds: Iterable[int]) -> None:
        self.generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]

    @classmethod
    def of(cls, count: int, generator: torch.Generator | None = None) -> Draws:
        """Streams for ``count`` images, whose seeds come from ``generator`` (by default one with seed 0)."""
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        return cls(torch.randint(2**62, (count,), generator=generator).tolist())

    def __len__(self) -> int:
        return len(self.generators)

    def each(self, draw: Callable[[torch.Generator], Tensor]) -> Tensor:
        """What ``draw`` makes of every stream, stacked."""
        return torch.stack([draw(generator) for generator in self.generators])

    def normal(self, *shape: int) -> Tensor:
        return self.each(lambda g: torch.randn(shape, generator=g))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * self.each(lambda g: torch.rand(shape, generator=g))

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from ``low`` to ``high - 1``."""
        return self.each(lambda g: torch.randint(low, high, shape, generator=g))

    def poisson(self, rates: Tensor) -> Tensor:
        """Poisson counts, one for each rate; ``rates`` has the images first."""
        return torch.stack([torch.poisson(rate, generator=g) for rate, g in zip(rates, self.generators)])
