"""Checks that turn every way a file can be wrong into one line with its repair."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import BookError


def damaged(path: Path, reason: object, repair: str) -> BookError:
    """The error for a file that is there but cannot be used."""
    return BookError(f"{path} is damaged ({one_line(reason)}): {repair}")


def one_line(reason: object) -> str:
    """A reason as one short line; exceptions are named by their type."""
    text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:157] + "..."


@contextmanager
def repairable(path: Path, repair: str) -> Iterator[None]:
    """Whatever goes wrong while reading `path` becomes a BookError.

    A damaged file can make zipfile, NumPy, Pillow or json raise nearly anything (MemoryError for an
    altered header among them), so every exception is meant here.
    """
    try:
        yield
    except BookError:
        raise
    except FileNotFoundError:
        raise BookError(f"{path} is missing: {repair}") from None
    except IsADirectoryError:
        raise BookError(f"{path} is a folder, not a file: remove it, then {repair}") from None
    except Exception as error:
        raise damaged(path, error, repair) from None


def read_npz(path: Path, repair: str) -> tuple[np.ndarray, np.ndarray]:
    """The arrays `images` and `labels` of an npz archive, read without any unpickling."""
    with repairable(path, repair), path.open("rb") as file:
        if not file.read(1):
            raise damaged(path, "empty file", repair)
        if not zipfile.is_zipfile(file):
            raise damaged(path, "not an npz archive, or cut short", repair)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            absent = {"images", "labels"} - set(archive.files)
            if absent:
                raise damaged(path, f"no array '{min(absent)}' in it", repair)
            images, labels = archive["images"], archive["labels"]
    # A member without the .npy header comes back as plain bytes.
    if not isinstance(images, np.ndarray) or not isinstance(labels, np.ndarray):
        raise damaged(path, "a member is not an array", repair)
    return images, labels


def check_arrays(
    path: Path,
    repair: str,
    images: np.ndarray,
    labels: np.ndarray,
    shape: tuple[int, int, int],
    classes: int,
    count: int,
) -> None:
    """Refuse arrays of another type, shape or length, and labels that are no class."""
    if images.dtype != np.uint8:
        raise damaged(path, f"images are {images.dtype}, not uint8", repair)
    if labels.dtype not in (np.uint8, np.int64):
        raise damaged(path, f"labels are {labels.dtype}, not uint8 or int64", repair)
    if images.shape[1:] != shape or images.ndim != 4:
        raise damaged(path, f"images of shape {images.shape}, not (N, {', '.join(map(str, shape))})", repair)
    if labels.shape != images.shape[:1]:
        raise damaged(path, f"{len(images)} images but labels of shape {labels.shape}", repair)
    if len(images) != count:
        raise damaged(path, f"{len(images)} images, not {count}", repair)
    if labels.min() < 0 or labels.max() >= classes:
        raise damaged(path, f"labels from {labels.min()} to {labels.max()}, not 0 to {classes - 1}", repair)
