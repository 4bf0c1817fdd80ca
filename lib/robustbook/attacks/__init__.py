"""Attacks: one file each, one signature, and `minimum`, which calls them by name.

`attack(model, x, y, *, box=(0, 1), ...) -> x_adv` takes a batch of images in the box with the labels to leave
and gives images of the same shape. Those that are misclassified already, and those that could not be fooled,
come back unchanged.
"""

from .additive_noise import additive_gaussian, additive_uniform
from .catalogue import ATTACKS, minimum
from .deepfool import deepfool
from .fgsm import fgsm
from .foolbox_adapter import ddn
from .lbfgs import lbfgs
from .pgd import pgd, pgd_minimum

__all__ = [
    "ATTACKS",
    "additive_gaussian",
    "additive_uniform",
    "ddn",
    "deepfool",
    "fgsm",
    "lbfgs",
    "minimum",
    "pgd",
    "pgd_minimum",
]
