"""Weights in the format of TensorFlow.js, and ResNet-50 of Keras turned into torchvision's.

Keras stores kernels as (height, width, in, out), its convolutions have biases, and its first layer takes
BGR images. torchvision's have none of the three, and another epsilon in batch normalisation.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

KERAS_EPSILON, TORCH_EPSILON = 1e-3, 1e-5
BLOCKS = (3, 4, 6, 3)  # of the four stages of ResNet-50

Arrays = dict[str, np.ndarray]


def shard_names(model: bytes) -> list[str]:
    """The binary files that a `model.json` names, in order."""
    return [path for group in json.loads(model)["weightsManifest"] for path in group["paths"]]


def read_tfjs(model: bytes, shards: Mapping[str, bytes]) -> Arrays:
    """The arrays of a TensorFlow.js model by name: `model` is its `model.json`, `shards` its binary files.

    The files of a group are one run of bytes cut anywhere, in which the arrays lie one after the other.
    """
    arrays: Arrays = {}
    for group in json.loads(model)["weightsManifest"]:
        raw = b"".join(shards[path] for path in group["paths"])
        start = 0
        for entry in group["weights"]:
            stop = start + 4 * math.prod(entry["shape"])
            arrays[entry["name"]] = _array(entry, raw[start:stop])
            start = stop
        if start != len(raw):
            raise ValueError(f"{len(raw)} bytes of weights, not {start}")
    return arrays


def _array(entry: Mapping[str, Any], raw: bytes) -> np.ndarray:
    if entry["dtype"] != "float32" or "quantization" in entry:
        raise ValueError(f"weights '{entry['name']}' are not plain float32")
    if len(raw) != 4 * math.prod(entry["shape"]):
        raise ValueError(f"weights '{entry['name']}' are cut short")
    return np.frombuffer(raw, dtype="<f4").reshape(entry["shape"])


def resnet_layers(blocks: Sequence[int]) -> Iterator[tuple[str, str, str, str]]:
    """Names of convolution and batch normalisation: torchvision's two, then Keras's two."""
    yield "conv1", "bn1", "conv1", "bn_conv1"
    for stage, count in enumerate(blocks, start=1):
        for k in range(count):
            here, there = f"layer{stage}.{k}", f"{stage + 1}{chr(ord('a') + k)}_branch"
            for number, letter in enumerate("abc", start=1):
                keras = f"{there}2{letter}"
                yield f"{here}.conv{number}", f"{here}.bn{number}", f"res{keras}", f"bn{keras}"
            if k == 0:
                yield f"{here}.downsample.0", f"{here}.downsample.1", f"res{there}1", f"bn{there}1"


def convolution_of(kernel: np.ndarray) -> np.ndarray:
    """(height, width, in, out) -> (out, in, height, width)."""
    return kernel.transpose(3, 2, 0, 1)


def normalisation_of(arrays: Arrays, convolution: str, normalisation: str) -> Arrays:
    """Batch normalisation for torch, which also does the work of the convolution's bias.

    g (c + b - m) / sqrt(v + e) + h = g (c - (m - b)) / sqrt((v + e - e') + e') + h, in double precision so
    that every machine rounds to the same weights.
    """
    mean = arrays[f"{normalisation}/moving_mean"].astype(np.float64) - arrays[f"{convolution}/bias"]
    variance = arrays[f"{normalisation}/moving_variance"].astype(np.float64)
    return {
        "weight": arrays[f"{normalisation}/gamma"],
        "bias": arrays[f"{normalisation}/beta"],
        "running_mean": mean,
        "running_var": variance + (KERAS_EPSILON - TORCH_EPSILON),
    }


def resnet_from_keras(arrays: Arrays, blocks: Sequence[int] = BLOCKS) -> dict[str, Tensor]:
    """The state dict for torchvision's ResNet with bottlenecks, from the arrays of Keras's."""
    state: Arrays = {}
    for convolution, normalisation, from_convolution, from_normalisation in resnet_layers(blocks):
        state[f"{convolution}.weight"] = convolution_of(arrays[f"{from_convolution}/kernel"])
        folded = normalisation_of(arrays, from_convolution, from_normalisation)
        state |= {f"{normalisation}.{name}": array for name, array in folded.items()}
    state["conv1.weight"] = state["conv1.weight"][:, ::-1]  # BGR -> RGB
    state["fc.weight"] = arrays["fc1000/kernel"].T
    state["fc.bias"] = arrays["fc1000/bias"]
    return {name: torch.from_numpy(np.array(array, dtype=np.float32)) for name, array in state.items()}
