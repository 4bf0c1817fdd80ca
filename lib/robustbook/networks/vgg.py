"""Chains of 3 x 3 convolutions and maxima: a small one in the manner of VGG, and VGG-19."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled
from .layers import Normalise, Statistic
from .resnet import Statistics, convolution, statistics_of

Plan = list[list[int]]


def _chain(
    name: str, classes: int, channels: int, size: int, plan: Plan, statistics: Statistics
) -> nn.Sequential:
    """Stages of convolutions; maxima over 2 x 2 pixels stand behind every stage."""
    if size < 2 ** len(plan):
        raise BookError(
            f"network '{name}' needs images of at least {2 ** len(plan)} pixels a side, not {size}"
        )
    parts: OrderedDict[str, nn.Module] = OrderedDict(normalise=Normalise(*statistics))
    before = channels
    for stage, units in enumerate(plan, start=1):
        for number, after in enumerate(units, start=1):
            parts[f"conv{stage}_{number}"] = convolution(before, after)
            before = after
        parts[f"pool{stage}"] = nn.MaxPool2d(2)
    parts.update(pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(before, classes))
    return nn.Sequential(parts)


@NETWORKS.add("vgg8")
def vgg8(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 16,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """Seven convolutions with batch normalisation and one linear layer, in the manner of VGG.

    The channels grow within a stage instead of at its start: less work at full size for as many weights.
    """
    w = scaled(1, width)
    plan = [[w, 2 * w], [2 * w, 4 * w], [4 * w, 8 * w], [8 * w]]
    return _chain("vgg8", classes, channels, size, plan, statistics_of(channels, mean, std))


@NETWORKS.add("vgg19")
def vgg19(
    classes: int,
    channels: int,
    size: int,
    *,
    width: float = 1.0,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """VGG-19 (Simonyan & Zisserman 2015) for small images: batch normalisation, one linear layer."""
    a, b, c, d = (scaled(units, width) for units in (64, 128, 256, 512))
    plan = [[a] * 2, [b] * 2, [c] * 4, [d] * 4, [d] * 4]
    return _chain("vgg19", classes, channels, size, plan, statistics_of(channels, mean, std))
