"""Images of containers with their filling level: `crops("rendered", count=1600, size=32)`.

Two doors. "rendered" draws them (a stand-in, it ships no files); "ccm" reads crops of the CORSMAL Containers
Manipulation data set from the reader's folder, named by `ROBUSTBOOK_CCM`: `<container>/<level>/<image>`, the
containers as in `CONTAINERS` (a space, a dash or an underscore between words), the levels `0`, `50`, `90` and
`unknown`. The images go through Pillow and are resized to a square, as in the thesis.
"""

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from ..errors import BookError, unknown
from ..rehearsal import rehearsing, shrink
from ..usage import note_data
from .checks import repairable
from .containers import CONTAINERS, LEVELS, unseen
from .core import digest, to_unit
from .folder import pictures
from .rendering import SIZE, rendered

VARIABLE = "ROBUSTBOOK_CCM"
HELP = f"set {VARIABLE} to a folder <container>/<level>/<image>, see the data card"
FOLDERS = tuple(level.removesuffix(" %") for level in LEVELS)
DOORS = ("rendered", "ccm")


@dataclass(frozen=True, eq=False)
class Crops:
    """Images `x` (N, 3, size, size) in [0, 1], levels `y` (N,) as places in LEVELS, containers by name."""

    x: Tensor
    y: Tensor
    containers: np.ndarray
    note: str

    def __len__(self) -> int:
        return len(self.y)

    def of(self, names: Sequence[str]) -> "Crops":
        """The images of these containers."""
        rows = torch.from_numpy(np.flatnonzero(np.isin(self.containers, list(names))))
        return Crops(self.x[rows], self.y[rows], self.containers[rows.numpy()], self.note)

    def parts(self, split: str) -> tuple["Crops", "Crops"]:
        """What trains and what is tested in split "S1", "S2" or "S3": no container is in both."""
        names = unseen(split)
        return self.of([name for name in CONTAINERS if name not in names]), self.of(names)


def crops(door: str, *, count: int, size: int, seed: int = 0) -> Crops:
    """About `count` images, as many of each container, from one of the two doors.

    Parameters
    ----------
    count
        For the folder: at most so many; 0 takes all. In a rehearsal there are eight.
    size
        Side of the images; rendered ones are drawn at 64 pixels and averaged or stretched to it.
    seed
        Of the rendered set; image k of a seed is the same whatever the count.
    """
    if door not in DOORS:
        raise unknown("door to the containers", door, DOORS)
    if size < 1 or count < 0 or (count < len(CONTAINERS) and not (door == "ccm" and count == 0)):
        raise BookError(
            f"count={count}, size={size}; give at least {len(CONTAINERS)} images of 1 pixel or more"
        )
    if rehearsing():
        count = shrink(count or len(CONTAINERS), len(CONTAINERS))
    absent = rehearsing() and not os.environ.get(VARIABLE)
    if door == "ccm" and not absent:
        images, labels, containers = read_folder(folder(), count, size)
        note = f"{len(labels):,} crops of C-CCM"
    else:
        images, labels, containers = drawn(count, seed)
        note = "rendered stand-in for C-CCM"
    note_data(f"containers/{door}", "synthetic" if door == "ccm" and absent else digest(images, labels))
    x = to_unit(images)
    if x.shape[2] > size:
        x = adaptive_avg_pool2d(x, size)
    elif x.shape[2] < size:
        x = interpolate(x, size=size, mode="bilinear").clamp_(0, 1)
    return Crops(x, torch.from_numpy(labels.astype(np.int64)), containers, note)


@functools.lru_cache(maxsize=2)
def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rendered images, labels and containers, kept for the next row of a table."""
    images, scenes = rendered(count, seed=seed, size=SIZE)
    labels = np.array([s.label for s in scenes])
    return images, labels, np.array([s.container.name for s in scenes])


def folder() -> Path:
    """The reader's folder."""
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        raise BookError(f"C-CCM: no folder given: {HELP}")
    return Path(chosen).expanduser()


def scan(root: Path) -> dict[str, list[tuple[Path, int]]]:
    """Every image below `root` with its level, by container."""
    if not root.is_dir():
        raise BookError(f"{root} (from {VARIABLE}) is not a folder: {HELP}")
    found: dict[str, list[tuple[Path, int]]] = {}
    for place in sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")):
        name = place.name.replace("-", " ").replace("_", " ")
        if name not in CONTAINERS:
            raise BookError(f"{place} is not named by a container ({', '.join(CONTAINERS)}): {HELP}")
        inner = sorted(p for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
        for level in inner:
            if level.name not in FOLDERS:
                raise BookError(f"{level} is not named by a level ({', '.join(FOLDERS)}): {HELP}")
        found[name] = [(file, FOLDERS.index(p.name)) for p in inner for file in pictures(p)]
    absent = [name for name in CONTAINERS if not found.get(name)]
    if absent:
        raise BookError(f"{root} (from {VARIABLE}) has no images of the {absent[0]}: {HELP}")
    return found


def read_folder(root: Path, count: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images (N, size, size, 3), labels and containers; with a count, evenly spread over each container."""
    chosen = []
    for name, files in scan(root).items():
        room = min(len(files), count // len(CONTAINERS)) if count else len(files)
        chosen += [(*files[k * len(files) // room], name) for k in range(room)]
    images = np.empty((len(chosen), size, size, 3), dtype=np.uint8)
    for k, (file, _, _) in enumerate(chosen):
        with repairable(file, f"put an intact image in its place, or {HELP}"), Image.open(file) as opened:
            images[k] = np.asarray(opened.convert("RGB").resize((size, size), Image.Resampling.BILINEAR))
    return images, np.array([level for _, level, _ in chosen]), np.array([name for *_, name in chosen])
