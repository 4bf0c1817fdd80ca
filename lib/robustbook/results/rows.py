"""Measured rows of one experiment: a tidy CSV that people read and a JSON beside it that knows when.

The CSV holds settings and measurements only, in the order of the grid, so the same measurements
give the same bytes whatever computed them. The JSON holds fingerprint, seconds, date and machine
of each row. It is written first: a row exists once it is in both, and both are replaced in one step.
"""

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BookError
from ..storage import locked, replacing, results_folder, sha256, write_json, write_text

Record = dict[str, Any]


def row_id(params: Record) -> str:
    """A short name for one setting of the grid."""
    for name, value in params.items():
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise BookError(f"row parameter '{name}' is a {type(value).__name__}: use plain scalars")
    return sha256(json.dumps(params, sort_keys=True).encode())[:10]


@dataclass(frozen=True)
class Row:
    """One point of the grid and the fingerprint its measurement would have now."""

    params: Record
    fingerprint: str

    @property
    def id(self) -> str:
        """Name of the row in the store."""
        return row_id(self.params)

    def __str__(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in self.params.items())


@dataclass
class Stored:
    """What the store knows of one experiment."""

    records: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    environments: dict[str, Any] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)


def scalar(value: Any) -> Any:
    """Python scalar for numpy and torch ones; anything else is refused."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise BookError(f"a row holds scalars or numpy arrays, not {type(value).__name__}")
    return value


def split(outcome: Any) -> tuple[list[Record], dict[str, np.ndarray]]:
    """What a row function returned as tidy records and arrays (pictures, curves)."""
    records: list[Record] = []
    arrays: dict[str, np.ndarray] = {}
    for record in [outcome] if isinstance(outcome, dict) else list(outcome):
        arrays |= {k: v for k, v in record.items() if isinstance(v, np.ndarray) and v.ndim}
        records.append({k: scalar(v) for k, v in record.items() if k not in arrays})
    return records, arrays


class RowStore:
    """Rows of one experiment under `results/<profile>/<chapter>/`."""

    def __init__(self, profile: str, chapter: str, experiment: str) -> None:
        self.folder = results_folder() / profile / chapter
        self.csv = self.folder / f"{experiment}.csv"
        self.json = self.folder / f"{experiment}.json"
        self.name = experiment

    def read(self) -> Stored:
        """Everything stored; a damaged file is an error, never an empty table."""
        if not self.csv.exists() or not self.json.exists():
            return Stored()
        try:
            side = json.loads(self.json.read_text(encoding="utf8"))
            lines = list(csv.DictReader(io.StringIO(self.csv.read_text(encoding="utf8"))))
            stored = Stored({}, side["rows"], side["environments"], side.get("definitions", {}))
            for line in lines:
                stored.records.setdefault(line["row"], []).append(line)
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise BookError(
                f"{self.csv} or its .json is damaged ({error}): restore both with git, or delete both"
            ) from None
        stored.records = {r: v for r, v in stored.records.items() if r in stored.meta}
        stored.meta = {r: m for r, m in stored.meta.items() if r in stored.records}
        return stored

    def put(self, row: Row, outcome: Any, *, seconds: float, note: Record, order: list[str]) -> None:
        """Add or replace one measured row; safe against being killed and against a second run."""
        records, arrays = split(outcome)
        lines = [{"row": row.id, **as_text(row.params), **as_text(record)} for record in records]
        with locked(self.csv):
            stored = self.read()
            environment = {k: note[k] for k in ("cpu", "versions")}
            key = sha256(json.dumps(environment, sort_keys=True).encode())[:8]
            stored.environments[key] = environment
            stored.definitions = note["definitions"]
            stored.records[row.id] = lines
            stored.meta[row.id] = {
                "fingerprint": row.fingerprint,
                "seconds": round(seconds, 3),
                "date": note["date"],
                "data": note["data"],
                "environment": key,
            }
            if arrays:
                self._write_arrays(row.id, arrays)
            self._write(stored, order)

    def sign(self, rows: list[Row], definitions: dict[str, str]) -> None:
        """Give stored rows their present fingerprint, after one of them was found equal."""
        with locked(self.csv):
            stored = self.read()
            for row in rows:
                if row.id in stored.meta:
                    stored.meta[row.id]["fingerprint"] = row.fingerprint
            stored.definitions = definitions
            self._write(stored, list(stored.records))

    def arrays(self, row: str) -> dict[str, np.ndarray]:
        """The arrays a row returned."""
        path = self._array_path(row)
        if not path.exists():
            return {}
        try:
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        except (ValueError, OSError, KeyError) as error:
            raise BookError(
                f"{path} is damaged ({error}): restore it with git or run the row again"
            ) from None

    def frame(self, stored: Stored, ids: list[str]) -> pd.DataFrame:
        """The rows with these ids as a table with proper types."""
        lines = [line for row in ids for line in stored.records.get(row, [])]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        buffer = io.StringIO(_csv_text(lines, columns))
        return pd.read_csv(buffer, dtype={"row": str})

    def _array_path(self, row: str) -> Path:
        return self.folder / f"{self.name}-{row}.npz"

    def _write_arrays(self, row: str, arrays: dict[str, np.ndarray]) -> None:
        with replacing(self._array_path(row)) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def _write(self, stored: Stored, order: list[str]) -> None:
        ids = [r for r in order if r in stored.records] + sorted(set(stored.records) - set(order))
        lines = [line for r in ids for line in stored.records[r]]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        side = {
            "rows": {r: stored.meta[r] for r in ids},
            "environments": stored.environments,
            "definitions": stored.definitions,
        }
        write_json(self.json, side)
        write_text(self.csv, _csv_text(lines, columns))


def as_text(record: Record) -> dict[str, str]:
    """Shortest text that reads back as the same value."""
    return {k: "" if v is None else repr(v) if isinstance(v, float) else str(v) for k, v in record.items()}


def _csv_text(lines: list[dict[str, str]], columns: list[str]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()
