"""ImageNet-style folders: the reader's own images, named by `ROBUSTBOOK_IMAGENET`.

Three layouts are understood: sub-folders named by class index (`0` to `999`), the 1,000 sub-folders
named by synset (`n01440764`, ..., whose sorted order is the class index), or image files without
sub-folders, named by class index (`0000.jpg`). Images go through Pillow.
"""

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ..errors import BookError
from ..vision import torchvision
from .checks import repairable
from .core import DATASETS, Raw, Source, digest

VARIABLE = "ROBUSTBOOK_IMAGENET"
CLASSES = 1_000
SHORT_SIDE, CROP = 256, 224
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}
HELP = f"set {VARIABLE} to a folder of images by class index (0 to 999) or by the 1,000 synsets"


def class_index(name: str, path: Path) -> int:
    """The class that a folder or a file name stands for."""
    if not re.fullmatch(r"[0-9]+", name) or int(name) >= CLASSES:
        raise BookError(f"{path} is not named by a class index from 0 to 999: {HELP}")
    return int(name)


def pictures(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))


def scan(root: Path) -> list[tuple[Path, int]]:
    """Every image below `root` with its class, ordered by class."""
    if not root.is_dir():
        raise BookError(f"{root} (from {VARIABLE}) is not a folder: {HELP}")
    flat = pictures(root)
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    if flat and folders:
        raise BookError(f"{root} has both images and sub-folders, so their classes are unclear: {HELP}")
    synsets = [p for p in folders if re.fullmatch(r"n[0-9]{8}", p.name)]
    if synsets and len(folders) != CLASSES:
        raise BookError(f"{root} has {len(synsets)} synset folders, not all {CLASSES:,}: {HELP}")
    if len(synsets) == CLASSES:
        found = [(file, c) for c, folder in enumerate(folders) for file in pictures(folder)]
    else:
        found = [(file, class_index(p.name, p)) for p in folders for file in pictures(p)]
        found += [(file, class_index(file.stem, file)) for file in flat]
    if not found:
        raise BookError(f"{root} (from {VARIABLE}) has no images: {HELP}")
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


def spread(found: list[tuple[Path, int]], limit: int) -> list[tuple[Path, int]]:
    """`limit` images: the first of each class, then the second, ...; a part round takes every k-th class."""
    rounds: dict[int, list[tuple[Path, int]]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for file, label in found:
        rounds[seen[label]].append((file, label))
        seen[label] += 1
    chosen: list[tuple[Path, int]] = []
    for members in rounds.values():
        room = min(limit - len(chosen), len(members))
        chosen += [members[k * len(members) // room] for k in range(room)]
    return chosen


def centre(picture: Image.Image) -> Image.Image:
    """The centre of a picture, after shrinking it to a short side of 256 pixels if it is larger."""
    short = min(picture.size)
    # Images too small for the crop are enlarged like any other; those between are cropped as they are.
    if not CROP <= short <= SHORT_SIDE:
        width, height = (round(side * SHORT_SIDE / short) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (picture.width - CROP) // 2, (picture.height - CROP) // 2
    return picture.crop((left, top, left + CROP, top + CROP))


def read_picture(path: Path) -> np.ndarray:
    """RGB, short side at most 256 pixels, centre 224 x 224: uint8 (224, 224, 3)."""
    with repairable(path, f"put an intact image in its place, or {HELP}"), Image.open(path) as opened:
        return np.asarray(centre(opened.convert("RGB")))


@dataclass(frozen=True)
class ImageFolder:
    """The folder in the environment variable, as a test split."""

    shape: tuple[int, int, int] = (CROP, CROP, 3)
    splits: tuple[str, ...] = ("test",)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(torchvision().models.ResNet50_Weights.DEFAULT.meta["categories"])

    @property
    def root(self) -> Path:
        chosen = os.environ.get(VARIABLE)
        if not chosen:
            raise BookError(f"imagenet: no folder given: {HELP}")
        return Path(chosen).expanduser()

    def files(self, split: str) -> list[Path]:
        return [self.root]

    def missing(self, split: str) -> bool:
        return not os.environ.get(VARIABLE)

    def check(self, split: str) -> str:
        found = scan(self.root)
        return f"{len(found):,} images of {len({label for _, label in found}):,} classes"

    def read(self, split: str, limit: int | None = None) -> Raw:
        """Read the images; the digest covers those within `limit`, for a folder may hold far more."""
        found = scan(self.root)
        chosen = spread(found, limit) if limit else found
        need = len(chosen) * CROP * CROP * 3 * 5  # bytes: uint8 once, float32 once
        if need > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
            raise BookError(f"imagenet: {len(chosen):,} images need {need >> 30} GiB of memory: give limit=")
        images = np.empty((len(chosen), *self.shape), dtype=np.uint8)
        for k, (file, _) in enumerate(chosen):
            images[k] = read_picture(file)
        labels = np.array([label for _, label in chosen], dtype=np.int64)
        note = f"{len(chosen):,} of {len(found):,} images, short side {SHORT_SIDE}, centre {CROP} x {CROP}"
        return Raw(images, labels, digest(images, labels), note)


@DATASETS.add("imagenet")
def imagenet() -> Source:
    """ImageNet validation images from the reader's folder (Russakovsky et al. 2015)."""
    return ImageFolder()
