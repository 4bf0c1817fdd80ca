"""What a data set is, and `load`, which turns a name into tensors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from ..errors import BookError, unknown
from ..registry import Registry
from ..rehearsal import SAMPLES, rehearsing, shrink
from ..storage import sha256
from ..usage import note_data


@dataclass(frozen=True)
class Raw:
    """Bytes as stored: `images` uint8 (N, H, W, C), `labels` int64 (N,), and the digest of both."""

    images: np.ndarray
    labels: np.ndarray
    checksum: str
    note: str = ""


class Source(Protocol):
    """Where the raw bytes of one data set come from."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels of one image."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by label."""

    def files(self, split: str) -> list[Path]:
        """The files that hold a split, or the folder of the reader's own."""

    def missing(self, split: str) -> bool:
        """Is there nothing at all? (A damaged file is not missing.)"""

    def check(self, split: str) -> str:
        """Raise a BookError unless the split is there and intact; else say what is there."""

    def read(self, split: str, limit: int | None) -> Raw:
        """Read and check the whole split; no more than the first `limit` samples are used."""


DATASETS: Registry[Callable[[], Source]] = Registry("data set")


@dataclass(frozen=True, eq=False)
class Data:
    """One split in memory: `x` float32 in [0, 1] of shape (N, C, H, W), `y` int64 of shape (N,).

    `checksum` is the SHA-256 of the raw image and label bytes before `limit`, so equal checksums
    mean equal data whatever file they came from. `x, y = load(...)` unpacks.
    """

    x: torch.Tensor = field(repr=False)
    y: torch.Tensor = field(repr=False)
    name: str
    split: str
    classes: tuple[str, ...] = field(repr=False)
    checksum: str
    note: str = ""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter((self.x, self.y))

    def __len__(self) -> int:
        return len(self.y)


def digest(images: np.ndarray, labels: np.ndarray) -> str:
    """SHA-256 of the uint8 images (C order) followed by the labels as little-endian int64."""
    pixels = np.ascontiguousarray(images)
    return sha256(pixels.reshape(-1).data, np.ascontiguousarray(labels, dtype="<i8").data)


def load(name: str, split: str = "train", *, limit: int | None = None) -> Data:
    """Load a split of a data set by name.

    Parameters
    ----------
    name
        A registered name, see `names()`.
    split
        "train" or "test".
    limit
        Keep only the first `limit` samples (ImageNet folders: spread evenly over the classes).

    In a rehearsal at most eight samples come back, and synthetic ones where the data is absent.
    """
    source = DATASETS[name]()
    if split not in source.splits:
        raise unknown(f"split of {name}", split, source.splits)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise BookError(f"limit={limit!r} of {name}: give a whole number of samples, 1 or more, or None")
    if rehearsing():
        limit = shrink(limit or SAMPLES)
    if rehearsing() and source.missing(split):
        raw = synthetic(source.shape, len(source.classes), limit or SAMPLES)
    else:
        raw = source.read(split, limit)
    note_data(f"{name}/{split}", "synthetic" if raw.note.startswith("synthetic") else raw.checksum)
    return Data(
        x=to_unit(raw.images[:limit]),
        y=torch.from_numpy(raw.labels[:limit].astype(np.int64)),
        name=name,
        split=split,
        classes=source.classes,
        checksum=raw.checksum,
        note=raw.note,
    )


def to_unit(images: np.ndarray) -> torch.Tensor:
    """uint8 (N, H, W, C) -> float32 (N, C, H, W) in [0, 1]."""
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    # With one channel numpy takes the NHWC strides for contiguous; a copy gives the same strides always,
    # since another layout means another convolution kernel with other last bits.
    unit = torch.from_numpy(channels_first).to(torch.float32).div_(255)
    return unit.clone(memory_format=torch.contiguous_format)


def synthetic(shape: tuple[int, int, int], classes: int, count: int) -> Raw:
    """Noise of the right shape, the same at every call, for rehearsals without the data."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (count, *shape), dtype=np.uint8)
    labels = generator.integers(0, classes, count, dtype=np.int64)
    return Raw(images, labels, digest(images, labels), "synthetic noise: the data is not on this machine")


def names() -> list[str]:
    """Every name `load` knows."""
    return sorted(DATASETS)
