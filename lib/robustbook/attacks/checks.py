"""Mistakes that are named before an attack starts: one line each, with what to do instead."""

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import home

Box = tuple[float, float] | None
"""Lowest and highest value of a pixel; None where the method knows no bounds."""


def check_inputs(model: nn.Module, x: Tensor, y: Tensor, box: Box) -> None:
    """Images and labels are tensors of fitting shapes, finite, inside the box, where the network is."""
    if not isinstance(model, nn.Module):
        raise BookError(f"the network is a {type(model).__name__}; give a torch.nn.Module")
    _check_images(x)
    _check_labels(y, len(x))
    _check_box(x, box)
    for name, tensor in (("images", x), ("labels", y)):
        if tensor.device != home(model):
            place = home(model)
            raise BookError(f"the {name} are on {tensor.device}, the network on {place}; use .to('{place}')")


def _check_images(x: Tensor) -> None:
    if not isinstance(x, Tensor):
        raise BookError(f"the images are a {type(x).__name__}; give a tensor, torch.as_tensor(...)")
    if x.dim() < 2:
        raise BookError(f"images of shape {tuple(x.shape)}; give a batch (N, C, H, W): x[None] for one image")
    if x.numel() == 0:
        raise BookError(f"no images to attack: their shape is {tuple(x.shape)}")
    if not x.is_floating_point():
        raise BookError(f"images of type {x.dtype}; give floats in [0, 1], such as x.float() / 255")
    if not x.isfinite().all():
        raise BookError("the images hold NaN or infinite values; x.isfinite() shows where")


def _check_labels(y: Tensor, count: int) -> None:
    if not isinstance(y, Tensor):
        raise BookError(f"the labels are a {type(y).__name__}; give a tensor, torch.as_tensor(...)")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise BookError(f"labels of type {y.dtype}; give whole numbers, one class an image: y.long()")
    if y.shape != (count,):
        raise BookError(f"labels of shape {tuple(y.shape)} for {count} images; there must be one an image")


def _check_box(x: Tensor, box: Box) -> None:
    if box is None:
        return
    try:
        bounds: list[Any] = list(box)
    except TypeError:
        bounds = []
    if len(bounds) != 2 or not all(isinstance(bound, Real) for bound in bounds):
        raise BookError(f"box={box!r}; give (lowest, highest) or None")
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BookError(f"box={box!r}; give two finite numbers, the lower one first, or None")
    least, most = x.detach().amin().item(), x.detach().amax().item()
    if least < low or most > high:
        raise BookError(
            f"images from {least:g} to {most:g} lie outside the box [{low:g}, {high:g}]; "
            f"use x.clamp({low:g}, {high:g}), or another box="
        )


def check_outputs(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Outputs of the network for `x`, once they have proved to be class scores that know every label."""
    try:
        with torch.no_grad():
            logits = model(x)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise BookError(
            f"the network does not take images of shape {tuple(x.shape[1:])} and type {x.dtype}: {reason}"
        ) from error
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(x) or logits.shape[1] < 2:
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise BookError(f"the network gives {shape} for {len(x)} images; it must give (N, classes >= 2)")
    if not logits.isfinite().all():
        raise BookError("the network gives NaN or infinite scores for the clean images")
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= logits.shape[1]:
        raise BookError(f"labels go from {low} to {high}, but the network has {logits.shape[1]} outputs")
    return logits


def check_generator(generator: torch.Generator | None) -> torch.Generator:
    """An attack that draws at random says from where."""
    if not isinstance(generator, torch.Generator):
        raise BookError("this attack draws at random; give generator=torch.Generator().manual_seed(0)")
    return generator


def check_counts(**counts: Any) -> None:
    """Whole numbers, 1 or more."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BookError(f"{name}={value!r}; give a whole number, 1 or more")


def check_positive(**numbers: Any) -> None:
    """Finite numbers above 0."""
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise BookError(f"{name}={value!r}; give a positive number")


def check_share(**numbers: Any) -> None:
    """Numbers above 0, and 1 at most."""
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < value <= 1:
            raise BookError(f"{name}={value!r}; give a part, above 0 and at most 1")


def needed_box(box: Box, attack: str) -> tuple[float, float]:
    """The bounds, for an attack that cannot do without."""
    if box is None:
        raise BookError(f"{attack} needs a box; give box=(lowest, highest)")
    low, high = box
    return float(low), float(high)
