"""`measure_network`: all measures of the book on a classifier that is not the book's.

Measured one after another and stored as they arrive, so that a killed run goes on; beside them stand the
networks of chapter `synthesis` on the same data.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from ..errors import BookError, unknown
from ..fingerprint import definition_fingerprint
from ..measures import BUDGETS, MEASURES, Bench, Budget, Subject, bench, examine
from ..storage import results_folder, sha256, write_text
from ..threads import one_thread
from ..training.evaluation import evaluating

MANIFOLDS = {"fashion-mnist": "wae-fashion-mnist", "fashion-mnist-small": "synthesis-wae-small"}
"""Data sets of which the book has an auto-encoder."""
BOOK = ("synthesis-matrix", "synthesis-cifar10")
"""Tables with the book's own networks."""
ORDER = (
    "clean-accuracy r2-score noise-gnr r4-score r1-score sparsefool-pixels fmn-pixels autoattack-linf "
    "dct-low-margin dct-high-margin corruption-accuracy proposition-6 square-linf pgd-linf fgsm-linf"
).split()
"""Measures in the order of the pages."""


@dataclass(frozen=True)
class Plan:
    """What will be measured on an examined classifier, and in what time at most."""

    subject: Subject
    data: str
    """The data set's name; empty if the images are the reader's."""
    bench: Bench
    budget: Budget
    seconds: dict[str, float]
    skipped: dict[str, str]

    def told(self) -> str:
        """The plan in a few lines."""
        total = sum(self.seconds.values()) / 60
        lines = [f"note: {note}" for note in self.subject.notes]
        lines += [f"skipped: {name}: {reason}" for name, reason in self.skipped.items()]
        each = ", ".join(f"{name} {seconds / 60:.1f}" for name, seconds in self.seconds.items())
        return "\n".join([*lines, f"at most {total:.1f} minutes on this machine ({each})"])


@dataclass(frozen=True)
class Report:
    """`table`: a line a measure; `book`: the book's networks on this data, if any."""

    name: str
    table: pd.DataFrame
    book: pd.DataFrame
    notes: tuple[str, ...]

    def beside(self) -> pd.DataFrame:
        """The table with the book's lowest and highest value, and how many of its networks are below."""
        found = self.table[["measure", "unit", "value", "error", "images", "note"]].copy()
        groups = dict(list(self.book.groupby("measure"))) if len(self.book) else {}
        for column, how in (("book_lowest", "min"), ("book_highest", "max")):
            found[column] = [
                getattr(groups[name]["value"], how)() if name in groups else math.nan
                for name in found["measure"]
            ]
        found["book_below"] = [
            f"{int((groups[name]['value'] < value).sum())} of {len(groups[name])}"
            if name in groups and not math.isnan(value)
            else ""
            for name, value in zip(found["measure"], found["value"])
        ]
        return found


def plan_measures(
    classifier: Any,
    data: str | Bench,
    *,
    measures: Sequence[str] = (),
    budget: str = "quick",
    inputs: str = "0-1",
) -> Plan:
    """Examine a classifier and say what can be measured on it; nothing long happens here."""
    chosen = list(measures) or ORDER
    for name in chosen:
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    if f"budget-{budget}" not in BUDGETS:
        raise unknown("budget", budget, [name.removeprefix("budget-") for name in BUDGETS])
    size = BUDGETS[f"budget-{budget}"]()
    place = bench(data, f"budget-{budget}", MANIFOLDS.get(data, "")) if isinstance(data, str) else data
    subject = examine(classifier, place.x, place.y, classes=place.classes, inputs=inputs)
    seconds, skipped = {}, {}
    for name in chosen:
        needs = MEASURES[name].needs
        if subject.can(needs):
            seconds[name] = MEASURES[name].seconds(subject, size)
        else:
            skipped[name] = f"it needs {needs}, and {subject.limits}"
    return Plan(subject, data if isinstance(data, str) else "", place, size, seconds, skipped)


def measure_network(
    classifier: Any,
    data: str | Bench,
    *,
    name: str = "yours",
    measures: Sequence[str] = (),
    budget: str = "quick",
    inputs: str = "0-1",
    seed: int = 0,
    out: Path | str | None = None,
    progress: bool = True,
) -> Report:
    """Measure a classifier with all measures that apply to it, or with those named.

    Parameters
    ----------
    classifier
        A network from images in [0, 1] to class scores, a fitted scikit-learn classifier, or a function.
    data
        A name of `datasets.load`, whose test images are used, or a `Bench` of your own images.
    budget
        "tiny", "quick", "laptop" or "full": see `measures.bench`.
    inputs
        The range of pixels that the classifier expects: "0-1", "0-255", "-1-1" or "standardised".
    out
        A folder that keeps finished measures; the same call goes on from there.
    """
    plan = plan_measures(classifier, data, measures=measures, budget=budget, inputs=inputs)
    return carry_out(plan, name=name, seed=seed, out=out, progress=progress)


def carry_out(plan: Plan, *, name: str, seed: int, out: Path | str | None, progress: bool) -> Report:
    """Measure what a plan says; the parameters are those of `measure_network`."""
    done = _stored(out)
    rows = []
    names = [*plan.seconds, *plan.skipped]
    for number in tqdm(sorted(names, key=_place), desc=name, unit="measure", disable=not progress):
        key = _key(number, plan, seed)
        if number in plan.skipped:
            row = {"measure": number, "value": math.nan, "error": math.nan, "images": 0, "seconds": 0.0}
            rows.append({**row, "note": plan.skipped[number], "key": key})
        else:
            rows.append(done[key] if key in done else _measured(number, plan, seed, key))
            done[key] = rows[-1]
        _store(out, done)
    table = pd.DataFrame(rows)
    table.insert(1, "unit", [MEASURES[row["measure"]].unit for row in rows])
    return Report(name, table, book_networks(plan.data), plan.subject.notes)


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _measured(name: str, plan: Plan, seed: int, key: str) -> dict[str, Any]:
    """One line of the table; what goes wrong in one measure does not take the others with it."""
    start, note = time.perf_counter(), ""
    value = error = math.nan
    images = 0
    try:
        with one_thread(), evaluating(plan.subject.model):
            generator = torch.Generator().manual_seed(seed)
            value, error, images = MEASURES[name](plan.subject.model, plan.bench, plan.budget, generator)
    except (BookError, RuntimeError, ValueError, IndexError, TypeError) as problem:
        note = f"failed: {(str(problem).splitlines() or [type(problem).__name__])[0]}"
    seconds = round(time.perf_counter() - start, 1)
    row = {"measure": name, "value": value, "error": error, "images": images, "seconds": seconds}
    return {**row, "note": note, "key": key}


def _key(name: str, plan: Plan, seed: int) -> str:
    """What a stored value depends on: the classifier by what it says, the data, the budget, the code."""
    code = definition_fingerprint(MEASURES[name].function)
    text = f"{name} {plan.subject.digest} {plan.bench.checksum} {plan.budget} {seed} {code}"
    return sha256(text.encode())[:16]


def _file(out: Path | str) -> Path:
    return Path(out) / "measures.csv"


def _stored(out: Path | str | None) -> dict[str, dict[str, Any]]:
    if out is None or not _file(out).is_file():
        return {}
    try:
        frame = pd.read_csv(_file(out), dtype={"note": object, "key": object})
        frame["note"] = frame["note"].where(frame["note"].notna(), "")
        rows = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
        return {str(row["key"]): row for row in rows}
    except (ValueError, KeyError) as error:
        raise BookError(f"{_file(out)} is damaged ({error}); delete it, and all is measured again") from None


def _store(out: Path | str | None, done: dict[str, dict[str, Any]]) -> None:
    if out is not None and done:
        write_text(_file(out), pd.DataFrame(list(done.values())).to_csv(index=False))


def book_networks(data: str) -> pd.DataFrame:
    """The book's networks on this data: `network`, `measure`, `value`; empty if none is stored."""
    for profile in ("laptop", "smoke"):
        for table in BOOK:
            file = results_folder() / profile / f"{table}.csv"
            if file.is_file():
                frame = pd.read_csv(file)
                frame = frame[frame["data"] == data]
                if len(frame):
                    return frame[["network", "measure", "value"]].dropna()
    return pd.DataFrame(columns=["network", "measure", "value"])
