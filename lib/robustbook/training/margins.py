"""Recipes of chapter `margins`: networks on images as they are, frequency-flipped, low-pass or high-pass.

The settings of "Hold me tight": stochastic gradient descent, a triangular rate up to 0.21, clipped gradients
and no augmentation. The setting `view` chooses what the network sees; accuracies stored with a network are
in that view.
"""

from collections.abc import Mapping
from typing import Any

from ..networks.resnet import CIFAR_MEAN
from .recipes import RECIPES, Recipe

MNIST_MEAN = (0.1307,)


def tight(**changes: Any) -> dict[str, Any]:
    """What all of them share."""
    shared = {
        "batch_size": 128,
        "optimizer": "sgd",
        "lr": 0.21,
        "weight_decay": 5e-4,
        "schedule": "triangular",
        "clip_norm": 0.5,
        "channels_last": True,
    }
    return {**shared, **changes}


def _viewed(network: str, dataset: str, view: str, fit: Mapping[str, Any], **options: Any) -> Recipe:
    mean = CIFAR_MEAN if dataset.startswith("cifar") else MNIST_MEAN
    return Recipe("viewed", dataset, fit, {"network": network, "mean": mean, "view": view, **options})


@RECIPES.add("lenet5-mnist-view")
def lenet5_mnist_view(view: str = "plain") -> Recipe:
    """`lenet5-mnist` on MNIST in a view."""
    return _viewed("lenet5", "mnist", view, tight(epochs=5))


@RECIPES.add("lenet5-mnist-small-view")
def lenet5_mnist_small_view(view: str = "plain") -> Recipe:
    """The same on the subset that ships with the book."""
    return _viewed("lenet5", "mnist-small", view, tight(epochs=4, batch_size=50, lr=0.1))


@RECIPES.add("lenet5-cifar10-small-view")
def lenet5_cifar10_small_view(view: str = "plain") -> Recipe:
    """A LeNet-5 for three channels on the subset of CIFAR-10 that ships with the book: for `smoke`."""
    return _viewed("lenet5", "cifar10-small", view, tight(epochs=3, batch_size=50, lr=0.1))


@RECIPES.add("resnet9-cifar10-view")
def resnet9_cifar10_view(view: str = "plain") -> Recipe:
    """A ResNet-9 of 8 channels on CIFAR-10 in a view, without augmentation."""
    return _viewed("resnet9", "cifar10", view, tight(epochs=8), width=8)


@RECIPES.add("vgg8-cifar10-view")
def vgg8_cifar10_view(view: str = "plain") -> Recipe:
    """Seven convolutions in the manner of VGG, from 8 channels on, on CIFAR-10 in a view."""
    return _viewed("vgg8", "cifar10", view, tight(epochs=8), width=8)


@RECIPES.add("lenet5-mnist-paper-view")
def lenet5_mnist_paper_view(view: str = "plain") -> Recipe:
    """LeNet-5 on MNIST with all of Table A.2."""
    return _viewed("lenet5", "mnist", view, tight(epochs=30))


@RECIPES.add("resnet18-mnist-paper-view")
def resnet18_mnist_paper_view(view: str = "plain") -> Recipe:
    """ResNet-18 on MNIST with all of Table A.2, for a GPU."""
    return _viewed("resnet18", "mnist", view, tight(epochs=30))


@RECIPES.add("vgg19-cifar10-paper-view")
def vgg19_cifar10_paper_view(view: str = "plain") -> Recipe:
    """VGG-19 on CIFAR-10 with all of Table A.2, for a GPU."""
    return _viewed("vgg19", "cifar10", view, tight(epochs=50))


@RECIPES.add("resnet18-cifar10-paper-view")
def resnet18_cifar10_paper_view(view: str = "plain") -> Recipe:
    """ResNet-18 on CIFAR-10 with all of Table A.2, for a GPU."""
    return _viewed("resnet18", "cifar10", view, tight(epochs=50))


@RECIPES.add("densenet121-cifar10-paper-view")
def densenet121_cifar10_paper_view(view: str = "plain") -> Recipe:
    """DenseNet-121 on CIFAR-10 with all of Table A.2, for a GPU."""
    return _viewed("densenet121", "cifar10", view, tight(epochs=50))
