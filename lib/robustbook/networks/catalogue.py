"""The registry of networks, and `make`, which builds and initialises one."""

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from ..errors import BookError, unknown
from ..registry import Registry

NETWORKS: Registry[Callable[..., nn.Module]] = Registry("network")
COMMON = ("classes", "channels", "size")
Built = TypeVar("Built", bound=nn.Module)


def make(
    name: str, *, seed: int, classes: int = 10, channels: int = 1, size: int = 28, **options: Any
) -> nn.Module:
    """Build the network registered under `name`, with weights that depend on `seed` alone.

    Parameters
    ----------
    name
        A registered name, such as "lenet5".
    seed
        Seed of the initial weights. The global random state is neither read nor changed.
    classes, channels, size
        Number of outputs, of input channels, and the side of the square image.
    **options
        What this network offers beyond that, such as `width=0.5`.
    """
    builder = NETWORKS[name]
    _check(name, builder, {"classes": classes, "channels": channels, "size": size}, options)
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        return builder(classes=classes, channels=channels, size=size, **options)


def _check(
    name: str, builder: Callable[..., nn.Module], common: dict[str, int], options: dict[str, Any]
) -> None:
    for key, value in common.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BookError(f"network '{name}': {key}={value!r}; give a whole number, 1 or more")
    offered = [key for key in inspect.signature(builder).parameters if key not in COMMON]
    for key in options:
        if key not in offered:
            raise unknown(f"option of network '{name}'", key, offered)


def initialised(build: Callable[[], Built], seed: int) -> Built:
    """What `build` makes outside the registry, with weights that depend on `seed` alone."""
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        return build()


def describe(model: nn.Module) -> str:
    """Say in one line how large a network is: parameters, and layers that have some."""
    parameters = sum(p.numel() for p in model.parameters())
    kinds = Counter(type(m).__name__ for m in model.modules() if list(m.parameters(recurse=False)))
    layers = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    return f"{parameters:,} parameters; layers with weights: {layers}"


def scaled(units: int, width: float) -> int:
    """`units` of a layer of a network made `width` times as wide."""
    if not width > 0:
        raise BookError(f"width={width!r}; give a positive number, 1.0 for the published network")
    return max(1, round(units * width))
