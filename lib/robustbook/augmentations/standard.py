"""What nearly all image classifiers are trained with: random crops and mirrored images."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .catalogue import AUGMENTATIONS
from .chance import integers
from .checks import check_counts, check_generator, check_images


@dataclass(frozen=True)
class CropAndFlip:
    """A crop from the image with a black frame of `padding` pixels, mirrored in half of all cases."""

    padding: int = 4

    def __post_init__(self) -> None:
        check_counts(padding=self.padding)

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """The augmented images, laid out in memory as `x`."""
        check_images(x)
        check_generator(generator)
        count, (height, width) = len(x), x.shape[2:]
        top, left = (integers(0, 2 * self.padding, count, generator, x)[:, None] for _ in range(2))
        mirrored = integers(0, 1, count, generator, x)[:, None] == 1
        rows = top + torch.arange(height, device=x.device)
        columns = torch.arange(width, device=x.device)
        columns = left + torch.where(mirrored, width - 1 - columns, columns)
        framed = pad(x, (self.padding,) * 4).permute(0, 2, 3, 1)
        image = torch.arange(count, device=x.device)[:, None, None]
        cropped = framed[image, rows[:, :, None], columns[:, None, :]]
        return torch.empty_like(x).copy_(cropped.permute(0, 3, 1, 2))


@AUGMENTATIONS.add("crop-and-flip")
def crop_and_flip(*, padding: int = 4) -> CropAndFlip:
    """Random crops and mirrored images, as for CIFAR (gap U41)."""
    return CropAndFlip(padding)
