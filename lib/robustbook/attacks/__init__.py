"""Attacks: one file each, one signature, and `minimum`, which calls them by name.

`attack(model, x, y, *, box=(0, 1), ...) -> x_adv` takes a batch of images in the box with the labels to leave
and gives images of the same shape. Those that are misclassified already, and those that could not be fooled,
come back unchanged.
"""

from .additive_noise import additive_gaussian, additive_uniform
from .autoattack import apgd, autoattack, fab, square
from .bg import bg
from .catalogue import ATTACKS, minimum
from .deepfool import InSubspaces, deepfool, deepfool_subspaces
from .ensemble import boundary_points, ensemble
from .fgsm import fgsm
from .foolbox_adapter import cw, ddn, fmn_l0, fmn_l2
from .jsma import jsma
from .lbfgs import lbfgs
from .one_pixel import one_pixel
from .pgd import pgd, pgd_minimum
from .sparse_random import sparse_random
from .sparsefool import Rounds, sparsefool
from .tangents import Tally

__all__ = [
    "ATTACKS",
    "InSubspaces",
    "Rounds",
    "Tally",
    "additive_gaussian",
    "additive_uniform",
    "apgd",
    "autoattack",
    "bg",
    "boundary_points",
    "cw",
    "ddn",
    "deepfool",
    "deepfool_subspaces",
    "ensemble",
    "fab",
    "fgsm",
    "fmn_l0",
    "fmn_l2",
    "jsma",
    "lbfgs",
    "minimum",
    "one_pixel",
    "pgd",
    "pgd_minimum",
    "sparse_random",
    "sparsefool",
    "square",
]
