"""The real subset that ships with the repository, as sheets of pictures that anyone can open.

`shipped/<name>-<split>-<k>.png` shows a thousand images, fifty in a row; because the classes take
turns, each column holds one class. `shipped/index.json` has the labels, the place of every image
in its original split and the digests. The digests are also constants below, so that a result
computed from the subset knows when the subset changes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from .checks import check_arrays, damaged, repairable
from .core import DATASETS, Raw, Source, digest
from .full import CLOTHES, DIGITS, OBJECTS

FOLDER = Path(__file__).parent / "shipped"
INDEX = "index.json"
COLUMNS = 50
PER_SHEET = 1_000  # keeps every file well below 4 MiB
COUNTS = {"train": 2_000, "test": 1_000}


def repair(file: str) -> str:
    """The command that brings a shipped file back."""
    return f"run `git checkout -- lib/robustbook/datasets/shipped/{file}`"


def read_labels(name: str, split: str) -> np.ndarray:
    """The labels of one split, from the index."""
    path = FOLDER / INDEX
    with repairable(path, repair(INDEX)):
        labels = json.loads(path.read_text(encoding="utf8"))[f"{name}-{split}"]["labels"]
        if type(labels) is not list or any(type(label) is not int for label in labels):
            raise damaged(path, f"the labels of {name}-{split} are no whole numbers", repair(INDEX))
        return np.array(labels, dtype=np.int64)


def read_sheet(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """Cut a sheet into its images: (N, H, W, C)."""
    height, width, channels = shape
    with repairable(path, repair(path.name)), path.open("rb") as stream, Image.open(stream) as picture:
        if picture.mode != ("L" if channels == 1 else "RGB"):
            raise damaged(path, f"a picture of mode {picture.mode}", repair(path.name))
        pixels = np.asarray(picture)
    rows = PER_SHEET // COLUMNS
    if pixels.shape[:2] != (rows * height, COLUMNS * width):
        raise damaged(path, f"{pixels.shape[1]} x {pixels.shape[0]} pixels", repair(path.name))
    tiles = pixels.reshape(rows, height, COLUMNS, width, channels).swapaxes(1, 2)
    return np.ascontiguousarray(tiles.reshape(-1, height, width, channels))


@dataclass(frozen=True)
class Sheets:
    """A class-balanced subset stored as PNG sheets."""

    name: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    digests: Mapping[str, str]

    splits: tuple[str, ...] = ("train", "test")

    def files(self, split: str) -> list[Path]:
        return [FOLDER / f"{self.name}-{split}-{k + 1}.png" for k in range(COUNTS[split] // PER_SHEET)]

    def missing(self, split: str) -> bool:
        """Never: what ships is either there or damaged."""
        return False

    def read(self, split: str, limit: int | None = None) -> Raw:
        index, labels = FOLDER / INDEX, read_labels(self.name, split)
        images = np.concatenate([read_sheet(file, self.shape) for file in self.files(split)])
        check_arrays(index, repair(INDEX), images, labels, self.shape, len(self.classes), COUNTS[split])
        found = digest(images, labels)
        if found != self.digests[split]:
            first = self.files(split)[0]
            raise damaged(first, f"its pixels or the labels in {INDEX} were altered", repair(""))
        return Raw(images, labels, found, self.note(split))

    def note(self, split: str) -> str:
        return f"subset: {COUNTS[split]:,} real images of the {split} split, the same number of each class"

    def check(self, split: str) -> str:
        self.read(split)
        return self.note(split)


@DATASETS.add("mnist-small")
def mnist_small() -> Source:
    """The shipped part of MNIST."""
    return Sheets(
        "mnist",
        (28, 28, 1),
        DIGITS,
        {
            "train": "36c97fdb21e3d3012044f97387341e87e07c7b6dadb49406c249dbab71a19123",
            "test": "b56fc2ead31250b1ab8959ebfc9d0615594b2a8a0433e2baf9242886de9b14cb",
        },
    )


@DATASETS.add("fashion-mnist-small")
def fashion_mnist_small() -> Source:
    """The shipped part of Fashion-MNIST."""
    return Sheets(
        "fashion-mnist",
        (28, 28, 1),
        CLOTHES,
        {
            "train": "0d2c74121ccc833bff18b12d73a19ad853a262dd3425b9449ec1407db5365523",
            "test": "f36aa92e2c29936113d97713165f6fd8acc85de2ab0232a94972264bdc6aa139",
        },
    )


@DATASETS.add("cifar10-small")
def cifar10_small() -> Source:
    """The shipped part of CIFAR-10."""
    return Sheets(
        "cifar10",
        (32, 32, 3),
        OBJECTS,
        {
            "train": "0bec727d3b84ebc98d24708366551e9cd5746c81d62a11e79d82d8d877db7b4a",
            "test": "aad47fb63e37723f2cf2025ed70c0cb205d9533ba38640b1f90b09417c473b09",
        },
    )
