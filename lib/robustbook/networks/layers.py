"""Layers that torch does not have."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..errors import BookError

Statistic = float | Sequence[float] | Tensor


class Normalise(nn.Module):
    """(x - mean) / std, inside the network, so that everything outside it sees images in [0, 1].

    `mean` and `std` are numbers, one number a channel, or a tensor (C, H, W) for a mean image.
    They are buffers: saved with the network, never trained.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Statistic, std: Statistic) -> None:
        super().__init__()
        self.register_buffer("mean", _per_channel(mean))
        self.register_buffer("std", _per_channel(std))
        if not (self.std > 0).all():
            raise BookError("the std of a Normalise layer must be positive")

    def forward(self, x: Tensor) -> Tensor:
        """Normalise images (N, C, H, W)."""
        return (x - self.mean) / self.std

    def extra_repr(self) -> str:
        """Means and deviations, if they are few."""
        few = self.mean.numel() <= 4 and self.std.numel() <= 4
        return f"mean={_short(self.mean)}, std={_short(self.std)}" if few else "per pixel"


def _per_channel(value: Statistic) -> Tensor:
    tensor = torch.as_tensor(value, dtype=torch.get_default_dtype())
    return tensor.detach().clone() if tensor.dim() == 3 else tensor.detach().clone().reshape(-1, 1, 1)


def _short(tensor: Tensor) -> str:
    return ", ".join(f"{value:g}" for value in tensor.flatten().tolist())
