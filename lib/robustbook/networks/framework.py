"""The two networks of the general framework's co-training: classifier f and generator g (gaps U1, U2).

The drawings that gave the number of layers are lost. Of each we know: convolutions 5 x 5, stride 1, with
batch normalisation and LeakyReLU of slope 0.1 behind.
"""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, initialised, scaled

SLOPE = 0.1


def _block(before: int, after: int) -> nn.Sequential:
    """5 x 5 convolution that keeps the size, batch normalisation, LeakyReLU."""
    convolution = nn.Conv2d(before, after, 5, padding=2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.LeakyReLU(SLOPE))


@NETWORKS.add("framework-cnn")
def framework_cnn(
    classes: int, channels: int, size: int, *, width: int = 128, blocks: int = 3, hidden: int = 1024
) -> nn.Sequential:
    """Classifier f of Figure 5 (2021): `blocks` convolutions of `width` channels, then `hidden` units.

    Maxima over 2 x 2 follow the first and the second convolution (28 -> 14 -> 7). The softmax is the loss's:
    outputs are logits.
    """
    if size < 4:
        raise BookError(f"network 'framework-cnn' needs images of at least 4 pixels a side, not {size}")
    if blocks < 2:
        raise BookError(f"network 'framework-cnn': blocks={blocks!r}; give 2 or more")
    w, units = scaled(1, width), scaled(1, hidden)
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    for number in range(1, blocks + 1):
        parts[f"conv{number}"] = _block(channels if number == 1 else w, w)
        if number <= 2:
            parts[f"pool{number}"] = nn.MaxPool2d(2)
    dense = nn.Linear(w * (size // 4) ** 2, units, bias=False), nn.BatchNorm1d(units), nn.LeakyReLU(SLOPE)
    parts.update(flatten=nn.Flatten(), fc1=nn.Sequential(*dense), fc2=nn.Linear(units, classes))
    return nn.Sequential(parts)


def generator(channels: int, *, seed: int, width: int = 128, layers: int = 3) -> nn.Sequential:
    """Generator g of Figure 6 (2021): images in, images of the same shape in [0, 1] out.

    `layers` convolutions of `width` channels at full resolution, then one with `channels` filters and a
    sigmoid. There is no shortcut: g has to learn the identity first. Weights depend on `seed` alone.
    """
    w = scaled(1, width)
    if layers < 1:
        raise BookError(f"layers={layers!r} of the generator; give 1 or more")

    def build() -> nn.Sequential:
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        for number in range(1, layers + 1):
            parts[f"conv{number}"] = _block(channels if number == 1 else w, w)
        parts["out"] = nn.Conv2d(w, channels, 5, padding=2)
        parts["sigmoid"] = nn.Sigmoid()
        return nn.Sequential(parts)

    return initialised(build, seed)
