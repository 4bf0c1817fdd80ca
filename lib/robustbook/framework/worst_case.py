"""Worst cases: with H the indicator a score is a statement on margins (framework 2021, Examples 2 and 3).

Where all of the ball keeps the label for sure, it is constant there (equation 6), so that R needs only the
distance from each point to the nearest other label: exact where that is known, bounded from above by whatever
finds a point beyond the boundary.
"""

from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ..errors import BookError
from .classifiers import Classifier, labeller
from .families import Interval
from .manifold import Pool
from .scores import Score, mean_and_error


def score_of_margins(margins: Tensor, density: Interval) -> Score:
    """R_{calQ,1,G} from the margins (N,) of points drawn by G: the mean mass of radii below the margin."""
    _check(margins)
    value, error = mean_and_error(density.below(margins))
    return Score(value, error, float(density.mass), 0.0)


def margin_curve(margins: Tensor, radii: Tensor) -> Tensor:
    """R_{Q_eps,1,p} at each radius: the share of points (N,) without another label closer than that."""
    _check(margins)
    return (margins.double() >= radii.double()[:, None]).double().mean(1)


def area(radii: Tensor, curve: Tensor) -> float:
    """Area under a margin curve by the trapezoidal rule."""
    return float(torch.trapezoid(curve.double(), radii.double()))


def area_in_steps(margins: Tensor) -> float:
    """Area under the margin curve of finitely many points, step by step: exact."""
    edges = margins.double().sort().values
    widths = torch.diff(edges, prepend=torch.zeros(1, dtype=torch.float64))
    heights = 1 - torch.arange(len(edges), dtype=torch.float64) / len(edges)
    return float((widths * heights).sum())


def _check(margins: Tensor) -> None:
    if margins.dim() != 1 or len(margins) == 0 or not (margins >= 0).all():
        raise BookError("margins must be 0 or more, one a point; put the largest radius where none is known")


def pool_margins(f: Any, x: Tensor, pool: Pool, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Distance (N,) to the nearest sample of the pool that `f` labels otherwise, and which one it is.

    It is the exact on-manifold margin where P is the empirical distribution of the pool, for any classifier.
    With the true labels `y` (N,) of the points only samples of the same true label count (type 3). Infinite,
    and index -1, where there is none.
    """
    f = labeller(f)
    other = pool.labels_by(f) != f(x)[:, None]
    if y is not None:
        other &= pool.known().labels == y[:, None]
    distance, index = pool.distances(x).double().where(other, torch.inf).min(1)
    return distance, index.where(distance.isfinite(), -1)


def segment_margins(f: Any, x: Tensor, ends: Tensor, halvings: int = 20) -> Tensor:
    """Distance (N,) from x to where, on the way to `ends`, the label changes: an upper bound of the margin.

    It needs labels alone, so it works for any classifier; the ends (N, ...) must have other labels.
    """
    f = labeller(f)
    own, way = f(x), ends - x
    if (f(ends) == own).any():
        raise BookError("an end has the label of its point; take ends with another one")
    low, high = torch.zeros(len(x)), torch.ones(len(x))
    for _ in range(halvings):
        middle = (low + high) / 2
        changed = f(x + middle.view(-1, *[1] * (x.dim() - 1)) * way) != own
        low, high = low.where(changed, middle), middle.where(changed, high)
    return high.double() * way.flatten(1).double().norm(dim=1)


def grid_margins(f: Any, x: Tensor, side: int, truth: Classifier | None = None) -> Tensor:
    """Margins (N,) in the unit square by brute force over side^2 points; infinite if there is no other label.

    Too large by up to about a cell. With `truth` only points with the true label of x count (type 3).
    """
    if x.shape[1:] != (2,):
        raise BookError(f"points of shape {tuple(x.shape[1:])}; brute force is for the unit square")
    steps = torch.linspace(0, 1, side)
    grid = torch.cartesian_prod(steps, steps)
    f = labeller(f)
    kinds = [f(grid), f(x)] if truth is None else [_pair(f, truth, grid), _pair(f, truth, x)]
    result = torch.full((len(x),), torch.inf, dtype=torch.float64)
    for kind in kinds[1].unique().tolist():
        own = kinds[1] == kind
        others = kinds[0] != kind if truth is None else _same_truth_other_label(kinds[0], kind)
        if others.any():
            tree = cKDTree(grid[others].double().numpy())
            result[own] = torch.from_numpy(np.asarray(tree.query(x[own].double().numpy())[0]))
    return result


PAIR = 1000


def _pair(f: Classifier, truth: Classifier, x: Tensor) -> Tensor:
    return PAIR * truth(x) + f(x)


def _same_truth_other_label(kinds: Tensor, kind: int) -> Tensor:
    return (kinds // PAIR == kind // PAIR) & (kinds != kind)
