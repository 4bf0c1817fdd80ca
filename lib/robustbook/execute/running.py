"""Sources to executed notebooks: one, or many two at a time."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import joblib
import nbformat

from ..errors import BookError
from ..storage import replacing, write_json
from .notebook import CellFailed, anchors, run
from .sources import Scalar, check, is_chapter, name_of, parameters_of, read


@dataclass(frozen=True)
class Execution:
    """What one execution was: the status page shows it."""

    source: str
    profile: str
    seconds: float
    date: str
    anchors: tuple[str, ...]


def execute(
    source: Path,
    target: Path,
    *,
    parameters: Mapping[str, Scalar],
    results: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Execution:
    """Run one source and write the executed notebook; a failing cell raises and writes no `target`.

    `results` is the folder its tables are read from and written to (`ROBUSTBOOK_RESULTS`).
    """
    notebook = read(source)
    defaults = parameters_of(notebook, source)
    given = dict(parameters)
    check(given, defaults, source.stem)
    store = {"ROBUSTBOOK_RESULTS": str(results.resolve())} if results is not None else {}
    started = time.perf_counter()
    executed = run(
        notebook,
        source.stem,
        # A value that equals its default needs no second cell in the reader's copy.
        parameters={name: value for name, value in given.items() if value != defaults[name]},
        environment={"PYDEVD_DISABLE_FILE_VALIDATION": "1", **store, **(environment or {})},
        failed=target.with_name(f"{target.stem}.failed.ipynb"),
    )
    with replacing(target) as part, part.open("w", encoding="utf8") as file:
        nbformat.write(executed, file)
    return Execution(
        source=name_of(source),
        profile=str({**defaults, **given}.get("profile", "")),
        seconds=round(time.perf_counter() - started, 1),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        anchors=anchors(executed),
    )


def execute_all(
    sources: Iterable[Path],
    folder: Path,
    *,
    parameters: Mapping[str, Scalar],
    results: Path | None = None,
    environment: Mapping[str, str] | None = None,
    record: Path | None = None,
) -> list[Execution]:
    """Run sources two at a time into `folder`; add what the executions were to the JSON file `record`.

    `parameters` are those of chapters. All sources are tried; then the failures are raised together.
    """

    def one(source: Path) -> Execution | BookError:
        target = folder / f"{name_of(source)}.ipynb"
        given = parameters if is_chapter(source) else {}
        try:
            return execute(source, target, parameters=given, results=results, environment=environment)
        except BookError as error:
            return error

    # Threads, since the work is done in the kernels, which are processes of their own.
    outcomes = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(one)(s) for s in sources)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BookError)]
    if failures:
        raise failures[0] if len(failures) == 1 else CellFailed("; ".join(map(str, failures)))
    if record is not None:
        before = json.loads(record.read_text(encoding="utf8")) if record.exists() else {}
        write_json(record, {**before, **{run.source: asdict(run) for run in outcomes}})
    return outcomes
