"""What every training on CIFAR-10 does to its images: a shifted crop and a mirror."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..errors import BookError

Transform = Callable[[nn.Module, Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]


def crop_and_flip(padding: int = 4) -> Transform:
    """A transform for `fit`: black margins of `padding` pixels, a crop of the old size, a mirror or not.

    Each image of a batch has a shift and a mirror of its own.
    """
    if padding < 0:
        raise BookError(f"padding={padding}; give a whole number of pixels, 0 or more")

    def transform(
        model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        return cropped_and_flipped(x, padding, generator), y

    return transform


def cropped_and_flipped(x: Tensor, padding: int, generator: torch.Generator) -> Tensor:
    """Images (N, C, H, W), each shifted by up to `padding` pixels either way and mirrored or not."""
    count, _, height, width = x.shape
    device = generator.device
    tops, lefts = torch.randint(2 * padding + 1, (2, count, 1), generator=generator, device=device)
    mirrored = torch.rand(count, 1, generator=generator, device=device) < 0.5
    columns = torch.arange(width, device=device).expand(count, -1)
    rows = tops + torch.arange(height, device=device)
    columns = lefts + columns.where(~mirrored, width - 1 - columns)
    wide = pad(x, (padding,) * 4).permute(0, 2, 3, 1)
    images = torch.arange(count, device=device)
    taken = wide[images[:, None, None], rows[:, :, None], columns[:, None, :]]
    return taken.permute(0, 3, 1, 2)  # channels last in memory, whatever came in
