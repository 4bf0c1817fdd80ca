"""Make the subset that ships with the repository: `python -m robustbook.datasets.subset`.

Needs the full sets (`robustbook data fetch mnist fashion-mnist cifar10`). The choice is random
within each class, but seeded: a second run writes the same pictures. The digests it prints are
the constants in `small.py`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..storage import replacing, write_text
from .core import DATASETS, digest
from .small import COLUMNS, COUNTS, FOLDER, INDEX, PER_SHEET

SEED = 2022
SETS = ("mnist", "fashion-mnist", "cifar10")


def choose(labels: np.ndarray, count: int, classes: int, seed: int = SEED) -> np.ndarray:
    """`count` indices, equally many of each class, the classes taking turns (0, 1, ..., 0, 1, ...).

    They stay in the order drawn: the first half of the MNIST test split is easier than the second,
    and the first images of the subset must not be.
    """
    generator = np.random.default_rng(seed)
    each = count // classes
    picks = [generator.choice(np.flatnonzero(labels == c), each, replace=False) for c in range(classes)]
    return np.stack(picks, axis=1).reshape(-1)


def tile(images: np.ndarray) -> np.ndarray:
    """Images (N, H, W, C) side by side, `COLUMNS` in a row."""
    count, height, width, channels = images.shape
    grid = images.reshape(count // COLUMNS, COLUMNS, height, width, channels).swapaxes(1, 2)
    return grid.reshape(-1, COLUMNS * width, channels)


def write_sheet(path: Path, images: np.ndarray) -> None:
    """Save one sheet as a PNG, which keeps every pixel."""
    pixels = tile(images)
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    with replacing(path) as part:
        picture.save(part, format="PNG", optimize=True)


def make(name: str, split: str, folder: Path) -> dict[str, Any]:
    """Write the sheets of one split; return its entry in the index."""
    source = DATASETS[name]()
    raw = source.read(split, None)
    indices = choose(raw.labels, COUNTS[split], len(source.classes))
    images, labels = raw.images[indices], raw.labels[indices]
    sheets = []
    for k, start in enumerate(range(0, len(indices), PER_SHEET), start=1):
        sheets.append(f"{name}-{split}-{k}.png")
        write_sheet(folder / sheets[-1], images[start : start + PER_SHEET])
    return {
        "sheets": sheets,
        "labels": labels.tolist(),
        "indices": indices.tolist(),
        "sha256": digest(images, labels),
    }


def main(folder: Path = FOLDER, sets: Iterable[str] = SETS) -> dict[str, Any]:
    """Write all sheets and the index; print the digests."""
    index = {f"{name}-{split}": make(name, split, folder) for name in sets for split in COUNTS}
    lines = (f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in index.items())
    write_text(folder / INDEX, "{\n" + ",\n".join(lines) + "\n}\n")
    for key, entry in index.items():
        print(key, entry["sha256"])
    return index


if __name__ == "__main__":
    main()
