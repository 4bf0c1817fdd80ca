"""`robustbook run`: compute what is missing, row by row, and keep every finished row."""

from dataclasses import dataclass

import click
from tqdm import tqdm

from ..errors import BookError
from ..results import PROFILES, Chapter, load_chapter, owner_of
from ..results.engine import ENGINES, Outcome
from ..results.experiment import State
from ..results.rows import Row
from ..results.views import View, complete

MINUTE = 60


@dataclass(frozen=True)
class Job:
    """Rows of one experiment to be measured now."""

    state: State
    rows: list[Row]

    @property
    def seconds(self) -> float:
        """What the rows are expected to take on one core."""
        return sum(self.state.estimate(row) for row in self.rows)

    @property
    def kilobytes(self) -> float:
        """Disk the rows will take, if they are like those already stored."""
        store = self.state.experiment.store(self.state.profile)
        files = [store.csv, store.json, *store.folder.glob(f"{store.name}-*.npz")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return size / 1000 * len(self.rows) / len(self.state.stored.meta)

    @property
    def name(self) -> str:
        """Chapter and experiment."""
        return f"{self.state.experiment.chapter}/{self.state.experiment.name}"


def views_of(targets: tuple[str, ...], profile: str) -> list[tuple[Chapter, list[View]]]:
    """Chapters and the views asked for; a chapter's name means all its views."""
    wanted: dict[str, list[str | None]] = {}
    for target in targets:
        name, id = owner_of(target)
        wanted.setdefault(name, []).append(id)
    found = []
    for name, ids in wanted.items():
        chapter = load_chapter(name, profile)
        if None in ids:
            found.append((chapter, list(chapter.views.values())))
        else:
            found.append((chapter, [_view(chapter, id) for id in ids if id]))
    return found


def _view(chapter: Chapter, id: str) -> View:
    plan = chapter.figures.get(id)
    if id not in chapter.views and plan and plan.tables[0] in chapter.views:
        return chapter.views[plan.tables[0]]
    return chapter.view(id)


def plan(views: list[View], profile: str, *, stale: bool, fresh: bool) -> list[Job]:
    """The rows to measure, experiment by experiment, shared ones once."""
    experiments = {e.name: e for view in views for e in view.experiments}
    jobs = []
    for experiment in experiments.values():
        state = experiment.state(profile)
        rows = state.rows if fresh else state.missing + (state.stale if stale else [])
        jobs.append(Job(state, rows))
    return jobs


def show_plan(jobs: list[Job], profile: str, cores: int) -> None:
    """Rows, minutes and disk before anything starts."""
    click.echo(f"{'experiment':<32}{'rows':>6}{'to do':>7}{'stale':>7}{'minutes':>9}")
    for job in jobs:
        minutes = job.seconds / MINUTE
        click.echo(
            f"{job.name:<32}{len(job.state.rows):>6}{len(job.rows):>7}{len(job.state.stale):>7}{minutes:>9.1f}"
        )
    rows = sum(len(job.rows) for job in jobs)
    total = sum(job.seconds for job in jobs) / MINUTE
    known = [job for job in jobs if job.state.stored.meta]
    disk = f"about {sum(job.kilobytes for job in known):.0f} kB of rows" if known else "size not known yet"
    click.echo(f"profile {profile}: {rows} rows, about {total / cores:.1f} minutes on {cores} cores, {disk}")


@click.command()
@click.argument("targets", nargs=-1, required=True)
@click.option("--profile", default="laptop", show_default=True, help="smoke, laptop or paper")
@click.option("--stale", is_flag=True, help="also rows measured before a change of the code")
@click.option("--fresh", is_flag=True, help="all rows, again")
@click.option(
    "--verify", is_flag=True, help="recompute the cheapest stale row; re-sign the table if it is equal"
)
@click.option("--dry-run", is_flag=True, help="list rows, minutes and disk, compute nothing")
@click.option("--engine", default="local", show_default=True, help="local, inline or dask")
@click.option("--scheduler", help="address of the Dask scheduler, tcp://host:port")
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="processes of the local engine"
)
def run(
    targets: tuple[str, ...],
    profile: str,
    stale: bool,
    fresh: bool,
    verify: bool,
    dry_run: bool,
    engine: str,
    scheduler: str | None,
    jobs: int,
) -> None:
    """Compute the rows of chapters or of single tables and figures (TARGETS: names or artifact ids)."""
    from ..errors import unknown

    for kind, value, valid in (("profile", profile, PROFILES), ("engine", engine, ENGINES)):
        if value not in valid:
            raise unknown(kind, value, valid)
    if engine == "dask" and not scheduler:
        raise BookError("--engine dask needs --scheduler, for example --scheduler tcp://127.0.0.1:8786")
    failed: list[Outcome] = []
    for chapter, views in views_of(targets, profile):
        todo = plan(views, profile, stale=stale, fresh=fresh)
        if dry_run:
            show_plan(todo, profile, jobs)
            continue
        if verify:
            verify_tables(todo, profile)
            continue
        failed += compute(todo, profile, engine=engine, scheduler=scheduler, jobs=jobs)
        publish(chapter, views, profile)
    if failed:
        for outcome in failed:
            click.echo(outcome.trace, err=True)
        raise click.exceptions.Exit(_report(failed))


def _report(failed: list[Outcome]) -> int:
    for outcome in failed:
        click.echo(f"robustbook: row {outcome.row} failed: {outcome.error}", err=True)
    click.echo(f"robustbook: {len(failed)} rows failed; all others are stored", err=True)
    return 1


def compute(todo: list[Job], profile: str, **how: object) -> list[Outcome]:
    """Measure all rows of the jobs under one progress bar per experiment; returns the failures."""
    failed: list[Outcome] = []
    for job in todo:
        if job.rows:
            with tqdm(total=len(job.rows), desc=job.name, unit="row") as bar:
                failed += job.state.experiment.compute(
                    profile, job.rows, arrived=lambda _, bar=bar: bar.update(), **how
                )
    return failed


def publish(chapter: Chapter, views: list[View], profile: str) -> None:
    """Write the tables whose rows are complete, then judge the chapter's claims."""
    for view in views:
        if complete(view.states(profile)):
            table = chapter.result(view.id)
            click.echo(f"{view.id}: {len(table.frame)} lines, {table.provenance['date']}")
    if all(complete(view.states(profile)) for view in chapter.views.values()):
        click.echo(chapter.verdicts().text)


def verify_tables(jobs: list[Job], profile: str) -> None:
    """Recompute the cheapest stale row of each experiment and re-sign the rest if nothing changed."""
    differing = []
    for job in jobs:
        state = job.state
        if not state.stale:
            click.echo(f"{job.name}: nothing stale")
            continue
        row = min(state.stale, key=state.estimate)
        if _unchanged(state, row):
            definitions = state.experiment.definitions(profile)
            state.experiment.store(profile).sign(state.rows, definitions)
            click.echo(f"{job.name}: row {row} is equal; {len(state.stale)} rows re-signed")
        else:
            differing.append(job.name)
    if differing:
        raise BookError(
            f"{', '.join(differing)}: the recomputed row differs from the stored one; "
            "compute the table again with --stale"
        )


def _unchanged(state: State, row: Row) -> bool:
    from ..results.engine import measure
    from ..results.rows import as_text, split

    outcome = measure(state.experiment.function, row, rehearse=False)
    if outcome.error:
        raise BookError(f"row {row} failed: {outcome.error}")
    records, _ = split(outcome.value)
    now = [_untimed(as_text(record)) for record in records]
    stored = [
        {k: v for k, v in _untimed(line).items() if k in record}
        for line, record in zip(state.stored.records[row.id], now, strict=False)
    ]
    return stored == now


def _untimed(record: dict[str, str]) -> dict[str, str]:
    """A record without measured seconds, which no two runs share."""
    return {name: value for name, value in record.items() if "seconds" not in name}
