"""Weather: snow, frost, fog and bright light (Hendrycks and Dietterich, 2019)."""

import torch
from torch import Tensor

from .blur import clipped_zoom
from .catalogue import COMMON, Level, Severities, cut_off
from .draws import Draws
from .fields import motion_blur, plasma
from .frost import textures

SNOW = (
    Severities(  # mean, deviation, zoom, threshold, radius and deviation of the motion, weight of the image
        cifar10=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        imagenet=(
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    )
)
FROST = Severities(  # weights of the image and of the ice
    cifar10=((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    imagenet=((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
)
FOG = Severities(  # strength, decay of the plasma
    cifar10=((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    imagenet=((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
)
LIGHT = Severities(cifar10=(0.05, 0.1, 0.15, 0.2, 0.3), imagenet=(0.1, 0.2, 0.3, 0.4, 0.5))
MAP = {"cifar10": 32, "imagenet": 256}
"""Side of the map of fog; larger images get the next power of two."""
LUMA = (0.299, 0.587, 0.114)


def grey(x: Tensor) -> Tensor:
    """Luma of colour images, (N, 1, H, W); grey ones are their own."""
    return x if x.shape[1] == 1 else (x * x.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)


@COMMON.add("snow")
def snow(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Flakes from thresholded noise, falling to two opposite sides, over an image that is whitened."""
    mean, deviation, zoom, threshold, radius, sigma, weight = SNOW[level]
    noise = clipped_zoom(mean + deviation * draws.normal(1, *x.shape[-2:]), zoom)
    flakes = cut_off(noise.where(noise >= threshold, 0.0).clamp(0, 1)).to(x.device)
    flakes = motion_blur(flakes, radius, sigma, draws.uniform(low=-135, high=-45))
    white = x.maximum(grey(x) * 1.5 + 0.5)
    return weight * x + (1 - weight) * white + flakes + flakes.rot90(2, (2, 3))


@COMMON.add("frost")
def frost(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Ice over the image: a random piece of one of five textures, which are made here (see `textures`).

    For CIFAR-10-C they are shrunk to a fifth; without smoothing, as the published way of shrinking by exactly
    this factor takes every fifth pixel.
    """
    image, ice = FROST[level]
    pictures = textures()
    if level.constants == "cifar10":
        pictures = pictures[:, :, 2::5, 2::5]
    side = pictures.shape[-1]
    which, top, left = draws.integers(0, len(pictures)), draws.integers(0, side), draws.integers(0, side)
    rows = (top[:, None] + torch.arange(x.shape[2])) % side
    columns = (left[:, None] + torch.arange(x.shape[3])) % side
    piece = pictures.movedim(1, -1)[which[:, None, None], rows[:, :, None], columns[:, None, :]].movedim(
        -1, 1
    )
    piece = piece if x.shape[1] == 3 else grey(piece)
    return image * x + ice * piece.to(x)


@COMMON.add("fog")
def fog(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """A plasma is added, and the sum is scaled so that the brightest value stays what it was at most."""
    strength, decay = FOG[level]
    height, width = x.shape[-2:]
    side = max(MAP[level.constants], 1 << (max(height, width) - 1).bit_length())
    haze = plasma(draws, side, decay, (height, width))[:, None].to(x)
    brightest = x.amax((1, 2, 3), keepdim=True)
    return (x + strength * haze) * brightest / (brightest + strength)


@COMMON.add("brightness")
def brightness(x: Tensor, draws: Draws, level: Level) -> Tensor:
    """Raise the value of HSV up to 1; hue and saturation stay, so all channels grow by the same factor."""
    value = x.amax(1, keepdim=True)
    raised = (value + LIGHT[level]).clamp(max=1)
    return (x * (raised / value)).where(value > 0, raised)
