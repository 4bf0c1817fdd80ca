"""How near augmented images come to corrupted ones in an embedding, and how far they spread there.

The thesis embeds by SimCLRv2 (equation 5.8) and by a ResNet-50 (Figure 5.11). Here an embedding is what the
last linear layer of any network is given.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import predict


def embed(model: nn.Module, x: Tensor, *, batch_size: int = 250) -> Tensor:
    """The inputs (N, D) of the network's last linear layer, in evaluation mode and without gradients."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise BookError("the network has no linear layer whose inputs could be an embedding")
    seen: list[Tensor] = []
    handle = layers[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1)))
    try:
        predict(model, x, batch_size=batch_size)
    finally:
        handle.remove()
    return torch.cat(seen)


def cosine_distances(a: Tensor, b: Tensor) -> Tensor:
    """1 - cos of all pairs: (..., I, D) and (..., J, D) give (..., I, J)."""
    if a.shape[-1] != b.shape[-1]:
        raise BookError(f"embeddings of {a.shape[-1]} and {b.shape[-1]} numbers; take both from one network")
    a, b = (part.double() / part.double().norm(dim=-1, keepdim=True).clamp_min(1e-12) for part in (a, b))
    return (1 - a @ b.mT).clamp_min(0)


def nearest(corrupted: Tensor, augmented: Tensor) -> Tensor:
    """The inner part of equation (5.8): for each corrupted image the distance to the nearest augmented one.

    Embeddings (N, C, D) of C corrupted and (N, T, D) of T augmented versions of N images give (N, C).
    The measure of the thesis is the mean of it.
    """
    if corrupted.dim() != 3 or augmented.dim() != 3 or len(corrupted) != len(augmented):
        raise BookError(
            f"embeddings of shape {tuple(corrupted.shape)} and {tuple(augmented.shape)}; "
            "give (N, C, D) and (N, T, D)"
        )
    return cosine_distances(corrupted, augmented).amin(-1)


def total_variance(features: Tensor) -> float:
    """Trace of the covariance of embeddings (T, D)."""
    if features.dim() != 2 or len(features) < 2:
        raise BookError(f"embeddings of shape {tuple(features.shape)}; give (T, D), two or more of them")
    return float(features.double().var(0).sum())


class Plane(NamedTuple):
    """Embeddings on the plane of their first two principal components, (T, 2), and its share of variance."""

    points: Tensor
    share: float


def principal_plane(features: Tensor) -> Plane:
    """Project embeddings (T, D) onto the two directions in which they vary most (Figure 5.11)."""
    centred = features.double() - features.double().mean(0)
    u, s, v = torch.linalg.svd(centred, full_matrices=False)
    sign = v[:2].gather(1, v[:2].abs().argmax(1, keepdim=True)).sign()  # or it would depend on the solver
    points = u[:, :2] * s[:2] * sign[:, 0]
    return Plane(points, float(s[:2].square().sum() / s.square().sum().clamp_min(1e-300)))
