"""The rules of chapter `framework` on made-up tables that meet and miss them.

The papers print no numbers for these definitions, so there are none to try the rules on.
"""

import pandas as pd
import pytest
from robustbook.claims.core import all_rules

SEEDS = (0, 1)


def scores(network=0.8, constant=1.0, ceiling=1.0, least=1.0):
    """Scores of a constant classifier and a network by two definitions, and the least rho of the first."""
    lines = [
        {"problem": "plane", "definition": d, "model": m, "seed": k, "value": v, "ceiling": ceiling}
        for d in ("type 1", "type 2")
        for k in SEEDS
        for m, v in (("constant", constant), ("network", network))
    ]
    measures = [{"model": "constant", "least_rho": least}, {"model": "network", "least_rho": 0.1}]
    return [pd.DataFrame(lines), pd.DataFrame(measures)]


def margins(score, error=0.01, draws=(10, 1000), coarse=0.9):
    """d R in the plane, dense and coarse, and in five dimensions, where the mean margin is 0.29."""
    lines = [
        {"shape": shape, "dimension": m, "draws": n, "mean_margin": 0.29, "standard_error": error}
        | {"scaled_score": score if (m, n) == (2, max(draws)) else coarse}
        for shape in ("half-space", "concentric")
        for m in (2, 5)
        for n in draws
    ]
    return [pd.DataFrame(lines)]


def agreement(plane, high=0.5):
    lines = [
        {"dimension": m, "draws": n, "agreement": a, "pairs": 100}
        for m, n, a in ((2, 10, 0.7), (2, 1000, plane), (2, 1000, 1.0), (20, 10, 0.2), (20, 1000, high))
    ]
    return [pd.DataFrame(lines)]


def curves(area, gap=0.0):
    lines = [
        {"model": m, "area": a, "mean_distance": 2.0, "success_gap": g}
        for m, a, g in (("constant", 9.0, 0.0), ("network", area, gap), ("svm", 2.0, float("nan")))
    ]
    return [pd.DataFrame(lines)]


def aware(value=1.0, plain=0.7):
    lines = [
        {"model": m, "eps": e, "label_aware": v, "label_agnostic": plain}
        for m, v in (("network", 0.4), ("truth", value))
        for e in (0.1, 0.2)
    ]
    return [pd.DataFrame(lines)]


def shifts(slack, error=0.01):
    columns = {"slack": [0.2, 0.1, slack], "error": [0.01, 0.0, error]}
    return [pd.DataFrame(columns)]


def identity(area=2.0, integral=2.01):
    columns = {"mean_margin": [2.0, 2.0], "area": [2.0, area], "margin_error": [0.02, 0.02]}
    return [pd.DataFrame({**columns, "integral": [integral, float("nan")]})]


CASES = [
    ("FW21-C01", scores(), "reproduced"),
    ("FW21-C01", scores(network=1.0), "reproduced"),
    ("FW21-C01", scores(network=1.1), "not reproduced"),
    ("FW21-C01", scores(ceiling=1.2), "not reproduced"),
    ("FW21-C01", scores(least=0.99), "not reproduced"),
    ("FW21-C02", margins(0.31), "reproduced"),
    ("FW21-C02", margins(0.31, error=0.005), "direction only"),
    ("FW21-C02", margins(0.9), "not reproduced"),
    ("FW21-C03", agreement(0.995), "reproduced"),
    ("FW21-C03", agreement(0.985, high=1.0), "not reproduced"),
    ("FW21-C04", curves(2.015), "reproduced"),
    ("FW21-C04", curves(2.1), "direction only"),
    ("FW21-C04", curves(2.0, gap=0.02), "direction only"),
    ("FW21-C04", curves(3.0), "not reproduced"),
    ("FW21-C05", aware(), "reproduced"),
    ("FW21-C05", aware(0.999), "not reproduced"),
    ("FW21-C05", aware(1.0, plain=1.1), "not reproduced"),
    ("FW21-C06", shifts(0.0), "reproduced"),
    ("FW21-C06", shifts(-0.02), "reproduced"),
    ("FW21-C06", shifts(-0.05), "not reproduced"),
    ("FW21-C06", shifts(-0.001, error=0.0), "not reproduced"),
    ("FW20-C13", identity(), "reproduced"),
    ("FW20-C13", identity(area=2.01), "direction only"),
    ("FW20-C13", identity(area=2.1), "not reproduced"),
    ("FW20-C13", identity(integral=2.1), "direction only"),
]


@pytest.mark.parametrize(("claim", "tables", "verdict"), CASES)
def test_rules(claim, tables, verdict):
    finding = all_rules()[claim].decide(*tables)
    assert finding.verdict == verdict, finding.evidence
    assert finding.evidence
