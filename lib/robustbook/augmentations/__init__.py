"""Augmentations: `augment(x, generator=...)` for a batch of images in [0, 1], each image with its own draws.

`augmented(...)` makes one a transform of `fit`; `views(...)` and `jsd_loss()` train for consistency.
"""

from .augmix import OPERATIONS, AugMix, augmix_cifar, augmix_imagenet
from .catalogue import AUGMENTATIONS, Augmentation, augmentation
from .colour import RandomColour, colour
from .jsd import Augmented, JsdLoss, Views, augmented, jensen_shannon, jsd_loss, views
from .mixing import Mixture
from .offline import Copies, copies
from .prime import PRIMITIVES, Prime, prime_cifar, prime_filling, prime_imagenet
from .removal import Grey, LowPass
from .spatial import RandomDiffeo, spatial, temperature_range
from .spectral import RandomFilter, spectral
from .standard import CropAndFlip, crop_and_flip

__all__ = [
    "AUGMENTATIONS",
    "OPERATIONS",
    "PRIMITIVES",
    "AugMix",
    "Augmentation",
    "Augmented",
    "Copies",
    "CropAndFlip",
    "Grey",
    "JsdLoss",
    "LowPass",
    "Mixture",
    "Prime",
    "RandomColour",
    "RandomDiffeo",
    "RandomFilter",
    "Views",
    "augmentation",
    "augmented",
    "augmix_cifar",
    "augmix_imagenet",
    "colour",
    "copies",
    "crop_and_flip",
    "jensen_shannon",
    "jsd_loss",
    "prime_cifar",
    "prime_filling",
    "prime_imagenet",
    "spatial",
    "spectral",
    "temperature_range",
    "views",
]
