"""Rules for Figure 2 of the idiosyncrasy paper: accuracy and robustness to common corruptions.

Claims about AlexNet and ResNet-18 are judged on those networks where they were measured (`paper`). Elsewhere
a pair of networks on CIFAR-10-C stands for them, one pruned in its second to last layer like AlexNet, one in
its last like ResNet-18: it can show the direction, or that it is missing, but not reproduce the claim.
"""

import math

import pandas as pd

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, PAPER_SCALE, REPRODUCED, Finding, rule
from .decide import exceeds, spread, weakest

ALEXNET, RESNET18 = "alexnet-imagenet", "resnet18-imagenet"
OF_FIGURE_2 = (RESNET18, "squeezenet-imagenet", "vgg11-imagenet", "vgg19-imagenet", "resnet50-imagenet")
"""Unpruned networks of Figure 2, under the names of this book; others are shown and not judged."""
ACCURATE = -0.005
"""Accuracy coordinate from which a network counts as practically as accurate as AlexNet."""
NOTHING = "neither the paper's network nor enough images for one in its place were measured"
COORDINATES = ["accuracy_coordinate", "robustness_coordinate", "blur"]


def _measured(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["robustness_coordinate"].notna()]


@rule("IDIO-C12", "IDIO-TA1")
def nothing_beats_alexnet(table: pd.DataFrame) -> Finding:
    """No unpruned network of Figure 2 has both coordinates above zero, beyond the error of the images."""
    plain = _measured(table[(table["method"] == "none") & table["network"].isin(OF_FIGURE_2)])
    if plain.empty:
        return Finding(PAPER_SCALE, "no ImageNet images in this run")
    verdicts = set()
    for line in plain.itertuples():
        error = 0.0 if math.isnan(line.error) else line.error
        both = line.accuracy_coordinate > 0 and line.robustness_coordinate > 0
        close = line.accuracy_coordinate > 0 and abs(line.robustness_coordinate) <= error
        verdicts.add(INCONCLUSIVE if close else NOT_REPRODUCED if both else REPRODUCED)
    verdict = weakest(verdicts)
    text = ", ".join(
        f"{r.network} {r.accuracy_coordinate:+.3f} and {r.robustness_coordinate:+.3f}"
        for r in plain.itertuples()
    )
    if verdict == REPRODUCED and RESNET18 not in set(plain["network"]):
        return Finding(DIRECTION, f"{text} (accuracy, robustness); some of the figure's networks only")
    return Finding(verdict, f"{text} (accuracy, robustness)")


def _pairs(photos: pd.DataFrame, small: pd.DataFrame, role: str, method: str) -> tuple[pd.DataFrame, bool]:
    """Pruned minus unpruned by seed, and whether it is the paper's own network.

    Differences in the three coordinates; on CIFAR-10-C those are relative to the unpruned AlexNet-like
    network of the same seed, as on ImageNet to AlexNet.
    """
    own = _measured(photos[photos["network"] == role]).assign(seed=0)
    table = own if not own.empty else small[small["role"] == role]
    wide = table.set_index(["method", "seed"])[COORDINATES].dropna()
    if not {"none", method} <= set(wide.index.get_level_values("method")):
        return pd.DataFrame(columns=COORDINATES), False
    return wide.loc[method] - wide.loc["none"], not own.empty


def _finding(verdicts: set[str], own: bool, text: str, measured: float) -> Finding:
    verdict = weakest(verdicts)
    if own:
        return Finding(verdict, text, measured)
    text = f"{text} (CIFAR-10-C, networks of this book)"
    return Finding(DIRECTION if verdict == REPRODUCED else verdict, text, measured)


def _says(change: pd.DataFrame) -> str:
    return " and ".join(
        f"{name} {change[f'{name}_coordinate'].mean():+.3f} ± {spread(change[f'{name}_coordinate']):.3f}"
        for name in ("accuracy", "robustness")
    )


@rule("IDIO-C13", "IDIO-TA1", "pruning-cifar10c")
def free_robustness(photos: pd.DataFrame, small: pd.DataFrame) -> Finding:
    """M1 at 30 % on AlexNet: more robust, and less accurate by half a percent at most."""
    change, own = _pairs(photos, small, ALEXNET, "M1P30")
    if change.empty:
        return Finding(PAPER_SCALE, NOTHING)
    robust = change["robustness_coordinate"]
    verdicts = {exceeds(robust, 0.0), exceeds(change["accuracy_coordinate"], ACCURATE)}
    return _finding(verdicts, own, f"change by M1P30: {_says(change)}", float(robust.mean()))


@rule("IDIO-C14", "IDIO-TA1", "pruning-cifar10c")
def heavier_trades(photos: pd.DataFrame, small: pd.DataFrame) -> Finding:
    """M3 at 50 % on AlexNet and M2 at 75 % on ResNet-18: less accurate and not less robust."""
    verdicts, parts, owned, worst = set(), [], [], math.inf
    for role, method in ((ALEXNET, "M3P50"), (RESNET18, "M2P75")):
        change, own = _pairs(photos, small, role, method)
        if change.empty:
            return Finding(PAPER_SCALE, NOTHING)
        robust = change["robustness_coordinate"]
        verdicts.add(exceeds(-change["accuracy_coordinate"], 0.0))
        verdicts.add(REPRODUCED if (robust >= 0).all() else exceeds(robust, 0.0))
        parts.append(f"{method} in the place of {role}: {_says(change)}")
        owned.append(own)
        worst = min(worst, float(robust.mean()))
    return _finding(verdicts, all(owned), "; ".join(parts), worst)


@rule("IDIO-C15", "IDIO-TA1", "pruning-cifar10c")
def better_on_blur(photos: pd.DataFrame, small: pd.DataFrame) -> Finding:
    """M1 at 30 % on AlexNet raises the mean accuracy on blurred images."""
    change, own = _pairs(photos, small, ALEXNET, "M1P30")
    if change.empty:
        return Finding(PAPER_SCALE, NOTHING)
    blur = change["blur"]
    text = f"mean accuracy on blur {100 * blur.mean():+.2f} points ± {100 * spread(blur):.2f}"
    return _finding({exceeds(blur, 0.0)}, own, text, float(blur.mean()))
