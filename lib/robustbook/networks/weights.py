"""Weights that others trained: one file a network in the data folder, checked before it is used.

`<name>.safetensors` is what `robustbook data fetch <name>` makes. Its SHA-256, over names, shapes and
values of the tensors, is a constant in `imagenet` or, for weights that torchvision has verified, was
written beside the file (`<name>.json`) when they were fetched.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from ..datasets.checks import damaged, repairable
from ..storage import data_folder, sha256
from .layers import Normalise, Statistic

State = dict[str, Tensor]


def digest(state: Mapping[str, Tensor]) -> str:
    """SHA-256 of the tensors by name, so that equal digests mean equal weights whatever file holds them."""
    parts: list[bytes | memoryview] = []
    for name in sorted(state):
        array = state[name].detach().contiguous().numpy()
        parts += [f"{name} {array.dtype.str} {array.shape}\n".encode(), array.reshape(-1).data]
    return sha256(*parts)


def without_counters(state: Mapping[str, Tensor]) -> State:
    """The state without the step counters of batch normalisation, which no output depends on."""
    return {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}


@dataclass(frozen=True)
class Pretrained:
    """A network with published weights.

    `build` makes it with weights of its own; `mean` and `std` are those its weights were trained with.
    Without `digest` the one recorded beside the file counts. `file` is the name of a state dict that
    the reader puts into the data folder, for weights that cannot be fetched.
    """

    name: str
    build: Callable[[], nn.Module]
    mean: Statistic
    std: Statistic
    digest: str = ""
    file: str = ""
    splits: tuple[str, ...] = ("weights",)  # as a data set has them, for the list of what is there

    @property
    def path(self) -> Path:
        return data_folder() / (self.file or f"{self.name}.safetensors")

    @property
    def record(self) -> Path:
        """The JSON file beside weights whose digest is no constant."""
        return self.path.with_suffix(".json")

    @property
    def repair(self) -> str:
        if self.file:
            return f"put the {self.file} of the data card into {data_folder()}"
        return f"run `robustbook data fetch {self.name}`"

    def files(self, split: str = "weights") -> list[Path]:
        return [self.path]

    def missing(self, split: str = "weights") -> bool:
        return not self.path.exists()

    def expected(self) -> str:
        """The digest the weights must have."""
        if self.digest:
            return self.digest
        with repairable(self.record, self.repair):
            found = json.loads(self.record.read_text(encoding="utf8"))["sha256"]
        if not isinstance(found, str) or len(found) != 64:
            raise damaged(self.record, "no SHA-256 in it", self.repair)
        return found

    def read(self) -> tuple[State, str]:
        """The weights and their digest; a BookError unless they are there and as they must be."""
        with repairable(self.path, self.repair):
            if self.path.suffix == ".safetensors":
                state = safetensors.torch.load(self.path.read_bytes())
            else:
                state = torch.load(self.path, map_location="cpu", weights_only=True)
            found = digest(state)
        expected = self.expected()
        if found != expected:
            raise damaged(self.path, f"SHA-256 {found[:12]}..., not {expected[:12]}...", self.repair)
        return state, found

    def check(self, split: str = "weights") -> str:
        """Raise a BookError unless the weights are there and intact; else say how many there are."""
        state, _ = self.read()
        return f"{sum(value.numel() for value in state.values()):,} numbers in {len(state)} tensors"

    def network(self) -> nn.Sequential:
        """The network behind its normalisation, for images in [0, 1], without the published weights."""
        parts = nn.Sequential()
        parts.add_module("normalise", Normalise(self.mean, self.std))
        parts.add_module("network", self.build())
        return parts
