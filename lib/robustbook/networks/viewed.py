"""A network behind a view of the image: frequency-flipped, low-pass or high-pass.

Training `viewed` on plain images is training its inner `network` on images in that view. An attack on the
whole keeps to the pixels of the original: the l2 norm is the same on both sides of a flip, so no
projection is needed for the box, where the published code alternates between two (gap U33).
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import unknown
from ..spectral import VIEWS, view
from .catalogue import NETWORKS


class View(nn.Module):
    """`spectral.view` as a layer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        if name not in VIEWS:
            raise unknown("view", str(name), VIEWS)
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return view(x, self.name)

    def extra_repr(self) -> str:
        """Which view."""
        return self.name


@NETWORKS.add("viewed")
def viewed(
    classes: int,
    channels: int,
    size: int,
    *,
    network: str = "lenet5",
    mean: Sequence[float] = (0.1307,),
    view: str = "plain",
    width: float | None = None,
) -> nn.Sequential:
    """The network of this name as `.network` behind `.view`.

    `mean` has one number, or one a channel. What the inner network subtracts is the mean image in the same
    view, as published: a flipped constant is no constant. `width` is that of the inner network.
    """
    options: dict[str, Any] = {} if width is None else {"width": width}
    front = View(view)
    image = torch.tensor(list(mean)).reshape(-1, 1, 1).expand(channels, size, size)
    inner = NETWORKS[network](classes, channels, size, mean=front(image), **options)
    return nn.Sequential(OrderedDict(view=front, network=inner))
