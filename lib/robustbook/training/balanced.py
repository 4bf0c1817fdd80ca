"""Batches in which every class is as likely as any other, however many images it has."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..errors import BookError


class Balanced:
    """Batches for `fit`, drawn with replacement, an image the likelier the rarer its class (section 4.5.2).

    A pass has as many batches as an ordinary one; each pass has draws of its own, by `seed`.
    """

    def __init__(self, x: Tensor, y: Tensor, *, batch_size: int, seed: int) -> None:
        if len(x) != len(y) or not len(y):
            raise BookError(f"{len(x)} images and {len(y)} labels; give one label an image, and at least one")
        if batch_size < 1:
            raise BookError(f"batch_size={batch_size!r}; give a whole number, 1 or more")
        self.x, self.y, self.batch_size, self.seed, self.passes = x, y, batch_size, seed, 0
        counts = y.bincount()
        self.weights = 1 / counts[y].double()

    def __len__(self) -> int:
        """Batches of a pass."""
        return -(-len(self.y) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        state = np.random.SeedSequence([self.seed, self.passes]).generate_state(1)
        generator = torch.Generator().manual_seed(int(state[0]))
        self.passes += 1
        for _ in range(len(self)):
            rows = torch.multinomial(self.weights, self.batch_size, replacement=True, generator=generator)
            yield self.x[rows], self.y[rows]
