"""Chapters as the command line sees them: the cells tagged `define` of a notebook source, executed."""

import functools
import linecache
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from ..errors import BookError, unknown
from ..published import artifacts
from ..storage import repository, results_folder
from .chapter import Chapter
from .views import stale_reason


def sources() -> dict[str, Path]:
    """Chapter name -> notebook source."""
    return {path.stem: path for path in sorted((repository() / "notebooks").glob("*.md"))}


def chapter_names() -> list[str]:
    """The chapters there are."""
    return list(sources())


def source_of(name: str) -> Path:
    """The notebook source of a chapter."""
    known = sources()
    if name not in known:
        raise unknown("chapter", name, known)
    return known[name]


def tagged(notebook: nbformat.NotebookNode, tag: str) -> list[tuple[int, str]]:
    """Number and source of the code cells that carry a tag."""
    return [
        (number, cell.source)
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and tag in cell.metadata.get("tags", [])
    ]


def load_chapter(name: str, profile: str = "laptop") -> Chapter:
    """Execute a chapter's definitions (no measuring happens there) and return what they declare."""
    notebook = jupytext.read(source_of(name))
    parameters = tagged(notebook, "parameters")
    if len(parameters) != 1:
        raise BookError(
            f"chapter '{name}' needs exactly one cell tagged 'parameters', it has {len(parameters)}"
        )
    scope: dict[str, Any] = {"__name__": f"notebooks.{name}"}
    _execute(name, *parameters[0], scope)
    if "profile" not in scope:
        raise BookError(f"the parameters cell of chapter '{name}' does not set 'profile'")
    scope["profile"] = profile
    for number, source in tagged(notebook, "define"):
        _execute(name, number, source, scope)
    found = [value for value in scope.values() if isinstance(value, Chapter)]
    if len(found) != 1 or found[0].name != name:
        raise BookError(
            f"chapter '{name}' must define one Chapter(\"{name}\", profile) in a cell tagged 'define'"
        )
    return found[0]


def _execute(name: str, number: int, source: str, scope: dict[str, Any]) -> None:
    """Run one cell under a file name of its own, so that its functions have a source."""
    file = f"<{name}: cell {number}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        exec(compile(source, file, "exec"), scope)
    except BookError:
        raise
    except Exception as error:
        raise BookError(f"chapter '{name}', cell {number}: {type(error).__name__}: {error}") from error


@functools.cache
def _artifact_chapters() -> dict[str, str]:
    table = artifacts()
    return dict(zip(table["id"], table["chapter"], strict=True))


def owner_of(target: str) -> tuple[str, str | None]:
    """A chapter's name or an artifact's id -> (chapter, id or None)."""
    names, owners = chapter_names(), _artifact_chapters()
    if target in names:
        return target, None
    if target in owners:
        if owners[target] not in names:
            raise BookError(f"{target} belongs to chapter '{owners[target]}', which is not written yet")
        return owners[target], target
    own = [name for name in names if target.startswith(f"{name}-")]
    if own:
        return max(own, key=len), target
    raise unknown("chapter or artifact", target, [*names, *owners])


def stale(profile: str) -> dict[str, str]:
    """Artifact id -> reason, for every stored table measured by code that has changed since."""
    stored = {path.stem for path in (results_folder() / profile).glob("*.csv")}
    reasons = {}
    for name in chapter_names():
        chapter = load_chapter(name, profile)
        for id, view in chapter.views.items():
            if id in stored and (reason := stale_reason(view.states(profile))):
                reasons[id] = reason
    return reasons
