"""Limited-memory BFGS inside a box, for many problems at once.

Each problem has its own line search and leaves when it is solved. Coordinates on a bound that the slope
presses against are held there; the others follow the two-loop recursion (Nocedal and Wright, 2006,
algorithm 7.4) restricted to them, projected back into the box (Bertsekas, 1982).
"""

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""`objective(rows, points)`: values (M,) and slopes (M, D) of the problems with these numbers."""


def minimise(
    objective: Objective,
    start: Tensor,
    low: Tensor,
    high: Tensor,
    curvature: Tensor,
    *,
    evaluations: int,
    memory: int = 5,
    tolerance: float = 1e-3,
) -> Tensor:
    """Minimise N objectives of D variables between `low` and `high`, all (N, D); returns the points.

    `curvature` (N,) is a guess of the second derivatives, for the first step. A problem is solved when a
    step is shorter than `tolerance` times the distance from 0, and given up after `evaluations`.
    """
    point = start.clamp(low, high)
    result, rows = point.clone(), torch.arange(len(point), device=point.device)
    value, slope = objective(rows, point)
    moves = point.new_zeros(memory, *point.shape)
    bends = torch.zeros_like(moves)
    direction = _direction(slope, _free(point, slope, low, high), moves, bends, curvature)
    length = torch.ones_like(value)
    for _ in range(evaluations - 1):
        trial = (point + length[:, None] * direction).clamp(low[rows], high[rows])
        trial_value, trial_slope = objective(rows, trial)
        move = trial - point
        better = trial_value <= value + 1e-4 * (slope * move).sum(1)  # Armijo; false for NaN
        pair = better & ((move * (trial_slope - slope)).sum(1) > 0)
        moves, bends = _push(moves, move, pair), _push(bends, trial_slope - slope, pair)
        point, slope = trial.where(better[:, None], point), trial_slope.where(better[:, None], slope)
        value = trial_value.where(better, value)
        result[rows] = point
        stays = move.norm(dim=1) > tolerance * point.norm(dim=1)
        rows, length, better = rows[stays], length[stays], better[stays]
        if len(rows) == 0:
            break
        point, slope, value = point[stays], slope[stays], value[stays]
        moves, bends = moves[:, stays], bends[:, stays]
        free = _free(point, slope, low[rows], high[rows])
        fresh = _direction(slope, free, moves, bends, curvature[rows])
        direction = fresh.where(better[:, None], direction[stays])
        length = torch.where(better, 1.0, length / 3)
    return result


def _free(point: Tensor, slope: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Coordinates that the box lets descend."""
    return ~(((point <= low) & (slope > 0)) | ((point >= high) & (slope < 0)))


def _push(history: Tensor, latest: Tensor, wanted: Tensor) -> Tensor:
    """Forget the oldest entry for the latest, for the problems that want it."""
    return torch.cat([history[1:], latest[None]]).where(wanted[None, :, None], history)


def _direction(slope: Tensor, free: Tensor, moves: Tensor, bends: Tensor, curvature: Tensor) -> Tensor:
    """The two-loop recursion among free coordinates; pairs without curvature there count for nothing."""
    vector, moves, bends = slope, moves * free, bends * free
    products = (moves * bends).sum(2)
    usable = products > 1e-10 * bends.square().sum(2)
    weights = torch.where(usable, 1 / products.where(usable, 1.0), 0.0)
    shares = []
    for move, bend, weight in reversed(list(zip(moves, bends, weights))):
        share = weight * (move * vector).sum(1)
        vector = vector - share[:, None] * bend
        shares.append(share)
    vector = vector / curvature[:, None]
    for move, bend, weight, share in zip(moves, bends, weights, reversed(shares)):
        vector = vector + (share - weight * (bend * vector).sum(1))[:, None] * move
    return -vector * free
