"""EfficientNet-Lite (Tan & Le 2019; the Lite variants, 2020): inverted residuals with ReLU6.

Compared with EfficientNet-B0 there is no squeeze-and-excitation, ReLU6 stands for swish, and the first
and last layers keep their size when the network is scaled.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional

# Channels, blocks, kernel and stride of each stage of Lite0; all but the first expand their input by 6.
STAGES = (
    (16, 1, 3, 1),
    (24, 2, 3, 2),
    (40, 2, 5, 2),
    (80, 3, 3, 2),
    (112, 3, 5, 1),
    (192, 4, 5, 2),
    (320, 1, 3, 1),
)
STEM, HEAD, EXPANSION = 32, 1280, 6


class SameConv2d(nn.Conv2d):
    """A convolution padded as in TensorFlow: ceil(size / stride) outputs, an odd row of zeros at the end."""

    def forward(self, x: Tensor) -> Tensor:
        bottom, right = (
            max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            for size, stride, kernel in zip(x.shape[-2:], self.stride, self.kernel_size)
        )
        around = (right // 2, right - right // 2, bottom // 2, bottom - bottom // 2)
        return super().forward(functional.pad(x, around))


def layer(
    before: int, after: int, kernel: int = 1, stride: int = 1, groups: int = 1, relu: bool = True
) -> nn.Sequential:
    """Convolution, batch normalisation and, unless it ends a block, ReLU6."""
    parts = nn.Sequential(
        SameConv2d(before, after, kernel, stride, groups=groups, bias=False), nn.BatchNorm2d(after, eps=1e-3)
    )
    return parts.append(nn.ReLU6()) if relu else parts


class Inverted(nn.Sequential):
    """Expand the channels, filter each by itself, project; x is added where the shape allows."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        wide = before * expansion
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        if expansion > 1:
            parts["expand"] = layer(before, wide)
        parts["depthwise"] = layer(wide, wide, kernel, stride, groups=wide)
        parts["project"] = layer(wide, after, relu=False)
        super().__init__(parts)
        self.residual = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = super().forward(x)
        return x + out if self.residual else out


def rounded(channels: int, width: float) -> int:
    """`channels` times `width`, to the nearest multiple of 8 that loses no more than a tenth."""
    exact = channels * width
    near = max(8, int(exact + 4) // 8 * 8)
    return near if near >= 0.9 * exact else near + 8


def efficientnet_lite(*, width: float = 1.0, depth: float = 1.0, classes: int = 1_000) -> nn.Sequential:
    """EfficientNet-Lite0, or with `width` and `depth` a larger one; for normalised images of any size."""
    blocks, before = nn.Sequential(), STEM
    for number, (channels, repeats, kernel, stride) in enumerate(STAGES):
        fixed = number in (0, len(STAGES) - 1)
        for k in range(repeats if fixed else math.ceil(repeats * depth)):
            after = rounded(channels, width)
            expansion = EXPANSION if number else 1
            blocks.append(Inverted(before, after, kernel, 1 if k else stride, expansion))
            before = after
    return nn.Sequential(
        OrderedDict(
            stem=layer(3, STEM, 3, 2),
            blocks=blocks,
            head=layer(before, HEAD),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            fc=nn.Linear(HEAD, classes),
        )
    )


IN_BLOCK = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}
OUTSIDE = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": "head.0", "_bn1": "head.1", "_fc": "fc"}


def renamed(name: str) -> str:
    """The name here of a tensor of the package `efficientnet-lite-pytorch`."""
    first, *rest = name.split(".")
    if first == "_blocks":
        return ".".join(["blocks", rest[0], IN_BLOCK[rest[1]], *rest[2:]])
    return ".".join([OUTSIDE[first], *rest])


def from_package(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of that package under the names here."""
    return {renamed(name): value for name, value in state.items()}
