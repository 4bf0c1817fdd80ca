"""Sources as notebooks, and what their parameters cell may hold."""

import ast
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbformat.validator import NotebookValidationError

from ..errors import BookError, unknown
from ..storage import repository

PROFILES = ("smoke", "laptop", "paper")
Scalar = str | int | float | bool | None


def chapters() -> list[str]:
    """Names of the chapters that have a source."""
    return sorted(path.stem for path in (repository() / "notebooks").glob("*.md"))


def chapter_source(name: str) -> Path:
    """The source of a chapter by its name."""
    if name not in chapters():
        raise unknown("chapter", name, chapters())
    return repository() / "notebooks" / f"{name}.md"


def is_chapter(source: Path) -> bool:
    """A chapter, or a page of the book?"""
    return source.parent.name == "notebooks"


def name_of(source: Path) -> str:
    """The name by which `_toc.yml` knows a source: `notebooks/moments`."""
    return f"{source.parent.name}/{source.stem}"


def read(source: Path) -> nbformat.NotebookNode:
    """A source as a notebook, with cell ids that do not change from one reading to the next."""
    file = f"{source.parent.name}/{source.name}"
    if not source.is_file():
        raise BookError(f"{file} does not exist; restore it (git checkout -- {file}) or correct _toc.yml")
    try:
        notebook = jupytext.read(source, fmt="md:myst")
    except (ValueError, NotebookValidationError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BookError(f"{file} is not a notebook in MyST Markdown; repair it: {reason}") from error
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return number_cells(notebook)


def number_cells(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Give every cell an id that says where it stands."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    return notebook


def has_code(source: Path) -> bool:
    """Is there anything to execute?"""
    return any(cell.cell_type == "code" for cell in read(source).cells)


def parameters_of(notebook: nbformat.NotebookNode, source: Path) -> dict[str, Scalar]:
    """The parameters of a notebook and their defaults; a chapter must have them, a page may."""
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) > 1 or (is_chapter(source) and not tagged):
        raise BookError(
            f"{source.stem} has {len(tagged)} cells tagged 'parameters' and needs exactly one; "
            f"give one code cell of {source.parent.name}/{source.name} the line ':tags: [parameters]'"
        )
    found = _assignments(tagged[0].source, source.stem) if tagged else {}
    if is_chapter(source) and "profile" not in found:
        raise BookError(f"{source.stem} has no parameter 'profile'; add it to the cell tagged 'parameters'")
    return found


def check(given: dict[str, Scalar], defaults: dict[str, Scalar], name: str) -> None:
    """Refuse a parameter or a profile that does not exist; papermill would only warn."""
    for parameter in given:
        if parameter not in defaults:
            raise unknown(f"parameter of {name}", parameter, defaults)
    if given.get("profile", PROFILES[0]) not in PROFILES:
        raise unknown("profile", str(given["profile"]), PROFILES)


def _assignments(code: str, name: str) -> dict[str, Scalar]:
    """`name = scalar` lines of a parameters cell; anything else is refused."""
    found: dict[str, Scalar] = {}
    try:
        for statement in ast.parse(code).body:
            target, value = _assignment(statement)
            found[target] = value
    except (SyntaxError, ValueError):
        raise BookError(
            f"the parameters cell of {name} may hold only lines such as seed = 0: one name, one plain value"
        ) from None
    return found


def _assignment(statement: ast.stmt) -> tuple[str, Scalar]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        raise ValueError("not an assignment")
    if not isinstance(target, ast.Name) or statement.value is None:
        raise ValueError("not one name")
    value = ast.literal_eval(statement.value)
    if not isinstance(value, Scalar):
        raise ValueError("not a scalar")
    return target.id, value
