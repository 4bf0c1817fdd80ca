"""Recipes of chapter `pruning`: networks with a hidden dense layer on Fashion-MNIST and CIFAR-10 (gap U17).

MNIST's network is `lenet5-mnist`, which has one already. Stochastic gradient descent with a triangular rate,
as for the book's other networks; on CIFAR-10 also shifted crops and mirrors.
"""

from typing import Any

from ..augmentations import augmented, crop_and_flip
from .recipes import RECIPES, Recipe


def _descent(**changes: Any) -> dict[str, Any]:
    """What all of them share."""
    shared = {
        "batch_size": 128,
        "optimizer": "sgd",
        "nesterov": True,
        "lr": 0.2,
        "weight_decay": 5e-4,
        "schedule": "triangular",
        "schedule_options": {"peak": 0.25},
        "clip_norm": 0.5,
        "channels_last": True,
    }
    return {**shared, **changes}


@RECIPES.add("dense-cnn-fashion-mnist")
def dense_cnn_fashion_mnist() -> Recipe:
    """Three convolutions and 128 hidden units on Fashion-MNIST."""
    return Recipe("dense-cnn", "fashion-mnist", _descent(epochs=6))


@RECIPES.add("dense-vgg8-cifar10")
def dense_vgg8_cifar10() -> Recipe:
    """`vgg8-cifar10` with a hidden layer of 256 units before the outputs."""
    fit = _descent(epochs=12, transform=augmented(crop_and_flip()))
    return Recipe("dense-vgg8", "cifar10", fit, {"width": 16})


def _tiny(dataset: str) -> Recipe:
    """Three convolutions of 4 and 8 channels and 40 hidden units, for a subset that ships with the book."""
    fit = _descent(epochs=3, batch_size=50, lr=0.1, channels_last=False)
    return Recipe("dense-cnn", dataset, fit, {"width": 4, "hidden": 40})


@RECIPES.add("dense-cnn-mnist-small")
def dense_cnn_mnist_small() -> Recipe:
    """A tiny network on the shipped part of MNIST: a second."""
    return _tiny("mnist-small")


@RECIPES.add("dense-cnn-fashion-mnist-small")
def dense_cnn_fashion_mnist_small() -> Recipe:
    """The same on the shipped part of Fashion-MNIST."""
    return _tiny("fashion-mnist-small")


@RECIPES.add("dense-cnn-cifar10-small")
def dense_cnn_cifar10_small() -> Recipe:
    """The same on the shipped part of CIFAR-10: not much accuracy."""
    return _tiny("cifar10-small")


@RECIPES.add("dense-cnn-mnist-paper")
def dense_cnn_mnist_paper() -> Recipe:
    """Three convolutions and 128 hidden units on MNIST, for a GPU."""
    return Recipe("dense-cnn", "mnist", _descent(epochs=30))


@RECIPES.add("dense-cnn-fashion-mnist-paper")
def dense_cnn_fashion_mnist_paper() -> Recipe:
    """The same on Fashion-MNIST, twice as wide."""
    return Recipe("dense-cnn", "fashion-mnist", _descent(epochs=30), {"width": 64, "hidden": 256})


@RECIPES.add("dense-vgg8-cifar10-paper")
def dense_vgg8_cifar10_paper() -> Recipe:
    """The network of CIFAR-10, four times as wide and with 512 hidden units, for a GPU."""
    fit = _descent(epochs=100, transform=augmented(crop_and_flip()))
    return Recipe("dense-vgg8", "cifar10", fit, {"width": 64, "hidden": 512})
