"""The full data sets, one npz file a split in the data folder.

`<name>-<split>.npz` holds `images` (uint8, N x H x W x C) and `labels`. Each file is checked against
a SHA-256 over its array bytes: a constant below or, for sets that were fetched without one, the
digest written beside the file (`<name>-<split>.json`) when it was fetched.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..storage import data_folder
from .checks import check_arrays, damaged, read_npz, repairable
from .core import DATASETS, Raw, Source, digest

DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
OBJECTS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR100_CLASSES = tuple(
    """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
    dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
    leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
    otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
    road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
    sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm""".split()
)

_checked: dict[tuple[Path, int, int], str] = {}  # files already checked in this process


def digest_once(path: Path, images: np.ndarray, labels: np.ndarray) -> str:
    """The digest of the arrays read from `path`, computed once a process while the file stays the same."""
    status = path.stat()
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _checked:
        _checked[key] = digest(images, labels)
    return _checked[key]


@dataclass(frozen=True)
class Stored:
    """A data set stored as one npz file a split.

    `digests` without a split means that the digest was recorded beside the file when it was fetched.
    """

    name: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    counts: Mapping[str, int]
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.counts)

    @property
    def repair(self) -> str:
        return f"run `robustbook data fetch {self.name}`"

    def path(self, split: str) -> Path:
        return data_folder() / f"{self.name}-{split}.npz"

    def record(self, split: str) -> Path:
        """The JSON file beside the data that keeps the digest of a set without a constant."""
        return self.path(split).with_suffix(".json")

    def files(self, split: str) -> list[Path]:
        return [self.path(split)]

    def missing(self, split: str) -> bool:
        return not self.path(split).exists()

    def expected(self, split: str) -> str:
        """The digest the arrays must have."""
        if split in self.digests:
            return self.digests[split]
        path = self.record(split)
        with repairable(path, self.repair):
            found = json.loads(path.read_text(encoding="utf8"))["sha256"]
        if not isinstance(found, str) or len(found) != 64:
            raise damaged(path, "no SHA-256 in it", self.repair)
        return found

    def read(self, split: str, limit: int | None = None) -> Raw:
        path = self.path(split)
        images, labels = read_npz(path, self.repair)
        check_arrays(path, self.repair, images, labels, self.shape, len(self.classes), self.counts[split])
        expected = self.expected(split)
        found = digest_once(path, images, labels)
        if found != expected:
            raise damaged(path, f"SHA-256 {found[:12]}..., not {expected[:12]}...", self.repair)
        return Raw(images, labels, found)

    def check(self, split: str) -> str:
        self.read(split)
        return f"{self.counts[split]:,} images"


@dataclass(frozen=True)
class Part:
    """A stored set of which fewer images are trained on: `train` of them."""

    whole: Stored
    train: int

    splits: tuple[str, ...] = ("train", "test")

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.whole.shape

    @property
    def classes(self) -> tuple[str, ...]:
        return self.whole.classes


class Halves(Part):
    """One stored file cut in two: the first `train` samples to train on, the rest to test."""

    def files(self, split: str) -> list[Path]:
        return self.whole.files("all")

    def missing(self, split: str) -> bool:
        return self.whole.missing("all")

    def read(self, split: str, limit: int | None = None) -> Raw:
        raw = self.whole.read("all")
        part = slice(None, self.train) if split == "train" else slice(self.train, None)
        images, labels = raw.images[part], raw.labels[part]
        return Raw(images, labels, digest(images, labels), self.note(split))

    def note(self, split: str) -> str:
        total = self.whole.counts["all"]
        part = f"first {self.train:,}" if split == "train" else f"last {total - self.train:,}"
        return f"stand-in for svhn: the {part} of {total:,} images, believed the first of its test split"

    def check(self, split: str) -> str:
        self.whole.read("all")
        return self.note(split)


@dataclass(frozen=True)
class Single(Stored):
    """A stored set that is one file without splits, `<name>.npz`."""

    def path(self, split: str) -> Path:
        return data_folder() / f"{self.name}.npz"


@DATASETS.add("mnist")
def mnist() -> Source:
    """Handwritten digits, 28 x 28 grey (LeCun, Bottou, Bengio, Haffner 1998)."""
    return Stored(
        "mnist",
        (28, 28, 1),
        DIGITS,
        {"train": 60_000, "test": 10_000},
        {
            "train": "d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
            "test": "a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
        },
    )


@DATASETS.add("fashion-mnist")
def fashion_mnist() -> Source:
    """Articles of clothing, 28 x 28 grey (Xiao, Rasul, Vollgraf 2017)."""
    return Stored(
        "fashion-mnist",
        (28, 28, 1),
        CLOTHES,
        {"train": 60_000, "test": 10_000},
        {
            "train": "1f243a60b4b748a44c48b9a6f6907be2a08bee3e4e226f0e86fbde8e147b745a",
            "test": "9a494dc49efeb996f4076c469b31cd058152067b1594ba6ab85dd739fce3775e",
        },
    )


@DATASETS.add("cifar10")
def cifar10() -> Source:
    """Ten kinds of objects, 32 x 32 RGB (Krizhevsky 2009)."""
    return Stored(
        "cifar10",
        (32, 32, 3),
        OBJECTS,
        {"train": 50_000, "test": 10_000},
        {
            "train": "67e12c2a5906880a4fe5595fe6d768185ad7ca587f35d3a7ece3c3b8b85035d2",
            "test": "e54a434ec35094516eacbaac0f2f9550358d985e9d1f71b47d41d333c15ba304",
        },
    )


@DATASETS.add("cifar100")
def cifar100() -> Source:
    """A hundred kinds of objects, 32 x 32 RGB (Krizhevsky 2009), with the fine labels."""
    return Stored("cifar100", (32, 32, 3), CIFAR100_CLASSES, {"train": 50_000, "test": 10_000})


@DATASETS.add("svhn")
def svhn() -> Source:
    """House numbers, cropped digits, 32 x 32 RGB (Netzer et al. 2011)."""
    return Stored("svhn", (32, 32, 3), DIGITS, {"train": 73_257, "test": 26_032})


SVHN_10000 = Single(
    "svhn-10000",
    (32, 32, 3),
    DIGITS,
    {"all": 10_000},
    {"all": "2e6edf1a35294ad15ec70f3d33bf690c380c129775eaf01bdc6c977a8e15b2ce"},
)


@DATASETS.add("svhn-10000")
def svhn_10000() -> Source:
    """10,000 images, believed the first of the SVHN test split: 8,000 to train on, 2,000 to test."""
    return Halves(SVHN_10000, train=8_000)
