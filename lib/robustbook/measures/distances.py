"""How far adversarial images are from the clean ones."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import predict


class Distances(NamedTuple):
    """One number an image, float64, NaN where the network was not fooled.

    `mean_squared` is the squared l2 distance over the number of values of an image: the scale that
    Foolbox 1 reported (gap U49).
    """

    l2: Tensor
    mean_squared: Tensor


def fooled(model: nn.Module, x_adv: Tensor, y: Tensor, *, batch_size: int = 1000) -> Tensor:
    """Which images, (N,), the network takes for something else than `y`."""
    if y.shape != (len(x_adv),):
        raise BookError(f"labels of shape {tuple(y.shape)} for {len(x_adv)} images; give one an image")
    return predict(model, x_adv, batch_size=batch_size).argmax(1) != y


def distances(x: Tensor, x_adv: Tensor, fooled: Tensor) -> Distances:
    """Distances between clean and adversarial images; 0 where an image was misclassified from the start."""
    if x.shape != x_adv.shape or x.dim() < 2:
        raise BookError(f"images of shape {tuple(x.shape)} and {tuple(x_adv.shape)}; give two equal batches")
    if fooled.dtype != torch.bool or fooled.shape != (len(x),):
        raise BookError("`fooled` must hold one True or False an image: fooled(model, x_adv, y)")
    difference = (x_adv.double() - x.double()).flatten(1)
    l2 = difference.norm(dim=1).where(fooled, torch.nan)
    return Distances(l2, l2.square() / difference.shape[1])
