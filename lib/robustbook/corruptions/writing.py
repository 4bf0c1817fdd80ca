"""Write corrupted data sets in their public layouts: what `robustbook data corrupt` does.

Portions of a thousand images are computed by processes of their own; this one puts them into the file that is
being written. A file takes its place when it is complete, its record after it: a killed run leaves nothing
that could be taken for a finished array, and the same command goes on where it stopped.
"""

import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
from tqdm import tqdm

from ..datasets.checks import one_line
from ..datasets.core import Raw
from ..errors import BookError
from ..provenance import today
from ..storage import data_folder, locked, replacing, sha256, write_json
from ..threads import one_thread
from .layouts import FOLDERS, Array, arrays_of, official_folder, open_images, open_labels, our_folder
from .pixels import SEED, corrupt_bytes, image_seeds
from .stored import read_record

PORTION = 1_000
MB = 1_000_000


def write(
    data: str, *, only: tuple[str, ...] = (), train: bool = False, jobs: int = 2, progress: bool = True
) -> str:
    """Write the arrays of a corrupted set that are not there yet; say in one line what was done.

    Parameters
    ----------
    data
        The clean data set: "cifar10", "cifar100" or "mnist".
    only
        Names of corruptions; all if none is given.
    train
        MNIST-C: the 60,000 training images as well.
    jobs
        Processes that compute.
    """
    arrays = list(arrays_of(data, only=only, train=train))
    root = our_folder(data)
    try:
        with locked(root):
            done = _write_locked(arrays, root, jobs, progress)
    except OSError as error:
        reason = one_line(error)
        raise BookError(f"{data_folder()} cannot be written ({reason}): set ROBUSTBOOK_DATA") from None
    told = f"{data}: {done} arrays written, {len(arrays) - done} were there and intact, in {root}"
    if official_folder(data).is_dir():
        told += f"; the official ones in {official_folder(data)} are used instead"
    return told


def _write_locked(arrays: list[Array], root: Path, jobs: int, progress: bool) -> int:
    """What `write` does once no other process is writing the same set."""
    clean = {split: arrays[0].source.read(split) for split in {array.split for array in arrays}}
    for left in root.rglob(".*.part"):  # by a killed process
        left.unlink(missing_ok=True)
    todo = [array for array in arrays if not intact(array, root, clean[array.split])]
    if not todo:
        return 0
    need = sum(int(np.prod(array.shape)) for array in todo)
    root.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(root).free < need + 100 * MB:
        raise BookError(f"{root} has too little room ({need // MB} MB needed): set ROBUSTBOOK_DATA")
    portions = computed(todo, clean, jobs)
    total = sum(array.shape[0] for array in todo)
    with tqdm(total=total, disable=None if progress else True, unit="image", dynamic_ncols=True) as bar:
        for array in todo:
            bar.set_description_str(array.name)
            write_labels(array, root, clean[array.split].labels)
            write_array(array, root, clean[array.split], portions, bar)
    return len(todo)


def intact(array: Array, root: Path, clean: Raw) -> bool:
    """Is the array there, made by the present code from these images, and as it was written?"""
    try:
        record = read_record(array, root)
        if not record or not record.items() >= made_by(array, clean).items():
            return False
        labels = open_labels(array, root, "")
        images = open_images(array, root, "")
    except BookError:
        return False
    return np.array_equal(labels, clean.labels) and sha256(images.reshape(-1).data) == record["sha256"]


def made_by(array: Array, clean: Raw) -> dict[str, object]:
    """What decides the pixels of an array, for its record."""
    return {
        "fingerprint": array.fingerprint(),
        "seed": SEED,
        "constants": "MNIST-C" if array.data == "mnist" else "CIFAR-10-C",
        "clean images": {"data": array.data, "split": array.split, "sha256": clean.checksum},
        "severities": list(array.severities),
    }


def computed(todo: list[Array], clean: dict[str, Raw], jobs: int) -> Iterator[np.ndarray]:
    """All portions of all arrays, in order, each computed with one thread."""
    tasks = (joblib.delayed(portion)(*task) for task in _tasks(todo, clean))
    if jobs == 1:
        return (function(*arguments) for function, arguments, _ in tasks)
    with joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        return joblib.Parallel(return_as="generator", batch_size=1, pre_dispatch="3*n_jobs")(tasks)


def _tasks(
    todo: list[Array], clean: dict[str, Raw]
) -> Iterator[tuple[np.ndarray, str, int | None, np.ndarray]]:
    for array in todo:
        images = clean[array.split].images
        for severity in array.severities:
            seeds = image_seeds(array.data, array.split, array.name, severity, len(images))
            for start in range(0, len(images), PORTION):
                part = slice(start, start + PORTION)
                yield images[part], array.name, severity, seeds[part]


def portion(images: np.ndarray, name: str, severity: int | None, seeds: np.ndarray) -> np.ndarray:
    """Corrupt a few images; runs in a process of its own."""
    with one_thread():
        return corrupt_bytes(images, name, severity, seeds)


def write_labels(array: Array, root: Path, labels: np.ndarray) -> None:
    """Write the labels, once for each severity in the array; with the type they have in the public files."""
    kind = np.int64 if array.data == "mnist" else np.uint8
    with replacing(array.labels(root)) as part, part.open("wb") as file:
        np.save(file, np.tile(labels.astype(kind), len(array.severities)))


def write_array(array: Array, root: Path, clean: Raw, portions: Iterator[np.ndarray], bar: tqdm) -> None:
    """Write the images portion by portion, then what there is to say about them."""
    with replacing(array.images(root)) as part:
        file = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=array.shape)
        filled = 0
        while filled < len(file):
            found = next(portions)
            file[filled : filled + len(found)] = found
            filled += len(found)
            bar.update(len(found))
        file.flush()
        digest = sha256(file.reshape(-1).data)
    record = {
        "by": f"robustbook {version('robustbook')}, data corrupt; these are not the official files",
        "layout": FOLDERS[array.data],
        "date": today(),
        "sha256": digest,
        **made_by(array, clean),
    }
    if array.name == "frost":
        record["frost"] = "textures drawn by rule in place of the published photographs"
    write_json(array.record(root), record)
