"""Networks by name: `make("lenet5", seed=0)` gives an initialised network for images in [0, 1].

`pretrained("resnet50-imagenet")` gives one with published weights.
"""

from . import (
    adaptation,
    alexnet,
    autoencoder,
    dense,
    densenet,
    efficientnet,
    framework,
    imagenet,
    keras_cnn,
    lenet,
    mlp,
    resnet,
    vgg,
    viewed,
    wae,
)
from .adaptation import adapted, adapting
from .autoencoder import PairedAutoEncoder, paired_autoencoder
from .catalogue import NETWORKS, describe, make
from .framework import generator
from .imagenet import PRETRAINED, pretrained
from .layers import Normalise
from .retasking import retasked

__all__ = [
    "NETWORKS",
    "PRETRAINED",
    "Normalise",
    "PairedAutoEncoder",
    "adaptation",
    "adapted",
    "adapting",
    "alexnet",
    "autoencoder",
    "dense",
    "densenet",
    "describe",
    "efficientnet",
    "framework",
    "generator",
    "imagenet",
    "keras_cnn",
    "lenet",
    "make",
    "mlp",
    "paired_autoencoder",
    "pretrained",
    "resnet",
    "retasked",
    "vgg",
    "viewed",
    "wae",
]
