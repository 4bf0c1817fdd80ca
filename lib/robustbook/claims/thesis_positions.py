"""Rules for the thesis' section 4.4 and appendix A: cross accuracies, T2, adversarial training."""

import numpy as np
import pandas as pd

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, spread, weakest
from .thesis_margins import FAR, curves, ratio, thirds

CHANCE = (8.0, 13.0)


def crossed(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracies: a row each network and seed, columns (trained on, tested on)."""
    keys = ["network", "seed"]
    return table.pivot(index=keys, columns=["trained_on", "tested_on"], values="accuracy")


@rule("THESIS-C34", "THESIS-TA.3")
def mnist_and_flipped_are_strangers(table: pd.DataFrame) -> Finding:
    """On MNIST cross accuracies are below 30 %, those on the own version above 98 %."""
    wide = crossed(table)
    across = pd.concat([wide["plain", "flip"], wide["flip", "plain"]])
    own = pd.concat([wide["plain", "plain"], wide["flip", "flip"]])
    text = f"across {across.min():.1f} to {across.max():.1f} %, own version {own.min():.2f} % or more"
    met = (across < 30).all() and (own > 98).all()
    return Finding(everywhere([met], [across.max() < own.min() - 50]), text, float(across.max()))


@rule("THESIS-C35", "THESIS-TA.3")
def high_pass_knows_the_original(table: pd.DataFrame) -> Finding:
    """Networks trained on high-pass MNIST classify more than 85 % of the original digits."""
    found = crossed(table)["high", "plain"].dropna()
    verdicts = {exceeds(part, 85.0, null=10.0) for _, part in found.groupby("network")}
    return Finding(weakest(verdicts), f"{found.mean():.1f} % ± {spread(found):.1f}", float(found.mean()))


@rule("THESIS-C36", "THESIS-TA.4")
def cifar_and_flipped_are_at_chance(table: pd.DataFrame) -> Finding:
    """On CIFAR-10 cross accuracies with the flipped version are between 8 and 13 %, in both directions."""
    wide = crossed(table)
    across = pd.concat([wide["plain", "flip"], wide["flip", "plain"]]).dropna()
    text = f"across {across.min():.1f} to {across.max():.1f} %"
    return Finding(everywhere(across.between(*CHANCE), across < 20), text, float(across.max()))


@rule("THESIS-C37", "THESIS-TA.2")
def flipped_is_as_easy(table: pd.DataFrame) -> Finding:
    """The same network learns the flipped version within 3 points, on MNIST and CIFAR-10."""
    wide = table.pivot(index=["data", "network", "seed"], columns="view", values="accuracy")
    lost = (wide["plain"] - wide["flip"]).dropna()
    groups = {name: part for name, part in lost.groupby(["data", "network"])}
    text = "; ".join(f"{d}, {n}: {part.mean():+.2f} points" for (d, n), part in groups.items())
    verdict = weakest({exceeds(-part, -3.0) for part in groups.values()})
    return Finding(verdict, f"lost by flipping: {text}", float(lost.max()))


def sides(table: pd.DataFrame) -> pd.Series:
    """log(margin(u_2) / margin(u_1)) by seed and gap; a direction without a boundary is FAR times as far."""
    first, second = (
        table[f"margin_u{k}"].where(table[f"never_u{k}"] < table["images"], np.inf) for k in (1, 2)
    )
    logs = [np.log(np.clip(ratio(b, a), 1 / FAR, FAR)) for a, b in zip(first, second)]
    return pd.Series(logs, index=pd.MultiIndex.from_frame(table[["seed", "gap"]])).sort_index()


def sharpness(curve: pd.Series) -> float:
    """The largest part of the change between the ends that falls within a factor 3 of eps."""
    curve = curve[curve.index > 0]
    gaps, values = curve.index.to_numpy(dtype=float), curve.to_numpy()
    whole = values[-1] - values[0]
    steps = [
        values[j] - values[i]
        for i in range(len(gaps))
        for j in range(i, len(gaps))
        if gaps[j] <= 3 * gaps[i] * (1 + 1e-9)
    ]
    return float(max(steps) / whole) if whole > 0 else 0.0


@rule("THESIS-C38", "THESIS-F4.10")
def abrupt_switch(table: pd.DataFrame) -> Finding:
    """u_2 decides below eps 0.2, u_1 above 1, and 80 % of the change is within a factor 3 of eps."""
    side = sides(table)
    gap = side.index.get_level_values("gap")
    below, above = side[gap < 0.2], side[gap > 1]
    sharp = [sharpness(curve.droplevel("seed")) for _, curve in side.groupby("seed")]
    text = (
        f"margin(u_2)/margin(u_1) {np.exp(below.mean()):.2f} below 0.2, {np.exp(above.mean()):.2f} above 1; "
        f"{100 * np.mean(sharp):.0f} % of the change within a factor 3"
    )
    ends = (below < 0).all() and (above > np.log(2)).all()
    verdict = weakest({everywhere([ends]), exceeds(sharp, 0.8)})
    if verdict != REPRODUCED and above.mean() > below.mean() and (above > 0).all() and below.mean() < 0:
        verdict = DIRECTION if verdict == NOT_REPRODUCED else verdict
    return Finding(verdict, text, float(np.mean(sharp)))


@rule("THESIS-C39", "THESIS-F4.10")
def no_overfitting(table: pd.DataFrame) -> Finding:
    """Test accuracy is 99 % or more on both sides, and all seeds are on the same side at each eps."""
    side = sides(table).gt(0)
    outer = side[(side.index.get_level_values("gap") < 0.2) | (side.index.get_level_values("gap") > 1)]
    agree = outer.groupby("gap").nunique().eq(1)
    least, seeds = float(table["test_accuracy"].min()), table["seed"].nunique()
    text = f"test accuracy {least:.2f} % or more; {seeds} seeds agree at {agree.sum()} of {len(agree)} eps"
    verdict = everywhere([least >= 99 and agree.all()], [agree.all() and least > 90])
    if seeds < 2 and verdict == REPRODUCED:
        verdict = INCONCLUSIVE
    return Finding(verdict, text, least)


@rule("THESIS-C40", "THESIS-X4.4.1")
def weight_decay_hinders(table: pd.DataFrame) -> Finding:
    """With a weight decay of 1e-3 and eps below 0.5 the training accuracy stays near 50 %."""
    decayed = table[(table["weight_decay"] > 0) & (table["gap"] < 0.5)]
    plain = table[(table["weight_decay"] == 0) & (table["gap"].isin(decayed["gap"]))]
    found = decayed["train_accuracy"]
    without = plain["train_accuracy"].mean()
    text = f"train accuracy {found.mean():.1f} % with weight decay, {without:.1f} % without"
    verdict = exceeds(-(found - 50).abs(), -5.0)
    if verdict == NOT_REPRODUCED and found.max() < plain["train_accuracy"].min() - 5:
        verdict = DIRECTION
    return Finding(verdict, text, float(found.mean()))


@rule("THESIS-C41", "THESIS-F4.11", "THESIS-F4.3")
def margins_rise_most_at_high_frequencies(
    robust: pd.DataFrame, usual: pd.DataFrame, sets: tuple[str, ...] = ("mnist", "cifar10")
) -> Finding:
    """margin(AT)/margin(ST) is above 1 everywhere and larger in the top third than in the bottom third."""
    verdicts, parts, least = set(), [], np.inf
    for data in sets:
        hard, soft = (curves(t, data=data, view="plain") for t in (robust, usual))
        gains = [np.array([ratio(a, b) for a, b in zip(hard[s], soft[s])]) for s in hard.keys() & soft.keys()]
        ends = [thirds(gain) for gain in gains]
        least = min([least, *(float(gain.min()) for gain in gains)])
        verdicts |= {
            exceeds([gain.min() for gain in gains], 1.0),
            exceeds([high - low for low, high in ends], 0.0),
        }
        low, high = np.mean(ends, axis=0)
        parts.append(f"{data}: {low:.2f} times at the low, {high:.2f} at the high end")
    verdict = weakest(verdicts)
    return Finding(verdict, "; ".join(parts) + f"; smallest {least:.2f}", least)


@rule("THESIS-C42", "THESIS-FA.1")
def perturbations_follow_the_data(table: pd.DataFrame) -> Finding:
    """Training perturbations have more energy in the lowest third than in the highest; flipped, less."""
    shares = {}
    for view, part in table.groupby("view"):
        wide = part.pivot_table(index=["seed", "epoch"], columns="subspace", values="energy")
        ends = [thirds(line) for line in wide.to_numpy()]
        shares[view] = np.array([low / (low + high) for low, high in ends])
    text = ", ".join(f"{view}: {100 * values.mean():.0f} %" for view, values in shares.items())
    met = (shares["plain"] > 0.5).all() and (shares["flip"] < 0.5).all()
    mean = shares["plain"].mean() > 0.5 > shares["flip"].mean()
    text = (
        f"share of the low third in low and high together, {text}; in every epoch: {'yes' if met else 'no'}"
    )
    return Finding(everywhere([met], [mean]), text, float(shares["plain"].mean()))


@rule("THESIS-C43", "THESIS-F4.13")
def few_samples_move_the_boundary(table: pd.DataFrame) -> Finding:
    """Along the old direction the margin of moved samples grows over 3 times, of others below 1.5 times."""
    wide = table.pivot(index="seed", columns=["set", "direction"], values="margin_50")
    grown = {name: wide[name, "Delta_f_o"] / wide[name, "delta_o"] for name in ("moved", "others")}
    once = table.drop_duplicates("seed")
    change = (once["accuracy_after"] - once["accuracy_before"]).abs()
    text = (
        f"moved samples {grown['moved'].mean():.2f} times, others {grown['others'].mean():.2f} times, "
        f"test accuracy changes by {change.mean():.2f} points"
    )
    verdicts = {
        exceeds(grown["moved"], 3.0, null=1.0),
        exceeds(-grown["others"], -1.5),
        exceeds(-change, -1.0),
    }
    verdict = weakest(verdicts)
    if verdict == NOT_REPRODUCED and (grown["moved"] > 1.5 * grown["others"]).all():
        verdict = DIRECTION
    return Finding(verdict, text, float(grown["moved"].mean()))


@rule("THESIS-C44", "THESIS-TA.6", "THESIS-TA.2")
def robustness_has_a_price(robust: pd.DataFrame, usual: pd.DataFrame) -> Finding:
    """Adversarially trained networks are less accurate on clean images, above 30 % on attacked ones."""
    keys = ["data", "view", "network"]
    before = usual.groupby(keys)["accuracy"].mean()
    after = robust.groupby(keys)[["standard", "adversarial"]].mean()
    lost = (before.reindex(after.index) - after["standard"]).dropna()
    text = (
        f"clean accuracy falls by {lost.min():.2f} to {lost.max():.2f} points; attacked accuracy "
        f"{after['adversarial'].min():.1f} % or more"
    )
    met = len(lost) > 0 and (lost > 0).all() and (after["adversarial"] > 30).all()
    return Finding(everywhere([met], [len(lost) > 0 and (lost > 0).all()]), text, float(lost.min()))
