"""Recipes of chapter `cotraining`: one network trained three ways (general framework, 2021 appendix A.1).

The setting `method` is "none", "hein" (cross-Lipschitz) or "cotraining", and `weight` is lambda of the
method. Adam at 1e-3 on batches of 32, for the second half of the epochs at 1e-4, for f and g alike.
"""

import math
from typing import Any

from ..augmentations import augmented, crop_and_flip
from ..defenses.cotraining import Transform, cotraining, cotraining_loss
from ..defenses.cross_lipschitz import cross_lipschitz_loss
from ..errors import BookError, unknown
from .recipes import RECIPES, Recipe

METHODS = ("none", "hein", "cotraining")
HALF = ((0.5, 0.1),)
LONG = ((0.4, 0.1), (0.6, 0.01), (0.8, 0.0005))
"""When the rate drops, as a part of all steps, and to which part of it: 10 epochs, and CIFAR-10's 200."""


def method_fit(
    method: str,
    weight: float,
    *,
    images: int,
    epochs: int,
    batch_size: int = 32,
    lr: float = 1e-3,
    drops: tuple[tuple[float, float], ...] = HALF,
    generator: int = 128,
    projections: int = 1,
    first: Transform | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Settings of `fit`; `images` are all training images, a tenth of which is held out.

    `generator` is the width of g, `projections` the random directions of the cross-Lipschitz estimate (0: the
    exact penalty), `first` an augmentation.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method == "none" and weight:
        raise BookError(f"weight={weight!r} without a method; give method='hein' or 'cotraining'")
    at, factors = zip(*drops)
    fit: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "schedule": "drops",
        "schedule_options": {"at": at, "factors": factors},
        "channels_last": True,
    }
    if first is not None:
        fit["transform"] = first
    if method == "hein":
        fit["loss"] = cross_lipschitz_loss(weight, projections=projections)
    if method == "cotraining":
        total = epochs * math.ceil((images - round(images / 10)) / batch_size)
        rates = ((0, lr), *((math.ceil(part * total), factor * lr) for part, factor in drops))
        fit["transform"] = cotraining(width=generator, rates=rates, first=first)
        fit["loss"] = cotraining_loss(weight)
    return {**fit, **changes}


REDUCED = {"width": 32, "blocks": 2}
"""The reduced f of gap U1: two convolutions of 32 channels instead of three of 128."""


def _reduced(dataset: str, method: str, weight: float) -> Recipe:
    """Five epochs of 20,000 images, g with 16 channels."""
    fit = method_fit(method, weight, images=20_000, epochs=5, generator=16)
    return Recipe("framework-cnn", dataset, fit, REDUCED)


@RECIPES.add("framework-cnn-mnist")
def framework_cnn_mnist(method: str = "none", weight: float = 0.0) -> Recipe:
    """The reduced f on 20,000 images of MNIST."""
    return _reduced("mnist-20000", method, weight)


@RECIPES.add("framework-cnn-fashion-mnist")
def framework_cnn_fashion_mnist(method: str = "none", weight: float = 0.0) -> Recipe:
    """The reduced f on 20,000 images of Fashion-MNIST."""
    return _reduced("fashion-mnist-20000", method, weight)


@RECIPES.add("framework-cnn-svhn")
def framework_cnn_svhn(method: str = "none", weight: float = 0.0) -> Recipe:
    """The reduced f on the 8,000 training images of the stand-in for SVHN."""
    fit = method_fit(method, weight, images=8_000, epochs=10, generator=16)
    return Recipe("framework-cnn", "svhn-10000", fit, REDUCED)


@RECIPES.add("resnet20-cifar10-framework")
def resnet20_cifar10_framework(method: str = "none", weight: float = 0.0) -> Recipe:
    """ResNet-20 half as wide on 20,000 images of CIFAR-10, shifted and mirrored."""
    first = augmented(crop_and_flip())
    fit = method_fit(method, weight, images=20_000, epochs=10, drops=LONG, generator=16, first=first)
    return Recipe("resnet20", "cifar10-20000", fit, {"width": 8})


@RECIPES.add("framework-cnn-mnist-full")
def framework_cnn_mnist_full() -> Recipe:
    """The reduced f on all of MNIST for the paper's ten epochs, without a regulariser."""
    return Recipe("framework-cnn", "mnist", method_fit("none", 0.0, images=60_000, epochs=10), REDUCED)


@RECIPES.add("framework-cnn-fashion-mnist-full")
def framework_cnn_fashion_mnist_full() -> Recipe:
    """The same on Fashion-MNIST."""
    return Recipe(
        "framework-cnn", "fashion-mnist", method_fit("none", 0.0, images=60_000, epochs=10), REDUCED
    )


def _tiny(dataset: str, method: str, weight: float) -> Recipe:
    """Forty steps with small networks on a subset that ships with the book: for `smoke`."""
    small: dict[str, Any] = {"batch_size": 25, "lr": 3e-3, "channels_last": False, "generator": 4}
    fit = method_fit(method, weight, images=2_000, epochs=1, max_steps=40, **small)
    return Recipe("framework-cnn", dataset, fit, {"width": 8, "blocks": 2, "hidden": 64})


@RECIPES.add("framework-cnn-mnist-small")
def framework_cnn_mnist_small(method: str = "none", weight: float = 0.0) -> Recipe:
    """A small f on the shipped part of MNIST."""
    return _tiny("mnist-small", method, weight)


@RECIPES.add("framework-cnn-fashion-mnist-small")
def framework_cnn_fashion_mnist_small(method: str = "none", weight: float = 0.0) -> Recipe:
    """The same on the shipped part of Fashion-MNIST."""
    return _tiny("fashion-mnist-small", method, weight)


@RECIPES.add("framework-cnn-cifar10-small")
def framework_cnn_cifar10_small(method: str = "none", weight: float = 0.0) -> Recipe:
    """The same, and no ResNet, on the shipped part of CIFAR-10: not much accuracy."""
    return _tiny("cifar10-small", method, weight)


def _paper(dataset: str, images: int, method: str, weight: float) -> Recipe:
    """Appendix A.1: all images, 128 channels, ten epochs, and the exact cross-Lipschitz penalty."""
    fit = method_fit(method, weight, images=images, epochs=10, projections=0)
    return Recipe("framework-cnn", dataset, fit)


@RECIPES.add("framework-cnn-mnist-paper")
def framework_cnn_mnist_paper(method: str = "none", weight: float = 0.0) -> Recipe:
    """f on MNIST as in appendix A.1, for a GPU."""
    return _paper("mnist", 60_000, method, weight)


@RECIPES.add("framework-cnn-fashion-mnist-paper")
def framework_cnn_fashion_mnist_paper(method: str = "none", weight: float = 0.0) -> Recipe:
    """f on Fashion-MNIST as in appendix A.1, for a GPU."""
    return _paper("fashion-mnist", 60_000, method, weight)


@RECIPES.add("framework-cnn-svhn-paper")
def framework_cnn_svhn_paper(method: str = "none", weight: float = 0.0) -> Recipe:
    """f on SVHN as in appendix A.1, for a GPU."""
    return _paper("svhn", 73_257, method, weight)


@RECIPES.add("resnet20-cifar10-framework-paper")
def resnet20_cifar10_framework_paper(method: str = "none", weight: float = 0.0) -> Recipe:
    """ResNet-20 on CIFAR-10 for 200 epochs, as in appendix A.1, for a GPU."""
    first, images = augmented(crop_and_flip()), 50_000
    fit = method_fit(method, weight, images=images, epochs=200, drops=LONG, projections=0, first=first)
    return Recipe("resnet20", "cifar10", fit)
