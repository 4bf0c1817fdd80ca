"""Recipes of the book's networks on CIFAR-10; every chapter that needs one takes it from here.

Stochastic gradient descent with a triangular rate and clipped gradients as in "Hold me tight" and PRIME,
shifted crops and mirrors. Few epochs of small networks: about a quarter of an hour on one core each.
"""

from typing import Any

from ..augmentations import augmented, crop_and_flip
from .recipes import RECIPES, Recipe


def _fit(**changes: Any) -> dict[str, Any]:
    """The settings that all of them share."""
    shared = {
        "batch_size": 128,
        "optimizer": "sgd",
        "nesterov": True,
        "lr": 0.2,
        "weight_decay": 5e-4,
        "schedule": "triangular",
        "schedule_options": {"peak": 0.25},
        "clip_norm": 0.5,
        "transform": augmented(crop_and_flip()),
        "channels_last": True,
    }
    return {**shared, **changes}


@RECIPES.add("resnet9-cifar10")
def resnet9_cifar10() -> Recipe:
    """A ResNet-9 of 16 channels on CIFAR-10."""
    return Recipe("resnet9", "cifar10", _fit(epochs=10), options={"width": 16})


@RECIPES.add("vgg8-cifar10")
def vgg8_cifar10() -> Recipe:
    """Seven convolutions in the manner of VGG, from 16 channels on, on CIFAR-10."""
    return Recipe("vgg8", "cifar10", _fit(epochs=10), options={"width": 16})


@RECIPES.add("resnet9-cifar10-narrow")
def resnet9_cifar10_narrow() -> Recipe:
    """A ResNet-9 of 8 channels on CIFAR-10: the plain twin of the adversarially trained one."""
    return Recipe("resnet9", "cifar10", _fit(epochs=10), options={"width": 8})


@RECIPES.add("resnet9-cifar10-linf")
def resnet9_cifar10_linf() -> Recipe:
    """A ResNet-9 of 8 channels, adversarially trained within 8/255 in linf by three steps of PGD."""
    from ..defenses.adversarial import adversarial  # here, because attacks stand on this package

    transform = adversarial(8 / 255, steps=3, first=augmented(crop_and_flip()))
    fit = _fit(epochs=15, transform=transform, keep_best=False)
    return Recipe("resnet9", "cifar10", fit, options={"width": 8})


@RECIPES.add("resnet9-cifar10-small")
def resnet9_cifar10_small() -> Recipe:
    """A ResNet-9 of 8 channels on the subset that ships with the book: seconds, and not much accuracy."""
    return Recipe("resnet9", "cifar10-small", _fit(epochs=2, batch_size=50, lr=0.1), options={"width": 8})


@RECIPES.add("resnet9-cifar10-linf-small")
def resnet9_cifar10_linf_small() -> Recipe:
    """The adversarially trained one on the subset that ships with the book, in one step of PGD."""
    from ..defenses.adversarial import adversarial

    fit = _fit(epochs=1, batch_size=50, lr=0.1, transform=adversarial(8 / 255, steps=1), keep_best=False)
    return Recipe("resnet9", "cifar10-small", fit, options={"width": 8})


def _paper_fit(**changes: Any) -> dict[str, Any]:
    """The same for a GPU; the thesis does not say for how long its networks of chapter 3 were trained."""
    return _fit(epochs=100, **changes)


@RECIPES.add("vgg19-cifar10-paper")
def vgg19_cifar10_paper() -> Recipe:
    """VGG-19 on CIFAR-10, for a GPU."""
    return Recipe("vgg19", "cifar10", _paper_fit(lr=0.1))


@RECIPES.add("resnet18-cifar10-paper")
def resnet18_cifar10_paper() -> Recipe:
    """ResNet-18 on CIFAR-10, for a GPU."""
    return Recipe("resnet18", "cifar10", _paper_fit())


@RECIPES.add("resnet18-cifar10-linf-paper")
def resnet18_cifar10_linf_paper() -> Recipe:
    """ResNet-18 adversarially trained within 8/255 in linf, seven steps as Madry et al. (2018), for a GPU."""
    from ..defenses.adversarial import adversarial

    transform = adversarial(8 / 255, steps=7, step_size=2 / 255, first=augmented(crop_and_flip()))
    return Recipe("resnet18", "cifar10", _paper_fit(transform=transform, keep_best=False))
