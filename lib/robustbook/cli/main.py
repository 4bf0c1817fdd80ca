"""The smaller commands: build, figures, scorecard, rehearse."""

from pathlib import Path

import click
from tqdm import tqdm

from ..claims.core import VERDICTS
from ..errors import BookError, unknown
from ..published import claims
from ..results import PROFILES, chapter_names, load_chapter, owner_of, read_verdicts
from ..results.engine import outcomes
from ..results.views import complete, make


@click.command()
@click.option("--profile", default="laptop", show_default=True, help="whose stored tables the pages show")
def build(profile: str) -> None:
    """Execute every chapter and page, build the HTML book, print the path of its first page."""
    from ..build import build as build_book

    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    click.echo(build_book(profile))


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--profile", default="laptop", show_default=True, help="whose table is drawn")
@click.option("--out", default="figures", show_default=True, type=click.Path(path_type=Path), help="folder")
def figures(ids: tuple[str, ...], profile: str, out: Path) -> None:
    """Redraw figures from their stored tables, as PNG and PDF."""
    from .. import figures as drawing

    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    for target in ids:
        name, id = owner_of(target)
        chapter = load_chapter(name, profile)
        for figure in [id] if id else list(chapter.figures):
            if figure not in chapter.figures:
                raise unknown(f"figure of chapter '{name}'", str(figure), chapter.figures)
            plan = chapter.figures[figure]
            tables = [make(chapter.view(table), profile) for table in plan.tables]
            arguments = [t.frame if not t.arrays else (t.frame, t.arrays) for t in tables]
            for path in drawing.save(plan.draw, arguments, out / figure):
                click.echo(path)


@click.command()
@click.option("--profile", default="laptop", show_default=True, help="whose verdicts are shown")
def scorecard(profile: str) -> None:
    """Judge the claims of every chapter from stored tables and print the verdicts."""
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    for name in chapter_names():
        chapter = load_chapter(name, profile)
        if all(complete(view.states(profile)) for view in chapter.views.values()):
            chapter.verdicts()
    stored = read_verdicts(profile)
    for claim in claims()["claim_id"]:
        if claim in stored:
            click.echo(f"{claim:<12} {stored[claim]['verdict']:<16} {stored[claim]['evidence']}")
    counts = {v: sum(line["verdict"] == v for line in stored.values()) for v in VERDICTS}
    told = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    click.echo(f"{len(stored)} of {len(claims())} claims judged at {profile}: {told or 'none yet'}")


@click.command()
@click.argument("names", nargs=-1)
def rehearse(names: tuple[str, ...]) -> None:
    """Run every row of the paper profile with one step and at most eight samples; store nothing."""
    failed = []
    for target in names or chapter_names():
        name, _ = owner_of(target)
        chapter = load_chapter(name, "paper")
        synthetic: set[str] = set()
        count = 0
        for experiment in chapter.experiments.values():
            rows = experiment.rows("paper")
            results = outcomes(experiment.function, rows, engine="inline", rehearse=True)
            for outcome in tqdm(results, total=len(rows), desc=f"{name}/{experiment.name}", unit="row"):
                count += 1
                synthetic |= {data for data, mark in outcome.note["data"].items() if mark == "synthetic"}
                if outcome.error:
                    failed.append(f"{name}/{experiment.name}: {outcome.row}: {outcome.error}")
        note = f"; synthetic tensors stood in for {', '.join(sorted(synthetic))}" if synthetic else ""
        click.echo(f"{name}: {count} rows of the paper profile rehearsed{note}")
    if failed:
        raise BookError(f"{len(failed)} rows failed in rehearsal; the first: {failed[0]}")
