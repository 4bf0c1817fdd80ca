"""Chapter `synthesis`: what its stored tables must show, at every profile that has some."""

import math
from pathlib import Path

import pandas as pd
import pytest
from robustbook.datasets import load
from robustbook.measures import MEASURES
from robustbook.storage import repository
from robustbook.training.synthesis import STATISTICS

WEAKER = ("pgd-linf", "fgsm-linf", "square-linf")
DEFENCES = 14
TABLES = [
    repository() / "results" / profile / f"{name}.csv"
    for profile in ("smoke", "laptop")
    for name in ("synthesis-matrix", "synthesis-cifar10")
]
STORED = [path for path in TABLES if path.is_file()]


def beaten(table: pd.DataFrame) -> list[str]:
    """The cells in which a weaker attack leaves less accuracy than AutoAttack."""
    cells = table.pivot(index=["network", "seed"], columns="measure", values="value")
    return [
        f"{cell}: {name}"
        for name in WEAKER
        for cell in cells.index[cells[name] < cells["autoattack-linf"] - 1e-9]
    ]


def empty(table: pd.DataFrame) -> list[str]:
    """The cells that are missing or no numbers."""
    cells = table.pivot(index=["network", "seed"], columns="measure", values="value").reindex(
        columns=list(MEASURES)
    )
    return [
        f"{cell}: {name}"
        for cell, line in cells.iterrows()
        for name in cells.columns
        if math.isnan(line[name])
    ]


def test_offenders_are_caught() -> None:
    rows = [("none", 0, name, 10.0) for name in MEASURES]
    table = pd.DataFrame(rows, columns=["network", "seed", "measure", "value"])
    assert not beaten(table) and not empty(table)
    weak = table.assign(value=table["value"].where(table["measure"] != "square-linf", 9.0))
    assert beaten(weak) == ["('none', 0): square-linf"]
    assert empty(table.iloc[1:]) == [f"('none', 0): {next(iter(MEASURES))}"]


def test_smoke_tables_are_there() -> None:
    assert {path for path in TABLES if "smoke" in path.parts} <= set(STORED)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_weaker_attack_beats_autoattack_and_no_cell_is_empty(path: Path) -> None:
    table = pd.read_csv(path)
    assert not beaten(table)
    assert not empty(table)
    numbers = table["error"].dropna()
    assert len(numbers) == len(table) and (numbers >= 0).all()


@pytest.mark.parametrize("path", [path for path in STORED if path.stem == "synthesis-matrix"], ids=str)
def test_every_defence_has_every_seed(path: Path) -> None:
    table = pd.read_csv(path)
    seeds = table.groupby("network")["seed"].nunique()
    assert len(seeds) == DEFENCES and (seeds == seeds.iloc[0]).all()
    wide = table.pivot(index=["network", "seed"], columns="measure", values="value")
    assert (wide["proposition-6"] <= wide["corruption-accuracy"] + 1e-9).all()


def test_statistics_are_those_of_the_data() -> None:
    x = load("fashion-mnist-small", "train").x
    assert STATISTICS["mean"] == pytest.approx(x.mean().item(), abs=0.01)
    assert STATISTICS["std"] == pytest.approx(x.std().item(), abs=0.01)
