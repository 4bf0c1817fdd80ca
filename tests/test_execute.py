"""Sources become executed notebooks in this interpreter, or a clear line says why not."""

import json
import sys
from pathlib import Path

import nbformat
import pytest
from robustbook import execute as ex
from robustbook.errors import BookError

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

# Tiny
"""
PARAMETERS = """
```{code-cell} ipython3
:tags: [parameters]
profile = "laptop"  # the scale
seed: int = 0
```
"""


def cell(code: str) -> str:
    return f"\n```{{code-cell}} ipython3\n{code}\n```\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, which is also the working folder."""
    folder = tmp_path / "repo $HOME"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "book").mkdir()
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/intro\n")
    monkeypatch.chdir(folder)
    return folder


def chapter(repo: Path, text: str, name: str = "tiny") -> Path:
    source = repo / "notebooks" / f"{name}.md"
    source.write_text(HEAD + text, encoding="utf8")
    return source


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("", "0 cells tagged"),
        (PARAMETERS + PARAMETERS, "2 cells tagged"),
        (PARAMETERS.replace("profile", "scale"), "no parameter 'profile'"),
        (PARAMETERS.replace("seed: int = 0", "seeds = (0, 1)"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "a = b = 1"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "seed = int(0)"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "import os"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "x.y = 1"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "seed: int"), "one plain value"),
        (PARAMETERS.replace("seed: int = 0", "seed = = 0"), "one plain value"),
    ],
)
def test_parameters_cell_is_checked(repo, text, complaint):
    source = chapter(repo, text)
    with pytest.raises(BookError, match=complaint) as refusal:
        ex.execute(source, repo / "out.ipynb", parameters={})
    assert "\n" not in str(refusal.value)
    assert not (repo / "out.ipynb").exists()


def test_parameters_are_read(repo):
    source = chapter(repo, PARAMETERS)
    assert ex.parameters_of(ex.read(source), source) == {"profile": "laptop", "seed": 0}


@pytest.mark.parametrize(
    "given, hint",
    [({"profil": "smoke"}, "profile"), ({"sede": 1}, "seed"), ({"profile": "smokey"}, "smoke")],
)
def test_unknown_parameters_get_the_nearest(repo, given, hint):
    with pytest.raises(BookError, match=f"did you mean {hint}"):
        ex.execute(chapter(repo, PARAMETERS), repo / "out.ipynb", parameters=given)


def test_unknown_chapter_and_missing_source(repo):
    chapter(repo, PARAMETERS, "moments")
    assert ex.chapters() == ["moments"]
    assert ex.chapter_source("moments").is_file()
    with pytest.raises(BookError, match="did you mean moments"):
        ex.chapter_source("moment")
    with pytest.raises(BookError, match=r"notebooks/gone\.md does not exist"):
        ex.execute(repo / "notebooks" / "gone.md", repo / "out.ipynb", parameters={})


def test_source_that_is_no_notebook(repo):
    source = chapter(repo, PARAMETERS)
    source.write_text(source.read_text().replace("  display_name: Python 3\n", ""))
    with pytest.raises(BookError, match=r"notebooks/tiny\.md is not a notebook in MyST Markdown"):
        ex.read(source)


def test_page_without_code_is_told_apart(repo):
    plain, live = repo / "book" / "plain.md", repo / "book" / "live.md"
    plain.write_text("# Plain\n\n```python\nx = 1\n```\n")
    live.write_text(HEAD + cell("1"))
    assert not ex.has_code(plain) and ex.has_code(live)


def test_runs_in_this_interpreter_whatever_is_installed(repo, monkeypatch):
    """A kernel of the same name that leads elsewhere is not asked."""
    trap = repo / "jupyter" / "kernels" / "python3"
    trap.mkdir(parents=True)
    (trap / "kernel.json").write_text(json.dumps({"argv": ["/no/such/python", "{connection_file}"]}))
    for variable in ("JUPYTER_PATH", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(repo / "jupyter"))
    report = (
        "import json, os, sys\n"
        "print(json.dumps([sys.executable, os.getcwd(), os.environ['ROBUSTBOOK_RESULTS'], profile, seed]))\n"
        "print('noise', file=sys.stderr)"
    )
    shown = "class Shown:\n    def _repr_html_(self): return '<p id=\"moment-t4\">x</p>'\nShown()"
    text = PARAMETERS + cell(report) + "\n(moment-f1)=\n## Figure\n" + cell(shown)
    target = repo / "out" / "tiny.ipynb"
    run = ex.execute(
        chapter(repo, text), target, parameters={"profile": "smoke", "seed": 0}, results=repo / "re$ults"
    )
    notebook = nbformat.read(target, as_version=4)
    nbformat.validate(notebook)
    said = next(o.text for c in notebook.cells for o in c.get("outputs", []) if o.get("name") == "stdout")
    assert json.loads(said) == [sys.executable, str(repo), str(repo / "re$ults"), "smoke", 0]
    injected = [c for c in notebook.cells if "injected-parameters" in c.metadata.get("tags", [])]
    assert len(injected) == 1 and "seed" not in injected[0].source
    assert "papermill" not in json.dumps([notebook.metadata, *(c.metadata for c in notebook.cells)])
    assert [c.id for c in notebook.cells] == [f"cell-{n}" for n in range(len(notebook.cells))]
    assert (run.source, run.profile) == ("notebooks/tiny", "smoke")
    assert set(run.anchors) == {"moment-t4", "moment-f1"}
    assert [p.name for p in target.parent.iterdir()] == ["tiny.ipynb"]


def test_failing_cell_says_where(repo):
    text = PARAMETERS + "\n## First\n" + cell("x = 1") + "\n## Second part\n" + cell("1 / 0") + "\n## Third\n"
    target = repo / "out" / "tiny.ipynb"
    target.parent.mkdir()
    target.write_text("old")
    with pytest.raises(ex.CellFailed) as failure:
        ex.execute(chapter(repo, text), target, parameters={"profile": "smoke"})
    message = str(failure.value)
    assert "tiny: cell 3, under “Second part”, failed with ZeroDivisionError: division by zero" in message
    assert target.read_text() == "old"
    kept = nbformat.read(target.with_name("tiny.failed.ipynb"), as_version=4)
    assert any(o.output_type == "error" for c in kept.cells for o in c.get("outputs", []))


def test_several_sources_are_all_tried(repo):
    good = chapter(repo, PARAMETERS + cell("profile"), "good")
    dead = chapter(repo, PARAMETERS + cell("import os; os._exit(1)"), "dead")
    page = repo / "book" / "page.md"
    page.write_text(HEAD + cell("'no parameters here'"))
    folder, record = repo / "out", repo / "execution.json"
    runs = ex.execute_all([good, page], folder, parameters={"profile": "smoke"}, record=record)
    assert [run.source for run in runs] == ["notebooks/good", "book/page"]
    written = json.loads(record.read_text())
    assert written["notebooks/good"]["profile"] == "smoke" and written["book/page"]["profile"] == ""
    (folder / "notebooks" / "good.ipynb").unlink()
    with pytest.raises(ex.CellFailed, match="dead: its kernel died"):
        ex.execute_all([dead, good], folder, parameters={"profile": "laptop"}, record=record)
    assert (folder / "notebooks" / "good.ipynb").is_file()
    assert json.loads(record.read_text()) == written
