"""Corrupted images by name: from official files, else from stored ones of our own, else computed now."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..datasets.checks import damaged, repairable
from ..datasets.core import DATASETS, load, to_unit
from ..errors import BookError, unknown
from ..rehearsal import SAMPLES, rehearsing, shrink
from ..storage import sha256
from ..threads import one_thread
from ..usage import note_data
from .catalogue import COMMON
from .layouts import FOLDERS, Array, official_folder, open_images, open_labels, our_folder
from .mnist_c import SEVERITIES, check_severity, default_severity
from .pixels import corrupt_bytes, image_seeds

COMPUTED = "computed now"
OWN = "stored by robustbook data corrupt"

_digests: dict[tuple[Path, int, int], str] = {}  # files already read in this process


@dataclass(frozen=True, eq=False)
class Corrupted:
    """Corrupted images: `x` float32 in [0, 1], (N, C, H, W), `y` int64. `x, y = corrupted(...)` unpacks.

    `source` says where the pixels come from, `checksum` is the SHA-256 of the file they were read from, or of
    the clean images they were computed from.
    """

    x: torch.Tensor = field(repr=False)
    y: torch.Tensor = field(repr=False)
    data: str
    split: str
    name: str
    severity: int | None
    source: str
    checksum: str

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter((self.x, self.y))

    def __len__(self) -> int:
        return len(self.y)


def corrupted(
    data: str, name: str, severity: int | None = None, *, split: str = "test", limit: int | None = None
) -> Corrupted:
    """The images of a data set under a corruption.

    Files are used where the public set has them: CIFAR-10-C and CIFAR-100-C at severities 1 to 5, MNIST-C at
    its own severities. All else, and all of the shipped subsets, is computed, always with the same pixels.

    Parameters
    ----------
    data
        A name of `datasets.load`. 28 x 28 grey images are corrupted as MNIST-C, colour images as CIFAR-10-C.
    name
        Public name of the corruption.
    severity
        1 to 5; None for MNIST-C's own.
    limit
        Keep only the first `limit` images.
    """
    severity = _severity(data, name, severity)
    _check_limit(limit)
    if rehearsing():
        limit = shrink(limit or SAMPLES)
    array = _stored_array(data, name, severity, split)
    if array:
        for root, read in ((official_folder(data), read_official), (our_folder(data), read_own)):
            found = read(array, root)
            if found:
                return _cut(array, severity, limit, *found)
    return _compute(data, name, severity, split, limit)


def _check_limit(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise BookError(f"limit={limit!r}: give a whole number of images, 1 or more, or None")


def _severity(data: str, name: str, severity: int | None) -> int | None:
    """The severity as a number, if there is one; BookError for a corruption that these images do not have."""
    if DATASETS[data]().shape == (28, 28, 1):
        return check_severity(name, severity)
    if name not in COMMON:
        raise unknown("corruption", name, COMMON)
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise BookError(f"severity={severity!r} of {name}: give 1, 2, 3, 4 or 5")
    return severity


def _stored_array(data: str, name: str, severity: int | None, split: str) -> Array | None:
    """The array of the public set that holds these images, if it has them."""
    if data == "mnist" and split in ("train", "test") and severity == default_severity(name):
        return Array(data, name, split, (severity,))
    if data in FOLDERS and data != "mnist" and split == "test":
        return Array(data, name, split, SEVERITIES)
    return None


Found = tuple[np.ndarray, np.ndarray, str, str]


def read_official(array: Array, root: Path) -> Found | None:
    """Images, labels, source and checksum of official files."""
    if not root.is_dir():
        return None
    repair = f"unpack the official archive again, or remove {root} and let the images be computed"
    images, labels = open_images(array, root, repair), open_labels(array, root, repair)
    return images, labels, f"official {FOLDERS[array.data]}", digest_once(array.images(root), images)


def read_own(array: Array, root: Path) -> Found | None:
    """The same of our own; None if there are none, or if they are not those of the present code."""
    record = read_record(array, root)
    if not record or record["fingerprint"] != array.fingerprint() or not array.images(root).exists():
        return None
    images, labels = open_images(array, root, array.repair), open_labels(array, root, array.repair)
    digest = digest_once(array.images(root), images)
    if digest != record["sha256"]:
        reason = f"SHA-256 {digest[:12]}..., not {record['sha256'][:12]}..."
        raise damaged(array.images(root), reason, array.repair)
    return images, labels, OWN, digest


def read_record(array: Array, root: Path) -> dict[str, Any] | None:
    """What the JSON file beside an array of our own says; None if there is none."""
    path = array.record(root)
    if not path.exists():
        return None
    with repairable(path, array.repair):
        record = json.loads(path.read_text(encoding="utf8"))
    if not isinstance(record, dict) or not {"fingerprint", "sha256"} <= record.keys():
        raise damaged(path, "no fingerprint and SHA-256 in it", array.repair)
    return record


def digest_once(path: Path, images: np.ndarray) -> str:
    """SHA-256 of an array's bytes, computed once a process while the file stays the same."""
    status = path.stat()
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _digests:
        _digests[key] = sha256(np.ascontiguousarray(images).reshape(-1).data)
    return _digests[key]


def _cut(
    array: Array,
    severity: int | None,
    limit: int | None,
    images: np.ndarray,
    labels: np.ndarray,
    source: str,
    checksum: str,
) -> Corrupted:
    """The wanted part of a stored array, as tensors."""
    note_data(f"{FOLDERS[array.data]}/{array.name}/{array.split}", f"{source}: {checksum}")
    return Corrupted(
        x=to_unit(np.array(images[array.block(severity)][:limit])),
        y=torch.from_numpy(labels[:limit]),
        data=array.data,
        split=array.split,
        name=array.name,
        severity=severity,
        source=source,
        checksum=checksum,
    )


def _compute(data: str, name: str, severity: int | None, split: str, limit: int | None) -> Corrupted:
    clean = load(data, split, limit=limit)
    seeds = image_seeds(data, split, name, severity, len(clean))
    images = (clean.x * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    with one_thread():
        changed = corrupt_bytes(images, name, severity, seeds)
    return Corrupted(
        x=to_unit(changed),
        y=clean.y,
        data=data,
        split=split,
        name=name,
        severity=severity,
        source=COMPUTED,
        checksum=clean.checksum,
    )
