"""Which corrupted sets are on this machine, official ones and our own, for `robustbook data list`."""

from pathlib import Path

from ..datasets.inventory import Entry, shorten, size_of
from ..errors import BookError
from .layouts import FOLDERS, Array, arrays_of, official_folder, our_folder
from .stored import read_official, read_own


def corrupted_sets() -> list[Entry]:
    """A line for every split of every corrupted set of which there is a folder."""
    found = []
    for data in FOLDERS:
        for root in (official_folder(data), our_folder(data)):
            if root.is_dir():
                arrays = list(arrays_of(data, train=data == "mnist"))
                for split in dict.fromkeys(array.split for array in arrays):
                    some = [array for array in arrays if array.split == split]
                    found += describe(some, root, official=root == official_folder(data))
    return found


def describe(arrays: list[Array], root: Path, *, official: bool) -> list[Entry]:
    """Check the arrays of one split and say how they are; nothing if there is not one of them."""
    there = [array for array in arrays if array.images(root).exists()]
    if not there:
        return []
    kind = "official" if official else "our own"
    size = sum(size_of(array.images(root)) for array in there)
    name, split, stale = FOLDERS[arrays[0].data], arrays[0].split, 0
    try:
        for array in there:
            stale += (read_official if official else read_own)(array, root) is None
    except BookError as error:
        return [Entry(name, split, shorten(root), size, "damaged", str(error))]
    note = f"{kind}, {len(there)} of {len(arrays)} corruptions"
    if stale:
        note += f"; {stale} unfinished or of an older version: robustbook data corrupt {arrays[0].data}"
    return [Entry(name, split, shorten(root), size, "ok", note)]
