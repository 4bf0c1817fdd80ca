"""What is on this machine: one line for every split of every data set."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import BookError
from .clients import folder_bytes
from .core import DATASETS, Source, names


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
    """What brings a missing set."""
    return "set ROBUSTBOOK_IMAGENET" if name == "imagenet" else f"robustbook data fetch {name}"


def inventory() -> list[Entry]:
    """Every split of every data set, checked."""
    sources = {name: DATASETS[name]() for name in names()}
    return [describe(name, split, source) for name, source in sources.items() for split in source.splits]
