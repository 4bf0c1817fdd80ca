"""LeNets: the classic LeNet-5, and the wider one of the moment-regulariser paper."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled
from .layers import Normalise, Statistic


@NETWORKS.add("lenet5")
def lenet5(
    classes: int, channels: int, size: int, *, mean: Statistic = 0.1307, std: Statistic = 0.3081
) -> nn.Sequential:
    """LeNet-5 with ReLU and max-pooling, as in "Hold me tight" (Ortiz-Jimenez et al., 2020).

    The statistics of MNIST are the default; `mean` and `std` take one number or one a channel.
    """
    if size < 12:
        raise BookError(f"network 'lenet5' needs images of at least 12 pixels a side, not {size}")
    side = (size // 2 - 4) // 2
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(mean, std),
            conv1=nn.Conv2d(channels, 6, 5, padding=2),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(6, 16, 5),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(16 * side * side, 120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, classes),
        )
    )


@NETWORKS.add("moment-lenet")
def moment_lenet(
    classes: int,
    channels: int,
    size: int,
    *,
    width: float = 1.0,
    mean: Statistic = 0.5,
    std: Statistic = 1.0,
) -> nn.Sequential:
    """LeNet of "Analytical moment regularizer" (gap U46).

    3136 = 64 * 7 * 7 inputs to the first fully connected layer on 28 pixels, 4096 = 64 * 8 * 8 on 32.
    The first block is convolution, ReLU, pooling, so that an affine map stands before the first ReLU; the
    later ones pool before the ReLU, which is cheaper and gives the same numbers. `width` scales the
    channels and the hidden layer.
    """
    if size not in (28, 32):
        raise BookError(f"network 'moment-lenet' takes images of 28 or 32 pixels a side, not {size}")
    first, second, hidden = scaled(32, width), scaled(64, width), scaled(1024, width)
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(mean, std),
            conv1=nn.Conv2d(channels, first, 5, padding=2),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(first, second, 5, padding=2),
            pool2=nn.MaxPool2d(2),
            relu2=nn.ReLU(),
            flatten=nn.Flatten(),
            fc1=nn.Linear(second * (size // 4) ** 2, hidden),
            relu3=nn.ReLU(),
            fc2=nn.Linear(hidden, classes),
        )
    )
