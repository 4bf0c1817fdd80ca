"""Looking at a network without changing it."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..errors import BookError


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards every layer has the mode it had before."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def home(model: nn.Module) -> torch.device:
    """The device a network lives on."""
    return next((tensor.device for tensor in model.parameters()), torch.device("cpu"))


def predict(
    model: nn.Module, x: Tensor, *, batch_size: int = 1000, device: torch.device | str | None = None
) -> Tensor:
    """Outputs of the network for images `x`, in evaluation mode and without gradients.

    Computed on `device` (default: where the network is) in batches; returned where `x` is.
    """
    if len(x) == 0:
        raise BookError("no images to predict: there are 0")
    device = home(model) if device is None else torch.device(device)
    with torch.no_grad(), evaluating(model):
        parts = [model(part.to(device)).to(x.device) for part in x.split(batch_size)]
    return torch.cat(parts)


def correct(logits: Tensor, y: Tensor) -> int:
    """How many predictions equal their label; labels may be class probabilities."""
    labels = y if y.dim() == 1 else y.argmax(1)
    return int((logits.argmax(1) == labels).sum())
