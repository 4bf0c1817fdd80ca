"""Rank correlations between measures: scipy as oracle, and intervals that cover what they should."""

import numpy as np
import pandas as pd
import pytest
from robustbook.errors import BookError
from robustbook.measures import rank_correlations
from scipy.stats import spearmanr


def table(values: dict[str, np.ndarray], noise: float = 0.0, seeds: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"network": f"n{k}", "seed": seed, "measure": name, "value": value + noise * rng.normal()}
        for name, column in values.items()
        for k, value in enumerate(column)
        for seed in range(seeds)
    )


def test_the_correlation_is_scipys_also_with_ties() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        a, b = rng.integers(0, 5, 12), rng.integers(0, 5, 12)
        found = rank_correlations(table({"a": a, "b": b}), draws=1, seed=0)
        assert found["correlation"].item() == pytest.approx(spearmanr(a, b).statistic)
    flat = rank_correlations(table({"a": np.ones(4), "b": np.arange(4)}), draws=1, seed=0)
    assert flat[["correlation", "low", "high"]].isna().all(axis=None)


def test_what_rises_together_agrees_and_what_does_not_is_left_open() -> None:
    x = np.linspace(-1, 1, 14)
    zigzag = x * np.resize([1, -1], 14)
    found = rank_correlations(
        table({"a": x, "b": np.exp(x), "c": -x, "d": zigzag}), draws=200, seed=0
    ).set_index(["first", "second"])
    assert found.loc[("a", "b"), "correlation"] == pytest.approx(1.0) and found.loc[("a", "b"), "low"] > 0.99
    assert found.loc[("a", "c"), "high"] < -0.99
    low, high = found.loc[("a", "d"), ["low", "high"]]
    assert low < 0 < high and high - low > 0.5
    again = rank_correlations(table({"a": x, "b": np.exp(x)}, 1e-6), draws=50, seed=1)
    assert again.equals(rank_correlations(table({"a": x, "b": np.exp(x)}, 1e-6), draws=50, seed=1))


def test_networks_with_fewer_seeds_are_refused() -> None:
    uneven = table({"a": np.arange(4.0), "b": np.arange(4.0)}).iloc[:-1]
    with pytest.raises(BookError, match="different numbers of seeds"):
        rank_correlations(uneven[~((uneven["network"] == "n3") & (uneven["seed"] == 2))], draws=5, seed=0)
