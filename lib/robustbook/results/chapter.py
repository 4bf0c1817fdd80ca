"""A chapter: settings of three profiles, experiments, tables, figures and verdicts.

A notebook fills it by decorators in cells tagged `define` and shows it in the others. Reading never
starts long work: at `laptop` and `paper` stored rows are shown; what is missing is computed at
`smoke` scale and the page says so. `robustbook run` computes the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pandas as pd

from ..claims import Verdict, judge
from ..errors import BookError, unknown
from ..published import artifact
from . import display
from .experiment import Experiment, Grid
from .verdicts import store_verdicts
from .views import PROFILES, Table, View, complete, make, save

Draw = Callable[..., Any]


@dataclass(frozen=True)
class FigurePlan:
    """A figure: the function that draws it and the tables it is drawn from."""

    id: str
    draw: Draw
    tables: tuple[str, ...]
    caption: str


class Chapter:
    """Everything a notebook declares, and the way from there to pages and to the command line."""

    def __init__(self, name: str, profile: str = "laptop") -> None:
        if profile not in PROFILES:
            raise unknown("profile", profile, PROFILES)
        self.name, self.profile = name, profile
        self._settings: dict[str, tuple[Any, Any, Any]] = {}
        self.experiments: dict[str, Experiment] = {}
        self.views: dict[str, View] = {}
        self.figures: dict[str, FigurePlan] = {}
        self._tables: dict[str, Table] = {}
        self._showings: dict[str, int] = {}

    def settings(self, **three: tuple[Any, Any, Any]) -> display.Html:
        """State each setting as (smoke, laptop, paper); returns a table of those given."""
        for name, values in three.items():
            if not isinstance(values, tuple) or len(values) != len(PROFILES):
                raise BookError(f"setting '{name}' needs three values: (smoke, laptop, paper)")
        self._settings.update(three)
        return display.settings_table(three, PROFILES, self.profile)

    def at(self, profile: str) -> SimpleNamespace:
        """The settings of a profile."""
        column = PROFILES.index(profile)
        return SimpleNamespace(**{name: values[column] for name, values in self._settings.items()})

    @property
    def active(self) -> SimpleNamespace:
        """The settings of the profile this notebook runs with."""
        return self.at(self.profile)

    def experiment(self, grid: Grid, *, seconds: float = 1.0) -> Callable[[Callable[..., Any]], Experiment]:
        """Decorator: a function that measures one row; `grid(settings)` lists the rows' arguments."""

        def register(function: Callable[..., Any]) -> Experiment:
            name = function.__name__
            self.experiments[name] = Experiment(self.name, name, function, grid, seconds, self.at)
            return self.experiments[name]

        return register

    def table(
        self, id: str, *experiments: Experiment, stand_in: str | Mapping[str, str] = ""
    ) -> Callable[[Draw], View]:
        """Decorator: a function from the experiments' rows to the table of a paper's artifact.

        `stand_in` says what data was replaced: at every profile, or at those it is given for.
        """
        self._own(id)

        def register(build: Draw) -> View:
            self.views[id] = View(id, self.name, experiments, build, stand_in)
            self._tables.pop(id, None)
            return self.views[id]

        return register

    def figure(self, id: str, *tables: str, caption: str) -> Callable[[Draw], FigurePlan]:
        """Decorator: a function from tables (default: the one of the same id) to a matplotlib figure."""
        self._own(id)

        def register(draw: Draw) -> FigurePlan:
            self.figures[id] = FigurePlan(id, draw, tables or (id,), caption)
            return self.figures[id]

        return register

    def _own(self, id: str) -> None:
        """An artifact of the catalogue that belongs here, or an id of our own that starts with its name."""
        if id.startswith(f"{self.name}-"):
            return
        try:
            owner = artifact(id)["chapter"]
        except BookError as error:
            raise BookError(f"{error}; an id of this chapter's own starts with '{self.name}-'") from None
        if owner != self.name:
            raise BookError(f"{id} belongs to chapter '{owner}', not to '{self.name}'")

    def view(self, id: str) -> View:
        """The declared view of an id."""
        if id not in self.views:
            raise unknown("table", id, self.views)
        return self.views[id]

    def result(self, id: str) -> Table:
        """The table of an artifact: as stored, else at smoke scale; never long work."""
        if id not in self._tables:
            view, profile = self.view(id), self.profile
            if profile != "smoke" and not complete(view.states(profile)):
                profile = "smoke"
            if profile == "smoke":
                self._fill(view)
            self._tables[id] = make(view, profile)
            save(self._tables[id])
        return self._tables[id]

    def _fill(self, view: View) -> None:
        """Compute what the smoke rows of a view lack."""
        for state in view.states("smoke"):
            failed = state.experiment.compute("smoke", state.missing)
            if failed:
                raise BookError(
                    f"{self.name}/{state.experiment.name}: row {failed[0].row} failed: {failed[0].error}"
                )

    def rows(self, id: str) -> pd.DataFrame:
        """The table of an artifact as a DataFrame, for cells that compute with it."""
        return self.result(id).frame.copy()

    def show(self, id: str, present: Callable[[pd.DataFrame], pd.DataFrame] | None = None) -> display.Html:
        """The table on the page, with where it comes from; `present` rounds, renames, adds the paper's."""
        table = self.result(id)
        frame = present(table.frame.copy()) if present else table.frame
        self._showings[id] = self._showings.get(id, 0) + 1
        return display.table(table, frame, wanted=self.profile, showing=self._showings[id])

    def draw(self, id: str) -> Any:
        """The figure on the page, in a light and a dark version."""
        if id not in self.figures:
            raise unknown("figure", id, self.figures)
        plan = self.figures[id]
        return display.figure(plan, [self.result(name) for name in plan.tables], wanted=self.profile)

    def verdicts(self) -> display.Html:
        """Judge every claim whose tables this chapter has, store and show the verdicts."""
        judged = judge(self.views, self.result)
        store_verdicts(self.name, judged)
        return display.verdicts(judged)

    def verdict(self, claim: str) -> Verdict:
        """The verdict on one claim."""
        for judged in judge(self.views, self.result):
            if judged.claim == claim:
                return judged
        raise unknown("claim of this chapter", claim, [v.claim for v in judge(self.views, self.result)])
