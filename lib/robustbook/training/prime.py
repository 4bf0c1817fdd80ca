"""Recipes of chapter `prime`: the book's networks on CIFAR-10, trained on augmented images.

The setting `augment` is "none", "augmix" or "prime"; `jsd` is 1 for the consistency loss of AugMix, with the
clean image and two augmented ones (gap U41). All else is as in the recipe `resnet9-cifar10`.
"""

from typing import Any

from ..augmentations import augmentation, augmented, crop_and_flip, jsd_loss, views
from ..errors import BookError, unknown
from .cifar import _fit
from .recipes import RECIPES, Recipe

AUGMENTS = {"augmix": "augmix-cifar", "prime": "prime-cifar"}
SMALL: dict[str, Any] = {"epochs": 1, "batch_size": 8, "max_steps": 24, "lr": 0.1, "channels_last": False}
"""A few steps, for `smoke`."""
PAPER: dict[str, Any] = {
    "epochs": 100,
    "validation": None,
    "schedule": "one-cycle",
    "schedule_options": {"pct": 0.25},
}
"""Section 5.3.2: 100 epochs on all images, one cycle of a cosine up to 0.2, no choice among epochs."""


def augmented_fit(augment: str, jsd: int, **changes: Any) -> dict[str, Any]:
    """Settings of `fit` for the book's recipe on CIFAR-10 with one of these augmentations."""
    if augment == "none":
        if jsd:
            raise BookError("jsd=1 compares augmented images; give augment='prime' or 'augmix'")
        return _fit(**changes)
    if augment not in AUGMENTS:
        raise unknown("augmentation", augment, ["none", *AUGMENTS])
    method, first = augmentation(AUGMENTS[augment]), crop_and_flip()
    if jsd:
        return _fit(transform=views(method, before=first), loss=jsd_loss(), **changes)
    return _fit(transform=augmented(first, method), **changes)


@RECIPES.add("resnet9-cifar10-augmented")
def resnet9_cifar10_augmented(augment: str = "none", jsd: int = 0) -> Recipe:
    """`resnet9-cifar10` on augmented images."""
    return Recipe("resnet9", "cifar10", augmented_fit(augment, jsd, epochs=10), options={"width": 16})


@RECIPES.add("resnet9-cifar10-augmented-small")
def resnet9_cifar10_augmented_small(augment: str = "none", jsd: int = 0) -> Recipe:
    """A few steps on the subset that ships with the book: for `smoke`."""
    fit = augmented_fit(augment, jsd, **SMALL)
    return Recipe("resnet9", "cifar10-small", fit, options={"width": 4})  # 4 channels: no use in last


def _paper_fit(augment: str, jsd: int) -> dict[str, Any]:
    """The settings of `PAPER` with one of these augmentations."""
    return augmented_fit(augment, jsd, **PAPER)


@RECIPES.add("resnet18-cifar10-augmented-paper")
def resnet18_cifar10_augmented_paper(augment: str = "none", jsd: int = 0) -> Recipe:
    """ResNet-18 on CIFAR-10 as in Table 5.2, for a GPU."""
    return Recipe("resnet18", "cifar10", _paper_fit(augment, jsd))


@RECIPES.add("resnet18-cifar100-augmented-paper")
def resnet18_cifar100_augmented_paper(augment: str = "none", jsd: int = 0) -> Recipe:
    """ResNet-18 on CIFAR-100 as in Table 5.2, for a GPU."""
    return Recipe("resnet18", "cifar100", _paper_fit(augment, jsd))


def _published_fit(**changes: Any) -> dict[str, Any]:
    """PRIME as published, Beta mixing and 100 colour waves (gaps U38, U39), with the consistency loss."""
    method = augmentation("prime-cifar", mixing="beta", colour_cut=100)
    return _fit(transform=views(method, before=crop_and_flip()), loss=jsd_loss(), **changes)


@RECIPES.add("resnet9-cifar10-published")
def resnet9_cifar10_published() -> Recipe:
    """`resnet9-cifar10` with the published configuration of PRIME and the consistency loss."""
    return Recipe("resnet9", "cifar10", _published_fit(epochs=10), options={"width": 16})


@RECIPES.add("resnet9-cifar10-published-small")
def resnet9_cifar10_published_small() -> Recipe:
    """The same for `smoke`."""
    return Recipe("resnet9", "cifar10-small", _published_fit(**SMALL), options={"width": 4})


@RECIPES.add("resnet18-cifar10-published-paper")
def resnet18_cifar10_published_paper() -> Recipe:
    """The same with ResNet-18 for 100 epochs, for a GPU."""
    return Recipe("resnet18", "cifar10", _published_fit(**PAPER))
