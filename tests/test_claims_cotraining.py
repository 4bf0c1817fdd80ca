"""The rules of chapter `cotraining` on the papers' own numbers, and on tables that miss them."""

import pandas as pd
import pytest
from robustbook.claims.core import all_rules
from robustbook.published import numbers

DATA = ("MNIST", "F-MNIST", "SVHN", "CIFAR-10")
METHODS = ("No reg", "Hein", "Ours")


def decide(claim, *tables):
    finding = all_rules()[claim].decide(*tables)
    assert finding.evidence
    return finding


def printed_accuracies(id):
    table = numbers(id).rename(columns={"dataset": "data", "value": "accuracy"})
    return table[["data", "method", "accuracy"]].assign(seed=0, candidates=7)


def printed_shares(id):
    table = numbers(id)
    method, attack = zip(*table["method"].str.split("; attack ", regex=False))
    table = table.assign(method=method, attack=attack)
    wide = table.pivot(index=["dataset", "method"], columns="attack", values="value").reset_index()
    return wide.rename(columns={"dataset": "data"}).assign(seed=0)


def printed_distances():
    table = numbers("FW20-F3")
    return pd.DataFrame({"method": table["row"], "l2": table["value"], "seed": 0, "median_l2": float("nan")})


@pytest.mark.parametrize(
    ("claim", "table"),
    [
        ("FW21-C07", printed_accuracies("FW21-T1")),
        ("FW20-C01", printed_accuracies("FW20-T1")),
        ("FW21-C10", printed_shares("FW21-T3")),
        ("FW21-C11", printed_shares("FW21-T3")),
        ("FW20-C03", printed_shares("FW20-T2")),
        ("FW21-C12", printed_distances()),
    ],
)
def test_rules_find_the_papers_claims_in_the_papers_numbers(claim, table):
    assert decide(claim, table).verdict == "reproduced"


def test_printed_numbers_in_the_evidence():
    assert decide("FW21-C07", printed_accuracies("FW21-T1")).measured == pytest.approx(0.77)
    assert decide("FW20-C01", printed_accuracies("FW20-T1")).measured == pytest.approx(2.20)
    assert decide("FW21-C12", printed_distances()).measured == pytest.approx(3.629 / 1.186)


def accuracies(ours=98.9, hein=99.0, plain=99.0, apart=0.02, one=()):
    """Two seeds of four data sets; those in `one` had a single lambda."""
    return pd.DataFrame(
        {"data": d, "method": m, "seed": seed, "accuracy": a + apart * seed * (m == "Ours")}
        | {"candidates": 1 if d in one else 4}
        for d in DATA
        for m, a in (("No reg", plain), ("Hein", hein), ("Ours", ours))
        for seed in (0, 1)
    )


def areas(ours=2.0, hein=1.5, plain=1.0, noise=0.05, seeds=(0, 1), error=0.02):
    return pd.DataFrame(
        {"data": d, "method": m, "seed": seed, "area": a + noise * seed * (m == "Ours"), "area_error": error}
        for d in DATA
        for m, a in (("No reg", plain), ("Hein", hein), ("Ours", ours))
        for seed in seeds
    )


def shares(bg=90.0, ours_pgd=80.0):
    return pd.DataFrame(
        {"data": d, "method": m, "seed": seed, "FGSM": 1.0}
        | (
            {"BG": 99 - ours_pgd, "PGD": ours_pgd}
            if (d, m) == ("MNIST", "Ours")
            else {"BG": bg, "PGD": 99 - bg}
        )
        for d in DATA
        for m in METHODS
        for seed in (0, 1)
    )


def distances(ours, other=1.0, noise=0.1):
    return pd.DataFrame(
        {"method": m, "seed": seed, "l2": 3 * a, "median_l2": a + noise * seed * (m == "Ours")}
        for m, a in (("No reg", 0.9), ("Hein", other), ("Ours", ours))
        for seed in (0, 1)
    )


CASES = [
    ("FW21-C07", [accuracies()], "reproduced"),
    ("FW21-C07", [accuracies(ours=97.9)], "not reproduced"),
    ("FW21-C07", [accuracies(ours=97.99, apart=0.1)], "inconclusive"),
    ("FW20-C01", [accuracies(ours=97.0)], "reproduced"),
    ("FW20-C01", [accuracies(hein=96.0)], "not reproduced"),
    ("FW21-C08", [areas(), accuracies()], "reproduced"),
    ("FW21-C08", [areas(), accuracies(hein=97.5)], "direction only"),
    ("FW21-C08", [areas(hein=2.5), accuracies()], "not reproduced"),
    ("FW21-C08", [areas(plain=2.5), accuracies()], "not reproduced"),
    ("FW21-C08", [areas(hein=2.0, noise=0.5), accuracies()], "inconclusive"),
    ("FW20-C02", [areas(), accuracies(hein=97.5)], "reproduced"),
    ("FW20-C02", [areas(hein=2.5), accuracies()], "not reproduced"),
    ("FW21-C09", [areas()], "reproduced"),
    ("FW21-C09", [areas(hein=0.9)], "not reproduced"),
    ("FW21-C09", [areas(hein=1.02, seeds=(0,))], "inconclusive"),
    ("FW21-C09", [areas(hein=1.2, seeds=(0,))], "reproduced"),
    ("FW21-C10", [shares()], "reproduced"),
    ("FW21-C10", [shares(bg=2.0)], "not reproduced"),
    ("FW21-C10", [shares(ours_pgd=30.0)], "not reproduced"),
    ("FW20-C03", [shares()], "reproduced"),
    ("FW20-C03", [shares(bg=80.0)], "direction only"),
    ("FW20-C03", [shares(bg=40.0)], "not reproduced"),
    ("FW21-C11", [shares()], "reproduced"),
    ("FW21-C11", [shares(ours_pgd=30.0)], "not reproduced"),
    ("FW21-C12", [distances(2.5)], "reproduced"),
    ("FW21-C12", [distances(1.5)], "direction only"),
    ("FW21-C12", [distances(0.8)], "not reproduced"),
    ("FW21-C12", [distances(1.97)], "inconclusive"),
]


@pytest.mark.parametrize(("claim", "tables", "verdict"), CASES)
def test_rules(claim, tables, verdict):
    finding = decide(claim, *tables)
    assert finding.verdict == verdict, finding.evidence


def test_a_data_set_with_one_lambda_does_not_decide():
    table = accuracies(one=("SVHN", "CIFAR-10"))
    table.loc[(table["data"] == "SVHN") & (table["method"] == "Ours"), "accuracy"] = 60.0
    finding = decide("FW21-C07", table)
    assert finding.verdict == "reproduced" and "[SVHN 39.00]" in finding.evidence
    curves = areas()
    curves.loc[(curves["data"] == "SVHN") & (curves["method"] == "Ours"), "area"] = 0.1
    assert decide("FW21-C08", curves, accuracies(one=("SVHN",))).verdict == "reproduced"
    assert decide("FW21-C08", curves, accuracies()).verdict == "not reproduced"


def test_one_data_set_against_hein_is_not_enough_to_refute():
    curves = areas()
    curves.loc[(curves["data"] == "SVHN") & (curves["method"] == "Hein"), "area"] = 0.1
    assert decide("FW21-C09", curves).verdict == "reproduced"
    curves.loc[(curves["data"] == "MNIST") & (curves["method"] == "Hein"), "area"] = 0.1
    assert decide("FW21-C09", curves).verdict == "not reproduced"
