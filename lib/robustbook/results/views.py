"""Tables and figures of the papers as views of measured rows, stored by artifact id."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BookError
from ..storage import replacing, results_folder, sha256, write_json, write_text
from .experiment import Experiment, State

PROFILES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class View:
    """How an artifact is made from the rows of one or more experiments."""

    id: str
    chapter: str
    experiments: tuple[Experiment, ...]
    build: Callable[..., Any]
    stand_in: str | Mapping[str, str] = ""
    """What data was replaced, at every profile or by profile."""

    def states(self, profile: str) -> list[State]:
        """The experiments' rows at a profile."""
        return [experiment.state(profile) for experiment in self.experiments]


@dataclass
class Table:
    """An artifact as measured: the table, its pictures, and where all that came from."""

    id: str
    profile: str
    frame: pd.DataFrame
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    stale: str = ""


def complete(states: list[State]) -> bool:
    """Are all rows of all grids there?"""
    return all(not state.missing for state in states)


def stale_reason(states: list[State]) -> str:
    """Why the stored rows are out of date; empty if they are not."""
    rows = sum(len(state.stale) for state in states)
    if not rows:
        return ""
    names = [name for state in states if state.stale for name in state.changed()]
    shown = ", ".join(dict.fromkeys(names[:4])) or "its settings"
    return f"{rows} of {sum(len(s.rows) for s in states)} rows were measured before a change of {shown}"


def make(view: View, profile: str) -> Table:
    """Build the view from stored rows (all of them must be there)."""
    states = view.states(profile)
    if not complete(states):
        raise BookError(
            f"{view.id} has no complete rows at profile {profile}: "
            f"compute them with 'robustbook run {view.id} --profile {profile}'"
        )
    built = view.build(*(state.frame() for state in states))
    frame, arrays = built if isinstance(built, tuple) else (built, {})
    frame = frame.reset_index(drop=True)
    frame.attrs.clear()
    return Table(view.id, profile, frame, arrays, _provenance(view, profile, states), stale_reason(states))


def _provenance(view: View, profile: str, states: list[State]) -> dict[str, Any]:
    meta = [row for state in states for row in state.meta()]
    last = max(meta, key=lambda row: row["date"])
    params = [row.params for state in states for row in state.rows]
    return {
        "artifact": view.id,
        "chapter": view.chapter,
        "profile": profile,
        "experiments": [e.name for e in view.experiments],
        "settings": {k: v for e in view.experiments for k, v in e.read_settings(profile).items()},
        "seeds": sorted({p["seed"] for p in params if "seed" in p}),
        "data": {name: digest for row in meta for name, digest in row["data"].items()},
        "fingerprint": sha256("".join(sorted(row["fingerprint"] for row in meta)).encode())[:16],
        "versions": last["versions"],
        "cpu": last["cpu"],
        "seconds": round(sum(row["seconds"] for row in meta), 1),
        "date": last["date"],
        "rows": len(meta),
        "stand_in": view.stand_in if isinstance(view.stand_in, str) else view.stand_in.get(profile, ""),
    }


def save(table: Table) -> None:
    """Write CSV, JSON and pictures of an artifact; files that would not change are left alone."""
    base = results_folder() / table.profile / table.id
    text = table.frame.to_csv(index=False, lineterminator="\n")
    _replace(base.with_name(f"{table.id}.csv"), text)
    path = base.with_name(f"{table.id}.json")
    provenance = json.dumps(table.provenance, sort_keys=True)
    if not path.exists() or json.dumps(json.loads(path.read_text()), sort_keys=True) != provenance:
        write_json(path, table.provenance)
    if table.arrays:
        with replacing(base.with_name(f"{table.id}.npz")) as part, part.open("wb") as file:
            np.savez_compressed(file, **table.arrays)  # type: ignore[arg-type]


def _replace(path: Any, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf8") != text:
        write_text(path, text)
