"""A small book goes all the way; what is wrong with it stops the build and leaves the last good one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from robustbook import build as bd
from robustbook.errors import BookError
from robustbook.published import papers

ROOT = Path(__file__).parent.parent
HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
CHAPTER = f"""{HEAD}
# Tiny chapter

Mass is energy {{cite}}`bibi2018`: $E = mc^2$.

```{{code-cell}} ipython3
:tags: [parameters]
profile = "smoke"
```

```{{code-cell}} ipython3
:tags: [hide-input]
import sys
print("noise", "on stderr", file=sys.stderr)
print("the answer is", 6 * 7)
```

```{{bibliography}}
:filter: docname in docnames
```
"""
STATUS = f"""{HEAD}
# Status

```{{code-cell}} ipython3
:tags: [hide-input]
import json, os, pathlib
record = json.loads((pathlib.Path(os.environ["ROBUSTBOOK_BUILD"]) / "execution.json").read_text())
print("executed before:", *sorted(record))
```
"""


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book's own configuration around three small pages."""
    folder = tmp_path_factory.mktemp("repo")
    for part in ("_config.yml", "book/_ext", "book/_static", "book/references.bib"):
        bd._copy(ROOT / part, folder / part)
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "tiny.md").write_text(CHAPTER)
    (folder / "book" / "intro.md").write_text("# Intro\n\nSee {doc}`the chapter <../notebooks/tiny>`.\n")
    (folder / "book" / "status.md").write_text(STATUS)
    toc = {"format": "jb-book", "root": "book/intro"}
    toc["chapters"] = [{"file": "notebooks/tiny"}, {"file": "book/status"}]
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    return folder


@pytest.fixture
def inside(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repo)
    return repo


@pytest.fixture(scope="module")
def html(repo: Path) -> Path:
    """The small book, built once over a page of an earlier one."""
    old = repo / "_build" / "html" / "book"
    old.mkdir(parents=True)
    (old / "gone.html").write_text("a page that is no longer in the book")
    before = Path.cwd()
    os.chdir(repo)
    try:
        return bd.build("smoke").parent
    finally:
        os.chdir(before)


def test_book_is_built(html, repo):
    assert html == (repo / "_build" / "html").resolve()
    assert "book/intro.html" in (html / "index.html").read_text()
    chapter = (html / "notebooks" / "tiny.html").read_text()
    assert "the answer is 42" in chapter and "noise on stderr" not in chapter
    assert '<details class="admonition hide' in chapter
    assert "../_sources/notebooks/tiny.ipynb" in chapter
    assert "executed before: notebooks/tiny" in (html / "book" / "status.html").read_text()


def test_stale_pages_are_gone(html):
    assert not (html / "book" / "gone.html").exists()


def test_no_thebe(html):
    for page in html.rglob("*.html"):
        assert "thebe" not in page.read_text(encoding="utf8"), page.name


def test_warning_stops_the_build_and_keeps_the_last_good_book(html, inside, capfd, monkeypatch):
    page = inside / "book" / "intro.md"
    good, first = page.read_text(), (html / "book" / "intro.html").read_text()
    monkeypatch.setattr(bd, "run_sources", lambda *_: inside / "_build" / "executed")
    try:
        page.write_text(good + "\n{doc}`nowhere`\n")
        with pytest.raises(BookError, match="1 warnings or errors") as refusal:
            bd.build("smoke")
    finally:
        page.write_text(good)
    assert re.search(r"book/intro\.md:\d+: WARNING: .*nowhere", capfd.readouterr().err)
    assert "build.log" in str(refusal.value) and "\n" not in str(refusal.value)
    assert (html / "book" / "intro.html").read_text() == first


def test_toc_with_a_missing_source_stops_before_anything_runs(inside):
    toc = inside / "_toc.yml"
    good = toc.read_text()
    try:
        toc.write_text(good.replace("book/status", "book/missing"))
        with pytest.raises(BookError, match=r"book/missing\.md does not exist"):
            bd.build("smoke", output=inside / "elsewhere")
    finally:
        toc.write_text(good)
    assert not (inside / "elsewhere" / "executed").exists()


def test_missing_page_is_named(tmp_path):
    (tmp_path / "index.html").write_text("")
    with pytest.raises(BookError, match="lacks book/intro;"):
        bd.check_pages(["book/intro"], tmp_path)


def test_toc_is_read_in_order(inside):
    assert bd.toc_pages() == ["book/intro", "notebooks/tiny", "book/status"]
    nested = {"parts": [{"chapters": [{"file": "a", "sections": [{"file": "b"}]}, {"url": "x"}]}]}
    assert bd._files(nested) == ["a", "b"]


def test_every_page_of_the_book_has_a_source():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    for name in [toc["root"], *bd._files(toc)]:
        assert (ROOT / f"{name}.md").is_file(), name


def test_plain_jupyter_book_works_too(tmp_path):
    """Pages without outputs, no warning: `jupyter-book build .` at the top of the repository."""
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", ".", "--path-output", str(tmp_path)]
    command += ["-W", "-n", "--keep-going", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "_build" / "html" / "book" / "intro.html").is_file()
    shutil.rmtree(tmp_path / "_build")


def test_references_are_sorted_and_complete():
    entries = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(), re.MULTILINE)
    assert entries == sorted(entries) and len(entries) == len(set(entries))
    assert set(papers().reference) <= set(entries)
    sources = [*ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.md")]
    cited = {
        key.strip()
        for source in sources
        for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", source.read_text(encoding="utf8"))
        for key in keys.split(",")
    }
    assert cited <= set(entries)
