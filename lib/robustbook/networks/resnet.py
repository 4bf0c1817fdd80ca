"""Residual networks for 32-pixel images: a small fast one, ResNet-20 and ResNet-18."""

from collections import OrderedDict

from torch import Tensor, nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled
from .layers import Normalise, Statistic

CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_STD = (0.2471, 0.2435, 0.2616)

Statistics = tuple[Statistic, Statistic]


def convolution(before: int, after: int, stride: int = 1) -> nn.Sequential:
    """3 x 3 convolution, batch normalisation, ReLU."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
    )


class Residual(nn.Module):
    """x + f(x), with a ReLU behind the sum if `relu`; `shortcut` brings x to the shape of f(x)."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None, relu: bool = False) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.last = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.shortcut(x) + self.body(x))
        return out


def block(before: int, after: int, stride: int) -> Residual:
    """Two convolutions and a shortcut, projected where the shape changes (He et al. 2016)."""
    second = nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)
    body = nn.Sequential(*convolution(before, after, stride), *second)
    if stride == 1 and before == after:
        return Residual(body, relu=True)
    shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
    return Residual(body, shortcut, relu=True)


def statistics_of(channels: int, mean: Statistic | None, std: Statistic | None) -> Statistics:
    """CIFAR-10's for colour images and one half for grey ones, unless given."""
    colour = channels == 3
    return (
        (CIFAR_MEAN if colour else 0.5) if mean is None else mean,
        (CIFAR_STD if colour else 0.5) if std is None else std,
    )


@NETWORKS.add("resnet9")
def resnet9(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 64,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """The nine-layer residual network of the DAWNBench CIFAR-10 competition (Page 2018), 64 channels wide.

    Eight convolutions, two residual blocks, pooling by maxima; the last layer's inputs are divided by 8.
    """
    if size < 16:
        raise BookError(f"network 'resnet9' needs images of at least 16 pixels a side, not {size}")
    w = scaled(1, width)
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(*statistics_of(channels, mean, std)),
            conv1=convolution(channels, w),
            conv2=convolution(w, 2 * w),
            pool2=nn.MaxPool2d(2),
            block2=Residual(nn.Sequential(convolution(2 * w, 2 * w), convolution(2 * w, 2 * w))),
            conv3=convolution(2 * w, 4 * w),
            pool3=nn.MaxPool2d(2),
            conv4=convolution(4 * w, 8 * w),
            pool4=nn.MaxPool2d(2),
            block4=Residual(nn.Sequential(convolution(8 * w, 8 * w), convolution(8 * w, 8 * w))),
            pool=nn.AdaptiveMaxPool2d(1),
            scale=Normalise(0.0, 8.0),
            flatten=nn.Flatten(),
            fc=nn.Linear(8 * w, classes, bias=False),
        )
    )


def _stages(
    name: str, classes: int, channels: int, size: int, units: list[int], blocks: int, statistics: Statistics
) -> nn.Sequential:
    """A convolution, then stages of `blocks` blocks; every stage but the first halves the image."""
    if size < 2 ** len(units):
        raise BookError(f"network '{name}' needs images of at least {2 ** len(units)} pixels, not {size}")
    parts: OrderedDict[str, nn.Module] = OrderedDict(normalise=Normalise(*statistics))
    parts["conv1"], before = convolution(channels, units[0]), units[0]
    for stage, after in enumerate(units, start=1):
        for number in range(1, blocks + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            parts[f"block{stage}_{number}"] = block(before, after, stride)
            before = after
    parts.update(pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(before, classes))
    return nn.Sequential(parts)


@NETWORKS.add("resnet20")
def resnet20(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 16,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """ResNet-20 for CIFAR (He et al. 2016): three stages of three blocks, with projected shortcuts."""
    units = [scaled(times, width) for times in (1, 2, 4)]
    return _stages("resnet20", classes, channels, size, units, 3, statistics_of(channels, mean, std))


@NETWORKS.add("resnet18")
def resnet18(
    classes: int,
    channels: int,
    size: int,
    *,
    width: int = 64,
    mean: Statistic | None = None,
    std: Statistic | None = None,
) -> nn.Sequential:
    """ResNet-18 for small images: a 3 x 3 first convolution and no pooling behind it."""
    units = [scaled(times, width) for times in (1, 2, 4, 8)]
    return _stages("resnet18", classes, channels, size, units, 2, statistics_of(channels, mean, std))
