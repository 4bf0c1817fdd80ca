"""The rules of chapter `on_manifold` on the paper's own numbers, and on made-up tables that miss them."""

import pandas as pd
import pytest
from robustbook.claims.core import all_rules
from robustbook.published import numbers

SEEDS = (0, 1, 2)
WIGGLE = (-1.0, 0.0, 1.0)


def printed(artifact: str, row: str, column: str) -> float:
    table = numbers(artifact)
    return float(table[(table.row == row) & (table.column == column)].value.iloc[0])


STUTZ, OURS = (
    [printed("FW20-T4", "F-MNIST", f"{name} / {what}") for what in ("ACC", "ROB")]
    for name in ("Stutz et al. 2019", "Ours (R4)")
)
R2, R4 = ([printed("FW20-T5", what, f"{name} training") for what in ("R2", "R4")] for name in ("R2", "R4"))
ACCURACY = {
    "R2": printed("FW20-T5", "accuracy (header)", "R2 training"),
    "R4": printed("FW20-T5", "accuracy (header)", "R4 training"),
    "none": printed("FW20-T1", "F-MNIST", "No reg"),
}


def four(stutz=STUTZ, ours=OURS, noise=0.0, score_noise=0.0, seeds=SEEDS):
    """Table 4, seed by seed; the noise is on one of the two."""
    lines = [
        {"training": name, "seed": k, "accuracy": a + (name == "R4") * noise * WIGGLE[k]}
        | {"r4": r + (name == "R4") * score_noise * WIGGLE[k], "floor": 0.2, "ceiling": 0.29}
        for name, (a, r) in (("Stutz", stutz), ("R4", ours))
        for k in seeds
    ]
    return [pd.DataFrame(lines)]


def five(r2=R2, r4=R4, accuracy=ACCURACY, noise=0.0, seeds=SEEDS):
    """Table 5 with the unregularised network of Table 1; the noise is on R4 training, relative for scores."""
    scores = {"R2": r2, "R4": r4, "none": (0.4, 0.28)}
    lines = []
    for name, (margin, manifold) in scores.items():
        for k in seeds:
            part = (name == "R4") * noise * WIGGLE[k]
            line = {"training": name, "seed": k, "accuracy": accuracy[name] + part}
            lines.append(line | {"r2": margin * (1 + part), "r4": manifold * (1 + part)})
    return [pd.DataFrame(lines)]


CASES = [
    ("FW20-C08", four(), "reproduced"),
    ("FW20-C08", four(seeds=(0,)), "inconclusive"),
    ("FW20-C08", four(noise=1.5), "inconclusive"),
    ("FW20-C08", four(ours=(92.5, 0.286)), "direction only"),
    ("FW20-C08", four(ours=(91.0, 0.286)), "not reproduced"),
    ("FW20-C09", four(), "reproduced"),
    ("FW20-C09", four(ours=(94.04, 0.280)), "reproduced"),
    ("FW20-C09", four(score_noise=0.01), "inconclusive"),
    ("FW20-C09", four(ours=(94.04, 0.279)), "not reproduced"),
    ("FW20-C09", four(seeds=(0, 1)), "inconclusive"),
    ("FW20-C10", five(), "reproduced"),
    ("FW20-C10", five(r2=(0.6, 0.285)), "direction only"),
    ("FW20-C10", five(r2=(0.4, 0.285)), "not reproduced"),
    ("FW20-C10", five(noise=0.4), "inconclusive"),
    ("FW20-C11", five(), "reproduced"),
    ("FW20-C11", five(r2=(1.06, 0.2)), "not reproduced"),
    ("FW20-C11", five(noise=0.03), "inconclusive"),
    ("FW20-C12", five(), "reproduced"),
    ("FW20-C12", five(accuracy={**ACCURACY, "R4": 93.5}), "not reproduced"),
    ("FW20-C12", five(accuracy={**ACCURACY, "R4": 93.0, "none": 92.0}), "not reproduced"),
    ("FW20-C12", five(noise=0.5), "inconclusive"),
    ("FW20-C12", five(seeds=(0,)), "inconclusive"),
]


@pytest.mark.parametrize(("claim", "tables", "verdict"), CASES)
def test_rules(claim, tables, verdict):
    finding = all_rules()[claim].decide(*tables)
    assert finding.verdict == verdict, finding.evidence
    assert finding.evidence and finding.measured is not None


def test_printed_numbers_are_what_the_cases_think():
    assert (STUTZ, OURS, R2, R4) == ([92.11, 0.280], [94.04, 0.286], [1.060, 0.285], [0.471, 0.286])
    assert ACCURACY == {"R2": 93.29, "R4": 94.04, "none": 93.72}
