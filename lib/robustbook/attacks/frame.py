"""What all attacks share: the frame around a search, and slopes of the loss.

Every attack is `attack(model, x, y, *, box=(0, 1), ...) -> x_adv`. An image that is misclassified
already, and one that cannot be fooled, comes back unchanged: whoever compares predictions tells them apart.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..training.evaluation import evaluating
from .checks import Box, check_inputs, check_outputs

UNIT: Box = (0.0, 1.0)
TIE = 100
"""By how many units of rounding of the largest score another class must win: the last bits of the scores
change with the size of the batch, the verdict should not."""

Search = Callable[[Tensor, Tensor], Tensor]


def attack_correct(model: nn.Module, x: Tensor, y: Tensor, box: Box, search: Search) -> Tensor:
    """Run `search(x, y)` on the images classified as `y` and keep what it finds where the label changes.

    Around the search the network is in evaluation mode and gradients are on; afterwards all is as before.
    """
    check_inputs(model, x, y, box)
    x, y = x.detach(), y.long()
    with evaluating(model), torch.enable_grad():
        rows = (check_outputs(model, x, y).argmax(1) == y).nonzero()[:, 0]
        result = x.clone()
        if len(rows):
            found = clip(search(x[rows], y[rows]).detach(), box)
            with torch.no_grad():
                logits = model(found)
            fooled = (logits.argmax(1) != y[rows]) & logits.isfinite().all(1)
            result[rows[fooled]] = found[fooled]
    return result


def clip(x: Tensor, box: Box) -> Tensor:
    """`x` inside the box, if there is one."""
    return x if box is None else x.clamp(*box)


def width(box: Box) -> float:
    """The unit in which scales are given: the width of the box, or 1."""
    return 1.0 if box is None else box[1] - box[0]


def each(value: Tensor, like: Tensor) -> Tensor:
    """One number an image, (N,), in a shape that multiplies images."""
    return value.reshape(-1, *[1] * (like.dim() - 1))


def lead(logits: Tensor, y: Tensor) -> Tensor:
    """Score of the best other class minus that of `y`: negative as long as the label stands."""
    others = logits.scatter(1, y[:, None], -torch.inf)
    return others.amax(1) - logits.gather(1, y[:, None])[:, 0]


def crossed(logits: Tensor, y: Tensor) -> Tensor:
    """Is the label changed, by more than rounding? False where a score is not a number."""
    return lead(logits, y) > TIE * torch.finfo(logits.dtype).eps * logits.abs().amax(1)


def loss_slope(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs, and a gradient in the direction of the cross-entropy's.

    Cross-entropy is softplus(m), m = log sum_{k != y} exp f_k - f_y. Its gradient points where that of m
    points, and only the latter does not vanish in rounding where the network is very sure.
    """
    x = x.detach().requires_grad_()
    logits = model(x)
    others = logits.scatter(1, y[:, None], -torch.inf)
    rise = others.logsumexp(1) - logits.gather(1, y[:, None])[:, 0]
    (slope,) = torch.autograd.grad(rise.sum(), x)
    return logits.detach(), slope
