"""Rules for the thesis' sections 5.4 and 5.6 and appendix B: the parts of PRIME and its mathematics."""

import numpy as np
import pandas as pd

from ..measures.corruption import CORRUPTIONS
from ..published import numbers
from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, spread, weakest
from .thesis_corruptions import GROUP_NAMES, chosen, partial, points

SINGLE = ("spectral", "spatial", "colour")
ALL = " ".join(SINGLE)
STRONGEST = {"noise": "colour", "blur": "spatial", "weather": "spectral", "digital": "spectral"}
"""Which primitive alone brings most against a group of corruptions, as the thesis has it."""
COLUMNS = "Gauss. Shot Impulse Defoc. Glass Motion Zoom Snow Frost Fog Bright. Contr. Elastic Pixel. JPEG"
PRINTED = dict(zip(COLUMNS.split(), CORRUPTIONS, strict=True))
"""Columns of Tables B.1 and B.2, and the public names of the corruptions."""
NAMED = {"gaussian_noise": 1, "shot_noise": 1, "glass_blur": 1, "defocus_blur": -1, "motion_blur": -1}
"""What the claim names: where PRIME is ahead of AugMix (1) and where it is behind (-1)."""


# --------------------------------------------------------------------------- section 5.4.1, Table 5.5


def combinations(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """A column of Table 5.5: a row a seed, a column a combination of primitives."""
    return table.pivot(index="seed", columns="primitives", values=value)


@rule("THESIS-C61", "THESIS-T5.5")
def all_three_are_best(table: pd.DataFrame) -> Finding:
    """Each primitive alone beats none; all three together are the best of all combinations."""
    wide = combinations(table, "corruption_accuracy")
    alone = {name: wide[name] - wide["none"] for name in SINGLE}
    second = wide.drop(columns=ALL).mean().idxmax()
    lead = wide[ALL] - wide[second]
    singles = weakest({exceeds(gain, 0.0) for gain in alone.values()})
    text = ", ".join(f"{name} {points(gain)}" for name, gain in alone.items())
    text = f"over none: {text}; all three {points(lead)} over the next best ({second})"
    return Finding(partial({exceeds(lead, 0.0)}, singles), text, float(lead.mean()))


@rule("THESIS-C62", "THESIS-T5.5")
def who_helps_against_what(table: pd.DataFrame) -> Finding:
    """Among single primitives colour is best on noise, spatial on blur, spectral on weather and digital."""
    verdicts, parts, right = set(), [], 0
    for group in GROUP_NAMES:
        wide = combinations(table, group)[list(SINGLE)]
        best, wanted = str(wide.mean().idxmax()), STRONGEST[group]
        rival = wide.drop(columns=wanted).mean().idxmax()
        verdicts.add(exceeds(wide[wanted] - wide[rival], 0.0))
        right += best == wanted
        parts.append(f"{group} {best}" + ("" if best == wanted else f", not {wanted}"))
    verdict = weakest(verdicts)
    if verdict == NOT_REPRODUCED and right == 3:
        verdict = DIRECTION
    return Finding(verdict, f"{right} of 4 as said: " + "; ".join(parts), float(right))


# --------------------------------------------------------------------------- section 5.4.2, Table 5.6


@rule("THESIS-C63", "THESIS-T5.6")
def mixing_comes_closer(table: pd.DataFrame) -> Finding:
    """mix < without mix < clean for both methods, and AugMix more than 1.5 times as far as PRIME."""
    verdicts, parts, ratios = set(), [], []
    for name, part in table.groupby("embedding", sort=False):
        wide = part.pivot(index="seed", columns="method", values="mean")
        for method in ("AugMix", "PRIME"):
            apart = wide[f"{method} (w/o mix)"]
            verdicts |= {exceeds(apart - wide[method], 0.0), exceeds(wide["clean"] - apart, 0.0)}
        ratio = wide["AugMix"] / wide["PRIME"]
        verdicts.add(exceeds(ratio, 1.5, null=1.0))
        ratios.append(float(ratio.mean()))
        order = ("clean", "AugMix (w/o mix)", "AugMix", "PRIME (w/o mix)", "PRIME")
        shown = ", ".join(f"{method} {wide[method].mean():.2f}" for method in order)
        parts.append(f"{name}: {shown} (ratio {ratio.mean():.2f})")
    return Finding(weakest(verdicts), "; ".join(parts), min(ratios))


# --------------------------------------------------------------------------- sections 5.4.3 and 5.4.4


@rule("THESIS-C64", "THESIS-F5.4")
def sweet_spot(table: pd.DataFrame) -> Finding:
    """Corruption accuracy has an interior maximum; clean accuracy falls before it, both fall after it."""
    means = table.groupby("alpha")[["clean", "corruption_accuracy"]].mean().sort_index()
    best = int(means["corruption_accuracy"].to_numpy().argmax())
    interior = 0 < best < len(means) - 1
    before, after = means.iloc[: best + 1], means.iloc[best:]
    falls = [
        rank_correlation(part.index, part[column]) < 0
        for part, column in ((before, "clean"), (after, "clean"), (after, "corruption_accuracy"))
    ]
    top = means.iloc[best]
    text = (
        f"best at alpha = {means.index[best]:g} ({top['corruption_accuracy']:.1f} % corrupted, "
        f"{top['clean']:.1f} % clean); clean {'falls' if falls[0] else 'does not fall'} before it, "
        f"after it clean {'falls' if falls[1] else 'does not fall'}, "
        f"corrupted {'falls' if falls[2] else 'does not fall'}"
    )
    return Finding(everywhere([interior, *falls], [interior, falls[2]]), text, float(means.index[best]))


@rule("THESIS-C65", "THESIS-F5.5")
def few_copies_suffice(table: pd.DataFrame) -> Finding:
    """Four copies are within 1 point of on-line augmentation (2 on ImageNet-100); more copies are better."""
    verdicts, parts, gaps = set(), [], []
    for data, part in table.groupby("data", sort=False):
        wide = part.pivot(index="seed", columns="copies", values="corruption_accuracy")
        limit = 2.0 if data == "imagenet100" else 1.0
        gap, gain = wide["on-line"] - wide["4"], wide["on-line"] - wide["none"]
        verdicts.add(exceeds(-gap, -limit, null=-float(gain.mean()) / 2))
        means = wide.drop(columns=["on-line", "none"]).mean()
        means.index = means.index.astype(int)
        order = rank_correlation(means.index, means) if len(means) > 1 else 0.0
        verdicts.add(everywhere([order > 0.999], [order > 0]))
        gaps.append(float(gap.mean()))
        curve = ", ".join(f"k = {k} {value:.1f}" for k, value in means.sort_index().items())
        parts.append(f"{data}: {curve}, on-line {wide['on-line'].mean():.1f} %")
    return Finding(weakest(verdicts), "; ".join(parts), max(gaps))


# --------------------------------------------------------------------------- appendix B


def printed_signs() -> pd.Series:
    """Sign of PRIME - AugMix for each corruption on CIFAR-10-C, as Table B.1 prints it."""
    table = numbers("THESIS-TB.1")
    table = table[table["row"].str.startswith("C-10 /") & table["column"].isin(list(PRINTED))]
    wide = table.pivot(index="column", columns="method", values="value")
    return np.sign(wide["PRIME"] - wide["AugMix"]).rename(index=PRINTED)


@rule("THESIS-C66", "THESIS-TB.1")
def gains_by_corruption(table: pd.DataFrame) -> Finding:
    """The sign of PRIME - AugMix is the printed one for every corruption of CIFAR-10-C."""
    table = table[table["data"] == "cifar10"]
    if table.empty:
        return Finding(INCONCLUSIVE, "no accuracies on CIFAR-10-C")
    gains = {
        str(name): (
            chosen(part, "cifar10", "PRIME", "accuracy") - chosen(part, "cifar10", "AugMix", "accuracy")
        )
        for name, part in table[table["corruption"] != "clean"].groupby("corruption")
    }
    signs = printed_signs()
    right = [bool(np.sign(gain.mean()) == signs[name]) for name, gain in gains.items()]
    named = all(float(gains[name].mean()) * sign > 0 for name, sign in NAMED.items())
    shown = ", ".join(f"{name.replace('_', ' ')} {points(gains[name])}" for name in NAMED)
    text = f"{sum(right)} of {len(right)} signs as printed; {shown}"
    return Finding(everywhere(right, [named]), text, float(sum(right)))


@rule("THESIS-C67", "THESIS-TB.3")
def largest_at_high_severity(table: pd.DataFrame) -> Finding:
    """PRIME's gain over AugMix is larger at severity 5 than at 1, on every data set."""
    verdicts, parts, least = set(), [], float("inf")
    for data in table["data"].unique():
        ends = []
        for severity in (1, 5):
            part = table[table["severity"] == severity]
            ends.append(chosen(part, data, "PRIME", "accuracy") - chosen(part, data, "AugMix", "accuracy"))
        verdicts.add(exceeds(ends[1] - ends[0], 0.0))
        parts.append(f"{data} {points(ends[0])} at severity 1, {points(ends[1])} at 5")
        least = min(least, float((ends[1] - ends[0]).mean()))
    return Finding(weakest(verdicts), "; ".join(parts), least)


@rule("THESIS-C71", "THESIS-EB.2")
def filters_are_bounded(table: pd.DataFrame) -> Finding:
    """The mean squared change by a random filter is at most ||x||_1^2 K^2 sigma^2."""
    ratio = table["measured"] / table["bound"]
    cases = f"{len(table)} cases of {int(table['filters'].min()):,} filters"
    text = f"at most {ratio.max():.2g} of the bound in {cases}"
    return Finding(everywhere(ratio <= 1), text, float(ratio.max()))


@rule("THESIS-C72", "THESIS-E5.4")
def fields_are_bijections(table: pd.DataFrame) -> Finding:
    """As PRIME draws them, 99 % of the displacement fields do not fold; none moves the border."""
    drawn = table[table["cut"] == "drawn"]
    still = bool((table["border"] == 0).all())
    met, most = (drawn["bijective"] >= 99).all(), (drawn["bijective"] > 50).all()
    text = ", ".join(f"{size} px {share:.1f} %" for size, share in zip(drawn["pixels"], drawn["bijective"]))
    text = f"no fold in {text} of the fields; the border {'stays' if still else 'moves'}"
    return Finding(everywhere([met and still], [most and still]), text, float(drawn["bijective"].min()))


@rule("THESIS-C73", "THESIS-F5.11")
def prime_is_more_diverse(table: pd.DataFrame) -> Finding:
    """PRIME's augmentations of an image have a larger total variance in the embedding than AugMix'."""
    wide = table.pivot(index=["embedding", "image"], columns="method", values="total_variance")
    ratio = wide["PRIME"] / wide["AugMix"]
    parts = [
        f"{name} {part.mean():.2f} ± {spread(part):.2f} times AugMix', "
        f"more for {int((part > 1).sum())} of {len(part)} images"
        for name, part in ratio.groupby("embedding", sort=False)
    ]
    means = ratio.groupby("embedding").mean()
    return Finding(everywhere(ratio > 1, means > 1), "; ".join(parts), float(means.min()))
