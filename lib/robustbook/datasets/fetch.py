"""Get the full data sets: torchvision's download first, else packages through the machine's clients.

Only `robustbook data fetch` calls this. `load` never does, so a change here makes no result stale.
Work in progress lives in `<data folder>/.partial/<name>` until the data is complete and checked.
"""

import shutil
from datetime import date
from pathlib import Path

import numpy as np

from ..errors import BookError, unknown
from ..storage import data_folder, locked, replacing, write_json
from . import clients
from .checks import check_arrays, one_line
from .core import DATASETS, digest
from .first import First
from .folder import HELP
from .full import SVHN_10000, Stored
from .small import Sheets
from .ways import BY_HAND, MB, WAYS, Way


def stored(name: str) -> Stored:
    """The description of a set that can be fetched; a BookError for every other name."""
    source = SVHN_10000 if name == "svhn-10000" else DATASETS[name]()
    if isinstance(source, First):
        source = source.whole
    if isinstance(source, Stored):
        return source
    if isinstance(source, Sheets):
        raise BookError(f"{name} ships with the repository: there is nothing to fetch")
    raise BookError(f"{name} cannot be fetched: {HELP}")


def intact(source: Stored, split: str) -> bool:
    """Is the split there, and as it must be?"""
    try:
        source.check(split)
    except BookError:
        return False
    return True


def fetch(name: str, *, progress: bool = True) -> str:
    """Bring a data set into the data folder unless it is there; say in one line what was done."""
    if name not in DATASETS:
        raise unknown("data set", name, [*DATASETS, "all"])
    source = stored(name)
    partial = data_folder() / ".partial" / name
    try:
        with locked(partial):
            return fetch_locked(source, partial, progress)
    except OSError as error:
        reason = one_line(error)
        raise BookError(f"{data_folder()} cannot be written ({reason}): set ROBUSTBOOK_DATA") from None


def fetch_locked(source: Stored, partial: Path, progress: bool) -> str:
    """What `fetch` does once no other process is fetching the same set."""
    todo = [split for split in source.splits if not intact(source, split)]
    if not todo:
        return f"{source.name}: already there and intact in {data_folder()}"
    for split in todo:
        if source.path(split).is_dir():
            raise BookError(f"{source.path(split)} is a folder, not a file: remove it and try again")
        for left in data_folder().glob(f".{source.path(split).name}.*.part"):  # by a killed process
            left.unlink(missing_ok=True)
    failures = []
    for way in WAYS[source.name]:
        folder = partial / way.label.replace(" ", "-")
        try:
            follow(way, source, folder, todo, progress)
        except BookError:
            raise
        except Exception as error:
            failures.append(f"{way.label}: {one_line(error)}")
        else:
            shutil.rmtree(partial, ignore_errors=True)
            return f"{source.name}: fetched through {way.label} into {data_folder()}"
    raise BookError(
        f"{source.name} could not be fetched ({'; '.join(failures)}): {hand(source.name, partial)}"
    )


def hand(name: str, partial: Path) -> str:
    """Where to put the published files by hand."""
    files, below = BY_HAND[name]
    return f"put {files} into {partial / 'torchvision' / below} and run `robustbook data fetch {name}` again"


def follow(way: Way, source: Stored, folder: Path, todo: list[str], progress: bool) -> None:
    """Download and store the splits in one way; a download that proves wrong is thrown away."""
    folder.mkdir(parents=True, exist_ok=True)
    check_space(source, way, folder)
    with clients.watched(folder, way.size, source.name, progress):
        way.download(folder)
    try:
        for split in todo:
            store(source, split, *way.read(folder, split), way.label)
    except BookError:  # no room to write: the download is good
        raise
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_space(source: Stored, way: Way, folder: Path) -> None:
    """Refuse to begin without room for the download, its unpacked files and the stored arrays."""
    arrays = sum(source.counts.values()) * (int(np.prod(source.shape)) + 1)
    need, free = way.size + 2 * arrays, shutil.disk_usage(folder).free
    if free < need:
        room = f"{need // MB} MB needed, {free // MB} MB free"
        raise BookError(
            f"{data_folder()} has too little room for {source.name} ({room}): set ROBUSTBOOK_DATA"
        )


def store(source: Stored, split: str, images: np.ndarray, labels: np.ndarray, origin: str) -> None:
    """Check the arrays, write them in one step, and keep their digest where the code has none."""
    images, labels = np.ascontiguousarray(images), np.asarray(labels).astype(np.uint8)
    path = source.path(split)
    try:
        check_arrays(path, "", images, labels, source.shape, len(source.classes), source.counts[split])
    except BookError as error:
        raise ValueError(f"what arrived for {split} is wrong: {error}") from None
    found = digest(images, labels)
    if found != source.digests.get(split, found):
        raise ValueError(
            f"what arrived for {split} has SHA-256 {found[:12]}..., not {source.digests[split][:12]}..."
        )
    try:
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, images=images, labels=labels)
    except OSError as error:
        reason = one_line(error)
        raise BookError(f"{path} cannot be written ({reason}): make room or set ROBUSTBOOK_DATA") from None
    if split not in source.digests:
        write_json(source.record(split), {"sha256": found, "from": origin, "date": date.today().isoformat()})
