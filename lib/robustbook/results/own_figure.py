"""The figure of `measure_network`: one small panel a measure, the book's networks and yours."""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ..figures import ink
from ..measures import MEASURES

COLUMNS = 4


def beside_the_book(table: pd.DataFrame, book: pd.DataFrame, name: str) -> Figure:
    """Every measure on an axis of its own: dots for the book's networks, a line with its error for yours."""
    known = table[table["value"].notna()]
    rows = max(1, math.ceil(len(known) / COLUMNS))
    figure = Figure(figsize=(9.4, 1.2 + 1.1 * rows))
    panels: Any = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    for axes, line in zip(panels, known.itertuples()):
        others = book[book["measure"] == line.measure]["value"]
        axes.plot(
            others, [0] * len(others), linestyle="", marker="o", color=ink(), alpha=0.35, label="the book's"
        )
        axes.axvline(line.value, color="C1", label=name)
        if line.error == line.error:  # an error that is a number
            axes.axvspan(line.value - 2 * line.error, line.value + 2 * line.error, color="C1", alpha=0.2)
        axes.set_yticks([])
        axes.set_title(MEASURES[line.measure].title, fontsize=9)
        axes.set_xlabel(MEASURES[line.measure].unit, fontsize=8)
        axes.tick_params(labelsize=8)
    for axes in panels[len(known) :]:
        axes.set_axis_off()
    handles, names = panels[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside lower center", ncols=2)
    return figure
