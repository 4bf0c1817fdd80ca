"""Fully connected networks for the synthetic data of the thesis' chapter 4."""

import math
from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS


@NETWORKS.add("mlp")
def mlp(
    classes: int, channels: int, size: int, *, depth: int = 10, width: int = 500, gain: float = 1.0
) -> nn.Sequential:
    """`depth` hidden layers of `width` ReLU units; a depth of 0 is logistic regression.

    For vectors of n numbers give channels=n and size=1. Layers with a ReLU behind them start with the
    weights of He et al. times `gain`: 1 keeps the size of the signal, 0.41 is that of torch's own weights,
    whose signal fades so much in ten layers that gradient descent hardly gets started (gap U31).
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise BookError(f"depth={depth!r}; give a whole number of hidden layers, 0 or more")
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise BookError(f"width={width!r}; give a whole number of units, 1 or more")
    if not gain > 0:
        raise BookError(f"gain={gain!r}; give a positive number, 1 for the initialisation of He et al.")
    parts: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    before = channels * size**2
    for number in range(1, depth + 1):
        parts[f"fc{number}"], parts[f"relu{number}"] = nn.Linear(before, width), nn.ReLU()
        before = width
    for layer in parts.values():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=gain * math.sqrt(2 / layer.in_features))
            nn.init.zeros_(layer.bias)
    parts["out"] = nn.Linear(before, classes)
    return nn.Sequential(parts)
