"""From the repository to the rendered book: execute, assemble, run Jupyter Book, check.

Nothing is put in place before it is complete: a build that fails leaves the book of the last good one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from .errors import BookError
from .execute import execute_all, has_code
from .storage import locked, repository, write_text

#: Shows what all other pages took, so it is executed after them.
LAST = "book/status"
#: Prose pages that are written elsewhere are copied as they are; these folders and files go along.
PARTS = ("_config.yml", "_toc.yml", "book/_ext", "book/_static", "book/references.bib")


def build(profile: str = "laptop", *, output: Path | None = None, results: Path | None = None) -> Path:
    """Execute every chapter and page and build the HTML book; returns the path of its first page.

    Everything is written below `output` (default: `_build/` of the repository); the book is its `html/`.
    """
    output = (output or repository() / "_build").resolve()
    with locked(output / "build"):
        pages = toc_pages()
        executed = run_sources(pages, profile, output, results)
        source = assemble(pages, executed, output / "source")
        built = run_jupyter_book(source, output)
        check_pages(pages, built)
        return publish(built, output / "html") / "index.html"


def toc_pages() -> list[str]:
    """The pages `_toc.yml` names, in reading order, such as `notebooks/moments`."""
    toc = yaml.safe_load((repository() / "_toc.yml").read_text(encoding="utf8"))
    return [toc["root"], *_files(toc)]


def _files(entry: Any) -> list[str]:
    if isinstance(entry, list):
        return [name for item in entry for name in _files(item)]
    if not isinstance(entry, dict):
        return []
    own = [entry["file"]] if "file" in entry else []
    return own + [name for key in ("parts", "chapters", "sections") for name in _files(entry.get(key))]


def run_sources(pages: list[str], profile: str, output: Path, results: Path | None) -> Path:
    """Execute chapters, then the pages generated from what they left, then the status page."""
    folder, record = output / "executed", output / "execution.json"
    shutil.rmtree(folder, ignore_errors=True)
    record.unlink(missing_ok=True)
    sources = {name: repository() / f"{name}.md" for name in pages}
    live = [name for name in pages if has_code(sources[name])]
    chapters = [name for name in live if name.startswith("notebooks/")]
    generated = [name for name in live if name not in (*chapters, LAST)]
    for names in (chapters, generated, [name for name in live if name == LAST]):
        execute_all(
            [sources[name] for name in names],
            folder,
            parameters={"profile": profile},
            results=results,
            environment={"ROBUSTBOOK_BUILD": str(output)},
            record=record,
        )
    return folder


def assemble(pages: list[str], executed: Path, source: Path) -> Path:
    """A folder for Jupyter Book in which executed notebooks stand in for their sources."""
    shutil.rmtree(source, ignore_errors=True)
    for part in PARTS:
        _copy(repository() / part, source / part)
    for name in pages:
        done = executed / f"{name}.ipynb"
        origin = done if done.exists() else repository() / f"{name}.md"
        _copy(origin, source / f"{name}{origin.suffix}")
    return source


def _copy(origin: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_dir():
        shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(origin, target)


def run_jupyter_book(source: Path, output: Path) -> Path:
    """Jupyter Book over an assembled folder, from nothing, with every warning an error."""
    stage = output / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", str(source), "--path-output", str(stage)]
    flags = ["--all", "-W", "-n", "--keep-going", "--quiet"]
    # Colour codes would end up in the log; the variables make every tool below leave them out.
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command + flags, capture_output=True, text=True, env=environment)
    log = output / "build.log"
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    write_text(log, text)
    complaints = [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    if done.returncode or complaints:
        for line in complaints or text.splitlines()[-20:]:
            print(line.replace(f"{source}{os.sep}", ""), file=sys.stderr)
        raise BookError(f"Jupyter Book has {len(complaints)} warnings or errors; all it said is in {log}")
    return stage / "_build" / "html"


def check_pages(pages: list[str], built: Path) -> None:
    """Every page of the table of contents was written, and there is a first page."""
    missing = [name for name in [*pages, "index"] if not (built / f"{name}.html").is_file()]
    if missing:
        raise BookError(f"the built book lacks {', '.join(missing)}; are they in _toc.yml and not excluded?")


def publish(built: Path, html: Path) -> Path:
    """Put the new book in the place of the old one; pages that are gone go with it."""
    old = html.with_name("html.old")
    shutil.rmtree(old, ignore_errors=True)
    if html.exists():
        html.rename(old)
    built.rename(html)
    shutil.rmtree(old, ignore_errors=True)
    return html
