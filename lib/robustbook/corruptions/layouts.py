"""Where corrupted images lie: the layouts of the public sets, official files and our own.

Official files are looked for in the data folder under the name their archive unpacks to: `CIFAR-10-C`,
`CIFAR-100-C` and `mnist_c`. What `robustbook data corrupt` writes has the same layout below `corrupted`, with
a JSON file beside each array that says how it was made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..datasets import DATASETS
from ..datasets.checks import damaged, repairable
from ..datasets.full import Stored
from ..errors import BookError, unknown
from ..fingerprint import definition_fingerprint
from ..storage import data_folder
from .common import GROUPS
from .mnist_c import MNIST_C, SEVERITIES, default_severity
from .pixels import corrupt_bytes

FOLDERS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C", "mnist": "mnist_c"}
"""The public sets by the data set they are made of."""
OURS = "corrupted"


@dataclass(frozen=True)
class Array:
    """One array of corrupted images: one split at one severity, or at five, one after another."""

    data: str
    name: str
    split: str
    severities: tuple[int | None, ...]

    @property
    def source(self) -> Stored:
        """The clean images."""
        return stored_set(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.severities) * self.source.counts[self.split], *self.source.shape)

    @property
    def repair(self) -> str:
        train = " --train" if self.split == "train" else ""
        return f"run `robustbook data corrupt {self.data} --only {self.name}{train}`"

    def images(self, root: Path) -> Path:
        """The file of the images, in a folder of the public layout."""
        if self.data == "mnist":
            return root / self.name / f"{self.split}_images.npy"
        return root / f"{self.name}.npy"

    def labels(self, root: Path) -> Path:
        """The file of the labels; the CIFAR sets have one for all corruptions."""
        return root / self.name / f"{self.split}_labels.npy" if self.data == "mnist" else root / "labels.npy"

    def record(self, root: Path) -> Path:
        """What we say about an array of our own."""
        return root / self.name / f"{self.split}.json" if self.data == "mnist" else root / f"{self.name}.json"

    def block(self, severity: int | None) -> slice:
        """The place of the images of one severity."""
        count, at = self.source.counts[self.split], self.severities.index(severity)
        return slice(at * count, (at + 1) * count)

    def fingerprint(self) -> str:
        """Hash of the code that makes these pixels: an array with another one is out of date."""
        return definition_fingerprint(corrupt_bytes, strings=[self.name])


def stored_set(data: str) -> Stored:
    """The data set that a public corrupted one is made of."""
    if data not in FOLDERS:
        raise unknown("corrupted set", data, FOLDERS)
    source = DATASETS[data]()
    if not isinstance(source, Stored):
        raise BookError(f"{data} is no stored set: its corruptions cannot be stored")
    return source


def names_of(data: str) -> tuple[str, ...]:
    """Public names of the corruptions of a set, in the public order."""
    stored_set(data)
    return tuple(MNIST_C) if data == "mnist" else tuple(name for names in GROUPS.values() for name in names)


def arrays_of(data: str, *, only: tuple[str, ...] = (), train: bool = False) -> Iterator[Array]:
    """The arrays of a set; training images exist in MNIST-C only."""
    known = names_of(data)
    for name in only:
        if name not in known:
            raise unknown(f"corruption of {FOLDERS[data]}", name, known)
    if train and data != "mnist":
        raise BookError(f"{FOLDERS[data]} has no training images; leave --train out")
    for name in known:
        if not only or name in only:
            for split in ("test", "train") if train else ("test",):
                yield Array(data, name, split, (default_severity(name),) if data == "mnist" else SEVERITIES)


def official_folder(data: str) -> Path:
    """Where official files are looked for."""
    return data_folder() / FOLDERS[data]


def our_folder(data: str) -> Path:
    """Where our own are written, in the public layout."""
    return data_folder() / OURS / FOLDERS[data]


def open_images(array: Array, root: Path, repair: str) -> np.ndarray:
    """The images, mapped into memory, if they have the type and shape of the public file."""
    path = array.images(root)
    images = _open(path, repair)
    if images.dtype != np.uint8 or images.shape != array.shape:
        raise damaged(path, f"{images.dtype} of shape {images.shape}, not uint8 of {array.shape}", repair)
    return images


def open_labels(array: Array, root: Path, repair: str) -> np.ndarray:
    """The labels of the split, (N,) int64, if they are classes and the same at every severity."""
    path = array.labels(root)
    labels = _open(path, repair)
    if labels.dtype.kind not in "ui" or labels.shape != array.shape[:1]:
        raise damaged(
            path, f"{labels.dtype} of shape {labels.shape}, not whole numbers, {array.shape[0]}", repair
        )
    blocks = labels.reshape(len(array.severities), -1)
    if (blocks != blocks[0]).any():
        raise damaged(path, "other labels at one severity than at another", repair)
    if labels.min() < 0 or labels.max() >= len(array.source.classes):
        raise damaged(path, f"labels from {labels.min()} to {labels.max()}", repair)
    return blocks[0].astype(np.int64)


def _open(path: Path, repair: str) -> np.ndarray:
    with repairable(path, repair):
        return np.load(path, mmap_mode="r", allow_pickle=False)
