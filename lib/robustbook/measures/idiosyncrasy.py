"""What the idiosyncrasy paper measures: robustness apart from accuracy, a distance score, shrunken fits.

For linear models on `datasets.parts.TwoClasses` both sides of Remark 1 have closed forms.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from ..datasets.parts import TwoClasses
from ..errors import BookError
from ..training.evaluation import predict

NODES = 201
"""Points of the quadrature over the ball: more change nothing in double precision."""


def ball(x: Tensor, radius: float, *, generator: torch.Generator) -> Tensor:
    """Perturbations in the shape of `x`, one a sample, uniform in the l2 ball of this radius."""
    if not 0 <= radius < math.inf:
        raise BookError(f"radius={radius!r}; give 0 or more")
    flat = torch.randn(x.shape, generator=generator, dtype=x.dtype).flatten(1)
    length = torch.rand(len(flat), 1, generator=generator, dtype=x.dtype) ** (1 / flat.shape[1])
    return (radius * length * flat / flat.norm(dim=1, keepdim=True)).reshape(x.shape)


def expected_robustness(
    model: nn.Module, x: Tensor, y: Tensor, radius: float, *, generator: torch.Generator, draws: int = 1
) -> float:
    """Equation (4): mean accuracy under perturbations of norm at most `radius`, minus the accuracy without.

    The perturbations are uniform in the l2 ball, the same number of draws an image; images are not clipped.
    """
    clean = (predict(model, x).argmax(1) == y).double().mean().item()
    kept = [predict(model, x + ball(x, radius, generator=generator)).argmax(1) == y for _ in range(draws)]
    return torch.stack(kept).double().mean().item() - clean


def distance_score(x: Tensor, x_adv: Tensor, right: Tensor, fooled: Tensor) -> Tensor:
    """d_i of the idiosyncrasy paper, (N,): squared l2 distance where a right answer became wrong, else 0.

    A sample that cannot be fooled counts as 0, like one that is wrong from the start (gap C14).
    """
    if x.shape != x_adv.shape or right.shape != (len(x),) or fooled.shape != (len(x),):
        raise BookError("give two equal batches and for each image whether it was right and is fooled")
    distance = (x_adv.double() - x.double()).flatten(1).square().sum(1)
    return distance.where(right & fooled, 0.0)


def linear_accuracy(data: TwoClasses, weight: float) -> float:
    """Closed form of (3) for the linear model that reads X_D with `weight`."""
    return _normal(_signal(data, weight) / _noise(data, weight))


def linear_robustness(data: TwoClasses, weight: float, radius: float, *, worst: bool = False) -> float:
    """Closed form of (4) for that model: perturbations uniform in the ball, or the `worst` ones in it.

    One coordinate t of a uniform point of the n-dimensional unit ball has density ~ (1 - t^2)^((n-1)/2), and
    a perturbation moves the score by |w| radius t; the worst one by |w| radius.
    """
    signal, noise = _signal(data, weight), _noise(data, weight)
    reach = radius * math.sqrt(1 + weight**2)
    if worst:
        return _normal((signal - reach) / noise) - linear_accuracy(data, weight)
    points, weights = np.polynomial.legendre.leggauss(NODES)
    density = weights * (1 - points**2) ** (data.dimension / 2)
    values = np.array([_normal((signal - reach * t) / noise) for t in points])
    return float(density @ values / density.sum()) - linear_accuracy(data, weight)


def _signal(data: TwoClasses, weight: float) -> float:
    return data.mean + weight * data.size


def _noise(data: TwoClasses, weight: float) -> float:
    return math.hypot(data.spread, weight * data.noise)


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def least_squares(x: Tensor, t: Tensor) -> Tensor:
    """The smallest weights (D, K) that minimise the squared error of x (N, D) for targets t (N, K)."""
    return torch.linalg.lstsq(x, t, driver="gelsd").solution


def least_absolute(x: Tensor, t: Tensor) -> Tensor:
    """Weights (D, K) that minimise the absolute error, by linear programming; 0 where x is always 0.

    The program of one target: minimise the sum of u subject to -u <= x w - t <= u.
    """
    from scipy.optimize import linprog  # slow to import, and few measures need it

    used = (x != 0).any(0)
    rows, columns = len(x), int(used.sum())
    a, one = x[:, used].numpy(), np.eye(rows)
    limits = np.block([[a, -one], [-a, -one]])
    cost = np.concatenate([np.zeros(columns), np.ones(rows)])
    bounds = [(None, None)] * columns + [(0, None)] * rows
    found = torch.zeros(x.shape[1], t.shape[1], dtype=torch.float64)
    for k in range(t.shape[1]):
        right = np.concatenate([t[:, k].numpy(), -t[:, k].numpy()])
        solved = linprog(cost, limits, right, bounds=bounds, method="highs")
        if not solved.success:
            raise BookError(f"no least absolute error for {rows} samples: {solved.message}")
        found[used, k] = torch.from_numpy(solved.x[:columns])
    return found
