"""Verdicts as stored: `results/<profile>/claims.csv`, in the catalogue's order, and its provenance."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from ..claims import Verdict
from ..provenance import environment, today
from ..published import claims
from ..storage import locked, results_folder, write_json, write_text

COLUMNS = ["claim_id", "verdict", "evidence", "measured", "tables", "fingerprint"]


def read_verdicts(profile: str) -> dict[str, dict[str, str]]:
    """Stored verdicts of a profile by claim id."""
    path = results_folder() / profile / "claims.csv"
    if not path.exists():
        return {}
    return {line["claim_id"]: line for line in csv.DictReader(io.StringIO(path.read_text(encoding="utf8")))}


def store_verdicts(chapter: str, judged: list[Verdict]) -> None:
    """Merge verdicts into the store of the profile each was measured at."""
    for profile in {verdict.profile for verdict in judged}:
        mine = [verdict for verdict in judged if verdict.profile == profile]
        _merge(results_folder() / profile / "claims.csv", chapter, mine, profile)


def _merge(path: Path, chapter: str, judged: list[Verdict], profile: str) -> None:
    with locked(path):
        lines = read_verdicts(profile)
        before = dict(lines)
        lines |= {verdict.claim: _line(verdict) for verdict in judged}
        if lines == before:
            return
        order = [claim for claim in claims()["claim_id"] if claim in lines]
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[claim] for claim in order)
        side = path.with_suffix(".json")
        owners: dict[str, Any] = json.loads(side.read_text())["chapters"] if side.exists() else {}
        owners |= {verdict.claim: chapter for verdict in judged}
        write_json(side, {**environment(), "date": today(), "chapters": owners})
        write_text(path, buffer.getvalue())


def _line(verdict: Verdict) -> dict[str, str]:
    return {
        "claim_id": verdict.claim,
        "verdict": verdict.verdict,
        "evidence": verdict.evidence,
        "measured": "" if verdict.measured is None else f"{verdict.measured:.6g}",
        "tables": ";".join(verdict.tables),
        "fingerprint": verdict.fingerprint,
    }
