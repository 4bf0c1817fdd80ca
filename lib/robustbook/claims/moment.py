"""Rules for the claims of the moment regulariser paper."""

import pandas as pd

from .core import DIRECTION, NOT_REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, spread

STANDARD_ERRORS = 4.0
RELATIVE_ROUNDING = 1e-5
LARGEST_MEAN_ERROR = 0.10
SMALL_SIGMA = 0.125
PIXELS = 784
NORM_TOLERANCE = 1e-3
GNR_TOLERANCE = 1.0


@rule("MOMENT-C01", "MOMENT-P1")
def theorem_is_exact(table: pd.DataFrame) -> Finding:
    """Monte Carlo agrees within four standard errors in every output."""
    worst = float(table["misses_in_standard_errors"].max())
    samples = int(table["samples"].min())
    text = f"largest miss {worst:.2f} standard errors over {int(table['networks'].sum())} networks, "
    return Finding(
        everywhere(table["misses_in_standard_errors"] <= STANDARD_ERRORS),
        text + f"{samples:,} samples each",
        worst,
    )


@rule("MOMENT-C02", "moments-sigma2")
def squared_weights_suffice(table: pd.DataFrame) -> Finding:
    """Squared convolution weights give the diagonal of A Sigma A' up to rounding."""
    worst = float(table["largest_relative_difference"].max())
    verdict = everywhere(table["largest_relative_difference"] < RELATIVE_ROUNDING)
    return Finding(
        verdict, f"largest relative difference {worst:.1e} over {len(table)} layers and variances", worst
    )


@rule("MOMENT-C03", "MOMENT-E3")
def mean_passes_through(table: pd.DataFrame) -> Finding:
    """The error of equation (3) grows with sigma and is below 10 % at sigma 0.125."""
    growing = [rank_correlation(g["sigma"], g["relative_error"]) for _, g in table.groupby("seed")]
    small = table.loc[table["sigma"] == SMALL_SIGMA, "relative_error"]
    text = (
        f"error {100 * small.mean():.1f} % ± {100 * spread(small):.1f} at sigma {SMALL_SIGMA}, "
        f"rank correlation with sigma {min(growing):.2f}"
    )
    verdict = exceeds(-small, -LARGEST_MEAN_ERROR)
    if min(growing) <= 0:
        verdict = NOT_REPRODUCED
    elif verdict == NOT_REPRODUCED:
        verdict = DIRECTION  # it does grow with sigma, from a higher start
    return Finding(verdict, text, float(small.mean()))


@rule("MOMENT-C04", "MOMENT-E2")
def jensen_bound(table: pd.DataFrame) -> Finding:
    """The loss of the mean prediction never exceeds the mean loss."""
    share = float((table["jensen_holds"] * table["images"]).sum() / table["images"].sum())
    other = float((table["bound_holds_for_approximation"] * table["images"]).sum() / table["images"].sum())
    text = (
        f"holds for {100 * share:.1f} % of {int(table['images'].sum())} images with the sampled mean; "
        f"with equation (3) in its place for {100 * other:.1f} %"
    )
    return Finding(everywhere(table["jensen_holds"] == 1.0), text, share)


@rule("MOMENT-C05", "MOMENT-ENorm", "MOMENT-EGNR")
def fixed_norm_stands_in(norms: pd.DataFrame, gnr: pd.DataFrame) -> Finding:
    """sigma*sqrt(n) is the mean norm within 0.1 %, and GNR moves by less than a point."""
    ratio = float(norms.set_index("dimension")["ratio"][PIXELS])
    by_noise = gnr.pivot(index="seed", columns="noise", values="gnr")
    gap = (by_noise["fixed-norm"] - by_noise["gaussian"]).abs()
    text = (
        f"norm ratio {ratio:.5f} at n = {PIXELS}; GNR differs by {gap.mean():.2f} points ± {spread(gap):.2f}"
    )
    verdict = exceeds(-gap, -GNR_TOLERANCE)
    if abs(ratio - 1) > NORM_TOLERANCE:
        verdict = NOT_REPRODUCED
    return Finding(verdict, text, float(gap.mean()))
