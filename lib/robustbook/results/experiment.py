"""An experiment: a grid of settings and one function that measures one row of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pandas as pd

from ..errors import BookError
from ..fingerprint import definition_fingerprint, definitions
from .engine import Outcome, outcomes
from .rows import Record, Row, RowStore, Stored

Grid = Callable[[SimpleNamespace], list[Record]]


class _Watched(SimpleNamespace):
    """Settings that note which of them are read."""

    def __init__(self, settings: SimpleNamespace) -> None:
        super().__init__(_all=vars(settings), _read={})

    def __getattr__(self, name: str) -> Any:
        if name not in self._all:
            raise AttributeError(f"no setting '{name}'")
        self._read[name] = self._all[name]
        return self._all[name]


@dataclass
class Experiment:
    """Rows of one kind: named, with a grid for every profile."""

    chapter: str
    name: str
    function: Callable[..., Any]
    grid: Grid
    seconds: float
    settings: Callable[[str], SimpleNamespace]
    _prints: dict[frozenset[str], str] = field(default_factory=dict)

    def rows(self, profile: str) -> list[Row]:
        """The grid of a profile, each row with its present fingerprint."""
        grid = self.grid(self.settings(profile))
        rows = [Row(params, self._fingerprint(params)) for params in grid]
        if len({row.id for row in rows}) < len(rows):
            raise BookError(f"{self.chapter}/{self.name}: the grid of profile {profile} repeats a row")
        return rows

    def read_settings(self, profile: str) -> dict[str, Any]:
        """The settings that its grid reads; others may come and go without touching its tables."""
        watched = _Watched(self.settings(profile))
        self.grid(watched)
        return dict(watched._read)

    def _fingerprint(self, params: Record) -> str:
        words = frozenset(v for v in params.values() if isinstance(v, str))
        if words not in self._prints:
            self._prints[words] = definition_fingerprint(self.function, strings=words)
        return self._prints[words]

    def definitions(self, profile: str) -> dict[str, str]:
        """What the rows of a profile reach, by name: to tell a reader what changed."""
        words = {v for row in self.grid(self.settings(profile)) for v in row.values() if isinstance(v, str)}
        return definitions(self.function, strings=words)

    def store(self, profile: str) -> RowStore:
        """Where the rows of a profile are kept."""
        return RowStore(profile, self.chapter, self.name)

    def state(self, profile: str) -> "State":
        """Which rows of the grid are there, missing, or out of date."""
        return State(self, profile, self.rows(profile), self.store(profile).read())

    def compute(self, profile: str, rows: list[Row], **how: Any) -> "list[Outcome]":
        """Measure `rows` and store each as it arrives; the failed ones are returned."""
        store, order = self.store(profile), [row.id for row in self.rows(profile)]
        reached = self.definitions(profile)
        arrived = how.pop("arrived", None)
        failed = []
        for outcome in outcomes(self.function, rows, **how):
            if outcome.error:
                failed.append(outcome)
            else:
                note = {**outcome.note, "definitions": reached}
                store.put(outcome.row, outcome.value, seconds=outcome.seconds, note=note, order=order)
            if arrived:
                arrived(outcome)
        return failed


@dataclass
class State:
    """The rows of one experiment at one profile against what is stored."""

    experiment: Experiment
    profile: str
    rows: list[Row]
    stored: Stored

    @property
    def missing(self) -> list[Row]:
        """Rows never measured."""
        return [row for row in self.rows if row.id not in self.stored.meta]

    @property
    def stale(self) -> list[Row]:
        """Rows measured by code that has changed since."""
        meta = self.stored.meta
        return [r for r in self.rows if r.id in meta and meta[r.id]["fingerprint"] != r.fingerprint]

    def changed(self) -> list[str]:
        """Names of the definitions that differ from those the stored rows reached."""
        now, then = self.experiment.definitions(self.profile), self.stored.definitions
        return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))

    def frame(self) -> pd.DataFrame:
        """The stored rows of this grid as a table; `attrs["arrays"]` reads a row's arrays by its id."""
        store = self.experiment.store(self.profile)
        frame = store.frame(self.stored, [row.id for row in self.rows])
        frame.attrs["arrays"] = store.arrays
        return frame

    def meta(self) -> list[dict[str, Any]]:
        """What is known of each stored row of this grid, environments filled in."""
        known = self.stored.meta
        rows = [known[row.id] for row in self.rows if row.id in known]
        return [{**row, **self.stored.environments[row["environment"]]} for row in rows]

    def estimate(self, row: Row) -> float:
        """Seconds a row will take: as measured before, else the median of its kin, else as stated."""
        if row.id in self.stored.meta:
            return float(self.stored.meta[row.id]["seconds"])
        known = sorted(float(m["seconds"]) for m in self.stored.meta.values())
        return known[len(known) // 2] if known else self.experiment.seconds
