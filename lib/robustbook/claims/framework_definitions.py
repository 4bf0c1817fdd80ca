"""Rules for the framework papers' definitions, examples and Proposition 6 (chapter `framework`)."""

import numpy as np
import pandas as pd

from .core import Finding, rule
from .decide import everywhere

STANDARD_ERRORS = 3.0
LARGEST_OF_HUNDREDS = 4.0
"""Standard errors within which the worst of some hundred inequalities may miss by chance."""
AGREEMENT = 0.99
AREA_TOLERANCE = 0.01
SUCCESS_TOLERANCE = 0.005
IDENTITY = 1e-6
ROUNDING = 1e-9
PLANE = 2


@rule("FW21-C01", "FW21-D3", "FW21-D2")
def constant_is_maximal(scores: pd.DataFrame, measures: pd.DataFrame) -> Finding:
    """R of a constant classifier is that of every other or larger, and its rho is 1 everywhere."""
    keys = ["problem", "definition", "seed"]
    constant = scores[scores["model"] == "constant"].set_index(keys)
    others = scores[scores["model"] != "constant"].set_index(keys)
    gap = constant["value"].reindex(others.index) - others["value"]
    full = (constant["value"] - constant["ceiling"]).abs() <= ROUNDING * constant["ceiling"].abs()
    kept = measures.loc[measures["model"] == "constant", "least_rho"] == 1
    verdict = everywhere(np.concatenate([gap >= -ROUNDING, full, kept]))
    kinds = scores[["problem", "definition"]].drop_duplicates()
    text = (
        f"none of {len(gap)} scores (by {len(kinds)} choices of Q, H, G) exceeds the constant classifier's, "
        if (gap >= -ROUNDING).all()
        else f"{int((gap < -ROUNDING).sum())} of {len(gap)} scores exceed the constant classifier's, "
    )
    least = measures.loc[measures["model"] == "constant", "least_rho"].min()
    return Finding(verdict, f"{text}whose least rho is {least:g}", float(gap.min()))


@rule("FW21-C02", "FW21-DEx2")
def score_is_average_margin(table: pd.DataFrame) -> Finding:
    """In the plane d*R is within three standard errors of the mean margin, for each known classifier."""
    dense = table[(table["dimension"] == PLANE) & (table["draws"] == table["draws"].max())]
    gap = (dense["scaled_score"] - dense["mean_margin"]).abs()
    misses = gap / dense["standard_error"]
    near = gap <= 0.1 * dense["mean_margin"]
    text = (
        f"d R misses the mean margin by at most {misses.max():.2f} standard errors ({len(dense)} estimates)"
    )
    return Finding(everywhere(misses <= STANDARD_ERRORS, near), text, float(misses.max()))


@rule("FW21-C03", "FW21-E6")
def for_sure_is_for_all(table: pd.DataFrame) -> Finding:
    """In the plane "no draw changes the label" is "margin >= eps" for 99 % of pairs away from equality."""
    dense = table[(table["dimension"] == PLANE) & (table["draws"] == table["draws"].max())]
    least = float(dense["agreement"].min())
    high = table[(table["dimension"] == table["dimension"].max()) & (table["draws"] == table["draws"].max())]
    text = f"agreement at least {100 * least:.2f} % of {int(dense['pairs'].sum())} pairs in the plane"
    if table["dimension"].max() > PLANE:
        text += f" ({100 * high['agreement'].min():.0f} % in {int(table['dimension'].max())} dimensions)"
    return Finding(everywhere(dense["agreement"] >= AGREEMENT), text, least)


@rule("FW21-C04", "FW21-DEx3")
def area_is_mean_distance(table: pd.DataFrame) -> Finding:
    """The curve is one minus the success rate, and its area the mean distance within 1 %."""
    table = table[table["model"] != "constant"]
    off = (table["area"] / table["mean_distance"] - 1).abs()
    text = (
        f"area within {100 * off.max():.2f} % of the mean distance for {len(table)} classifiers; curve and "
        f"success rate differ by at most {100 * table['success_gap'].max():.2f} points"
    )
    counted = table["success_gap"].isna() | (table["success_gap"] <= SUCCESS_TOLERANCE)
    met = (off <= AREA_TOLERANCE) & counted
    return Finding(everywhere(met, off <= 10 * AREA_TOLERANCE), text, float(off.max()))


@rule("FW21-C05", "FW21-DEx4")
def truth_is_fully_label_aware(table: pd.DataFrame) -> Finding:
    """With f = Y the label-aware score is 1, and not below the label-agnostic one, at every eps."""
    own = table[table["model"] == "truth"]
    met = (own["label_aware"] == 1) & (own["label_aware"] >= own["label_agnostic"])
    text = (
        f"label-aware score {own['label_aware'].min():g} at all {len(own)} radii, where the label-agnostic "
        f"one goes from {own['label_agnostic'].max():.2f} to {own['label_agnostic'].min():.2f}"
    )
    return Finding(everywhere(met), text, float(own["label_aware"].min()))


@rule("FW21-C06", "FW21-P6")
def accuracy_after_shift(table: pd.DataFrame) -> Finding:
    """For every pair of a model and a shift: accuracy >= alpha - eps - delta, but for sampling error."""
    slack, error = table["slack"], table["error"]
    below = int((slack < 0).sum())
    worst = float((slack / error.where(error > ROUNDING, np.inf)).min())
    text = (
        f"{len(table)} pairs of a model and a shift; the bound is missed by {below}, by at most "
        f"{max(0.0, -worst):.2f} standard errors; median slack {100 * slack.median():.1f} points"
    )
    met = slack >= -LARGEST_OF_HUNDREDS * error - ROUNDING
    return Finding(everywhere(met), text, float(slack.min()))


@rule("FW20-C13", "FW20-E10")
def area_is_weighted_margin(table: pd.DataFrame) -> Finding:
    """Area under the empirical curve and mean margin are one number; in the plane also the integral."""
    off = (table["area"] / table["mean_margin"] - 1).abs()
    plane = table.dropna(subset="integral")
    gap = (plane["integral"] - plane["mean_margin"]).abs()
    near = gap <= np.maximum(STANDARD_ERRORS * plane["margin_error"], AREA_TOLERANCE * plane["mean_margin"])
    misses = (gap / plane["margin_error"])[plane["margin_error"] > ROUNDING]
    text = (
        f"relative difference at most {off.max():.1e} over {len(table)} classifiers; the integral of margin "
        f"times density is within {misses.max():.1f} standard errors of it"
    )
    verdict = everywhere(np.concatenate([off <= IDENTITY, near]), off <= AREA_TOLERANCE)
    return Finding(verdict, text, float(off.max()))
