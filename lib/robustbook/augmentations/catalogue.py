"""The registry of augmentations, and `augmentation`, which makes one by its name."""

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from ..errors import unknown
from ..registry import Registry


class Augmentation(Protocol):
    """Anything that is called like `augment(x, generator=...)` and gives images of the same shape."""

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """Augmented copies of the images (N, C, H, W) in [0, 1]."""


AUGMENTATIONS: Registry[Callable[..., Augmentation]] = Registry("augmentation")


def augmentation(name: str, **options: Any) -> Augmentation:
    """The augmentation registered under `name`, with its published settings but for `options`."""
    build = AUGMENTATIONS[name]
    offered = inspect.signature(build).parameters
    for option in options:
        if option not in offered:
            raise unknown(f"option of augmentation '{name}'", option, offered)
    return build(**options)
