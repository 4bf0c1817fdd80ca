"""What the pages know: tables and verdicts stored under `results/`, and what this build has executed."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BookError
from ..published import anchor, artifacts
from ..storage import repository, results_folder
from .markup import Raw, link

#: Where two profiles have measured the same thing, the first of these is shown.
PREFERENCE = ("paper", "laptop", "smoke")
TITLES = {
    "framework": "A general framework of robustness",
    "cotraining": "Co-training for large margins",
    "on_manifold": "Robustness on the data manifold",
    "shift": "Transfer to shifted data",
    "pruning": "Pruning data idiosyncrasy",
    "sparsefool": "Sparse perturbations: SparseFool",
    "margins": "Margins and discriminative features",
    "filling_level": "Filling levels: transfer of robust features",
    "prime": "Common corruptions: PRIME",
    "moments": "The analytic moment regulariser",
}

Provenance = dict[str, Any]


def executed() -> dict[str, Any]:
    """What this build has executed so far, by source."""
    folder = os.environ.get("ROBUSTBOOK_BUILD")
    path = (Path(folder) if folder else repository() / "_build") / "execution.json"
    return _json(path) if path.is_file() else {}


def tables() -> dict[str, dict[str, Provenance]]:
    """Provenance of all stored tables: profile -> artifact id -> provenance."""
    found: dict[str, dict[str, Provenance]] = {}
    for profile in PREFERENCE:
        paths = sorted((results_folder() / profile).glob("*.json"))
        named = {p.stem: p for p in paths if p.stem != "claims" and p.with_suffix(".csv").is_file()}
        found[profile] = {id_: _json(path) for id_, path in named.items()}
    return found


def verdicts() -> dict[str, dict[str, str]]:
    """Claim id -> verdict, evidence, profile, chapter; of several profiles the preferred one."""
    found: dict[str, dict[str, str]] = {}
    for profile in reversed(PREFERENCE):
        path = results_folder() / profile / "claims.csv"
        if not path.is_file():
            continue
        owners = _json(path.with_suffix(".json"))["chapters"]
        for line in pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records"):
            id_ = line["claim_id"]
            found[id_] = {**line, "profile": profile, "chapter": owners.get(id_, "")}
    return found


def place(chapter: str, id_: str) -> Raw | str:
    """A link to where a chapter shows something; to the chapter itself if it has no such anchor."""
    title = TITLES.get(chapter, chapter)
    run = executed().get(f"notebooks/{chapter}")
    if run is None:
        return title
    names = [name for name in (anchor(id_), f"{anchor(id_)}-table") if name in run["anchors"]]
    return link(f"../notebooks/{chapter}.html" + (f"#{names[0]}" if names else ""), title)


@cache
def chapter_of() -> dict[str, str]:
    """Artifact id -> chapter."""
    table = artifacts()
    return dict(zip(table.id, table.chapter))


def _json(path: Path) -> Provenance:
    try:
        return dict(json.loads(path.read_text(encoding="utf8")))
    except (OSError, ValueError):
        name = f"results/{path.parent.name}/{path.name}"
        raise BookError(f"{name} is missing or damaged; restore it: git checkout -- {name}") from None
