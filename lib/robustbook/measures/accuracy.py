"""Accuracy."""

from typing import Any

import torch
from torch import nn

from ..errors import BookError
from ..training.evaluation import correct, predict


def accuracy(
    model: nn.Module, data: Any, *, batch_size: int = 1000, device: torch.device | str | None = None
) -> float:
    """Fraction of images in `data`, a pair (images, labels), whose prediction is the label."""
    x, y = data
    if len(x) != len(y):
        raise BookError(f"{len(x)} images but {len(y)} labels; there must be one label an image")
    return correct(predict(model, x, batch_size=batch_size, device=device), y) / len(y)
