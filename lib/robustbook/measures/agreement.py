"""Do measures order networks alike? Rank correlations between them, with bootstrap intervals."""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from ..errors import BookError


def rank_correlations(table: pd.DataFrame, *, draws: int, seed: int) -> pd.DataFrame:
    """Spearman's correlation of every pair of measures over networks, and its 95 % bootstrap interval.

    Parameters
    ----------
    table
        Columns `network`, `seed`, `measure`, `value`; every network with the same seeds and measures. A
        network's value is its mean over seeds.
    draws
        Resamples: of networks, and within each network of its seeds.
    """
    wide = table.pivot_table(index=["network", "seed"], columns="measure", values="value", sort=False)
    networks = list(dict.fromkeys(wide.index.get_level_values("network")))
    cubes = [wide.loc[name].to_numpy() for name in networks]
    if len({cube.shape for cube in cubes}) != 1:
        raise BookError("networks with different numbers of seeds cannot be compared; measure all of them")
    cube = np.stack(cubes)  # networks, seeds, measures
    rng = np.random.default_rng(seed)
    again = np.stack([_matrix(_resampled(cube, rng)) for _ in range(draws)])
    now, lines = _matrix(cube.mean(1)), []
    for i, j in combinations(range(cube.shape[2]), 2):
        found = again[:, i, j][np.isfinite(again[:, i, j])]
        low, high = np.percentile(found, [2.5, 97.5]) if len(found) else (np.nan, np.nan)
        names = {"first": wide.columns[i], "second": wide.columns[j]}
        lines.append({**names, "correlation": now[i, j], "low": low, "high": high, "networks": len(networks)})
    return pd.DataFrame(lines)


def _matrix(values: np.ndarray) -> np.ndarray:
    """Spearman's correlations (M, M) of the columns (N, M); NaN where one does not vary."""
    ranks = rankdata(values, axis=0)
    ranks = ranks - ranks.mean(0)
    size = np.sqrt((ranks**2).sum(0))
    with np.errstate(invalid="ignore"):
        return np.asarray(
            (ranks.T @ ranks) / np.where(size[:, None] * size > 0, size[:, None] * size, np.nan)
        )


def _resampled(cube: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Networks drawn with replacement, each with the mean over seeds drawn with replacement."""
    count, seeds, _ = cube.shape
    chosen = rng.integers(count, size=(count, 1))
    some = rng.integers(seeds, size=(count, seeds))
    return cube[chosen, some].mean(1)
