"""Rules for the thesis' sections 5.2 and 5.3: removed features, PRIME beside AugMix, adapted statistics.

Accuracies are in percent. Where several networks of a kind were trained, differences are taken seed by seed.
"""

from itertools import pairwise

import pandas as pd

from .core import DIRECTION, NOT_REPRODUCED, PAPER_SCALE, REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, spread, weakest

GROUP_NAMES = ("noise", "blur", "weather", "digital")
STEPS = ("none", "single", "partial", "full")
"""How much the batch-norm statistics are adapted, in the order of Table 5.4."""


def points(values: pd.Series, digits: int = 1) -> str:
    """A signed mean and, where there are several values, their spread."""
    width = f" ± {spread(values):.{digits}f}" if len(values) > 1 else " (one seed)"
    return f"{values.mean():+.{digits}f}{width}"


def partial(verdicts: set[str], main: str) -> str:
    """All of several things; where only the side ones fail and the main one holds, its direction."""
    verdict = weakest(verdicts | {main})
    return DIRECTION if verdict == NOT_REPRODUCED and main == REPRODUCED else verdict


# --------------------------------------------------------------------------- section 5.2.1, Table 5.1


def removed(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 5.1: means over the corruptions by seed and method; and by corruption, seed and method."""
    table = table[table["tested"] == "as it is"]
    one = table[table["corruption"] != "clean"]
    means = one.pivot_table(index="seed", columns="method", values="accuracy")
    return means, one.pivot_table(index=["corruption", "seed"], columns="method", values="accuracy")


@rule("THESIS-C50", "THESIS-T5.1")
def low_pass_helps(table: pd.DataFrame) -> Finding:
    """LP gains over 4 points on corrupted images and costs between 1 and 6 on clean ones."""
    means, _ = removed(table)
    clean = table[(table["corruption"] == "clean") & (table["tested"] == "as it is")]
    wide = clean.pivot(index="seed", columns="method", values="accuracy")
    gain, cost = means["LP"] - means["Standard"], wide["Standard"] - wide["LP"]
    sides = {exceeds(cost, 1.0, null=0.0), exceeds(-cost, -6.0)}
    text = f"corrupted images {points(gain)} points, clean ones {points(-cost)}"
    return Finding(partial(sides, exceeds(gain, 4.0, null=0.0)), text, float(gain.mean()))


@rule("THESIS-C51", "THESIS-T5.1")
def grey_hurts(table: pd.DataFrame) -> Finding:
    """Gray is worse than Standard in the mean, and better on impulse noise and contrast."""
    means, one = removed(table)
    gap = means["Gray"] - means["Standard"]
    cells = {name: (one["Gray"] - one["Standard"]).loc[name] for name in ("impulse_noise", "contrast")}
    sides = {exceeds(cell, 0.0) for cell in cells.values()}
    text = f"mean {points(gap)}" + "".join(f", {k.replace('_', ' ')} {points(v)}" for k, v in cells.items())
    return Finding(partial(sides, exceeds(-gap, 0.0)), text, float(gap.mean()))


@rule("THESIS-C52", "THESIS-T5.1")
def augmix_beats_low_pass(table: pd.DataFrame) -> Finding:
    """AugMix is above LP in the mean, and both together at least as good as AugMix."""
    means, _ = removed(table)
    over, both = means["AugMix"] - means["LP"], means["AugMix+LP"] - means["AugMix"]
    text = f"AugMix over LP {points(over)}, AugMix+LP over AugMix {points(both)}"
    return Finding(partial({exceeds(both, 0.0)}, exceeds(over, 0.0)), text, float(over.mean()))


@rule("THESIS-C53", "THESIS-T5.1")
def low_pass_beats_augmix_somewhere(table: pd.DataFrame) -> Finding:
    """LP is above AugMix on glass blur and on pixelate."""
    _, one = removed(table)
    gap = one["LP"] - one["AugMix"]
    cells = {name: gap.loc[name] for name in ("glass_blur", "pixelate")}
    text = "LP over AugMix: " + ", ".join(f"{k.replace('_', ' ')} {points(v)}" for k, v in cells.items())
    least = min(float(cell.mean()) for cell in cells.values())
    return Finding(weakest({exceeds(cell, 0.0) for cell in cells.values()}), text, least)


# --------------------------------------------------------------------------- section 5.3.2


def chosen(table: pd.DataFrame, data: str, method: str, value: str) -> pd.Series:
    """A column by seed for one method on one data set: with the JSD loss, if it was trained with it."""
    part = table[(table["data"] == data) & (table["method"] == method)]
    part = part[part["jsd"]] if part["jsd"].any() else part
    return part.set_index("seed")[value].sort_index()


def variant(table: pd.DataFrame, method: str, jsd: bool, value: str) -> pd.Series:
    """A column by data set and seed for one method with or without the JSD loss."""
    part = table[(table["method"] == method) & (table["jsd"] == jsd)]
    return part.set_index(["data", "seed"])[value].sort_index()


@rule("THESIS-C54", "THESIS-T5.2")
def prime_beats_augmix(table: pd.DataFrame) -> Finding:
    """On every data set PRIME has a higher corruption accuracy and a lower mCE than AugMix (and DA)."""
    verdicts, parts, least = set(), [], float("inf")
    for data in table["data"].unique():
        for rival in ("AugMix", "DA"):
            better = chosen(table, data, "PRIME", "corruption_accuracy")
            gap = (better - chosen(table, data, rival, "corruption_accuracy")).dropna()
            if gap.empty:
                continue
            error = chosen(table, data, rival, "mce") - chosen(table, data, "PRIME", "mce")
            verdicts |= {exceeds(gap, 0.0), exceeds(error.dropna(), 0.0)}
            parts.append(f"{data} over {rival} {points(gap)}")
            least = min(least, float(gap.mean()))
    return Finding(weakest(verdicts), "corruption accuracy: " + ", ".join(parts), least)


@rule("THESIS-C55", "THESIS-T5.2")
def advantage_grows(table: pd.DataFrame) -> Finding:
    """PRIME's gain over AugMix grows from CIFAR-10 to CIFAR-100 to ImageNet-100."""
    gains = {
        data: chosen(table, data, "PRIME", "corruption_accuracy").mean()
        - chosen(table, data, "AugMix", "corruption_accuracy").mean()
        for data in ("cifar10", "cifar100", "imagenet100")
        if data in set(table["data"])
    }
    text = ", ".join(f"{data} {gain:+.1f}" for data, gain in gains.items())
    if len(gains) < 3:
        return Finding(PAPER_SCALE, f"gains measured: {text or 'none'}")
    first, second, third = gains.values()
    return Finding(everywhere([first < second < third], [first < third]), text, float(third))


@rule("THESIS-C56", "THESIS-T5.2")
def complementary(table: pd.DataFrame) -> Finding:
    """DA+PRIME is above DA, PRIME and DA+AugMix."""
    gaps = []
    for data in table.loc[table["method"] == "DA+PRIME", "data"].unique():
        both = chosen(table, data, "DA+PRIME", "corruption_accuracy")
        gaps += [
            both - chosen(table, data, rival, "corruption_accuracy") for rival in ("DA", "PRIME", "DA+AugMix")
        ]
    if not gaps:
        return Finding(PAPER_SCALE, "no network was trained on the images of DeepAugment")
    least = min(float(gap.mean()) for gap in gaps)
    return Finding(weakest({exceeds(gap, 0.0) for gap in gaps}), f"smallest lead {least:+.1f} points", least)


@rule("THESIS-C57", "THESIS-T5.3")
def best_by_group(table: pd.DataFrame) -> Finding:
    """Without JSD PRIME leads on all groups but blur; with it on all four."""
    table = table.groupby(["method", "jsd"], as_index=False)[list(GROUP_NAMES)].mean()
    scores = table.set_index(["method", "jsd"])
    rivals = scores.loc[[key for key in scores.index if key[0] != "PRIME"]].max()
    without, with_jsd = (scores.loc[("PRIME", jsd)] - rivals for jsd in (False, True))
    text = "; ".join(
        f"{name}: " + ", ".join(f"{group} {gap[group]:+.1f}" for group in GROUP_NAMES)
        for name, gap in (("PRIME without JSD", without), ("with", with_jsd))
    )
    if "DA" not in set(table["method"]):
        return Finding(PAPER_SCALE, f"without DeepAugment among the rivals, {text}")
    met = [*(without[group] > 0 for group in ("noise", "weather", "digital")), without["blur"] < 0]
    return Finding(
        everywhere([*met, *(with_jsd > 0)], with_jsd > 0), f"lead over all, {text}", float(with_jsd.min())
    )


@rule("THESIS-C58", "THESIS-T5.3")
def consistency_helps(table: pd.DataFrame) -> Finding:
    """The JSD loss raises the corruption accuracy of AugMix and of PRIME."""
    gains = {
        method: variant(table, method, True, "corruption_accuracy")
        - variant(table, method, False, "corruption_accuracy")
        for method in ("AugMix", "PRIME")
    }
    text = ", ".join(f"{method} {points(gain)}" for method, gain in gains.items())
    least = min(float(gain.mean()) for gain in gains.values())
    return Finding(weakest({exceeds(gain, 0.0) for gain in gains.values()}), f"gain by JSD: {text}", least)


@rule("THESIS-C59", "THESIS-X5.3.2")
def prime_is_cheap(table: pd.DataFrame) -> Finding:
    """Less than 1.5 times the time of plain training, within a quarter of AugMix'; on a GPU."""
    times = table[(table["quantity"] == "training time") & table["value"].notna()]
    ratio = {pair: part["value"] for pair, part in times.groupby(["method", "against"])}
    if not {("PRIME", "Standard"), ("PRIME", "AugMix")} <= ratio.keys():
        return Finding(PAPER_SCALE, "nothing was timed at this scale")
    plain, rival = ratio["PRIME", "Standard"], ratio["PRIME", "AugMix"]
    verdict = weakest({exceeds(-plain, -1.5), exceeds(-(rival - 1).abs(), -0.25)})
    devices = ", ".join(sorted(times["device"].unique()))
    if verdict == REPRODUCED and devices != "cuda":
        verdict = DIRECTION  # the claim is about a GPU
    text = f"{plain.mean():.2f} times standard training, {rival.mean():.2f} times AugMix ({devices})"
    return Finding(verdict, text, float(plain.mean()))


@rule("THESIS-C60", "THESIS-T5.4")
def adapting_helps(table: pd.DataFrame) -> Finding:
    """More adaptation is better for each method, and PRIME is best at each step."""
    keys = ["data", "seed"]
    wide = table.pivot_table(index=[*keys, "method"], columns="adaptation", values="corruption_accuracy")
    verdicts, parts = set(), []
    for method, part in wide.groupby("method", sort=False):
        verdicts |= {exceeds(part[after] - part[before], 0.0) for before, after in pairwise(STEPS)}
        parts.append(f"{method} " + " ".join(f"{part[step].mean():.1f}" for step in STEPS))
    rivals = wide.drop("PRIME", level="method").groupby(keys).max()
    lead = wide.xs("PRIME", level="method") - rivals
    verdicts |= {exceeds(lead[step], 0.0) for step in STEPS}
    verdict = weakest(verdicts)
    if verdict == NOT_REPRODUCED and (wide["full"] > wide["none"]).all() and (lead.mean() > 0).all():
        verdict = DIRECTION  # from the first step to the last, if not at every one
    return Finding(verdict, "none to full: " + "; ".join(parts), float(lead.mean().min()))
