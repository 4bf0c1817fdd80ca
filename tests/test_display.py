"""How numbers of a table are written on a page."""

import numpy as np
import pandas as pd
import pytest
from robustbook.results import display
from robustbook.results.display import _cell


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-0.0, "0"),
        (np.float64(-0.0), "0"),
        (round(-0.0004, 2), "0"),
        (-0.5, "-0.5"),
        (float("nan"), "–"),
        (pd.NA, "–"),
        (None, "–"),
        (12_345, "12,345"),
        (123.456, "123.5"),
        (True, "yes"),
        ((1, 2.5), "1, 2.5"),
    ],
)
def test_cells(value, written):
    """A rounded zero has no sign, what is missing is a dash, large counts have commas."""
    assert _cell(value) == written


def test_numbers_stand_to_the_right_and_text_is_escaped():
    """Columns of numbers and of words are told apart, and no value becomes markup."""
    grid = display._grid(pd.DataFrame({"some_name": ["<b>"], "value": [-0.0]}))
    assert '<th class="rb-text">some name</th><th class="rb-num">value</th>' in grid
    assert '<td class="rb-text">&lt;b&gt;</td><td class="rb-num">0</td>' in grid


def test_mean_and_spread_over_seeds():
    """Two seeds have a standard deviation (here the square root of 2), one has none."""
    seeds = pd.Series([1.0, 3.0])
    assert display.plus_minus(seeds) == "2.0 ± 1.4"
    assert display.plus_minus(seeds, 2, "±") == "2.00±1.41"
    assert display.plus_minus(seeds[:1]) == "1.0"
