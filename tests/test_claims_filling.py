"""The rules of chapter `filling_level` on the thesis' own numbers, and on tables that meet and miss them."""

import pandas as pd
import pytest
from robustbook.claims.core import all_rules, apply
from robustbook.published import numbers

SPLITS = ("S1", "S2", "S3")
STRATEGIES = ("ST", "AT", "ST→FT", "ST→AFT", "AT→FT", "AT→AFT")


def sensitivity(curve=(-3.0, 0.0, -1.0, -2.0, -4.0), gain=None, spread=0.0):
    """Figure 4.17: its printed accuracies, other L by a curve around L = 1 (lost), for two seeds."""
    printed = numbers("THESIS-F4.17").set_index(["row", "column"])["value"]
    lines = []
    for split in SPLITS:
        for seed in (0, 1):
            shared = {"split": split, "seed": seed}
            one = printed["ST->FT, L=1", split]
            for fixed, away in enumerate(curve):
                noise = spread * (seed - 0.5) * fixed
                lines.append(
                    {
                        **shared,
                        "strategy": "ST→FT",
                        "fixed": fixed,
                        "chosen": False,
                        "accuracy": one + away + noise,
                    }
                )
            robust = printed["AT->FT, best eps^s", split] if gain is None else one + gain
            at = {**shared, "strategy": "AT→FT", "fixed": 1}
            lines += [{**at, "chosen": True, "accuracy": robust}]
            if (
                gain is not None
            ):  # a radius that was not chosen, better on the unseen containers: does not count
                lines += [{**at, "chosen": False, "accuracy": 99.0}]
    return pd.DataFrame(lines)


def bars(values, containers=None, seeds=(0, 1), wobble=0.0):
    """Per-container accuracies: strategy -> accuracy on all, or (split, container, strategy) -> accuracy."""
    lines = []
    for split in SPLITS:
        for name, images in (("a", 100), ("b", 300)):
            for strategy, value in values.items():
                own = (containers or {}).get((split, name, strategy), value)
                for seed in seeds:
                    moved = own + wobble * (seed - 0.5) * (strategy != "ST")
                    cells = {"split": split, "container": name, "strategy": strategy, "seed": seed}
                    lines.append({**cells, "images": images, "accuracy": moved})
    return pd.DataFrame(lines)


GOOD = {"ST": 70.0, "AT": 68.0, "ST→FT": 75.0, "ST→AFT": 74.0, "AT→FT": 80.0, "AT→AFT": 76.0}
LOW = {("S1", "a", "ST"): 46.0}


def converging(small, large):
    """Train accuracies of ST→AFT at two radii."""
    lines = [
        {
            "quantity": "train accuracy",
            "strategy": "ST→AFT",
            "split": split,
            "seed": seed,
            "eps_target": eps,
            "value": value + seed,
        }
        for split in SPLITS
        for seed in (0, 1)
        for eps, value in ((0.05, small), (1.0, large), (0.25, 70.0))
    ]
    return pd.DataFrame([*lines, {**lines[0], "quantity": "accuracy", "value": 3.0, "eps_target": 1.0}])


def depths(swap=False):
    """Table 5.7."""
    table = numbers("THESIS-T5.7").rename(columns={"column": "split", "value": "accuracy"})
    table["depth"] = table["row"].str.removeprefix("m=").astype(int)
    if swap:
        table["split"] = table["split"].replace({"S1": "S2", "S2": "S1"})
    return table[["split", "depth", "accuracy"]].assign(seed=0)


def mixtures(light=-1.0):
    """Figure 5.9: the best points as printed, the others (lost) lower by a point or `light`."""
    best = numbers("THESIS-F5.9").set_index("column")["value"]
    lines = []
    for split in SPLITS:
        top = (6.0, 2.0) if split == "S3" else (5.0, 1.0)
        for pair in ((5.0, 1.0), (6.0, 2.0), (1.0, 1.0), (1.0, 5.0)):
            away = 0.0 if pair == top else -1.0 if pair[0] > pair[1] else light
            lines.append(
                {"split": split, "alpha": pair[0], "beta": pair[1], "seed": 0, "accuracy": best[split] + away}
            )
    return pd.DataFrame(lines)


def augmentation(change=0.0):
    """Figures 5.9 and 4.17: the printed accuracies of DA_PRIME and AT→FT."""
    prime = numbers("THESIS-F5.9").set_index("column")["value"]
    printed = numbers("THESIS-F4.17").set_index(["row", "column"])["value"]
    values = {}
    for split in SPLITS:
        for name in "ab":
            values[split, name, "DA_PRIME"] = prime[split] + change
            values[split, name, "AT→FT"] = printed["AT->FT, best eps^s", split]
    return bars({"DA_PRIME": 0.0, "AT→FT": 0.0}, values)


CASES = [
    ("THESIS-C45", sensitivity(), "reproduced"),
    ("THESIS-C45", sensitivity((-3.0, 0.0, -1.0, -4.0, -2.0)), "direction only"),
    ("THESIS-C45", sensitivity((1.0, 0.0, -1.0, -2.0, -4.0)), "not reproduced"),
    ("THESIS-C45", sensitivity((-0.1, 0.0, -1.0, -2.0, -4.0), spread=2.0), "inconclusive"),
    ("THESIS-C46", sensitivity(), "reproduced"),
    ("THESIS-C46", sensitivity(gain=-1.0), "not reproduced"),
    ("THESIS-C47", bars(GOOD, LOW), "reproduced"),
    ("THESIS-C47", bars(GOOD, {**LOW, ("S1", "a", "ST→AFT"): 52.0}), "direction only"),
    ("THESIS-C47", bars(GOOD, {**LOW, ("S1", "a", "ST→AFT"): 40.0}), "not reproduced"),
    ("THESIS-C47", bars(GOOD), "inconclusive"),
    ("THESIS-C48", bars(GOOD), "reproduced"),
    ("THESIS-C48", bars({**GOOD, "AT": 72.0}), "not reproduced"),
    ("THESIS-C48", bars({**GOOD, "AT→AFT": 82.0}), "not reproduced"),
    ("THESIS-C48", bars({**GOOD, "AT": 70.9}, wobble=2.0), "inconclusive"),
    ("THESIS-C49", converging(95.0, 45.0), "reproduced"),
    ("THESIS-C49", converging(95.0, 75.0), "direction only"),
    ("THESIS-C49", converging(95.0, 97.0), "not reproduced"),
    ("THESIS-C49", converging(40.0, 30.0), "not reproduced"),
    ("THESIS-C68", depths(), "reproduced"),
    ("THESIS-C68", depths(swap=True), "not reproduced"),
    ("THESIS-C69", mixtures(), "reproduced"),
    ("THESIS-C69", mixtures(light=1.0), "not reproduced"),
    ("THESIS-C70", augmentation(), "reproduced"),
    ("THESIS-C70", augmentation(-8.0), "not reproduced"),
]


@pytest.mark.parametrize(("claim", "table", "verdict"), CASES)
def test_a_rule_says_what_it_must(claim, table, verdict):
    finding = all_rules()[claim].decide(table)
    assert finding.verdict == verdict, finding.evidence
    assert finding.evidence


def test_rendered_images_confirm_nothing():
    for claim, table, verdict in CASES:
        if verdict == "reproduced":
            assert apply(all_rules()[claim], [table], stand_in=True).verdict == "direction only"


def test_split_averages_weigh_images():
    """The first container has a third of the images of the second: a loss there of 8 counts as 2."""
    table = bars(GOOD, {(split, "a", "AT→FT"): 72.0 for split in SPLITS})
    finding = all_rules()["THESIS-C48"].decide(table)
    assert "AT→AFT - AT→FT: S1 -2.0" in finding.evidence


def test_every_claim_of_the_chapter_has_a_rule():
    wanted = {f"THESIS-C{k}" for k in (45, 46, 47, 48, 49, 68, 69, 70)}
    assert {claim for claim, _, _ in CASES} == wanted
