"""Index of tables and figures, misprints, and choices."""

from functools import cache
from typing import Any

from .. import published
from ..published import anchor
from . import stored
from .markup import Page, Raw, grid, lines, link, small, text

#: What an artifact may need that a laptop does not have.
HEAVY = ("GPU", "ImageNet", "C-CCM")
BASIS = {"doc": "the document", "lit": "the literature", "repo": "public code", "choice": "a choice"}


def artifact_index(paper: str | None = None) -> Page:
    """All tables, figures and diagrams: where reproduced and at what scale, or why not yet."""
    table = published.artifacts()
    table = table[table.kind.isin(published.SHOWN) & (table.paper.eq(paper) if paper else True)]
    tables = stored.tables()
    rows = []
    for line in table.itertuples():
        points = Raw(" ".join(link(f"errata.html#{anchor(i)}", i) for i in published.open_points(line.id)))
        cells = [line.id, lines(line.label, small(line.title)), _whereabouts(line, tables), points]
        rows.append((anchor(line.id), cells))
    head = ["id", "table or figure", "where, and at what scale or why not yet", "open points"]
    return Page(grid(head, rows, wide=head[1:3]))


def _whereabouts(line: Any, tables: dict[str, dict[str, stored.Provenance]]) -> Raw:
    """Where an artifact is shown, and at what scale or why not yet."""
    for profile in stored.PREFERENCE:
        if line.id in tables[profile]:
            origin = tables[profile][line.id]
            scale = f"{profile}: {origin['rows']} rows, {origin['date']}"
            return lines(stored.place(origin["chapter"], line.id), small(scale))
    run = stored.executed().get(f"notebooks/{line.chapter}")
    if run and anchor(line.id) in run["anchors"]:
        return lines(stored.place(line.chapter, line.id), small("drawn; there is nothing to measure"))
    why = "not measured yet" if run else "chapter planned"
    if any(word in line.needs for word in HEAVY):
        why += f"; at full scale it needs {line.needs}"
    return lines(stored.TITLES[line.chapter], small(why))


def errata() -> Page:
    """Contradictions and misprints, with the reading this book uses."""
    rows = [
        (anchor(e.id), [e.id, _where(f"{e.paper}, {e.where}", e), e.problem, _answer(e.reading, e)])
        for e in published.errata().itertuples()
    ]
    head = ["id", "where", "what is wrong", "our reading"]
    return Page(grid(head, rows, wide=head[1:]))


def choices() -> Page:
    """What the papers leave open, and what this book does."""
    rows = [
        (anchor(c.id), [c.id, _where(c.title, c), c.problem, _answer(c.resolution, c)])
        for c in published.choices().itertuples()
    ]
    head = ["id", "about", "what is missing", "what we do"]
    return Page(grid(head, rows, wide=head[1:]))


@cache
def _listed() -> frozenset[str]:
    table = published.artifacts()
    return frozenset(table.id[table.kind.isin(published.SHOWN)])


def _where(place: str, line: Any) -> Raw:
    """The place, and the artifacts it touches, linked to the index where it lists them."""
    touched = [
        link(f"index_of_artifacts.html#{anchor(i)}", i) if i in _listed() else text(i)
        for i in line.artifacts.split(";")
    ]
    return lines(place, *(small(Raw(t)) for t in touched))


def _answer(reading: str, line: Any) -> Raw:
    basis = ", ".join(BASIS[b] for b in line.basis.split(";"))
    return lines(reading, small(f"Basis: {basis}"))
