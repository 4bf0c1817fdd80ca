"""Networks with a hidden dense layer, for methods that work on one: the idiosyncrasy paper (gap U17)."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled
from .layers import Normalise, Statistic
from .resnet import convolution, statistics_of
from .vgg import vgg8


@NETWORKS.add("dense-cnn")
def dense_cnn(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 32,
    hidden: int = 128,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """Three convolutions, each with maxima behind it, then `hidden` ReLU units (`fc1`) and the outputs."""
    if size < 8:
        raise BookError(f"network 'dense-cnn' needs images of at least 8 pixels a side, not {size}")
    w = scaled(1, width)
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(*statistics_of(channels, mean, std)),
            conv1=convolution(channels, w),
            pool1=nn.MaxPool2d(2),
            conv2=convolution(w, 2 * w),
            pool2=nn.MaxPool2d(2),
            conv3=convolution(2 * w, 2 * w),
            pool3=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(2 * w * (size // 8) ** 2, hidden),
            relu=nn.ReLU(),
            fc2=nn.Linear(hidden, classes),
        )
    )


@NETWORKS.add("dense-vgg8")
def dense_vgg8(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 16,
    hidden: int = 256,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """`vgg8` as `body`, whose last layer (`body.fc`) has `hidden` ReLU units in the place of classes."""
    body = vgg8(hidden, channels, size, width=width, mean=mean, std=std)
    return nn.Sequential(OrderedDict(body=body, relu=nn.ReLU(), fc=nn.Linear(hidden, classes)))
