"""Recipes of chapter `filling_level`: networks to transfer from, on CIFAR-10, plain or within eps in l2.

The stand-in for ImageNet's standard and robust networks (gap U35). The last epoch is kept at every eps, since
accuracy on clean images would favour epochs with less robustness.
"""

from typing import Any

from ..augmentations import augmented, crop_and_flip
from .cifar import _fit
from .recipes import RECIPES, Recipe


def _within(eps: float, steps: int) -> dict[str, Any]:
    """The book's training on CIFAR-10; with eps > 0 on images that PGD has moved within eps."""
    from ..defenses.adversarial import adversarial  # here, because attacks stand on this package

    if not eps:
        return {"keep_best": False}
    transform = adversarial(eps, norm="l2", steps=steps, first=augmented(crop_and_flip()))
    return {"keep_best": False, "transform": transform}


@RECIPES.add("resnet9-cifar10-20000-l2")
def resnet9_cifar10_20000_l2(eps: float = 0.0) -> Recipe:
    """A ResNet-9 of 8 channels on the first 20,000 images of CIFAR-10, by three steps of PGD if eps > 0."""
    return Recipe("resnet9", "cifar10-20000", _fit(epochs=15, **_within(eps, 3)), options={"width": 8})


@RECIPES.add("resnet9-cifar10-small-l2")
def resnet9_cifar10_small_l2(eps: float = 0.0) -> Recipe:
    """A few steps on the subset that ships with the book: for `smoke`."""
    fit = _fit(epochs=1, batch_size=32, max_steps=24, lr=0.1, channels_last=False, **_within(eps, 1))
    return Recipe("resnet9", "cifar10-small", fit, options={"width": 4})
