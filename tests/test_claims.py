"""Rules: ways of deciding, and every rule on made-up tables that meet and miss it."""

import pandas as pd
import pytest
from robustbook.claims import RULES, everywhere, exceeds, rank_correlation
from robustbook.claims.core import Finding, Rule, all_rules, apply
from robustbook.errors import BookError
from robustbook.published import claims, numbers


@pytest.mark.parametrize(
    ("values", "threshold", "null", "verdict"),
    [
        ([2.0, 2.1, 1.9], 1.0, 0.0, "reproduced"),
        ([1.0, 2.0, 0.2], 1.0, 0.0, "inconclusive"),
        ([0.5, 0.6, 0.4], 1.0, 0.0, "direction only"),
        ([-0.5, -0.6, -0.4], 1.0, 0.0, "not reproduced"),
        ([0.5], 1.0, None, "not reproduced"),
        ([2.0], 1.0, None, "reproduced"),
        ([float("nan"), 2.0], 1.0, None, "inconclusive"),
        ([], 1.0, None, "inconclusive"),
    ],
)
def test_exceeds(values, threshold, null, verdict):
    assert exceeds(values, threshold, null=null) == verdict


def test_everywhere_and_ranks():
    assert everywhere([True, True]) == "reproduced"
    assert everywhere([True, False], direction=[True, True]) == "direction only"
    assert everywhere([True, False]) == "not reproduced"
    assert everywhere([]) == "not reproduced"
    assert rank_correlation([1, 2, 3], [1, 4, 9]) == 1 and rank_correlation([1, 2, 3], [5, 5, 5]) == 0


def theorem(miss):
    return [pd.DataFrame({"misses_in_standard_errors": [1.0, miss], "samples": [10, 10], "networks": [1, 1]})]


def sigma2(worst):
    return [pd.DataFrame({"largest_relative_difference": [1e-7, worst]})]


def errors(levels, values):
    return [
        pd.DataFrame(
            [{"sigma": s, "seed": k, "relative_error": v} for k in (0, 1) for s, v in zip(levels, values)]
        )
    ]


def jensen(share):
    columns = {
        "jensen_holds": [1.0, share],
        "images": [100, 100],
        "bound_holds_for_approximation": [1.0, 0.5],
    }
    return [pd.DataFrame(columns)]


def norms(ratio, gaps):
    table = [
        {"seed": k, "noise": n, "gnr": 80.0 + g * (n == "gaussian")}
        for k, g in enumerate(gaps)
        for n in NOISES
    ]
    return [pd.DataFrame({"dimension": [1, 784], "ratio": [0.8, ratio]}), pd.DataFrame(table)]


def paper_t4():
    """The paper's own Table 4 in the shape of ours."""
    table = numbers("MOMENT-T4")
    name = table["row"].str.split(" / sigma=", expand=True)
    sigma = name[1].astype(float).replace(0.12, 0.125)
    table = table.assign(model=table["model"], data=table["dataset"].str.lower(), sigma=sigma, seed=0)
    keys = ["model", "data", "sigma", "seed"]
    scores = table[table["column"].isin(["GNR", "ACC"])].pivot(index=keys, columns="column", values="value")
    energy = table[~table["column"].isin(["GNR", "ACC"])].rename(columns={"value": "mean_squared"})
    energy = energy.assign(attack=energy["column"])[[*keys, "attack", "mean_squared"]]
    return energy.merge(scores.rename(columns={"GNR": "gnr"}), on=keys)


def t4(gnr, energy):
    """A made-up table: GNR and energy by sigma, two seeds, two attacks."""
    levels, lenet = (0.0, 0.125, 0.25), {"model": "LeNet", "data": "mnist"}
    lines = [
        {**lenet, "sigma": s, "seed": k, "attack": a, "gnr": g + k / 100, "mean_squared": e}
        for k in (0, 1)
        for a in ("PGD", "DF2")
        for s, g, e in zip(levels, gnr, energy, strict=True)
    ]
    return [pd.DataFrame(lines)]


def paper_lenet():
    table = paper_t4()
    return [table[(table["model"] == "LeNet") & (table["data"] == "mnist")]]


NOISES = ("fixed-norm", "gaussian")
LEVELS = (0.0625, 0.125, 0.5)
CASES = [
    ("MOMENT-C01", theorem(3.9), "reproduced"),
    ("MOMENT-C01", theorem(4.1), "not reproduced"),
    ("MOMENT-C02", sigma2(9e-6), "reproduced"),
    ("MOMENT-C02", sigma2(2e-5), "not reproduced"),
    ("MOMENT-C03", errors(LEVELS, (0.01, 0.05, 0.4)), "reproduced"),
    ("MOMENT-C03", errors(LEVELS, (0.1, 0.2, 0.4)), "direction only"),
    ("MOMENT-C03", errors(LEVELS, (0.4, 0.05, 0.01)), "not reproduced"),
    ("MOMENT-C04", jensen(1.0), "reproduced"),
    ("MOMENT-C04", jensen(0.99), "not reproduced"),
    ("MOMENT-C05", norms(0.9997, (0.1, 0.2)), "reproduced"),
    ("MOMENT-C05", norms(0.9997, (0.1, 3.0)), "inconclusive"),
    ("MOMENT-C05", norms(0.9997, (2.0, 2.1)), "not reproduced"),
    ("MOMENT-C05", norms(0.9900, (0.1, 0.2)), "not reproduced"),
    ("MOMENT-C13", [paper_t4()], "reproduced"),
    ("MOMENT-C13", t4((90, 95, 94), (1, 1, 1)), "direction only"),
    ("MOMENT-C13", t4((90, 89, 94), (1, 1, 1)), "not reproduced"),
    ("MOMENT-C14", [paper_t4()], "reproduced"),
    ("MOMENT-C14", t4((90, 95, 96), (1, 2, 3)), "direction only"),
    ("MOMENT-C14", t4((90, 95, 96), (1, 0.5, 3)), "not reproduced"),
    ("MOMENT-C15", [paper_t4()], "not reproduced"),  # as the errata say: AlexNet on CIFAR-10
    ("MOMENT-C15", paper_lenet(), "reproduced"),
    ("MOMENT-C16", [paper_t4()], "not reproduced"),  # LeNet on CIFAR-100 at two sigmas
    ("MOMENT-C16", paper_lenet(), "reproduced"),
]


@pytest.mark.parametrize(("claim", "tables", "verdict"), CASES)
def test_rules(claim, tables, verdict):
    finding = apply(all_rules()[claim], tables)
    assert finding.verdict == verdict and finding.evidence


def test_every_rule_is_tried_both_ways_and_names_a_claim():
    known = set(claims()["claim_id"])
    assert set(all_rules()) <= known
    for claim in all_rules():
        verdicts = {verdict for name, _, verdict in CASES if name == claim}
        assert "reproduced" in verdicts and len(verdicts) > 1, claim
    assert RULES


def test_stand_in_data_gives_at_most_the_direction():
    met = Rule("MOMENT-C01", (), lambda: Finding("reproduced", "met"))
    assert apply(met, [], stand_in=True).verdict == "direction only"
    odd = Rule("MOMENT-C01", (), lambda: Finding("proved", "odd"))
    with pytest.raises(BookError, match="unknown verdict"):
        apply(odd, [])
