"""Mistakes that are named before an image is changed: one line each, with what to do instead."""

import math
from typing import Any

import torch
from torch import Tensor

from ..errors import BookError

SMALLEST = 3


def check_images(x: Tensor) -> None:
    """A batch (N, C, H, W) of floats in [0, 1]."""
    if not isinstance(x, Tensor):
        raise BookError(f"the images are a {type(x).__name__}; give a tensor, torch.as_tensor(...)")
    if x.dim() != 4:
        raise BookError(f"images of shape {tuple(x.shape)}; give a batch (N, C, H, W): x[None] for one image")
    if x.numel() == 0:
        raise BookError(f"no images to augment: their shape is {tuple(x.shape)}")
    if not x.is_floating_point():
        raise BookError(f"images of type {x.dtype}; give floats in [0, 1], such as x.float() / 255")
    if min(x.shape[2:]) < SMALLEST:
        raise BookError(f"images of {x.shape[2]} x {x.shape[3]} pixels; give at least {SMALLEST} a side")
    least, most = x.detach().amin().item(), x.detach().amax().item()
    if not (least >= 0 and most <= 1):  # also where one of them is not a number
        raise BookError(f"images from {least:g} to {most:g}; augment before normalising, in [0, 1]")


def check_generator(generator: torch.Generator) -> None:
    """Whoever draws at random says from where."""
    if not isinstance(generator, torch.Generator):
        raise BookError("augmentations draw at random; give generator=torch.Generator().manual_seed(0)")


def check_counts(**counts: Any) -> None:
    """Whole numbers, 1 or more."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BookError(f"{name}={value!r}; give a whole number, 1 or more")


def check_numbers(*, positive: bool = False, **numbers: Any) -> None:
    """Finite numbers, 0 or more, or above 0."""
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (positive and value == 0):
            raise BookError(
                f"{name}={value!r}; give a {'positive number' if positive else 'number, 0 or more'}"
            )


def per_image(name: str, value: float | Tensor, x: Tensor, *, whole: bool = False) -> Tensor:
    """A number for all images, or one an image, as a tensor (N,): 0 or more, or whole and 1 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Tensor)):
        raise BookError(
            f"{name} of type {type(value).__name__}; give a number, or a tensor with one an image"
        )
    kind = torch.int64 if whole else x.dtype
    if whole and (isinstance(value, float) or (isinstance(value, Tensor) and value.is_floating_point())):
        raise BookError(f"{name}={value!r}; give whole numbers, 1 or more")
    numbers = torch.as_tensor(value, dtype=kind, device=x.device)
    if numbers.dim() and numbers.shape != (len(x),):
        raise BookError(f"{name} of shape {tuple(numbers.shape)} for {len(x)} images; give one an image")
    if not (numbers.isfinite() & (numbers >= int(whole))).all():
        raise BookError(
            f"{name} goes down to {numbers.min().item():g}; give finite numbers, {int(whole)} or more"
        )
    return numbers.expand(len(x))


def each(value: Tensor) -> Tensor:
    """One number an image, (N,), in a shape that multiplies images."""
    return value[:, None, None, None]
