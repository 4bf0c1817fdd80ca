"""Digital: contrast, elastic transforms, pixels and JPEG (Hendrycks and Dietterich, 2019)."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import grid_sample

from .catalogue import COMMON, Level, Severities
from .draws import Draws
from .fields import gaussian_blur

CONTRAST = Severities(cifar10=(0.75, 0.5, 0.4, 0.3, 0.15), imagenet=(0.4, 0.3, 0.2, 0.1, 0.05))
ELASTIC = Severities(  # displacement, deviation of its Gaussian, shift of the corners: parts of the side
    cifar10=((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    imagenet=((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
)
SIDE = {"cifar10": 32 / 32, "imagenet": 244 / 224}
"""What the published code calls the side, in parts of the side: ImageNet-C takes 244 for images of 224 px."""
PIXELS = Severities(cifar10=(0.95, 0.9, 0.85, 0.75, 0.65), imagenet=(0.6, 0.5, 0.4, 0.3, 0.25))
QUALITY = Severities(cifar10=(80, 65, 58, 50, 40), imagenet=(25, 18, 15, 10, 7))


@COMMON.add("contrast")
def contrast(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Draw every channel towards its mean over the image."""
    mean = x.double().mean((2, 3), keepdim=True).to(x.dtype)
    return mean + CONTRAST[level] * (x - mean)


@COMMON.add("elastic_transform")
def elastic_transform(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """A random affine map, then smooth random displacements; bilinear both times.

    The first mirrors the image at its outermost pixels, the second behind them.
    """
    height, width = x.shape[-2:]
    displacement, sigma, corner = (
        part * SIDE[level.constants] * min(height, width) for part in ELASTIC[level]
    )
    y, x_ = torch.meshgrid(torch.arange(height).double(), torch.arange(width).double(), indexing="ij")
    places = torch.stack([x_, y], -1)
    tilted = sample(x, affine(places, corner * draws.uniform(3, 2, low=-1, high=1)), mirror_pixels=True)
    waves = draws.uniform(2, height, width, low=-1, high=1)
    waves = displacement * gaussian_blur(waves, sigma, truncate=3, mode="reflect")
    return sample(tilted, places + waves.movedim(1, -1), mirror_pixels=False)


def affine(places: Tensor, shifts: Tensor) -> Tensor:
    """Where pixels at `places` (H, W, 2) come from if three corners of a square move by (N, 3, 2)."""
    height, width = places.shape[:2]
    third = min(height, width) // 3
    corners = torch.tensor([width // 2, height // 2]) + third * torch.tensor([[1, 1], [1, -1], [-1, -1]])
    corners = corners.double().expand(len(shifts), 3, 2)
    moved = torch.cat([corners + shifts, corners.new_ones(len(shifts), 3, 1)], 2)
    back = torch.linalg.solve(moved, corners)
    across, down, start = back[:, None, None].unbind(3)
    return places[..., :1] * across + places[..., 1:] * down + start


def sample(x: Tensor, places: Tensor, *, mirror_pixels: bool) -> Tensor:
    """The images at `places` (N, H, W, 2), x and y in pixels; beyond the border they are mirrored.

    The mirror stands on the outermost pixels, or half a pixel behind them.
    """
    size = torch.tensor([x.shape[3], x.shape[2]], dtype=places.dtype)
    grid = 2 * places / (size - 1) - 1 if mirror_pixels else (2 * places + 1) / size - 1
    return grid_sample(x, grid.to(x), mode="bilinear", padding_mode="reflection", align_corners=mirror_pixels)


@COMMON.add("pixelate")
def pixelate(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Shrink to int(scale * side) pixels and enlarge again, both by Pillow's box filter."""
    width, height = (int(side * PIXELS[level]) for side in (x.shape[3], x.shape[2]))
    box = Image.Resampling.BOX
    return by_pillow(x, lambda image: image.resize((width, height), box).resize(image.size, box))


@COMMON.add("jpeg_compression")
def jpeg_compression(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Store as JPEG with Pillow's defaults, and read again."""

    def stored(image: Image.Image) -> Image.Image:
        file = BytesIO()
        image.save(file, "JPEG", quality=QUALITY[level])
        return Image.open(file)

    return by_pillow(x, stored)


def by_pillow(x: Tensor, change: Callable[[Image.Image], Image.Image]) -> Tensor:
    """Images (N, 1 or 3, H, W), each rounded to bytes and changed by Pillow."""
    arrays = (x * 255).round().to(torch.uint8).movedim(1, -1).contiguous().cpu().numpy()
    arrays = arrays[..., 0] if x.shape[1] == 1 else arrays
    changed = torch.from_numpy(np.stack([np.asarray(change(Image.fromarray(array))) for array in arrays]))
    changed = changed[:, None] if x.shape[1] == 1 else changed.movedim(-1, 1)
    return changed.to(x) / 255
