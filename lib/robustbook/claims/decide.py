"""The few ways in which rules turn numbers into verdicts.

The spread is the standard deviation over seeds. A rule that is met by less than the spread is
inconclusive: another seed could have said the opposite.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED


def spread(values: Sequence[float] | np.ndarray) -> float:
    """Standard deviation over seeds; zero for a single value."""
    array = np.asarray(values, dtype=float)
    return float(array.std(ddof=1)) if array.size > 1 else 0.0


def exceeds(values: Any, threshold: float, *, null: float | None = None) -> str:
    """Is the mean over seeds above `threshold`, beyond the spread?

    Missing the threshold but staying above `null` (no effect), beyond the spread, is 'direction only'.
    For "below", pass negated values and thresholds.
    """
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.size == 0 or not np.isfinite(array).all():
        return INCONCLUSIVE
    mean, width = float(array.mean()), spread(array)
    if mean - threshold > width:
        return REPRODUCED
    if abs(mean - threshold) <= width and width > 0:
        return INCONCLUSIVE
    if null is not None and mean - null > width:
        return DIRECTION
    return NOT_REPRODUCED


def everywhere(met: Any, direction: Any = None) -> str:
    """A rule that must hold in every cell: all cells met, else the sign in all, else not."""
    cells = np.atleast_1d(np.asarray(met, dtype=bool))
    if cells.size and cells.all():
        return REPRODUCED
    if direction is not None and np.asarray(direction, dtype=bool).all():
        return DIRECTION
    return NOT_REPRODUCED


def weakest(verdicts: set[str]) -> str:
    """The verdict on a claim that needs all of several things."""
    return next(v for v in (NOT_REPRODUCED, INCONCLUSIVE, DIRECTION, REPRODUCED) if v in verdicts)


def rank_correlation(x: Any, y: Any) -> float:
    """Spearman's rank correlation; 0 where one side is constant."""
    from scipy import stats  # slow to import, and most commands judge nothing

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(stats.spearmanr(x, y).statistic)
