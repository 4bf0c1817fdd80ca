"""FAB: the fast adaptive boundary attack (Croce and Hein, 2020) in linf, towards one class at a time."""

import torch
from torch import Tensor, nn

from .checks import Box, check_counts
from .frame import UNIT, attack_correct, clip, crossed, each
from .norms import TINY, largest, total
from .tangents import rivals

STRIDE, BACK, TOWARDS = 1.05, 0.9, 0.1
"""Eta, how far beyond the plane a step goes; beta, the way back to x; the largest share of x itself."""
DOUBLINGS, HALVINGS = 40, 25


def fab(
    model: nn.Module, x: Tensor, y: Tensor, *, box: Box = UNIT, steps: int = 100, targets: int = 9
) -> Tensor:
    """The smallest perturbation in linf that FAB finds towards each of the `targets` best other classes.

    In each step the boundary between label and class is taken for a plane; the next point lies between the
    projections on it of the present point and of `x` itself, inside the box. Where the label has changed the
    point goes back towards `x`.
    """
    check_counts(steps=steps, targets=targets)

    def search(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            logits = model(x)
        others = rivals(logits, y, logits.shape[1])[:, :targets]
        best, least = x.clone(), torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
        for aim in others.T:
            found, size = _towards(model, x, y, aim, box, steps)
            closer = size < least
            best, least = found.where(each(closer, x), best), size.where(closer, least)
        return best

    return attack_correct(model, x, y, box, search)


def _towards(
    model: nn.Module, x: Tensor, y: Tensor, aim: Tensor, box: Box, steps: int
) -> tuple[Tensor, Tensor]:
    """The closest point found on the way to one class an image, and its distance, infinite if none."""
    bounds = (-torch.inf, torch.inf) if box is None else box
    low, high = (torch.full_like(x, bound) for bound in bounds)
    point, best = x, x.clone()
    least = torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
    for _ in range(steps):
        slope, gap = _plane(model, point, y, aim)
        own = plane_step(slope, gap, low - point, high - point)
        past = (slope * (point - x)).flatten(1).sum(1)
        whole = plane_step(slope, gap + past, low - x, high - x)
        here, there = largest(own), largest(whole)
        share = each((here / (here + there).clamp_min(TINY)).clamp_max(TOWARDS), x)
        point = clip((1 - share) * (point + STRIDE * own) + share * (x + STRIDE * whole), box)
        with torch.no_grad():
            hit, size = crossed(model(point), y), largest(point - x)
        closer = hit & (size < least)
        best, least = point.where(each(closer, x), best), size.where(closer, least)
        point = (x + BACK * (point - x)).where(each(hit, x), point)
    return best, least


def _plane(model: nn.Module, point: Tensor, y: Tensor, aim: Tensor) -> tuple[Tensor, Tensor]:
    """Slope of the score of `aim` minus that of `y`, and what it lacks to 0."""
    point = point.detach().requires_grad_()
    logits = model(point)
    rise = logits.gather(1, aim[:, None])[:, 0] - logits.gather(1, y[:, None])[:, 0]
    (slope,) = torch.autograd.grad(rise.sum(), point)
    return slope, -rise.detach()


def plane_step(slope: Tensor, gap: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The smallest delta in linf with slope . delta = gap and low <= delta <= high; all (N, ...), gap (N,).

    It is length * sign(slope), clipped, at the length that closes the gap, found by doubling and bisection:
    what is gained only grows with it. Where the box leaves too little room, the end of the room.
    """
    slope = slope * each(torch.where(gap < 0, -1.0, 1.0).to(slope.dtype), slope)
    gap, way = gap.abs(), slope.sign()

    def step(length: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(each(length, slope) * way, low), high)

    def short(length: Tensor) -> Tensor:
        return (slope * step(length)).flatten(1).sum(1) < gap

    near = gap / total(slope).clamp_min(TINY)  # enough without a box, too short with one
    far = near.clone()
    for _ in range(DOUBLINGS):
        left = short(far)
        if not left.any():
            break
        near, far = far.where(left, near), (2 * far).where(left, far)
    for _ in range(HALVINGS if bool((far > near).any()) else 0):
        middle = (near + far) / 2
        left = short(middle)
        near, far = middle.where(left, near), far.where(left, middle)
    return step(far)
