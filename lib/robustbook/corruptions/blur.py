"""Blur: out of focus, behind frosted glass, by motion and by zooming (Hendrycks and Dietterich, 2019)."""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, pad

from . import fields
from .catalogue import COMMON, Level, Severities, cut_off
from .draws import Draws

DISC = Severities(  # radius, deviation of the Gaussian that softens its edge
    cifar10=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
GLASS = Severities(  # deviation of the Gaussian before and after, largest shift, passes
    cifar10=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    imagenet=((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
MOTION = Severities(  # radius, deviation
    cifar10=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
)
ZOOM = Severities(  # end (meant to be left out) and step of the factors, which begin at 1
    cifar10=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    imagenet=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
)


@COMMON.add("defocus_blur")
def defocus_blur(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Convolution with a disc; the image is mirrored at its border, which is not repeated."""
    kernel = disc(*DISC[level])
    reach, (height, width) = len(kernel) // 2, x.shape[-2:]
    padded, result = pad(x, [reach] * 4, mode="reflect"), torch.zeros_like(x)
    for row, column in kernel.nonzero().tolist():
        part = padded[:, :, row : row + height, column : column + width]
        result.add_(part, alpha=kernel[row, column].item())
    return result


@lru_cache(maxsize=16)
def disc(radius: float, softness: float) -> Tensor:
    """A disc whose edge a 3 x 3 Gaussian softens, or 5 x 5 if the radius is above 8, without empty rows.

    Below a radius of 1 the disc is one pixel: what remains is the 3 x 3 Gaussian. From 8 on it reaches the
    border of the array in which it is softened, which the published code mirrors there: it then sums to a
    little more than 1 (1.013 at radius 8, 1.011 at 10), and so do the public images.
    """
    half = 8 if radius <= 8 else math.ceil(radius)
    distance = torch.arange(-half, half + 1, dtype=torch.float64)
    inside = (distance[:, None] ** 2 + distance**2 <= radius**2).double()
    taps = torch.arange(-1.0, 2.0) if radius <= 8 else torch.arange(-2.0, 3.0)
    soft = torch.softmax(-(taps.double() ** 2) / (2 * softness**2), 0)
    edge = len(taps) // 2
    padded = pad((inside / inside.sum())[None, None], [edge] * 4, mode="reflect")
    kernel = conv2d(padded, soft[None, None, :, None] * soft)[0, 0]
    kernel = kernel.where(kernel > 1e-9, 0.0)
    empty = int((kernel.sum(1) > 0).nonzero()[0])
    return kernel[empty : len(kernel) - empty, empty : len(kernel) - empty]


@COMMON.add("glass_blur")
def glass_blur(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Gaussian blur, pixels that trade places with near ones, Gaussian blur; bytes in between."""
    sigma, shift, passes = GLASS[level]
    blurred = cut_off(fields.gaussian_blur(x, sigma))
    return fields.gaussian_blur(fields.glass_shuffle(blurred, draws, shift, passes), sigma)


@COMMON.add("motion_blur")
def motion_blur(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Motion to one side, at an angle between -45 and 45 degrees."""
    return fields.motion_blur(x, *MOTION[level], draws.uniform(low=-45, high=45))


@COMMON.add("zoom_blur")
def zoom_blur(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Mean of the image and of its enlargements, of which the first is the image once more."""
    factors = zoom_factors(level)
    return sum((clipped_zoom(x, factor) for factor in factors), start=x) / (len(factors) + 1)


def zoom_factors(level: Level) -> list[float]:
    """By rounding, some ranges end with the factor that was to be left out: 1.06 and 1.11 at 0.01."""
    end, step = ZOOM[level]
    return np.arange(1, end, step).tolist()


def clipped_zoom(x: Tensor, factor: float) -> Tensor:
    """The middle of the images (N, C, H, W), enlarged to their size; corners stay corners.

    The part is ceil(size / factor) pixels wide and becomes round(part * factor), of which the middle is kept:
    at 32 px a factor of 1.01 changes nothing.
    """
    size = x.shape[-2:]
    part = [math.ceil(side / factor) for side in size]
    top, left = ((side - less) // 2 for side, less in zip(size, part))
    inner = x[:, :, top : top + part[0], left : left + part[1]]
    large = [round(less * factor) for less in part]
    zoomed = interpolate(inner, large, mode="bilinear", align_corners=True)
    top, left = ((more - side) // 2 for side, more in zip(size, large))
    return zoomed[:, :, top : top + size[0], left : left + size[1]]
