"""Networks by name: `make("lenet5", seed=0)` gives an initialised network for images in [0, 1]."""

from . import alexnet, lenet, resnet, vgg
from .catalogue import NETWORKS, describe, make
from .layers import Normalise

__all__ = ["NETWORKS", "Normalise", "alexnet", "describe", "lenet", "make", "resnet", "vgg"]
