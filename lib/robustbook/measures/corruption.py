"""Errors on corrupted images: CE, mCE, relative mCE (Hendrycks & Dietterich 2019), by group and severity.

A model's errors are a tidy table, one row a measurement: `corruption`, `severity` and `error`, a fraction. A
table without `severity` holds errors averaged over the severities already, as papers print them. What comes
back are fractions too: papers print an mCE of 0.767 as 76.7.
"""

from typing import TypeAlias

import pandas as pd

from ..corruptions.common import GROUPS
from ..errors import BookError, unknown

CORRUPTIONS = tuple(name for names in GROUPS.values() for name in names)
"""The 15 corruptions in the order of the tables, under their public names."""
ALL_SEVERITIES = [1, 2, 3, 4, 5]

ALEXNET_CLEAN = 0.435
"""AlexNet's error on clean ImageNet images, as in Hendrycks & Dietterich's tables."""
ALEXNET = pd.Series(
    dict(
        zip(
            CORRUPTIONS,
            (
                *(0.886428, 0.894468, 0.922640),
                *(0.819880, 0.826268, 0.785948, 0.798360),
                *(0.866816, 0.826572, 0.819324, 0.564592),
                *(0.853204, 0.646056, 0.717840, 0.606500),
            ),
        )
    ),
    name="error",
)
"""AlexNet's errors on ImageNet-C, averaged over the severities: what mCE divides by."""
ALEXNET_BY_SEVERITY = {
    "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
    "shot_noise": (0.71224, 0.85108, 0.93574, 0.98182, 0.99146),
    "impulse_noise": (0.78374, 0.89808, 0.9487, 0.9872, 0.99548),
    "defocus_blur": (0.65624, 0.73202, 0.85036, 0.91364, 0.94714),
    "glass_blur": (0.64308, 0.75054, 0.88806, 0.91622, 0.93344),
    "motion_blur": (0.5843, 0.70048, 0.82108, 0.8975, 0.92638),
    "zoom_blur": (0.70008, 0.76992, 0.80784, 0.84198, 0.87198),
    "snow": (0.71726, 0.88392, 0.86468, 0.9187, 0.94952),
    "frost": (0.6139, 0.79734, 0.8879, 0.89942, 0.9343),
    "fog": (0.67474, 0.7605, 0.84378, 0.8726, 0.945),
    "brightness": (0.4514, 0.48502, 0.54048, 0.62166, 0.7244),
    "contrast": (0.64548, 0.7615, 0.88874, 0.9776, 0.9927),
    "elastic_transform": (0.52596, 0.70116, 0.55686, 0.64076, 0.80554),
    "pixelate": (0.52218, 0.5462, 0.73728, 0.87092, 0.91262),
}
"""The same at severities 1 to 5, as the authors gave them; for JPEG only the mean is known."""

Errors: TypeAlias = pd.DataFrame | pd.Series


def error_table(errors: Errors) -> pd.DataFrame:
    """The errors as corruption x severity, in the order of the groups; BookError for what cannot be compared.

    A series of errors by corruption, and a table without severities, become one column, "all".
    """
    table = errors.rename("error").rename_axis("corruption").reset_index() if errors.ndim == 1 else errors
    absent = {"corruption", "error"} - set(table.columns)
    if absent:
        raise BookError(
            f"no column '{min(absent)}' among {list(table.columns)}: give corruption, severity, error"
        )
    if "severity" not in table:
        table = table.assign(severity="all")
    if table.duplicated(["corruption", "severity"]).any():
        raise BookError("a corruption appears twice at one severity: average over seeds first, or choose one")
    for name in table["corruption"]:
        if name not in CORRUPTIONS:
            raise unknown("corruption", str(name), CORRUPTIONS)
    if not table["error"].between(0, 1).all():
        raise BookError("an error outside [0, 1]: give fractions, percentages divided by 100")
    wide = table.pivot(index="corruption", columns="severity", values="error")
    if wide.isna().any(axis=None):
        raise BookError("some corruptions lack some severities: their means cannot be compared")
    return wide.loc[[name for name in CORRUPTIONS if name in wide.index]]


def mean_errors(errors: Errors) -> pd.Series:
    """Error of each corruption, averaged over the severities."""
    return error_table(errors).mean(axis=1).rename("error")


def corruption_errors(errors: Errors, reference: Errors = ALEXNET) -> pd.Series:
    """CE_c: the errors summed over the severities, divided by the same sum of the reference."""
    return (mean_errors(errors) / _matching(errors, reference)).rename("CE")


def mce(errors: Errors, reference: Errors | None = ALEXNET) -> float:
    """Mean corruption error: the mean of the 15 CE.

    Parameters
    ----------
    reference
        The model whose errors are divided by, AlexNet by default, which is for ImageNet-C only. None for the
        mean error itself, which papers on CIFAR-10-C and CIFAR-100-C call mCE.
    """
    means = _all_fifteen(mean_errors(errors))
    return float((means if reference is None else corruption_errors(errors, reference)).mean())


def relative_mce(
    errors: Errors, clean: float, reference: Errors = ALEXNET, reference_clean: float = ALEXNET_CLEAN
) -> float:
    """Relative mCE: as mCE, with what corruption adds to the clean error in place of the error.

    Idiosyncrasy paper, RmCE: the drops of accuracy, summed over the severities, divided by those of AlexNet,
    averaged over the corruptions. That is the same number, for a drop of accuracy is a rise of error.

    Parameters
    ----------
    clean, reference_clean
        Errors of the two models on clean images.
    """
    rise = _all_fifteen(mean_errors(errors)) - _fraction(clean)
    reference_rise = _matching(errors, reference) - _fraction(reference_clean)
    if (reference_rise <= 0).any():
        name = reference_rise.idxmin()
        raise BookError(f"the reference loses nothing to {name}: there is no ratio; choose another reference")
    return float((rise / reference_rise).mean())


def robustness_coordinate(errors: Errors, clean: float) -> float:
    """Idiosyncrasy paper, Figure 2: RmCE of AlexNet, which is 1, minus that of the model."""
    return 1 - relative_mce(errors, clean)


def accuracy_coordinate(accuracy: float, reference: float = 1 - ALEXNET_CLEAN) -> float:
    """Idiosyncrasy paper, Figure 2: how much more accurate than AlexNet, relative to AlexNet."""
    return (_fraction(accuracy) - reference) / reference


def accuracy_by_group(errors: Errors) -> pd.Series:
    """Mean accuracy on noise, blur, weather and digital corruptions, each group complete."""
    means = _all_fifteen(mean_errors(errors))
    return pd.Series(
        {group: 1 - means[list(names)].mean() for group, names in GROUPS.items()}, name="accuracy"
    )


def accuracy_by_severity(errors: Errors) -> pd.Series:
    """Mean accuracy over the 15 corruptions at each severity."""
    table = error_table(errors)
    _all_fifteen(table)
    if list(table.columns) == ["all"]:
        raise BookError("these errors are averaged over the severities: give a column 'severity'")
    return (1 - table.mean()).rename("accuracy")


def _matching(errors: Errors, reference: Errors) -> pd.Series:
    """The reference's mean errors on the corruptions of `errors`; they must be over the same severities."""
    own, other = error_table(errors), error_table(reference)
    if set(own.index) - set(other.index):
        raise BookError(
            f"no error of the reference on {min(set(own.index) - set(other.index))}: measure it too"
        )
    if _severities(own) != _severities(other):
        raise BookError(
            f"severities {_severities(own)} against {_severities(other)} of the reference: measure the same"
        )
    return other.loc[own.index].mean(axis=1)


def _severities(table: pd.DataFrame) -> list[int]:
    """Over which severities the errors are: what papers print is over all five."""
    return ALL_SEVERITIES if list(table.columns) == ["all"] else list(table.columns)


def _all_fifteen(means: Errors) -> Errors:
    missing = [name for name in CORRUPTIONS if name not in means.index]
    if missing:
        raise BookError(f"no error on {', '.join(missing)}: a mean over all 15 corruptions needs every one")
    return means


def _fraction(value: float) -> float:
    if not 0 <= value <= 1:
        raise BookError(f"{value!r} is no fraction: give a number in [0, 1], percentages divided by 100")
    return value
