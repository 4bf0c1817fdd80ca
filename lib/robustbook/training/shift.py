"""Recipes of chapter `shift`: the Keras example network on MNIST, trained in the ways that are compared.

Adam at 1e-3 on mini-batches of 32 with a tenth held out, as in the framework paper (2021, appendix B), whose
50 epochs at that rate are the recipe for a GPU. Where there are four epochs the rate falls to 0 along half a
cosine: at a constant rate they end at 98.8 %, in the noise of the last steps. The epoch with the least
validation loss is kept; the paper keeps the one with the best validation accuracy.
"""

from typing import Any

from ..augmentations.digits import HALVES, Corrupting
from ..augmentations.jsd import augmented
from ..augmentations.noise import SomeNoise
from ..errors import unknown
from .recipes import RECIPES, Recipe

WAYS = ("plain", "gauss", *HALVES)
"""`first` and `second`: labelled images under every other corruption; see `HALVES`."""


def _fit(way: str, **changes: Any) -> dict[str, Any]:
    """What all of them share, and the batch transform of a way of training."""
    if way not in WAYS:
        raise unknown("way of training", way, WAYS)
    usual = {"batch_size": 32, "optimizer": "adam", "lr": 1e-3, "channels_last": True}
    if way == "plain":
        return {**usual, **changes}
    augmentation = SomeNoise(0.1) if way == "gauss" else Corrupting(HALVES[way])
    return {**usual, "transform": augmented(augmentation), **changes}


@RECIPES.add("keras-cnn-mnist")
def keras_cnn_mnist(way: str = "plain", batch_norm: int = 0) -> Recipe:
    """The framework paper's network on MNIST in four epochs, the rate falling to 0."""
    return Recipe(
        "keras-cnn", "mnist", _fit(way, epochs=4, schedule="cosine"), {"batch_norm": bool(batch_norm)}
    )


@RECIPES.add("keras-cnn-mnist-small")
def keras_cnn_mnist_small(way: str = "plain", batch_norm: int = 0) -> Recipe:
    """A quarter as wide, on the subset that ships with the book: a second or two."""
    options = {"batch_norm": bool(batch_norm), "width": 0.25}
    return Recipe("keras-cnn", "mnist-small", _fit(way, epochs=2), options)


@RECIPES.add("keras-cnn-mnist-paper")
def keras_cnn_mnist_paper(way: str = "plain", batch_norm: int = 0) -> Recipe:
    """As published: 50 epochs."""
    return Recipe("keras-cnn", "mnist", _fit(way, epochs=50), {"batch_norm": bool(batch_norm)})
