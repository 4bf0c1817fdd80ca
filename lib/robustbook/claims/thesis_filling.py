"""Rules for the thesis' sections 4.5 and 5.5: filling levels with few images, by transfer and by PRIME.

Accuracies are in percent and, where nothing else is said, on containers that were not trained on: what the
thesis calls its test set in chapter 4 and its validation set in chapter 5.
"""

import pandas as pd

from .core import INCONCLUSIVE, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, weakest
from .thesis_corruptions import partial, points

TRANSFERS = ("ST→FT", "ST→AFT", "AT→FT", "AT→AFT")
LARGE, SMALL = 0.5, 0.05
"""Radii of C49: at the first and above training should fail, at the second succeed."""


def over_images(table: pd.DataFrame) -> pd.DataFrame:
    """Per-container accuracies as means over all images: a row a split and seed, a column a strategy."""
    right = table.assign(right=table["accuracy"] * table["images"])
    sums = right.groupby(["split", "seed", "strategy"])[["right", "images"]].sum()
    return (sums["right"] / sums["images"]).unstack("strategy")


def by_split(values: pd.Series) -> dict[str, pd.Series]:
    """The seeds of each split, from an index (split, seed)."""
    return {str(split): part for split, part in values.groupby(level="split")}


def compared(table: pd.DataFrame, what: str, against: str) -> dict[str, pd.Series]:
    """Differences of two strategies by split, seed by seed."""
    wide = over_images(table)
    return by_split(wide[what] - wide[against])


def said(parts: dict[str, pd.Series]) -> str:
    """Mean and spread of each part."""
    return ", ".join(f"{name} {points(values)}" for name, values in parts.items())


@rule("THESIS-C45", "THESIS-F4.17")
def one_fixed_layer(table: pd.DataFrame) -> Finding:
    """L = 1 has the highest accuracy on each split, and accuracy falls from there on."""
    own, verdicts, parts, leads = table[table["strategy"] == "ST→FT"], set(), [], []
    for split, part in own.groupby("split"):
        wide = part.pivot(index="seed", columns="fixed", values="accuracy")
        means = wide.mean()
        rival = means.drop(1).idxmax()
        lead, later = wide[1] - wide[rival], means[means.index >= 1]
        slope = rank_correlation(later.index, later)
        verdicts |= {partial({everywhere([slope < -0.999], [slope < 0])}, exceeds(lead, 0.0))}
        leads.append(float(lead.mean()))
        curve = ", ".join(f"L = {fixed} {value:.1f}" for fixed, value in means.items())
        parts.append(f"{split}: {curve} (L = 1 {points(lead)} to L = {rival})")
    return Finding(weakest(verdicts), "; ".join(parts), min(leads))


@rule("THESIS-C46", "THESIS-F4.17")
def robust_source_is_better(table: pd.DataFrame) -> Finding:
    """AT→FT at the chosen radius is above ST→FT on every split, both with L = 1."""
    one = table[(table["fixed"] == 1) & ((table["strategy"] == "ST→FT") | table["chosen"])]
    wide = one.pivot(index=["split", "seed"], columns="strategy", values="accuracy")
    gains = by_split(wide["AT→FT"] - wide["ST→FT"])
    verdict = weakest({exceeds(gain, 0.0) for gain in gains.values()})
    return Finding(verdict, said(gains), min(float(gain.mean()) for gain in gains.values()))


@rule("THESIS-C47", "THESIS-F4.18")
def transfer_rescues(table: pd.DataFrame) -> Finding:
    """Where ST is below 60 %, every transfer strategy gains more than 10 points."""
    wide = table.pivot(index=["split", "container", "seed"], columns="strategy", values="accuracy")
    verdicts, parts, least = set(), [], float("inf")
    for (split, container), part in wide.groupby(level=["split", "container"]):
        if part["ST"].mean() >= 60:
            continue
        gains = {name: part[name] - part["ST"] for name in TRANSFERS}
        verdicts |= {exceeds(gain, 10.0, null=0.0) for gain in gains.values()}
        last = min(gains, key=lambda name: float(gains[name].mean()))
        least = min(least, float(gains[last].mean()))
        gain = said({last: gains[last]})
        parts.append(f"{split} {container} (ST {part['ST'].mean():.1f} %): at least {gain}")
    if not parts:
        return Finding(INCONCLUSIVE, "ST is at 60 % or above on every container")
    return Finding(weakest(verdicts), "; ".join(parts), least)


@rule("THESIS-C48", "THESIS-F4.18")
def attacks_on_the_target_do_not_help(table: pd.DataFrame) -> Finding:
    """AT is at most 1 point above ST, and AT→AFT above AT→FT, on each split."""
    pairs = {"AT - ST": ("AT", "ST"), "AT→AFT - AT→FT": ("AT→AFT", "AT→FT")}
    gains = {name: compared(table, *pair) for name, pair in pairs.items()}
    every = [gain for parts in gains.values() for gain in parts.values()]
    verdict = weakest({exceeds(-gain, -1.0) for gain in every})
    text = "; ".join(f"{name}: {said(parts)}" for name, parts in gains.items())
    return Finding(verdict, text, max(float(gain.mean()) for gain in every))


@rule("THESIS-C49", "THESIS-X4.5.2")
def large_radii_do_not_converge(table: pd.DataFrame) -> Finding:
    """ST→AFT: train accuracy below 60 % at radii from 0.5 on, above 90 % at 0.05."""
    own = table[(table["quantity"] == "train accuracy") & (table["strategy"] == "ST→AFT")]
    verdicts, parts, most = set(), [], 0.0
    for (radius, split), part in own.groupby(["eps_target", "split"]):
        values = part["value"]
        if radius >= LARGE:
            verdicts.add(exceeds(-values, -60.0, null=-90.0))
            most = max(most, float(values.mean()))
        elif radius <= SMALL:
            verdicts.add(exceeds(values, 90.0, null=60.0))
        parts.append(f"{split} at {radius:g}: {values.mean():.1f} %")
    return Finding(weakest(verdicts) if verdicts else INCONCLUSIVE, ", ".join(parts), most)


@rule("THESIS-C68", "THESIS-T5.7")
def depth_helps_but_on_s2(table: pd.DataFrame) -> Finding:
    """Depth 3 is above depth 1 on S1 and S3, and below it on S2."""
    wide = table.pivot(index=["split", "seed"], columns="depth", values="accuracy")
    gains = by_split(wide[3] - wide[1])
    signs = {split: -1 if split == "S2" else 1 for split in gains}
    verdict = weakest({exceeds(signs[split] * gain, 0.0) for split, gain in gains.items()})
    return Finding(verdict, f"depth 3 against 1: {said(gains)}", float(gains["S2"].mean()))


@rule("THESIS-C69", "THESIS-F5.9")
def more_of_the_transformed_image(table: pd.DataFrame) -> Finding:
    """On every split the best Beta(a, b) has a > b."""
    verdicts, parts, leads = set(), [], []
    for split, part in table.groupby("split"):
        wide = part.pivot(index="seed", columns=["alpha", "beta"], values="accuracy")
        means = wide.mean()
        heavy = [pair for pair in means.index if pair[0] > pair[1]]
        best, rival = means[heavy].idxmax(), means.drop(heavy).idxmax()
        lead = wide[best] - wide[rival]
        verdicts.add(exceeds(lead, 0.0))
        leads.append(float(lead.mean()))
        parts.append(f"{split}: Beta{shape(best)} {points(lead)} to Beta{shape(rival)}")
    return Finding(weakest(verdicts), "; ".join(parts), min(leads))


def shape(pair: tuple[float, float]) -> str:
    """The parameters of a Beta distribution."""
    return f"({pair[0]:g}, {pair[1]:g})"


@rule("THESIS-C70", "THESIS-F5.10")
def augmentation_replaces_transfer(table: pd.DataFrame) -> Finding:
    """DA_PRIME is at most 1 point below AT→FT on S1 and S2."""
    gains = compared(table, "DA_PRIME", "AT→FT")
    verdict = weakest({exceeds(gains[split], -1.0) for split in ("S1", "S2")})
    return Finding(verdict, said(gains), min(float(gains[split].mean()) for split in ("S1", "S2")))
