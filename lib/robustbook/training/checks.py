"""Mistakes that are better named before training than met in the middle of it."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .batches import Source
from .evaluation import evaluating


def check_numbers(*, lr: float, **counts: int | None) -> None:
    """Counts are whole and at least 1 (or None where that means no limit); the learning rate is positive."""
    for name, value in counts.items():
        if value is None and name in ("patience", "max_steps"):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BookError(f"{name}={value!r}; give a whole number, 1 or more")
    if not lr > 0:
        raise BookError(f"lr={lr!r}; give a positive learning rate")


def check_network(model: nn.Module, source: Source, device: torch.device) -> None:
    """The network takes these images, and has an output for every label."""
    x, labels = source.peek()
    try:
        with torch.no_grad(), evaluating(model):
            outputs = model(x[:2].to(device))
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BookError(
            f"the network does not take images of shape {tuple(x.shape[1:])}: {reason}"
        ) from error
    if not isinstance(outputs, Tensor) or outputs.dim() != 2:
        raise BookError("the network must return one row of class scores an image")
    if labels.dim() == 2:
        if labels.shape[1] != outputs.shape[1]:
            raise BookError(f"{labels.shape[1]} class probabilities for {outputs.shape[1]} outputs")
        return
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= outputs.shape[1]:
        raise BookError(
            f"labels go from {low} to {high}, but the network has {outputs.shape[1]} outputs; "
            f"make it with classes={high + 1}"
        )
