"""Networks by name: `make("lenet5", seed=0)` gives an initialised network for images in [0, 1].

`pretrained("resnet50-imagenet")` gives one with published weights.
"""

from . import (
    adaptation,
    alexnet,
    dense,
    densenet,
    efficientnet,
    framework,
    imagenet,
    lenet,
    mlp,
    resnet,
    vgg,
    viewed,
    wae,
)
from .adaptation import adapted, adapting
from .catalogue import NETWORKS, describe, make
from .framework import generator
from .imagenet import PRETRAINED, pretrained
from .layers import Normalise

__all__ = [
    "NETWORKS",
    "PRETRAINED",
    "Normalise",
    "adaptation",
    "adapted",
    "adapting",
    "alexnet",
    "dense",
    "densenet",
    "describe",
    "efficientnet",
    "framework",
    "generator",
    "imagenet",
    "lenet",
    "make",
    "mlp",
    "pretrained",
    "resnet",
    "vgg",
    "viewed",
    "wae",
]
