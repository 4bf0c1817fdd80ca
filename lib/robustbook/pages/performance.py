"""The stored benchmarks: `results/benchmarks/*.csv`, each with the date and the machine from its `.json`."""

import json
import math
from typing import Any

import pandas as pd

from ..errors import BookError
from ..storage import results_folder
from .markup import Page, grid, small

LABELS = {
    "milliseconds": "ms",
    "gradients": "gradients an image",
    "forwards": "passes an image",
    "fooled": "fooled, %",
    "their milliseconds": "their ms",
}
"""Columns that the page calls otherwise than the file."""

FIRST = ("task", "attack", "step", "corruption", "result", "ratio", "wanted")
"""Columns that a narrow screen shows without scrolling; the others keep the file's order."""

HIDDEN = ("ratio_low", "ratio_high", "measure", "at_most")
"""Columns that are shown within another."""


def benchmark(name: str, *, per: str = "image") -> Page:
    """One stored benchmark as a table; `per` says what the milliseconds are for."""
    path = results_folder() / "benchmarks" / f"{name}.csv"
    if not path.is_file():
        return Page("<p>Not measured yet; <code>make bench</code> does it.</p>")
    try:
        table, facts = pd.read_csv(path), json.loads(path.with_suffix(".json").read_text(encoding="utf8"))
        origin = _origin(facts)
    except (OSError, ValueError, KeyError):
        broken = f"results/benchmarks/{name}"
        raise BookError(f"{broken}.csv or .json is missing or damaged; run: make bench") from None
    if "task" in table:
        table["task"] = table.task.mask(table.task.eq(table.task.shift()), "")  # once for all its lines
    names = [column for column in FIRST if column in table.columns]
    names += [column for column in table.columns if column not in (*HIDDEN, *FIRST)]
    rows = [("", [_cell(column, line) for column in names]) for line in table.to_dict("records")]
    head = [f"ms per {per}" if column == "milliseconds" else LABELS.get(column, column) for column in names]
    wide = [column for column in head if column == "task"]
    return Page(grid(head, rows, wide=wide, kind="rb-compact"), f"<p>{small(origin)}</p>")


def _cell(column: str, line: dict[str, Any]) -> object:
    """A number in three figures; a ratio with its quartiles, a result with its measure, a bound as such."""
    value = line[column]
    if column == "wanted" and not math.isnan(line.get("at_most", math.nan)):
        return f"at most {line['at_most']:g}"
    if isinstance(value, float) and math.isnan(value):
        return ""
    if column == "ratio" and "ratio_low" in line and value != 1:
        return f"{_short(value)} ({_short(line['ratio_low'])} to {_short(line['ratio_high'])})"
    if column == "ratio":
        return str(_short(value))
    if column == "result":
        return f"{line['measure']} {_short(value)}"
    if column == "wanted":
        return f"at least {value:g}"
    return _short(value) if isinstance(value, float) else value


def _short(value: float) -> float:
    return round(value) if abs(value) >= 100 or value == round(value) else float(f"{value:.3g}")


def _origin(facts: dict[str, Any]) -> str:
    """When and where it was measured, in one line."""
    versions = {**facts.get("peers", {}), **facts["versions"]}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    threads = facts.get("threads", 1)
    return f"Measured on {facts['date']}, {facts['cpu']}, {threads} thread{'s' * (threads != 1)}; {listed}."
