"""The closest point of a half-space or of a plane inside a box, exactly."""

import torch
from torch import Tensor


def boxed_step(normal: Tensor, gap: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest delta in l2 norm with normal . delta >= gap and low <= delta <= high, for N problems.

    All are (N, D) but `gap` (N,), above 0; low <= 0 <= high, infinite where there is no bound. The solution
    is delta = clip(scale * normal, low, high), and what it gains rises with the scale, linearly between the
    scales at which one more value meets its bound: these are sorted, and the right piece is solved.

    Returns
    -------
    delta, scale
        (N, D) and (N,). The scale is infinite, and delta of no use, where the box holds no such point.
    """
    steep = normal.abs()
    bound = torch.where(normal > 0, high, -low).where(steep > 0, 0.0)
    meets = (bound / steep).where(steep > 0, torch.inf)
    meets, order = meets.sort(dim=1)
    steep, bound = steep.gather(1, order), bound.gather(1, order)
    gained = (steep * bound).cumsum(1)  # by the values that have met their bound
    rising = steep.square().flip(1).cumsum(1).flip(1)  # rate of the others, before each meeting
    later = torch.cat([rising[:, 1:], torch.zeros_like(rising[:, :1])], 1)
    reached = gained + (meets * later).where(later > 0, 0.0)
    piece = (reached < gap[:, None]).sum(1, keepdim=True)
    possible = piece[:, 0] < normal.shape[1]
    piece = piece.clamp_max(normal.shape[1] - 1)
    before = torch.cat([torch.zeros_like(gained[:, :1]), gained], 1).gather(1, piece)
    scale = (gap[:, None] - before) / rising.gather(1, piece)
    delta = (scale * normal).clamp(low, high)
    return delta, scale[:, 0].where(possible & scale[:, 0].isfinite(), torch.inf)


def sparse_step(normal: Tensor, gap: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest delta in l1 norm with normal . delta = gap and low <= delta <= high, for N problems.

    Algorithm 1 of the thesis in its signed form (erratum C21): values move to their bounds in the order of
    their slopes, the steepest first, and the last one only as far as is needed. This is the solution of the
    linear program (3.3). Instead of one value after another until a sum of floats is 0, which may never be,
    the place of the last value is read off the sorted sums.

    All are (N, D) but `gap` (N,), of any sign; low <= 0 <= high, infinite where there is no bound.

    Returns
    -------
    delta, possible
        (N, D), and (N,) True or False: where the box does not reach the plane, delta goes as far as it does.
    """
    towards = normal * gap.sign()[:, None]
    steep, order = towards.abs().sort(dim=1, descending=True, stable=True)
    bound = torch.where(towards > 0, high, -low).gather(1, order).where(steep > 0, 0.0)
    reached = (steep * bound).cumsum(1)
    possible = reached[:, -1] >= gap.abs()
    last = (reached < gap.abs()[:, None]).sum(1, keepdim=True)
    before = torch.cat([torch.zeros_like(reached[:, :1]), reached], 1).gather(1, last)
    place = torch.arange(normal.shape[1], device=normal.device)
    rest = ((gap.abs()[:, None] - before) / steep).where(steep > 0, 0.0).minimum(bound)
    moved = bound.where(place < last, rest.where(place == last, 0.0))
    return torch.zeros_like(normal).scatter(1, order, moved) * towards.sign(), possible
