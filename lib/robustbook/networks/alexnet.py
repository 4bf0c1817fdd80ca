"""AlexNet for 32-pixel images, as the moment-regulariser paper alters it."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled
from .layers import Normalise, Statistic


@NETWORKS.add("moment-alexnet")
def moment_alexnet(
    classes: int,
    channels: int,
    size: int,
    *,
    width: float = 1.0,
    mean: Statistic = 0.5,
    std: Statistic = 1.0,
) -> nn.Sequential:
    """AlexNet of "Analytical moment regularizer" (gap U47): torchvision's, with these changes.

    Pooling of 2 instead of 3, padding 5 instead of 2 in the first convolution, no dropout, pooling
    before the ReLU except in the first block. On 32 pixels 256 features reach the classifier.
    """
    if size != 32:
        raise BookError(f"network 'moment-alexnet' takes images of 32 pixels a side, not {size}")
    c1, c2, c3, c4 = (scaled(units, width) for units in (64, 192, 384, 256))
    hidden = scaled(4096, width)
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(mean, std),
            conv1=nn.Conv2d(channels, c1, 11, stride=4, padding=5),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(c1, c2, 5, padding=2),
            pool2=nn.MaxPool2d(2),
            relu2=nn.ReLU(),
            conv3=nn.Conv2d(c2, c3, 3, padding=1),
            relu3=nn.ReLU(),
            conv4=nn.Conv2d(c3, c4, 3, padding=1),
            relu4=nn.ReLU(),
            conv5=nn.Conv2d(c4, c4, 3, padding=1),
            pool5=nn.MaxPool2d(2),
            relu5=nn.ReLU(),
            flatten=nn.Flatten(),
            fc1=nn.Linear(c4, hidden),
            relu6=nn.ReLU(),
            fc2=nn.Linear(hidden, hidden),
            relu7=nn.ReLU(),
            fc3=nn.Linear(hidden, classes),
        )
    )
