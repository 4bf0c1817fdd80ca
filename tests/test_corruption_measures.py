"""Errors on corrupted images: the papers' own tables, and tables whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from robustbook.errors import BookError
from robustbook.measures import (
    accuracy_by_group,
    accuracy_by_severity,
    accuracy_coordinate,
    corruption_errors,
    mce,
    mean_errors,
    relative_mce,
    robustness_coordinate,
)
from robustbook.measures.corruption import ALEXNET, ALEXNET_BY_SEVERITY, ALEXNET_CLEAN, CORRUPTIONS, GROUPS
from robustbook.published import numbers

HEADS = "Gauss. Shot Impulse Defoc. Glass Motion Zoom Snow Frost Fog Bright. Contr. Elastic Pixel. JPEG"
COLUMNS = dict(zip(HEADS.split(), CORRUPTIONS))
MEANS = 0.1001
"""A mean recomputed from printed percentages, against one that was printed itself."""


def published(artifact: str) -> pd.DataFrame:
    return numbers(artifact).pivot(index="row", columns="column", values="value")


def errors_of(row: str) -> pd.Series:
    """A model's errors by corruption, from Tables B.1 and B.2."""
    for artifact in ("THESIS-TB.1", "THESIS-TB.2"):
        table = published(artifact)
        if row in table.index:
            return (1 - table.loc[row, list(COLUMNS)] / 100).rename(COLUMNS)
    raise KeyError(row)


def tidy(errors: pd.Series, by_severity: np.ndarray) -> pd.DataFrame:
    """Every corruption at five severities, whose errors average to `errors`."""
    rows = [(name, s + 1, e + by_severity[s]) for name, e in errors.items() for s in range(5)]
    return pd.DataFrame(rows, columns=["corruption", "severity", "error"])


ROWS = list(published("THESIS-T5.2").index)
TILT = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])


# ------------------------------------------------------------------------------- the thesis, Table 5.2


def recomputed_mce(row: str) -> float:
    """As Table 5.2 means it: unnormalised on CIFAR, by the standard model on IN-100, by AlexNet on IN."""
    data = row.split(" / ")[0]
    references = {"IN": ALEXNET, "IN-100": errors_of("IN-100 / Standard")}
    return 100 * mce(errors_of(row), references.get(data))


@pytest.mark.parametrize("row", [row for row in ROWS if row != "C-10 / Standard"])
def test_mce_of_table_5_2(row: str) -> None:
    assert recomputed_mce(row) == pytest.approx(published("THESIS-T5.2").mCE[row], abs=MEANS)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "IN / Standard"])
def test_corruption_accuracy_of_table_5_2(row: str) -> None:
    printed = published("THESIS-T5.2")["corruption accuracy"][row]
    assert 100 * (1 - mean_errors(errors_of(row)).mean()) == pytest.approx(printed, abs=MEANS)


def test_misprints_of_table_5_2() -> None:
    """Errata C18: 24.0 should be 26.0, 38.1 should be 39.2, IN is not normalised by the standard one."""
    printed = published("THESIS-T5.2")
    assert printed.mCE["C-10 / Standard"] == 24.0
    assert recomputed_mce("C-10 / Standard") == pytest.approx(26.0, abs=MEANS)
    assert printed["corruption accuracy"]["IN / Standard"] == 38.1
    standard = errors_of("IN / Standard")
    assert 100 * (1 - mean_errors(standard).mean()) == pytest.approx(39.2, abs=MEANS)
    for row in ROWS:
        if row.startswith("IN / "):  # what the caption says
            assert abs(100 * mce(errors_of(row), standard) - printed.mCE[row]) > 10


def test_relative_mce_of_resnet50() -> None:
    """Hendrycks & Dietterich print 105.0; it goes into the idiosyncrasy paper as 1 - 1.05 (errata C16)."""
    errors = errors_of("IN / Standard")
    assert 100 * relative_mce(errors, 0.239) == pytest.approx(105.0, abs=MEANS)
    assert robustness_coordinate(errors, 0.239) == pytest.approx(-0.050, abs=0.001)
    coordinates = published("IDIO-TA1")
    assert coordinates["Robustness Coordinate"]["ResNet-50"] == -0.039  # ResNet-18's, not its own
    assert accuracy_coordinate(0.761) == pytest.approx(
        coordinates["Accuracy Coordinate"]["ResNet-50"], abs=0.001
    )


def test_groups_of_table_5_3() -> None:
    printed = published("THESIS-T5.3")
    for method in ("AugMix", "DA", "PRIME"):
        found = 100 * accuracy_by_group(errors_of(f"IN-100 / {method}"))
        for group in GROUPS:
            assert found[group] == pytest.approx(printed[group.capitalize()][method], abs=MEANS)


def test_alexnet_by_severity_has_the_published_means() -> None:
    assert set(CORRUPTIONS) - set(ALEXNET_BY_SEVERITY) == {"jpeg_compression"}
    for name, errors in ALEXNET_BY_SEVERITY.items():
        assert np.mean(errors) == pytest.approx(ALEXNET[name], abs=1e-9)


# ------------------------------------------------------------------------------------- known answers


def test_alexnet_against_itself() -> None:
    assert mce(ALEXNET) == 1 and relative_mce(ALEXNET, ALEXNET_CLEAN) == pytest.approx(1, abs=1e-12)
    assert robustness_coordinate(ALEXNET, ALEXNET_CLEAN) == pytest.approx(0, abs=1e-12)
    assert accuracy_coordinate(1 - ALEXNET_CLEAN) == 0
    assert mce(ALEXNET, None) == pytest.approx(ALEXNET.mean())


def test_mce_is_a_mean_of_ratios_not_a_ratio_of_means() -> None:
    errors = pd.Series(0.3, index=CORRUPTIONS)
    reference = pd.Series([0.3] * 14 + [0.6], index=CORRUPTIONS)
    assert corruption_errors(errors, reference).tolist() == pytest.approx([1.0] * 14 + [0.5])
    assert mce(errors, reference) == pytest.approx(14.5 / 15)


def test_ce_divides_sums_over_severities() -> None:
    """Not a mean of the ratios at each severity."""
    errors = tidy(pd.Series({"fog": 0.4}), np.array([-0.3, 0, 0, 0, 0.3]))
    reference = tidy(pd.Series({"fog": 0.8}), np.array([0.1, 0, 0, 0, -0.1]))
    assert corruption_errors(errors, reference).to_dict() == {"fog": pytest.approx(0.5)}


def test_relative_mce_from_drops_of_accuracy() -> None:
    """The idiosyncrasy paper's RmCE, written as there, from accuracies."""
    generator = np.random.default_rng(0)
    accuracy, alexnet = generator.uniform(0.1, 0.5, (2, 15, 5))
    clean, alexnet_clean = 0.8, 0.6
    drops = ((clean - accuracy).sum(1), (alexnet_clean - alexnet).sum(1))
    index = pd.MultiIndex.from_product([CORRUPTIONS, range(1, 6)], names=["corruption", "severity"])
    tables = [pd.Series(1 - a.ravel(), index).rename("error").reset_index() for a in (accuracy, alexnet)]
    found = relative_mce(tables[0], 1 - clean, tables[1], 1 - alexnet_clean)
    assert found == pytest.approx((drops[0] / drops[1]).mean(), rel=1e-12)


def test_severities() -> None:
    errors = pd.Series(np.linspace(0.1, 0.8, 15), index=CORRUPTIONS)
    table = tidy(errors, TILT)
    found = accuracy_by_severity(table)
    assert found.index.tolist() == [1, 2, 3, 4, 5]
    assert found.tolist() == pytest.approx((1 - errors.mean() - TILT).tolist())
    assert found.mean() == pytest.approx(1 - mce(table, None))
    pd.testing.assert_series_equal(mean_errors(table), errors, check_names=False)


def test_order_of_the_rows_does_not_matter() -> None:
    table = tidy(pd.Series(np.linspace(0.1, 0.8, 15), index=CORRUPTIONS), TILT)
    shuffled = table.sample(frac=1, random_state=0)
    assert mce(shuffled) == mce(table)
    assert corruption_errors(shuffled).index.tolist() == list(CORRUPTIONS)


def test_groups_cover_the_fifteen_once() -> None:
    assert len(CORRUPTIONS) == len(set(CORRUPTIONS)) == 15
    found = accuracy_by_group(pd.Series(np.linspace(0, 1, 15), index=CORRUPTIONS))
    assert found["noise"] == pytest.approx(1 - 1 / 14) and list(found.index) == list(GROUPS)


# ---------------------------------------------------------------------------------------- mistakes

EVEN = pd.Series(0.5, index=CORRUPTIONS)


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        (EVEN * 100, "percentages"),
        (EVEN.rename({"fog": "fogg"}), "did you mean fog"),
        (EVEN.drop("fog"), "no error on fog"),
        (tidy(EVEN, TILT).drop(columns="error"), "no column 'error'"),
        (tidy(EVEN, TILT).drop(index=3), "lack some severities"),
        (pd.concat([tidy(EVEN, TILT)] * 2), "twice"),
        (tidy(EVEN, TILT).query("severity < 4"), "severities .1, 2, 3. against .1, 2, 3, 4, 5."),
        (EVEN.where(EVEN.index != "fog"), "outside"),
    ],
)
def test_tables_that_cannot_be_averaged(errors: pd.Series | pd.DataFrame, text: str) -> None:
    with pytest.raises(BookError, match=text):
        mce(errors)


def test_other_mistakes() -> None:
    with pytest.raises(BookError, match="averaged over the severities"):
        accuracy_by_severity(EVEN)
    with pytest.raises(BookError, match="reference on fog"):
        corruption_errors(EVEN, EVEN.drop("fog"))
    with pytest.raises(BookError, match="no fraction"):
        relative_mce(EVEN, 23.9)
    with pytest.raises(BookError, match="loses nothing to"):
        relative_mce(EVEN, 0.2, EVEN, 0.5)
