"""Transfer by paired auto-encoders (framework 2021, section 4): f(T(x)) with T = D1(E(.)), for any f.

T learns from clean images and from corrupted ones, without labels and without pairs. It is trained by the one
`fit`: `Alternating` gives mini-batches of either domain in turn, with the domain as label, and
`reconstruction_loss` sends each through its own decoder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import BookError
from ..networks.autoencoder import PairedAutoEncoder

CLEAN, CORRUPTED = 0, 1


def reconstruction_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean squared error of D1(E(x)) where the domain `y` is 0, of D2(E(x)) where it is 1 (gap U14)."""
    if not isinstance(model, PairedAutoEncoder):
        raise BookError(f"the loss needs a PairedAutoEncoder, not a {type(model).__name__}")
    return (model.reconstruct(x, y) - x).square().mean()


class Alternating:
    """Mini-batches of clean and of corrupted images in turn, as data for `fit` (gap U14).

    A pass goes once through the larger domain, shuffled, and through the smaller one as often as it takes.
    Without corrupted images (N_c = 0) all batches are clean. Every pass has an order of its own, which
    depends on the seed alone.
    """

    def __init__(self, clean: Tensor, corrupted: Tensor | None, *, batch_size: int, seed: int) -> None:
        if not len(clean):
            raise BookError("no clean images: the decoder that transfers has nothing to learn from")
        if batch_size < 1:
            raise BookError(f"batch_size={batch_size!r}; give a whole number, 1 or more")
        self.domains: list[tuple[Tensor, int]] = [(clean, CLEAN)]
        if corrupted is not None and len(corrupted):
            self.domains.append((corrupted, CORRUPTED))
        self.batch_size, self.seed, self.passes = batch_size, seed, 0

    def __len__(self) -> int:
        """Batches of a pass, of both domains together."""
        return len(self.domains) * -(-max(len(x) for x, _ in self.domains) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        state = np.random.SeedSequence([self.seed, self.passes]).generate_state(1)
        generator = torch.Generator().manual_seed(int(state[0]))
        self.passes += 1
        endless = [self._endless(x, domain, generator) for x, domain in self.domains]
        for step in range(len(self)):
            yield next(endless[step % len(endless)])

    def _endless(self, x: Tensor, domain: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Full batches for ever: what is left of one shuffle is joined by the beginning of the next."""
        size, order = self.batch_size, torch.empty(0, dtype=torch.long)
        while True:
            while len(order) < size:
                order = torch.cat([order, torch.randperm(len(x), generator=generator)])
            yield x[order[:size]], torch.full((size,), domain)
            order = order[size:]


@dataclass(frozen=True)
class Sources:
    """Places in the training set: of the images used clean, and of those used under each corruption."""

    clean: Tensor
    corrupted: dict[str, Tensor]

    def shared(self) -> int:
        """How many images are used more than once, in whatever way; the paper allows none."""
        every = torch.cat([self.clean, *self.corrupted.values()])
        return len(every) - len(every.unique())


def split_sources(total: int, names: Sequence[str], count: int) -> Sources:
    """Give each corruption `count` of `total` images of its own; the rest is clean (gap U13).

    With one name that is TRANSFER-SEPARATE, N_o = total - N_c; with fifteen TRANSFER-JOINT, and N_o = total -
    15 N_c. No image is the source of two.
    """
    if count < 0 or (count and not names):
        raise BookError(f"{count} corrupted images of {len(names)} corruptions; give a count and names")
    used = count * len(names)
    if used >= total:
        raise BookError(f"{used} of {total} images corrupted: none would stay clean; take fewer")
    places = torch.arange(total)
    parts = {name: places[k * count : (k + 1) * count] for k, name in enumerate(names)} if count else {}
    return Sources(places[used:], parts)


class Transferred(nn.Module):
    """f(T(x)): any classifier of images behind a transfer map."""

    def __init__(self, classifier: nn.Module, pair: PairedAutoEncoder) -> None:
        super().__init__()
        self.classifier, self.pair = classifier, pair

    def forward(self, x: Tensor) -> Tensor:
        """Class scores of the transferred images."""
        scores: Tensor = self.classifier(self.pair.transfer(x))
        return scores
