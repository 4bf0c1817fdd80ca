"""Fewer images to train on: the first 20,000 of a full set, with its whole test split.

They have names so that a recipe can ask for them; nothing is stored twice.
"""

from pathlib import Path

from .core import DATASETS, Raw, Source, digest
from .full import Part, Stored


class First(Part):
    """A stored set whose training split ends after `train` samples."""

    def files(self, split: str) -> list[Path]:
        return self.whole.files(split)

    def missing(self, split: str) -> bool:
        return self.whole.missing(split)

    def read(self, split: str, limit: int | None = None) -> Raw:
        raw = self.whole.read(split, limit)
        if split == "test":
            return raw
        images, labels = raw.images[: self.train], raw.labels[: self.train]
        return Raw(images, labels, digest(images, labels), self.note(split))

    def note(self, split: str) -> str:
        total = f"{self.whole.counts[split]:,} images of {self.whole.name}"
        return total if split == "test" else f"the first {self.train:,} of {total}"

    def check(self, split: str) -> str:
        self.whole.read(split)
        return self.note(split)


def _first(name: str) -> First:
    whole = DATASETS[name]()
    assert isinstance(whole, Stored)
    return First(whole, 20_000)


@DATASETS.add("mnist-20000")
def mnist_20000() -> Source:
    """The first 20,000 training images of MNIST."""
    return _first("mnist")


@DATASETS.add("fashion-mnist-20000")
def fashion_mnist_20000() -> Source:
    """The first 20,000 training images of Fashion-MNIST."""
    return _first("fashion-mnist")


@DATASETS.add("cifar10-20000")
def cifar10_20000() -> Source:
    """The first 20,000 training images of CIFAR-10."""
    return _first("cifar10")
