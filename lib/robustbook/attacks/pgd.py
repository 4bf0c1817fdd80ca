"""Projected gradient descent: within a budget, and as a search for the smallest budget that is enough."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_generator, check_positive
from .frame import UNIT, attack_correct, clip, crossed, each, lead, loss_slope, width
from .norms import Norm, norm_called


def pgd(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    steps: int = 40,
    step_size: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """PGD of Madry et al. (2018) within `eps`: the first point on its way with another label.

    Parameters
    ----------
    eps, norm
        The budget: no perturbation is larger in "linf" or "l2".
    step_size
        Length of a step in that norm; 2.5 eps / steps if not given.
    generator
        With one the attack starts at a random point of the budget, without at `x`.
    """
    check_positive(eps=eps, step_size=2.5 if step_size is None else step_size)
    check_counts(steps=steps)
    chance = None if generator is None else check_generator(generator)
    length = 2.5 * eps / steps if step_size is None else step_size
    geometry = norm_called(norm)

    def search(x: Tensor, y: Tensor) -> Tensor:
        budget = torch.full((len(x),), eps, dtype=x.dtype, device=x.device)
        start = x if chance is None else clip(x + eps * geometry.draw(x, chance), box)
        return climb(model, x, y, start, budget, budget * (length / eps), geometry, steps, box)[0]

    return attack_correct(model, x, y, box, search)


def climb(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    start: Tensor,
    eps: Tensor,
    length: Tensor,
    norm: Norm,
    steps: int,
    box: Box,
) -> tuple[Tensor, Tensor]:
    """Climb the loss within `eps` (N,) of `x` in steps of `length` (N,); images leave when they are fooled.

    Returns the points reached, and which of them have another label than `y`.
    """
    result, fooled = start.clone(), torch.zeros_like(y, dtype=torch.bool)
    rows, point = torch.arange(len(x), device=x.device), start
    for step in range(steps + 1):
        logits, slope = loss_slope(model, point, y[rows])
        hit = crossed(logits, y[rows])
        result[rows], fooled[rows] = point, hit
        if step == steps or hit.all():
            break
        rows, point, slope = rows[~hit], point[~hit], slope[~hit]
        delta = point + each(length[rows], x) * norm.ascent(slope) - x[rows]
        point = clip(x[rows] + norm.project(delta, eps[rows]), box)
    return result, fooled


@ATTACKS.add("pgd")
def pgd_minimum(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    norm: str = "l2",
    box: Box = UNIT,
    steps: int = 10,
    step_ratio: float = 0.2,
    rounds: int = 14,
    tolerance: float = 0.01,
) -> Tensor:
    """The smallest budget in which PGD succeeds, image by image, by bisection.

    The first budget is the distance to the boundary of the network linearised at `x`. It doubles until
    PGD succeeds; then the budget is bisected, each time from the closest point found so far, drawn back
    into the smaller budget.

    Parameters
    ----------
    steps, step_ratio
        Steps for each budget, and the length of one as a part of the budget.
    rounds, tolerance
        Budgets tried at most; an image leaves when its bracket is narrower than this part of the budget.
    """
    check_counts(steps=steps, rounds=rounds)
    check_positive(step_ratio=step_ratio, tolerance=tolerance)
    if tolerance >= 1:
        raise BookError(f"tolerance={tolerance!r}; give a part of the budget, below 1")
    geometry = norm_called(norm)

    def search(x: Tensor, y: Tensor) -> Tensor:
        best, low = x.clone(), torch.zeros(len(x), dtype=x.dtype, device=x.device)
        high, budget = torch.full_like(low, torch.inf), first_budget(model, x, y, geometry)
        limit = torch.inf if box is None else geometry.size(torch.full_like(x[:1], width(box)))
        for _ in range(rounds):
            rows = ((high.isinf() | (high - low > tolerance * high)) & (low < limit)).nonzero()[:, 0]
            if len(rows) == 0:
                break
            eps = budget[rows]
            start = clip(x[rows] + geometry.project(best[rows] - x[rows], eps), box)
            found, fooled = climb(model, x[rows], y[rows], start, eps, step_ratio * eps, geometry, steps, box)
            hit, size = rows[fooled], geometry.size(found - x[rows])
            best[hit], high[hit] = found[fooled], size[fooled]
            low[rows[~fooled]] = eps[~fooled]
            budget = ((low + high) / 2).where(high.isfinite(), 2 * low)
        return best

    return attack_correct(model, x, y, box, search)


def first_budget(model: nn.Module, x: Tensor, y: Tensor, norm: Norm) -> Tensor:
    """Distance to the boundary if the network were linear in the direction of its loss, (N,)."""
    logits, slope = loss_slope(model, x, y)
    reach = -lead(logits, y) / norm.dual(slope)
    return 1.05 * reach.where(reach.isfinite() & (reach > 0), 1e-3)
