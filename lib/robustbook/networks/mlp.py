"""Fully connected networks for the synthetic data of the thesis' chapter 4."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS


@NETWORKS.add("mlp")
def mlp(classes: int, channels: int, size: int, *, depth: int = 10, width: int = 500) -> nn.Sequential:
    """`depth` hidden layers of `width` ReLU units; a depth of 0 is logistic regression.

    For vectors of n numbers give channels=n and size=1. He initialisation: with torch's own the signal
    of ten plain layers fades, and stochastic gradient descent does not get started (gap U31).
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise BookError(f"depth={depth!r}; give a whole number of hidden layers, 0 or more")
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise BookError(f"width={width!r}; give a whole number of units, 1 or more")
    parts: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    before = channels * size**2
    for number in range(1, depth + 1):
        parts[f"fc{number}"], parts[f"relu{number}"] = nn.Linear(before, width), nn.ReLU()
        before = width
    parts["out"] = nn.Linear(before, classes)
    for layer in parts.values():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(parts)
