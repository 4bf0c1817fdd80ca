"""Rules for distribution shift: framework 2021, section 4, and the C-MNIST table of 2020 (chapter `shift`).

Table 2 has one line a classifier, column and seed: `corrupted` is the mean accuracy over the corruptions,
`clean` that on clean images. Tables 4, 5 and 3 of 2020 have one line a corruption as well.
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from .core import DIRECTION, NOT_REPRODUCED, REPRODUCED, Finding, rule
from .decide import exceeds, weakest

CLASSIFIERS = ("NN", "SVM")
NONE, LEVELS = "TRANSFER-SEPARATE 0", ("128", "1024", "30k")
SETUPS = ("SEPARATE", "JOINT")
CLEAN_TOLERANCE, LARGE_DROP, SMALL_GAIN, TIE = 0.6, 5.0, 3.0, 0.3
NEAR_SETUPS, LARGE_GAIN, MACHINE_GAIN, REPAIRED = 3.0, 5.0, 3.0, 5.0
NEAR_METHODS, FAR_APART, APART = 1.5, 15.0, 5.0
GEOMETRIC = ("rotate", "scale", "shear", "translate", "stripe")


def _column(table: pd.DataFrame, model: str, column: str, what: str = "corrupted") -> pd.Series:
    """A column of Table 2 by seed."""
    found = table[(table["model"] == model) & (table["column"] == column)]
    return found.set_index("seed")[what].sort_index()


def _signed(values: pd.Series | np.ndarray) -> str:
    return f"{np.mean(values):+.1f}"


@rule("FW21-C13", "FW21-T2")
def clean_accuracy_is_kept(table: pd.DataFrame) -> Finding:
    """No technique moves clean accuracy by more than 0.6 points, for either classifier."""
    verdicts, said, worst = set(), [], 0.0
    for model in CLASSIFIERS:
        plain = _column(table, model, "PLAIN", "clean")
        columns = [c for c in table.loc[table["model"] == model, "column"].unique() if c != "PLAIN"]
        changes = {c: _column(table, model, c, "clean") - plain for c in columns}
        verdicts |= {exceeds(CLEAN_TOLERANCE - change.abs(), 0) for change in changes.values()}
        most = max(changes, key=lambda c: abs(changes[c].mean()))
        said.append(f"{model} {_signed(changes[most])} points ({most})")
        worst = max(worst, abs(changes[most].mean()))
    return Finding(weakest(verdicts), f"largest change of clean accuracy: {', '.join(said)}", worst)


@rule("FW21-C14", "FW21-T2")
def both_lose_and_the_machine_more(table: pd.DataFrame) -> Finding:
    """Both plain classifiers lose more than five points, the SVM more than the network."""
    drops = {m: _column(table, m, "PLAIN", "clean") - _column(table, m, "PLAIN") for m in CLASSIFIERS}
    more = drops["SVM"] - drops["NN"]
    verdicts = {exceeds(drop, LARGE_DROP, null=0) for drop in drops.values()} | {exceeds(more, 0)}
    text = f"plain network loses {drops['NN'].mean():.1f} points, plain SVM {drops['SVM'].mean():.1f}"
    return Finding(weakest(verdicts), text, float(more.mean()))


@rule("FW21-C15", "FW21-T2")
def noise_helps_a_little(table: pd.DataFrame) -> Finding:
    """GAUSS gains between 0 and 3 points over PLAIN, for either classifier."""
    gains = {m: _column(table, m, "GAUSS") - _column(table, m, "PLAIN") for m in CLASSIFIERS}
    verdicts = {exceeds(gain, 0) for gain in gains.values()}
    verdicts |= {exceeds(SMALL_GAIN - gain, 0) for gain in gains.values()}
    text = ", ".join(f"{m} {_signed(gain)}" for m, gain in gains.items())
    return Finding(
        weakest(verdicts), f"gain by training with noise: {text} points", float(gains["NN"].mean())
    )


@rule("FW21-C16", "FW21-T2")
def more_corrupted_images_help(table: pd.DataFrame) -> Finding:
    """Accuracy does not fall with N_c, ties of 0.3 allowed, and is higher at the end than at the start."""
    verdicts, said, ends = set(), [], []
    for model in CLASSIFIERS:
        for setup in SETUPS:
            names = [f"TRANSFER-{setup} {level}" for level in LEVELS]
            columns = [_column(table, model, c) for c in ([NONE] if setup == "SEPARATE" else []) + names]
            steps = [after - before for before, after in pairwise(columns)]
            end = columns[-1] - columns[0]
            found = {exceeds(step, -TIE) for step in steps} | {exceeds(end, 0)}
            verdict = weakest(found)
            grown = verdict == NOT_REPRODUCED and exceeds(end, 0) == REPRODUCED
            verdicts.add(DIRECTION if grown else verdict)
            said.append(f"{model} {setup} {' '.join(f'{column.mean():.1f}' for column in columns)}")
            ends.append(end.mean())
    return Finding(weakest(verdicts), f"by N_c: {'; '.join(said)}", float(min(ends)))


@rule("FW21-C17", "FW21-T2")
def one_map_does_for_all(table: pd.DataFrame) -> Finding:
    """SEPARATE and JOINT differ by at most three points at every N_c > 0, for either classifier."""
    verdicts, said, worst = set(), [], 0.0
    for model in CLASSIFIERS:
        gaps = [
            _column(table, model, f"TRANSFER-SEPARATE {level}")
            - _column(table, model, f"TRANSFER-JOINT {level}")
            for level in LEVELS
        ]
        verdicts |= {exceeds(NEAR_SETUPS - gap.abs(), 0) for gap in gaps}
        said.append(f"{model} {', '.join(map(_signed, gaps))}")
        worst = max([worst, *(abs(gap.mean()) for gap in gaps)])
    text = f"SEPARATE minus JOINT at N_c of {', '.join(LEVELS)}: {'; '.join(said)}"
    return Finding(weakest(verdicts), text, worst)


@rule("FW21-C18", "FW21-T2")
def transfer_helps_both(table: pd.DataFrame) -> Finding:
    """With the most corrupted images both setups gain more than five points, for either classifier."""
    gains = {
        (model, setup): _column(table, model, f"TRANSFER-{setup} {LEVELS[-1]}")
        - _column(table, model, "PLAIN")
        for model in CLASSIFIERS
        for setup in SETUPS
    }
    verdict = weakest({exceeds(gain, LARGE_GAIN, null=0) for gain in gains.values()})
    text = ", ".join(f"{model} {setup} {_signed(gain)}" for (model, setup), gain in gains.items())
    least = min(float(gain.mean()) for gain in gains.values())
    return Finding(verdict, f"gain over PLAIN with the most corrupted images: {text}", least)


@rule("FW21-C19", "FW21-T2")
def clean_map_helps_the_machine(table: pd.DataFrame) -> Finding:
    """An auto-encoder of clean digits alone gains the SVM more than three points."""
    gain = _column(table, "SVM", NONE) - _column(table, "SVM", "PLAIN")
    other = _column(table, "NN", NONE) - _column(table, "NN", "PLAIN")
    text = f"map of clean digits alone: SVM {_signed(gain)} points (network {_signed(other)})"
    return Finding(exceeds(gain, MACHINE_GAIN, null=0), text, float(gain.mean()))


def _gains(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Accuracy in a column minus that at N_c = 0, by corruption and seed; not for clean images."""
    wide = table[table["corruption"] != "identity"].pivot(
        index=["corruption", "seed"], columns="column", values="accuracy"
    )
    return (wide[column] - wide[NONE]).unstack("seed")


@rule("FW21-C20", "FW21-T4", "FW21-T5")
def stripe_gains_most(network: pd.DataFrame, machine: pd.DataFrame) -> Finding:
    """The gain of SEPARATE 30k over N_c = 0 is largest on 'stripe', for either classifier."""
    verdicts, said, least = set(), [], np.inf
    for model, table in zip(CLASSIFIERS, (network, machine)):
        gains = _gains(table, f"TRANSFER-SEPARATE {LEVELS[-1]}")
        own, others = gains.loc["stripe"], gains.drop(index="stripe")
        verdicts.add(exceeds(own - others.max(), 0))
        best = others.mean(axis=1).idxmax()
        said.append(f"{model}: stripe {_signed(own)}, {best} {_signed(others.loc[best])}")
        least = min(least, float(own.mean()))
    text = f"gain over the map of clean digits, and the largest elsewhere: {'; '.join(said)}"
    return Finding(weakest(verdicts), text, least)


@rule("FW21-C21", "FW21-T4", "FW21-T5")
def translation_stays(network: pd.DataFrame, machine: pd.DataFrame) -> Finding:
    """On 'translate' both setups with the most images gain less than five points over N_c = 0."""
    gains = {
        (model, setup): _gains(table, f"TRANSFER-{setup} {LEVELS[-1]}").loc["translate"]
        for model, table in zip(CLASSIFIERS, (network, machine))
        for setup in SETUPS
    }
    verdict = weakest({exceeds(REPAIRED - gain, 0) for gain in gains.values()})
    text = ", ".join(f"{model} {setup} {_signed(gain)}" for (model, setup), gain in gains.items())
    largest = max(float(gain.mean()) for gain in gains.values())
    return Finding(verdict, f"gain on translated digits: {text} points", largest)


# ------------------------------------------------------------------------------- 2020, Table 3


def _methods(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by corruption and seed, a column a method."""
    return table.pivot(index=["corruption", "seed"], columns="method", values="accuracy")


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over the corruptions, by seed."""
    return _methods(table).groupby("seed").mean()


@rule("FW20-C04", "FW20-T3")
def both_regularisers_help(table: pd.DataFrame) -> Finding:
    """Hein and Ours beat No reg on the mean over the corruptions."""
    means = _means(table)
    gains = {method: means[method] - means["No reg"] for method in ("Hein", "Ours")}
    text = ", ".join(f"{method} {means[method].mean():.2f}" for method in ("No reg", "Hein", "Ours"))
    least = min(float(gain.mean()) for gain in gains.values())
    return Finding(weakest({exceeds(gain, 0) for gain in gains.values()}), f"mean accuracy: {text}", least)


@rule("FW20-C05", "FW20-T3")
def methods_are_close_on_average(table: pd.DataFrame) -> Finding:
    """The means of Hein and Ours differ by at most 1.5 points."""
    gap = _means(table)["Hein"] - _means(table)["Ours"]
    verdict = exceeds(NEAR_METHODS - gap.abs(), 0)
    return Finding(verdict, f"Hein minus Ours {gap.mean():+.2f} points on average", float(gap.mean()))


@rule("FW20-C06", "FW20-T3")
def averages_hide_differences(table: pd.DataFrame) -> Finding:
    """On some corruption Hein and Ours differ by more than 15 points."""
    wide = _methods(table)
    gaps = (wide["Hein"] - wide["Ours"]).unstack("seed")
    largest = gaps.abs().max()
    name = gaps.mean(axis=1).abs().idxmax()
    text = (
        f"largest difference {largest.mean():.1f} points ({name}, Hein minus Ours: {_signed(gaps.loc[name])})"
    )
    return Finding(exceeds(largest, FAR_APART, null=APART), text, float(largest.mean()))


@rule("FW20-C07", "FW20-T3")
def cotraining_loses_on_geometry(table: pd.DataFrame) -> Finding:
    """Ours is below No reg on rotate, scale, shear, translate and stripe, on each of them."""
    wide = _methods(table)
    losses = (wide["No reg"] - wide["Ours"]).unstack("seed").reindex(list(GEOMETRIC))
    verdict = weakest({exceeds(losses.loc[name], 0) for name in GEOMETRIC})
    text = ", ".join(f"{name} {_signed(-losses.loc[name])}" for name in GEOMETRIC)
    return Finding(verdict, f"Ours minus No reg: {text}", float(losses.mean(axis=1).min()))
