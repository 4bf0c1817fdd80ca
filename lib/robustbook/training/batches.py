"""Where batches come from: tensors in memory, samples made on demand, or any iterable of batches."""

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from ..errors import BookError
from ..rehearsal import SAMPLES

Pair = tuple[Tensor, Tensor]


@runtime_checkable
class Samples(Protocol):
    """Samples that can be taken by index, for example an augmented data set that is never stored whole."""

    clean: Pair
    """The images and labels that everything else is made from."""

    def __len__(self) -> int:
        """Number of samples, copies included."""

    def take(self, indices: Tensor) -> Pair:
        """Images and labels at these indices."""

    def over(self, clean: Pair) -> "Samples":
        """The same kind of samples made from other images: a validation split must not leak copies."""


class Plain:
    """Images and labels as they are."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.clean = (x, y)

    def __len__(self) -> int:
        return len(self.clean[1])

    def take(self, indices: Tensor) -> Pair:
        """Images and labels at these indices."""
        x, y = self.clean
        return x[indices], y[indices]

    def over(self, clean: Pair) -> "Plain":
        """Other images and labels."""
        return Plain(*clean)


class Indexed:
    """Batches drawn from samples, in an order that a generator decides."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def steps(self, batch_size: int) -> int | None:
        """Batches in one pass."""
        return -(-len(self.samples) // batch_size)

    def peek(self) -> Pair:
        """Two images, to look at, and every label there is."""
        x, _ = self.samples.take(torch.arange(min(2, len(self.samples))))
        return x, self.samples.clean[1]

    def batches(self, batch_size: int, generator: torch.Generator | None) -> Iterator[Pair]:
        """One pass: shuffled if there is a generator, else in order."""
        count = len(self.samples)
        order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
        for start in range(0, count, batch_size):
            yield self.samples.take(order[start : start + batch_size])

    def head(self, count: int) -> "Indexed":
        """The same made from the first `count` images alone."""
        x, y = self.samples.clean
        return Indexed(self.samples.over((x[:count], y[:count])))


class Stream:
    """Somebody else's batches, such as a DataLoader: their size and order are theirs."""

    def __init__(self, data: Iterable[Pair]) -> None:
        self.data = data

    def steps(self, batch_size: int) -> int | None:
        """Batches in one pass, if they are counted."""
        return len(self.data) if isinstance(self.data, Sized) else None

    def peek(self) -> Pair:
        """The first batch, to look at."""
        for batch in self.batches(1, None):
            return batch
        raise BookError("no data: the iterable gives no batch")

    def batches(self, batch_size: int, generator: torch.Generator | None) -> Iterator[Pair]:
        """One pass, in their order and size."""
        for batch in self.data:
            yield checked(*_two(batch))

    def head(self, count: int) -> "Stream":
        """The first `count` samples of the first batch, as the only batch."""
        x, y = self.peek()
        return Stream([(x[:count], y[:count])])


Source = Indexed | Stream


def as_source(data: Any) -> Source:
    """Accept `(x, y)`, a `Data`, `Samples`, or an iterable of `(x, y)` batches that can be read again."""
    if isinstance(data, Samples):
        checked(*data.clean)
        return Indexed(data)
    if hasattr(data, "x") and hasattr(data, "y"):
        data = (data.x, data.y)
    if isinstance(data, (tuple, list)) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        return Indexed(Plain(*checked(*data)))
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes, Tensor)):
        raise BookError(
            f"data of type {type(data).__name__}; pass (images, labels) or an iterable of batches"
        )
    if iter(data) is data:
        raise BookError("these batches can be read only once; pass a list or a DataLoader")
    return Stream(data)


def split(data: Any, fraction: float, seed: int) -> tuple[Pair, Pair]:
    """Cut (images, labels) at random into what to train on and what to hold out, by `seed`."""
    train, held = hold_out(as_source(data), fraction, torch.Generator().manual_seed(seed))
    return train.samples.clean, held.samples.clean


def hold_out(source: Source, fraction: float, generator: torch.Generator) -> tuple[Indexed, Indexed]:
    """Hold out a fraction of the clean images; at least one stays on each side."""
    if not isinstance(source, Indexed):
        raise BookError("an iterable of batches cannot be split; pass validation=(images, labels) or None")
    x, y = source.samples.clean
    if not 0 < fraction < 1:
        raise BookError(f"validation={fraction}; give a fraction between 0 and 1, (images, labels), or None")
    if len(y) < 2:
        raise BookError("one image cannot be split; pass validation=(images, labels) or None")
    count = min(max(1, round(fraction * len(y))), len(y) - 1)
    order = torch.randperm(len(y), generator=generator)
    held, kept = order[:count], order[count:]
    return Indexed(source.samples.over((x[kept], y[kept]))), Indexed(Plain(x[held], y[held]))


def checked(x: Tensor, y: Tensor) -> Pair:
    """Images (N, ...) as floating point, and labels (N,) as int64 or class probabilities (N, K)."""
    if len(x) != len(y):
        raise BookError(f"{len(x)} images but {len(y)} labels; there must be one label an image")
    if len(x) == 0:
        raise BookError("no data: there are 0 images")
    if not x.is_floating_point():
        raise BookError(f"images are {x.dtype}; convert them to float32 in [0, 1], as datasets.load does")
    if y.is_floating_point() and y.dim() == 2:
        return x, y
    if y.is_floating_point() or y.dim() != 1:
        raise BookError(f"labels are {y.dtype} of shape {tuple(y.shape)}; give one whole number an image")
    return x, y.long()


def _two(batch: Any) -> Pair:
    if not (isinstance(batch, (tuple, list)) and len(batch) == 2 and isinstance(batch[0], Tensor)):
        raise BookError("every batch must be a pair (images, labels) of tensors")
    return batch[0], batch[1]


def small(source: Source) -> Source:
    """The source of a rehearsal."""
    return source.head(SAMPLES)
