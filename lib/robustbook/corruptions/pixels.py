"""From bytes of clean images to bytes of corrupted ones, each with a seed of its own, always the same.

Whoever computes, at whatever time and in whatever portions, gets the same pixels: what `robustbook data
corrupt` writes and what is computed in passing are equal.
"""

import numpy as np
import torch
from torch import Tensor

from ..datasets.core import to_unit
from ..storage import sha256
from .catalogue import as_uint8
from .common import corrupt
from .mnist_c import corrupt_mnist

SEED = 0
"""Changing it gives other noise to every image of every corruption."""


def corrupt_bytes(images: np.ndarray, name: str, severity: int | None, seeds: np.ndarray) -> np.ndarray:
    """Corrupt images, uint8 (N, H, W, C), with one seed an image.

    Digits of 28 x 28 are corrupted as in MNIST-C and rounded; colour images as in CIFAR-10-C, or as in
    ImageNet-C if they are as large as there, and cut off. So are the published files.
    """
    x, chosen = to_unit(images), seeds.tolist()
    if images.shape[1:] == (28, 28, 1):
        changed = rounded(corrupt_mnist(x, name, severity, seeds=chosen))
    else:
        constants = "imagenet" if images.shape[1] >= 224 else "cifar10"
        changed = as_uint8(corrupt(x, name, severity or 0, constants=constants, seeds=chosen))
    return np.ascontiguousarray(changed.numpy().transpose(0, 2, 3, 1))


def rounded(x: Tensor) -> Tensor:
    """Images of [0, 1] in bytes, to the nearest grey level, of two equally near ones to the even one.

    Brightness moves every pixel of MNIST-C by half a level: it is single precision, not chance, that would
    decide there. What is half a level up to a thousandth is taken for it.
    """
    return (x.double() * 255 * 512).round().div(512).round().to(torch.uint8)


def image_seeds(data: str, split: str, name: str, severity: int | None, count: int) -> np.ndarray:
    """The seeds of the first `count` images: other ones for every split, corruption and severity."""
    key = sha256(f"{SEED}/{data}/{split}/{name}/{severity}".encode())
    return np.random.default_rng(int(key, 16)).integers(2**62, size=count)
