"""Rows are measured through joblib: inline, on the processes of this machine, or on a Dask cluster.

Every row runs with one torch thread whatever the engine, since sums over several threads differ in
the last bits. A row that fails is reported and does not take the others with it.
"""

import contextlib
import functools
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import joblib

from ..errors import BookError
from ..memory import keep_memory
from ..provenance import environment, today
from ..rehearsal import rehearsal
from ..usage import recording
from .rows import Row

ENGINES = ("inline", "local", "dask")


@dataclass(frozen=True)
class Outcome:
    """What came back for one row: its records, or the error that stopped it."""

    row: Row
    value: Any
    seconds: float
    note: dict[str, Any]
    error: str = ""
    trace: str = ""


def measure(function: Callable[..., Any], row: Row, rehearse: bool) -> Outcome:
    """Measure one row; runs in the worker."""
    from ..threads import one_thread  # loads torch, which the process that only plans does without

    keep_memory()
    start = time.perf_counter()
    value, error, trace = None, "", ""
    with one_thread(), rehearsal(rehearse), recording() as data:
        try:
            value = function(**row.params)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}".splitlines()[0]
            trace = traceback.format_exc()
    note = {**environment(), "date": today(), "data": dict(data)}
    return Outcome(row, value, time.perf_counter() - start, note, error, trace)


def measure_below(function: Callable[..., Any], row: Row, rehearse: bool, caller: int) -> Outcome:
    """Measure one row in a process that ends when its parent does.

    Without that, the workers of a killed run finish their rows for nobody: minutes of a core, and the locks
    of networks in training that the next run waits for. With one job joblib measures in the `caller` itself,
    which may well outlive its parent: the shell that started it in the background.
    """
    if os.getpid() != caller:
        _end_with_parent()
    return measure(function, row, rehearse)


@functools.cache
def _end_with_parent() -> None:
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def outcomes(
    function: Callable[..., Any],
    rows: list[Row],
    *,
    engine: str = "inline",
    jobs: int = 2,
    scheduler: str | None = None,
    rehearse: bool = False,
) -> Iterator[Outcome]:
    """Measure the rows, in any order, and yield each as it arrives."""
    if engine == "inline":
        for row in rows:
            yield measure(function, row, rehearse)
        return
    with _backend(engine, jobs, scheduler):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all")
        task = joblib.delayed(measure_below if engine == "local" else measure)
        below = (os.getpid(),) if engine == "local" else ()
        yield from parallel(task(function, row, rehearse, *below) for row in rows)


@contextlib.contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Keep off the terminal what loky's manager thread says when Ctrl-C empties its list of tasks."""
    usual = threading.excepthook

    def hook(problem: threading.ExceptHookArgs) -> None:
        name = problem.thread.name if problem.thread else ""
        if not (name.startswith("ExecutorManagerThread") and problem.exc_type is KeyError):
            usual(problem)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual


@contextlib.contextmanager
def _backend(engine: str, jobs: int, scheduler: str | None) -> Iterator[None]:
    if engine == "local":
        with _quiet_interrupt(), joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout="10s", set_as_default=True)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BookError(
            f"no Dask scheduler answers at {scheduler} ({reason}): start one with 'dask scheduler'"
        ) from None
    with client, joblib.parallel_config(backend="dask", n_jobs=-1):
        yield
