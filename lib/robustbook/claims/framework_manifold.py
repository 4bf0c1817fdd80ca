"""Rules for robustness on the data manifold (framework 2020, section 7; chapter `on_manifold`).

Differences are taken seed by seed: networks of one seed share initial weights, order and held-out images,
and all of them are scored on the same radii and the same samples.
"""

import numpy as np
import pandas as pd

from .core import INCONCLUSIVE, REPRODUCED, Finding, rule
from .decide import exceeds, spread, weakest

BETTER = 0.5
"""Points of accuracy."""
FAR_MORE = 1.5
SAME = 0.02
SEEDS = 3
ROUNDING = 1e-9


def by_seed(table: pd.DataFrame, training: str, column: str) -> pd.Series:
    """A column of one training, by seed."""
    return table[table["training"] == training].set_index("seed")[column].sort_index()


def gap(table: pd.DataFrame, first: str, second: str, column: str) -> np.ndarray:
    """First minus second, seed by seed."""
    return (by_seed(table, first, column) - by_seed(table, second, column)).to_numpy()


def mean_and_spread(values: np.ndarray, digits: int, sign: str = "+") -> str:
    """`+1.93 ± 0.12 (3 seeds)`."""
    count = f"{len(values)} seed" + ("s" if len(values) > 1 else "")
    return f"{values.mean():{sign}.{digits}f} ± {spread(values):.{digits}f} ({count})"


def enough(verdict: str, values: np.ndarray) -> str:
    """With fewer than three seeds nothing is called reproduced."""
    return INCONCLUSIVE if verdict == REPRODUCED and len(values) < SEEDS else verdict


@rule("FW20-C08", "FW20-T4")
def better_generalisation(table: pd.DataFrame) -> Finding:
    """Accuracy of R4 training minus that of on-manifold adversarial training is above half a point."""
    found = gap(table, "R4", "Stutz", "accuracy")
    text = f"accuracy of R4 minus that of Stutz et al.: {mean_and_spread(found, 2)} points"
    return Finding(enough(exceeds(found, BETTER, null=0.0), found), text, float(found.mean()))


@rule("FW20-C09", "FW20-T4")
def higher_manifold_score(table: pd.DataFrame) -> Finding:
    """R4 of R4 training is not below that of on-manifold adversarial training, on one Sigma."""
    found = gap(table, "R4", "Stutz", "r4")
    bounds = f"floor {table['floor'].mean():.4f}, ceiling {table['ceiling'].mean():.4f}"
    text = f"R4 of R4 training minus that of Stutz et al.: {mean_and_spread(found, 4)} ({bounds})"
    return Finding(enough(exceeds(found, -ROUNDING), found), text, float(found.mean()))


@rule("FW20-C10", "FW20-T5")
def trained_for_margins(table: pd.DataFrame) -> Finding:
    """The R2 score of R2 training is more than one and a half times that of R4 training."""
    ratio = (by_seed(table, "R2", "r2") / by_seed(table, "R4", "r2")).to_numpy()
    means = " and ".join(f"{by_seed(table, name, 'r2').mean():.3f}" for name in ("R2", "R4"))
    text = f"R2 of R2 over that of R4 training: {mean_and_spread(ratio, 2, '')}; means {means}"
    return Finding(enough(exceeds(ratio, FAR_MORE, null=1.0), ratio), text, float(ratio.mean()))


@rule("FW20-C11", "FW20-T5")
def same_manifold_score(table: pd.DataFrame) -> Finding:
    """R4 of the two trainings differs by at most 2 %."""
    off = np.abs(gap(table, "R2", "R4", "r4")) / by_seed(table, "R4", "r4").to_numpy()
    text = f"R4 of R2 and R4 training differ by {100 * off.mean():.2f} ± {100 * spread(off):.2f} %"
    if {"floor", "ceiling"} <= set(table.columns):
        floor = (table["floor"] / table["ceiling"]).mean()
        text += f"; no classifier can have less than {100 * floor:.0f} % of the ceiling"
    return Finding(enough(exceeds(-off, -SAME), off), text, float(off.mean()))


@rule("FW20-C12", "FW20-T5")
def best_accuracy(table: pd.DataFrame) -> Finding:
    """R4 training has a higher accuracy than R2 training, and not a lower one than no regularisation."""
    margin, none = (gap(table, "R4", name, "accuracy") for name in ("R2", "none"))
    verdict = weakest({enough(exceeds(margin, 0.0), margin), enough(exceeds(none, -ROUNDING), none)})
    text = (
        f"accuracy of R4 minus that of R2 training: {mean_and_spread(margin, 2)} points; "
        f"minus that without a regulariser: {mean_and_spread(none, 2)} points"
    )
    return Finding(verdict, text, float(margin.mean()))
