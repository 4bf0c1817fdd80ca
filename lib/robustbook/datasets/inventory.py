"""What is on this machine: one line for every split of every data set and for every pretrained network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import BookError
from ..networks import PRETRAINED
from .clients import folder_bytes
from .core import DATASETS, names


class Source(Protocol):
    """What data sets and pretrained networks have in common."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are; a network has one, its weights."""

    def files(self, split: str) -> list[Path]:
        """The files that hold a split, or the folder of the reader's own."""

    def missing(self, split: str) -> bool:
        """Is there nothing at all? (A damaged file is not missing.)"""

    def check(self, split: str) -> str:
        """Raise a BookError unless the split is there and intact; else say what is there."""


@dataclass(frozen=True)
class Entry:
    """The state of one split: `ok`, `missing` or `damaged`."""

    name: str
    split: str
    where: str
    size: int  # bytes
    state: str
    note: str


def shorten(path: Path) -> str:
    """A path seen from here, or with the home folder as `~`."""
    here, home = Path.cwd(), Path.home()
    if path.is_relative_to(here):
        return str(path.relative_to(here))
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 if it is not there."""
    return path.stat().st_size if path.is_file() else folder_bytes(path)


def describe(name: str, split: str, source: Source) -> Entry:
    """Check one split and say how it is."""
    if source.missing(split):
        return Entry(name, split, "", 0, "missing", remedy(name))
    files = source.files(split)
    where, size = shorten(files[0]), sum(map(size_of, files))
    try:
        return Entry(name, split, where, size, "ok", source.check(split))
    except BookError as error:
        return Entry(name, split, where, size, "damaged", str(error))


def remedy(name: str) -> str:
    """What brings a missing set or network."""
    if name == "imagenet":
        return "set ROBUSTBOOK_IMAGENET"
    if name in PRETRAINED and (file := PRETRAINED[name]().file):
        return f"your own {file}, see the data card"
    return f"robustbook data fetch {name}"


def inventory() -> list[Entry]:
    """Every split of every data set, then every pretrained network, checked."""
    sources: dict[str, Source] = {name: DATASETS[name]() for name in names()}
    sources |= {name: PRETRAINED[name]() for name in sorted(PRETRAINED)}
    return [describe(name, split, source) for name, source in sources.items() for split in source.splits]
