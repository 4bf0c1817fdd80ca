"""The registry of attacks, and `minimum`, which calls one by its name."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import unknown
from ..registry import Registry
from .checks import check_counts

ATTACKS: Registry[Callable[..., Tensor]] = Registry("attack")
"""Attacks by name; each looks for the smallest perturbation that changes the label."""

COMMON = ("model", "x", "y", "generator")


def minimum(
    name: str,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    generator: torch.Generator | None = None,
    batch_size: int = 250,
    **options: Any,
) -> Tensor:
    """The smallest perturbation that the attack registered under `name` finds, as perturbed images.

    Parameters
    ----------
    name
        A registered name, such as "deepfool".
    y
        The labels to leave: the true ones, or the network's own predictions.
    generator
        Where chance comes from; attacks without chance ignore it.
    batch_size
        Images attacked together.
    **options
        What this attack offers beyond that, such as `steps=100` or `box=None`.

    Returns
    -------
    Tensor
        Images like `x`. Those misclassified already, and those that could not be fooled, are unchanged.
    """
    attack = ATTACKS[name]
    check_counts(batch_size=batch_size)
    offered = list(inspect.signature(attack).parameters)
    for key in options:
        if key not in offered or key in COMMON:
            raise unknown(f"option of attack '{name}'", key, set(offered) - set(COMMON))
    if "generator" in offered:
        options["generator"] = generator
    fitting = isinstance(x, Tensor) and isinstance(y, Tensor) and x.dim() > 0 and x.shape[:1] == y.shape
    if not fitting or len(x) <= batch_size:
        return attack(model, x, y, **options)  # which says what does not fit
    own = {key: value for key, value in options.items() if _one_an_image(key, value, len(x))}
    found = []
    for start in range(0, len(x), batch_size):
        part = slice(start, start + batch_size)
        here = {key: value[part] for key, value in own.items()}
        found.append(attack(model, x[part], y[part], **{**options, **here}))
    return torch.cat(found)


def _one_an_image(key: str, value: Any, count: int) -> bool:
    """Is this option a list with one entry an image: targets, or a basis for each?"""
    listed = key == "target" or (key == "basis" and isinstance(value, Tensor) and value.dim() == 3)
    return listed and isinstance(value, Tensor) and len(value) == count
