"""Corruptions: images as CIFAR-10-C and ImageNet-C have them.

`corrupt(x, name, severity)` takes a batch of images in [0, 1] and gives a batch of the same shape. What an
image becomes depends on its own seed, not on its neighbours.
"""

from .catalogue import COMMON, as_uint8
from .common import GROUPS, NAMES, corrupt

__all__ = ["COMMON", "GROUPS", "NAMES", "as_uint8", "corrupt"]
