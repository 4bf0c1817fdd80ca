"""Rules for the thesis' sections 4.2 and 4.3: margins and discriminative features."""

import math

import numpy as np
import pandas as pd

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, PAPER_SCALE, REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, spread, weakest

EPS, FAR = 5.0, 1e3
"""Feature size of T1; and the ratio that stands for "no boundary found"."""


def by_subspace(table: pd.DataFrame, value: str = "margin_50") -> pd.DataFrame:
    """Margins on T1 in the reading of the tables: a row a seed, a column a subspace."""
    table = table[table["reading"] == "half"]
    return table.pivot(index="seed", columns="subspace", values=value)


@rule("THESIS-C17", "THESIS-T4.1")
def feature_direction_is_nearest(table: pd.DataFrame) -> Finding:
    """margin(u_1) < 0.5 margin(complement), and margin(complement) < margin(S_orth), in the median."""
    wide = by_subspace(table)
    first, rest, orth = wide["u_1"], wide["span{u_1}_perp"], wide["S_orth"]
    verdicts = {exceeds(rest / first, 2.0, null=1.0), exceeds(orth / rest, 1.0)}
    text = f"median margins {first.mean():.2f} along u_1, {rest.mean():.2f} and {orth.mean():.2f} elsewhere"
    return Finding(weakest(verdicts), text, float((rest / first).mean()))


@rule("THESIS-C18", "THESIS-T4.1")
def margin_is_half_the_feature(table: pd.DataFrame) -> Finding:
    """The median margin along u_1 is within 0.2 of eps/2."""
    first = by_subspace(table)["u_1"]
    text = f"median margin {first.mean():.3f} ± {spread(first):.3f} (the claim: {EPS / 2})"
    return Finding(exceeds(-(first - EPS / 2).abs(), -0.2, null=-EPS / 4), text, float(first.mean()))


@rule("THESIS-C19", "THESIS-T4.1", "THESIS-TA.1")
def random_subspaces_hide(deep: pd.DataFrame, line: pd.DataFrame) -> Finding:
    """margin(u_1) < margin(S_rand) < margin(S_orth), for the MLP and the linear model, in every seed."""
    wide = [by_subspace(table) for table in (deep, line)]
    lower = np.concatenate([(w["S_rand"] > w["u_1"]).to_numpy() for w in wide])
    upper = np.concatenate([(w["S_orth"] > w["S_rand"]).to_numpy() for w in wide])
    ratio = pd.concat([w["S_orth"] / w["S_rand"] for w in wide])
    text = f"above u_1 in {lower.sum()} of {len(lower)} networks, below S_orth in {upper.sum()}"
    verdict = everywhere(lower & upper)
    if verdict == NOT_REPRODUCED and lower.all() and ratio.median() > 1:
        verdict = DIRECTION  # in the middle, not for each pair of random subspaces
    return Finding(verdict, text, float(ratio.median()))


@rule("THESIS-C20", "THESIS-TA.1")
def linear_margins_are_finite(table: pd.DataFrame) -> Finding:
    """A linear model has finite margins in the complement, more than five times that along u_1."""
    columns = ["margin_5", "margin_50", "margin_95"]
    rest = pd.concat([by_subspace(table, column)["span{u_1}_perp"] for column in columns], axis=1)
    ratio = by_subspace(table)["span{u_1}_perp"] / by_subspace(table)["u_1"]
    verdict = exceeds(ratio, 5.0, null=1.0) if np.isfinite(rest.to_numpy()).all() else NOT_REPRODUCED
    text = f"complement {ratio.mean():.1f} times u_1, from {rest.min().min():.1f} to {rest.max().max():.1f}"
    return Finding(verdict, text, float(ratio.mean()))


@rule("THESIS-C21", "THESIS-TA.1")
def keyhole(table: pd.DataFrame) -> Finding:
    """For the linear model S_rand/u_1 is within 30 % of sqrt(100/3), in the median over random subspaces."""
    wide = by_subspace(table)
    ratio, known = wide["S_rand"] / wide["u_1"], math.sqrt(100 / 3)
    middle = float(ratio.median())
    text = f"ratio {middle:.2f} (from {ratio.min():.1f} to {ratio.max():.1f}); sqrt(D/S) = {known:.2f}"
    met, near = abs(middle / known - 1) <= 0.3, 0.5 <= middle / known <= 2
    return Finding(everywhere([met], [near]), text, middle)


def curves(table: pd.DataFrame, **chosen: str) -> dict[int, np.ndarray]:
    """Median margins by subspace, one curve a seed; infinite where no image was fooled."""
    for column, value in chosen.items():
        table = table[table[column] == value]
    found = {}
    for seed, part in table.groupby("seed"):
        part = part.sort_values("subspace")
        lost = (part["never"] >= part["images"]).to_numpy()
        found[int(seed)] = np.where(lost, np.inf, part["margin_50"].to_numpy(dtype=float))
    return found


def ratio(above: float, below: float) -> float:
    """above / below, at most FAR."""
    return float(min(above / below, FAR)) if np.isfinite(below) else 1 / FAR


def thirds(curve: np.ndarray) -> tuple[float, float]:
    """Means over the lowest and over the highest third of the subspaces."""
    third = max(1, len(curve) // 3)
    return float(curve[:third].mean()), float(curve[-third:].mean())


def rising(curve: np.ndarray) -> float:
    """Rank correlation of the margin with the frequency."""
    return rank_correlation(np.arange(len(curve)), np.minimum(curve, np.finfo(float).max))


@rule("THESIS-C22", "THESIS-F4.3")
def mnist_margins_grow(table: pd.DataFrame) -> Finding:
    """On MNIST the highest subspace has over twice the margin of the lowest; rank correlation above 0.5."""
    seeds = curves(table, data="mnist", view="plain").values()
    ends, ranks = [ratio(c[-1], c[0]) for c in seeds], [rising(c) for c in seeds]
    text = f"last/first {np.mean(ends):.2f} ± {spread(ends):.2f}, rank correlation {np.mean(ranks):.2f}"
    verdicts = {exceeds(ends, 2.0, null=1.0), exceeds(ranks, 0.5, null=0.0)}
    return Finding(weakest(verdicts), text, float(np.mean(ends)))


@rule("THESIS-C23", "margins-imagenet")
def imagenet_margins_grow(table: pd.DataFrame) -> Finding:
    """On ImageNet the highest subspace has over twice the margin of the lowest, for ResNet-50."""
    table = table.sort_values("subspace")
    if table["margin_50"].isna().all():
        return Finding(PAPER_SCALE, "no ImageNet images at this scale")
    end = ratio(table["margin_50"].iloc[-1], table["margin_50"].iloc[0])
    text = f"last/first {end:.2f} on {int(table['images'].iloc[0])} images, {len(table)} subspaces"
    return Finding(exceeds([end], 2.0, null=1.0), text, end)


@rule("THESIS-C24", "THESIS-F4.3")
def cifar_is_more_uniform(table: pd.DataFrame) -> Finding:
    """max/min of the median curve is smaller on CIFAR-10 than on MNIST."""
    mnist, cifar = (curves(table, data=data, view="plain") for data in ("mnist", "cifar10"))
    wide = {name: [ratio(c.max(), c.min()) for c in c_.values()] for name, c_ in (("m", mnist), ("c", cifar))}
    gap = [m - c for m, c in zip(wide["m"], wide["c"])]
    text = f"max/min {np.mean(wide['c']):.2f} on CIFAR-10, {np.mean(wide['m']):.2f} on MNIST"
    return Finding(exceeds(gap, 0.0), text, float(np.mean(gap)))


@rule("THESIS-C25", "THESIS-F4.3")
def flipping_reverses(table: pd.DataFrame) -> Finding:
    """On MNIST the rank correlation of frequency and margin changes its sign with the flip."""
    plain, flipped = (
        [rising(c) for c in curves(table, data="mnist", view=view).values()] for view in ("plain", "flip")
    )
    text = f"rank correlation {np.mean(plain):+.2f} as it is, {np.mean(flipped):+.2f} flipped"
    verdict = weakest({exceeds(plain, 0.0), exceeds([-r for r in flipped], 0.0)})
    if verdict == NOT_REPRODUCED and np.mean(plain) > np.mean(flipped):
        verdict = DIRECTION
    return Finding(verdict, text, float(np.mean(plain) - np.mean(flipped)))


@rule("THESIS-C26", "THESIS-F4.3")
def no_exact_mirror(table: pd.DataFrame) -> Finding:
    """The flipped curve is more than a tenth away from the mirror image of the original, on MNIST."""
    plain, flipped = (curves(table, data="mnist", view=view) for view in ("plain", "flip"))
    away = [
        float(np.abs(flipped[seed] - plain[seed][::-1]).mean() / plain[seed].mean())
        for seed in plain.keys() & flipped.keys()
    ]
    text = f"mean distance from the mirror image {np.mean(away):.2f} of the mean margin"
    return Finding(exceeds(away, 0.1, null=0.0), text, float(np.mean(away)))


@rule("THESIS-C27", "THESIS-F4.4")
def random_bases_are_flat(table: pd.DataFrame) -> Finding:
    """max/min of the medians over random subspaces is below 1.5, for every data set and view."""
    cells = {}
    for (data, view), part in table.groupby(["data", "view"], sort=False):
        cells[f"{data} {view}"] = [ratio(c.max(), c.min()) for c in curves(part).values()]
    text = ", ".join(f"{name} {np.mean(values):.2f}" for name, values in cells.items())
    verdicts = {exceeds([-v for v in values], -1.5) for values in cells.values()}
    return Finding(weakest(verdicts), f"max/min {text}", max(float(np.mean(v)) for v in cells.values()))


def _withdrawn(table: pd.DataFrame, stage: str) -> Finding:
    """How far the boundary has withdrawn in the upper third, against training on all frequencies."""
    before, after = (curves(table, stage=name) for name in ("trained on CIFAR-10", stage))
    gains = [ratio(thirds(after[seed])[1], thirds(before[seed])[1]) for seed in before.keys() & after.keys()]
    part = table[table["stage"] == stage]
    text = (
        f"upper third {np.mean(gains):.2f} ± {spread(gains):.2f} times that of all frequencies, "
        f"{int(part['never'].sum())} of {int(part['images'].sum())} never fooled"
    )
    return Finding(exceeds(gains, 3.0, null=1.0), text, float(np.mean(gains)))


@rule("THESIS-C28", "THESIS-F4.7")
def low_pass_makes_invariant(table: pd.DataFrame) -> Finding:
    """Trained on low-pass images, high-frequency margins are over three times as large."""
    return _withdrawn(table, "trained on low pass")


@rule("THESIS-C29", "THESIS-F4.7")
def tuning_has_the_same_effect(table: pd.DataFrame) -> Finding:
    """After tuning on low-pass images, high-frequency margins are over three times as large."""
    return _withdrawn(table, "tuned on low pass")


@rule("THESIS-C30", "THESIS-X4.3.2")
def low_pass_costs_little(table: pd.DataFrame) -> Finding:
    """Training on low-pass images costs at most 5 points on the original test set."""
    text = f"{table['drop'].mean():.2f} points ± {spread(table['drop']):.2f}"
    return Finding(exceeds(-table["drop"], -5.0), f"costs {text}", float(table["drop"].mean()))


@rule("THESIS-C31", "THESIS-X4.3.2")
def all_frequencies_fail_on_low_pass(table: pd.DataFrame) -> Finding:
    """A network of all frequencies loses more than 20 points on low-pass test images."""
    lost = table["plain_on_plain"] - table["plain_on_low"]
    text = f"{table['plain_on_low'].mean():.1f} % instead of {table['plain_on_plain'].mean():.1f} %"
    return Finding(exceeds(lost, 20.0, null=0.0), text, float(lost.mean()))


@rule("THESIS-C32", "THESIS-F4.8")
def forgetting_erases(table: pd.DataFrame) -> Finding:
    """Without high-pass data: at most 15 % on it, low-pass within 2 points, high-frequency margins rise."""
    wide = accuracies(table)
    high, low = wide["accuracy_high", "forgotten"], wide["accuracy_low", "forgotten"]
    lost = wide["accuracy_low", "both"] - low
    before, after = (curves(table, stage=stage) for stage in ("both", "forgotten"))
    gains = [ratio(thirds(after[s])[1], thirds(before[s])[1]) for s in before]
    fallen = exceeds(-high, -15.0, null=-float(wide["accuracy_high", "both"].mean()))
    text = (
        f"{high.mean():.1f} % on high pass (before: {wide['accuracy_high', 'both'].mean():.1f} %), "
        f"low pass {-lost.mean():+.2f} points, upper margins {np.mean(gains):.2f} times"
    )
    verdict = weakest({fallen, exceeds(-lost, -2.0), exceeds(gains, 1.0)})
    if (wide["accuracy_high", "both"] <= 20.0).any():
        verdict = INCONCLUSIVE  # nothing was learned that could be forgotten
    return Finding(verdict, text, float(high.mean()))


def accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of the forgetting experiment: a row a seed."""
    once = table.drop_duplicates(["stage", "seed"])
    return once.pivot(index="seed", columns="stage", values=["accuracy_low", "accuracy_high"])


@rule("THESIS-C33", "THESIS-F4.8")
def recovery(table: pd.DataFrame) -> Finding:
    """After recovery the accuracy on high-pass images is 90 % of what it was, or more."""
    wide = accuracies(table)
    back = wide["accuracy_high", "recovered"] / wide["accuracy_high", "both"]
    gained = wide["accuracy_high", "recovered"] - wide["accuracy_high", "forgotten"]
    verdict = exceeds(back, 0.9)
    if verdict == NOT_REPRODUCED and exceeds(gained, 0.0) == REPRODUCED:
        verdict = DIRECTION
    elif verdict == REPRODUCED and exceeds(gained, 0.0) != REPRODUCED:
        verdict = INCONCLUSIVE  # nothing had been forgotten
    return Finding(
        verdict, f"{100 * back.mean():.1f} % of the accuracy before forgetting", float(back.mean())
    )
