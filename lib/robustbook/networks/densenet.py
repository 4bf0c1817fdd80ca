"""DenseNet-121 (Huang et al. 2017) for small images."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from ..vision import torchvision
from .catalogue import NETWORKS
from .layers import Normalise, Statistic
from .resnet import statistics_of


@NETWORKS.add("densenet121")
def densenet121(
    classes: int,
    channels: int,
    size: int,
    *,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """torchvision's DenseNet-121 with a 3 x 3 first convolution and no pooling behind it."""
    if size < 8:
        raise BookError(f"network 'densenet121' needs images of at least 8 pixels a side, not {size}")
    body: nn.Module = torchvision().models.densenet121(weights=None, num_classes=classes)
    features = body.get_submodule("features")
    features.conv0 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    features.pool0 = nn.Identity()
    return nn.Sequential(OrderedDict(normalise=Normalise(*statistics_of(channels, mean, std)), network=body))
