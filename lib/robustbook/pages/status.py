"""The state of the book: what was executed, what is stored, what is out of date; the map of chapters."""

from .. import published
from . import stored
from .markup import Page, grid


def status() -> Page:
    """What this build executed; every stored table with its origin; what is stale, and why."""
    from ..results import stale

    runs = [("", [r["source"], r["profile"], r["seconds"], r["date"]]) for r in stored.executed().values()]
    origins, reasons = [], []
    machines: dict[tuple[str, str], str] = {}
    for profile, tables in stored.tables().items():
        late = stale(profile) if tables else {}
        reasons += [("", [id_, profile, why]) for id_, why in late.items()]
        for id_, origin in tables.items():
            machine = machines.setdefault(_machine(origin), f"{len(machines) + 1}")
            facts = [origin[key] for key in ("chapter", "profile", "rows", "seconds", "date")]
            origins.append(("", [id_, *facts, "stale" if id_ in late else "current", machine]))
    head = ["table", "chapter", "profile", "rows", "seconds", "date", "state", "machine"]
    known = [("", [number, *machine]) for machine, number in machines.items()]
    return Page(
        "<h3>This build</h3>",
        grid(["source", "profile", "seconds", "finished (UTC)"], runs),
        "<h3>Stale tables</h3>",
        grid(["table", "profile", "reason"], reasons, wide=["reason"]) if reasons else "<p>None.</p>",
        "<h3>Stored tables</h3>",
        grid(head, origins, kind="rb-compact") if origins else "<p>None yet.</p>",
        grid(["machine", "processor", "versions"], known, wide=["processor", "versions"]) if known else "",
    )


def _machine(origin: stored.Provenance) -> tuple[str, str]:
    """Processor and versions, as text."""
    return origin["cpu"], ", ".join(f"{name} {version}" for name, version in origin["versions"].items())


def chapter_map() -> Page:
    """The chapters in reading order: works, tables and figures, claims, and whether they are written."""
    artifacts = published.artifacts()
    owners = published.claims().artifact_ids.map(lambda ids: stored.chapter_of()[ids.split(";")[0]])
    short = dict(zip(published.papers().paper, published.papers().short))
    rows = []
    for name in published.CHAPTERS:
        mine = artifacts[artifacts.chapter == name]
        works = ", ".join(short[paper] for paper in dict.fromkeys(mine.paper))
        shown, claims = int(mine.kind.isin(published.SHOWN).sum()), int((owners == name).sum())
        state = "written" if f"notebooks/{name}" in stored.executed() else "planned"
        rows.append(("", [stored.place(name, name), works, shown, claims, state]))
    head = ["chapter", "works", "tables and figures", "claims", "state"]
    return Page(grid(head, rows, wide=["chapter", "works"]))
