"""Cross-Lipschitz regularisation (Hein and Andriushchenko 2017), the papers' HEIN method (gap U4).

Omega = 1/(n K^2) sum_i sum_{l,m} ||grad f_l(x_i) - grad f_m(x_i)||^2, with f the logits. It is differentiated
again when a network is trained, so everything here keeps the graph of its gradients.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..errors import BookError


def cross_lipschitz(logits: Tensor, x: Tensor) -> Tensor:
    """Omega of a batch, exactly: logits (N, K) computed from `x` (N, ...), which requires gradients.

    With g_l the gradient of the l-th logit, Omega = 2/(nK) sum_i [sum_l ||g_l||^2 - ||sum_l g_l||^2 / K]:
    K backward passes instead of K^2.
    """
    classes = logits.shape[1]
    slopes = [_slopes(logits[:, k].sum(), x) for k in range(classes)]
    squares = torch.stack([slope.square().sum() for slope in slopes]).sum()
    together = torch.stack(slopes).sum(0).square().sum()
    return 2 / (len(x) * classes) * (squares - together / classes)


def projected_cross_lipschitz(logits: Tensor, x: Tensor, directions: Tensor) -> Tensor:
    """An estimate of Omega without bias from random directions (M, N, K): M backward passes.

    For z with independent entries of mean 0 and variance 1, v = z - mean(z) has covariance I - 11^T/K, so the
    mean of ||sum_l v_l g_l||^2 is sum_l ||g_l||^2 - ||sum_l g_l||^2 / K.
    """
    count, classes = len(directions), logits.shape[1]
    total = torch.zeros((), dtype=logits.dtype, device=logits.device)
    for z in directions:
        total = total + _slopes((logits * (z - z.mean(1, keepdim=True))).sum(), x).square().sum()
    return 2 / (count * len(x) * classes) * total


def signs(count: int, logits: Tensor) -> Tensor:
    """`count` random directions (M, N, K) of entries 1 and -1, from torch's own stream.

    `fit` gives that stream a seed of its own and puts back the old state afterwards.
    """
    shape = (count, *logits.shape)
    return torch.randint(0, 2, shape, device=logits.device).to(logits.dtype).mul_(2).sub_(1)


def _slopes(value: Tensor, x: Tensor) -> Tensor:
    """Gradient for every image of a batch; with batch normalisation in training, of the batch as a whole."""
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    return slope


@dataclass(frozen=True)
class CrossLipschitzLoss:
    """Cross-entropy + weight * Omega; `projections` = 0 computes Omega exactly."""

    weight: float
    projections: int = 1

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs."""
        x = x.detach().requires_grad_()
        logits = model(x)
        if self.projections:
            penalty = projected_cross_lipschitz(logits, x, signs(self.projections, logits))
        else:
            penalty = cross_lipschitz(logits, x)
        return cross_entropy(logits, y) + self.weight * penalty, logits


def cross_lipschitz_loss(weight: float, *, projections: int = 1) -> CrossLipschitzLoss:
    """The loss for `fit`: `weight` is lambda, `projections` the random directions a step (0: all classes)."""
    if not weight >= 0:
        raise BookError(f"weight={weight!r}; give a number, 0 or more")
    if isinstance(projections, bool) or not isinstance(projections, int) or projections < 0:
        raise BookError(f"projections={projections!r}; give a whole number, 0 for the exact penalty")
    return CrossLipschitzLoss(weight, projections)
