"""What the papers say: their tables, figures, numbers, claims, misprints and gaps.

Every function reads one CSV file of this package and returns a fresh copy, so that a chapter may edit
what it gets. Ids are those of the catalogue: artifacts `MOMENT-T4`, claims `MOMENT-C01`, misprints
`C34`, gaps `U49`.
"""

from functools import cache
from importlib.resources import files

import pandas as pd

from ..errors import unknown

KINDS = ("table", "figure", "diagram", "algorithm", "definition", "theorem", "text")
#: The kinds that a reader leafs through: the index page lists these.
SHOWN = ("table", "figure", "diagram")
SCALES = ("reduced-ok", "paper")
BASES = ("doc", "lit", "repo", "choice")
#: Chapters of the book in reading order, as the column `chapter` of the artifacts spells them.
CHAPTERS = (
    "framework",
    "cotraining",
    "on_manifold",
    "shift",
    "pruning",
    "sparsefool",
    "margins",
    "filling_level",
    "prime",
    "moments",
)


@cache
def _table(name: str) -> pd.DataFrame:
    """One CSV file; empty cells are empty strings except where the column holds numbers."""
    source = files(__name__).joinpath(f"{name}.csv")
    with source.open(encoding="utf8") as f:
        table = pd.read_csv(f, dtype=str, keep_default_na=False)
    for column in {"value", "std"} & set(table.columns):
        table[column] = pd.to_numeric(table[column])
    return table


def papers() -> pd.DataFrame:
    """The five documents of the four works: paper, work, short, authors, title, venue, year, reference."""
    return _table("papers").copy()


def artifacts() -> pd.DataFrame:
    """Every table, figure, diagram, algorithm, definition, theorem and quoted text of the papers."""
    return _table("artifacts").copy()


def numbers(artifact_id: str | None = None) -> pd.DataFrame:
    """The published numbers, of one artifact or of all; `value` and `std` are floats."""
    table = _table("numbers")
    if artifact_id is not None:
        artifact(artifact_id)
        table = table[table.artifact_id == artifact_id].reset_index(drop=True)
    return table.copy()


def claims(paper: str | None = None) -> pd.DataFrame:
    """The testable claims, of one paper or of all: claim_id, paper, artifact_ids, claim, test, scale."""
    table = _table("claims")
    if paper is not None:
        if paper not in set(_table("papers").paper):
            raise unknown("paper", paper, _table("papers").paper)
        table = table[table.paper == paper].reset_index(drop=True)
    return table.copy()


def errata() -> pd.DataFrame:
    """Contradictions and misprints of the papers, with the reading this book uses."""
    return _table("errata").copy()


def choices() -> pd.DataFrame:
    """What the papers leave open, and what this book does instead."""
    return _table("choices").copy()


def artifact(artifact_id: str) -> pd.Series:
    """One artifact by its id."""
    return _row("artifacts", "id", artifact_id, "artifact")


def claim(claim_id: str) -> pd.Series:
    """One claim by its id."""
    return _row("claims", "claim_id", claim_id, "claim")


def anchor(id_: str) -> str:
    """The HTML id under which an artifact or a claim stands in its chapter: `MOMENT-T4` -> `moment-t4`."""
    return id_.lower().replace(".", "-")


def open_points(artifact_id: str) -> list[str]:
    """Ids of the misprints and gaps that touch an artifact."""
    found: list[str] = []
    for name in ("errata", "choices"):
        table = _table(name)
        touched = table.artifacts.str.split(";").map(lambda ids: artifact_id in ids)
        found += table.id[touched].to_list()
    return found


def _row(name: str, key: str, value: str, kind: str) -> pd.Series:
    table = _table(name)
    found = table[table[key] == value]
    if found.empty:
        raise unknown(kind, value, table[key])
    return found.iloc[0].copy()
