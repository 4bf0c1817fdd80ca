"""Data sets by name: `x, y = load("mnist", "test")` gives tensors in [0, 1] with labels.

`crops` gives cups and glasses by filling level, with the container of each image beside its label.

`full` holds the sets that `robustbook data fetch` stores, `small` the real subset that ships with
the repository, `folder` the ImageNet-style folder of the reader. Nothing here downloads anything:
that is `fetch`, which `load` never reaches.
"""

from . import features, first, folder, full, small
from .core import DATASETS, Data, digest, load, names
from .crops import Crops, crops

__all__ = [
    "DATASETS",
    "Crops",
    "Data",
    "crops",
    "digest",
    "features",
    "first",
    "folder",
    "full",
    "load",
    "names",
    "small",
]
