"""Rules for the claims of the moment regulariser paper."""

import pandas as pd

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, spread, weakest

STANDARD_ERRORS = 4.0
RELATIVE_ROUNDING = 1e-5
LARGEST_MEAN_ERROR = 0.10
SMALL_SIGMA = 0.125
PIXELS = 784
NORM_TOLERANCE = 1e-3
GNR_TOLERANCE = 1.0
SMALLEST_GAIN, MEDIAN_GAIN = 10.0, 100.0


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


def _by_seed(table: pd.DataFrame, value: str, extra: list[str]) -> pd.DataFrame:
    """`value` with one column a training sigma; a row each for model, data set, seed (and `extra`)."""
    keys = ["model", "data", "seed", *extra]
    return table.pivot_table(index=keys, columns="sigma", values=value)


def _gains(table: pd.DataFrame, value: str, extra: list[str]) -> pd.DataFrame:
    """Ratio to the plain network (sigma 0) of the same model, data set and seed."""
    wide = _by_seed(table, value, extra)
    return wide.drop(columns=0.0).div(wide[0.0], axis=0)


@rule("MOMENT-C13", "MOMENT-T4")
def gnr_grows_with_sigma(table: pd.DataFrame) -> Finding:
    """GNR rises at every step of the training sigma, on LeNet and MNIST."""
    lenet = table[(table["model"] == "LeNet") & table["data"].str.startswith("mnist")]
    wide = _by_seed(lenet, "gnr", [])
    steps = wide.diff(axis=1).iloc[:, 1:]
    verdicts = {exceeds(steps[sigma], 0.0) for sigma in steps}
    above = wide.drop(columns=0.0).sub(wide[0.0], axis=0)
    text = "GNR " + ", ".join(f"{mean:.2f} (sigma {s:g})" for s, mean in wide.mean().items())
    verdict = REPRODUCED if verdicts == {REPRODUCED} else INCONCLUSIVE
    if NOT_REPRODUCED in verdicts:  # a step goes down: at best all sigmas are above none
        risen = {exceeds(above[sigma], 0.0) for sigma in above}
        verdict = DIRECTION if risen == {REPRODUCED} else NOT_REPRODUCED
    return Finding(verdict, text, float(above.mean().max()))


@rule("MOMENT-C14", "MOMENT-T4")
def energies_grow_by_orders(table: pd.DataFrame) -> Finding:
    """All attacks need more energy on LeNet and MNIST: 10 times at least, 100 times in the median."""
    lenet = table[(table["model"] == "LeNet") & table["data"].str.startswith("mnist")]
    gains = _gains(lenet[lenet["attack"] != "DDN"], "mean_squared", ["attack"])
    least = gains.groupby("seed").min().min(axis=1)
    middle = gains.groupby("seed").apply(lambda g: g.stack().median())
    text = f"energy ratio at least {least.mean():.2f}, median {middle.mean():.2f} (the claim: 10 and 100)"
    both = {exceeds(least, SMALLEST_GAIN, null=1.0), exceeds(middle, MEDIAN_GAIN, null=1.0)}
    return Finding(weakest(both), text, float(middle.mean()))


@rule("MOMENT-C15", "MOMENT-T4")
def energies_grow_everywhere(table: pd.DataFrame) -> Finding:
    """Every attack needs more energy for every model, data set and sigma."""
    gains = _gains(table[table["attack"] != "DDN"], "mean_squared", ["attack"])
    each = gains.stack().dropna().groupby(["model", "data", "attack", "sigma"])  # not every sigma everywhere
    cells, width = each.mean(), each.std().fillna(0)
    clear = ((cells - 1) > width).to_numpy()
    worst = float(cells.min())
    text = f"{int((cells > 1).sum())} of {cells.size} cells above 1, smallest ratio {worst:.2f}"
    verdict = everywhere(clear)
    if verdict == NOT_REPRODUCED and ((cells + width) > 1).all():
        verdict = INCONCLUSIVE
    return Finding(verdict, f"{text}; measured on {_scope(table)}", worst)


@rule("MOMENT-C16", "MOMENT-T4")
def gnr_grows_everywhere(table: pd.DataFrame) -> Finding:
    """GNR is above the plain network's for every model and sigma."""
    wide = _by_seed(table, "gnr", [])
    above = wide.drop(columns=0.0).sub(wide[0.0], axis=0)
    groups = [part.dropna(axis=1, how="all") for _, part in above.groupby(["model", "data"])]
    verdicts = {exceeds(part[sigma].dropna(), 0.0) for part in groups for sigma in part}
    worst = float(above.groupby(["model", "data"]).mean().min().min())
    return Finding(
        weakest(verdicts), f"smallest gain {worst:+.2f} points; measured on {_scope(table)}", worst
    )


def _scope(table: pd.DataFrame) -> str:
    pairs = table[["model", "data"]].drop_duplicates().itertuples(index=False)
    return ", ".join(f"{model}/{data}" for model, data in pairs)
