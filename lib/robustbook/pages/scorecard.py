"""The scorecard: every claim of the papers and what became of it."""

from collections import Counter
from typing import Any

from .. import published
from . import stored
from .markup import Page, Raw, badge, grid, lines, small

VERDICTS = ("reproduced", "direction only", "inconclusive", "not reproduced", "needs paper scale")
UNMEASURED = "not yet measured"


def counts() -> Page:
    """How many claims have which verdict, in all and per paper."""
    verdicts = stored.verdicts()
    order = [*VERDICTS, UNMEASURED]
    per: dict[str, Counter[str]] = {}
    for paper, short in published.papers()[["paper", "short"]].itertuples(index=False):
        ids = published.claims(paper).claim_id
        per[short] = Counter(_counted(verdicts.get(i)) for i in ids)
    total = sum(per.values(), Counter())
    items = "".join(f"<li><strong>{total[v]}</strong> {badge(v)}</li>" for v in order)
    rows = [("", [name, *(found[v] for v in order), found.total()]) for name, found in per.items()]
    return Page(
        f'<ul class="rb-counts">{items}</ul>', grid(["paper", *order, "claims"], rows, kind="rb-compact")
    )


def _counted(found: dict[str, str] | None) -> str:
    """The verdict that counts: one at smoke scale shows that the rule works, not what the claim is worth."""
    return found["verdict"] if found and found["profile"] != "smoke" else UNMEASURED


def scorecard(paper: str | None = None) -> Page:
    """Every claim of a paper, or of all: verdict, evidence, scale, and a link to its cell."""
    verdicts = stored.verdicts()
    rows = []
    for line in published.claims(paper).itertuples():
        claim = lines(line.claim, small(f"Rule: {line.test}"))
        cells = [line.claim_id, claim, _judgement(line, verdicts.get(line.claim_id))]
        rows.append((published.anchor(line.claim_id), cells))
    head = ["claim", "what the paper says, and our rule", "verdict, evidence, scale"]
    return Page(grid(head, rows, wide=head[1:]))


def _judgement(line: Any, found: dict[str, str] | None) -> Raw:
    """Badge, evidence, and where and at what scale it was measured; or where it will be."""
    if found:
        where = stored.place(found["chapter"], line.claim_id)
        if found["profile"] == "smoke":
            tried = f"Tried at smoke scale only ({found['verdict']}): {found['evidence']}"
            return lines(badge(UNMEASURED), small(tried), small(where))
        return lines(badge(found["verdict"]), found["evidence"], small(f"{found['profile']}: ", where))
    chapter = stored.chapter_of()[line.artifact_ids.split(";")[0]]
    note = "; needs paper scale" if line.scale == "paper" else ""
    return lines(badge(UNMEASURED), small(f"{stored.TITLES[chapter]}{note}"))
