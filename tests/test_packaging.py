"""The pins agree wherever they are written, and the project's front says what is true."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jupytext
import pytest
import robustbook
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
PLATFORM = re.compile(r"^(nvidia|cuda|triton|pytorch-triton|intel|mkl|tbb|pywin|colorama|appnope)")
INSTALLERS = {"pip", "setuptools", "wheel"}  # what `pip freeze` leaves out


def pins(lines: list[str]) -> dict[str, str]:
    """Canonical name -> exact version; a line that is not one exact pin fails."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        (clause,) = requirement.specifier
        assert clause.operator == "==" and "*" not in clause.version, f"{line} is no exact pin"
        found[canonicalize_name(requirement.name)] = clause.version
    assert len(found) == len(lines), "a package is pinned twice"
    return found


def project_pins() -> dict[str, str]:
    return pins(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"])


def lock_pins() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text("utf8").splitlines()
    return pins([line for line in lines if line and not line.startswith("#")])


def conda() -> tuple[list[str], list[str]]:
    """Conda's own packages and the lines for pip."""
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))["dependencies"]
    (pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return [entry for entry in dependencies if isinstance(entry, str)], pip


# --------------------------------------------------------------------------------------------- pins


def test_pins_are_exact() -> None:
    for wrong in (
        ["torch>=2"],
        ["torch"],
        ["torch==2.*"],
        ["torch>=2,<3"],
        ["torch==2.13.0", "Torch==2.13.0"],
    ):
        with pytest.raises((AssertionError, ValueError)):
            pins(wrong)
    assert project_pins()["torch"] == "2.13.0"


def test_environment_has_the_pins_of_the_project() -> None:
    packages, lines = conda()
    assert packages == ["python=3.11", "pip"]
    assert {"-e .", "-c requirements.lock"} == {line for line in lines if line.startswith("-")}
    assert pins([line for line in lines if not line.startswith("-")]) == project_pins()


def test_lock_holds_the_pins_of_the_project() -> None:
    lock = lock_pins()
    assert {name: lock.get(name) for name in project_pins()} == project_pins()


def test_lock_fits_every_platform() -> None:
    """No local version tags, no packages of one platform, not the book itself."""
    lock = lock_pins()
    assert not [name for name, version in lock.items() if "+" in version]
    assert not [name for name in lock if PLATFORM.match(name) or name in {"robustbook", *INSTALLERS}]


def test_lock_accepts_the_oldest_python() -> None:
    """requires-python promises every 3.11, Debian's 3.11.2 too; a package may want a later patch release."""
    assert PROJECT["requires-python"] == ">=3.11"
    unwilling = []
    for name, version in lock_pins().items():
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        wanted = SpecifierSet(package.metadata.get("Requires-Python") or "")
        if package.version.split("+")[0] == version and not wanted.contains("3.11.0"):
            unwilling.append(f"{name} {version} needs Python {wanted}")
    assert not unwilling


def test_lock_is_complete() -> None:
    """What the locked packages need, on this machine, is locked too."""
    lock, missing = lock_pins(), set()
    for name in lock:
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            needed = canonicalize_name(need.name)
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            if wanted and needed not in lock and not PLATFORM.match(needed) and needed not in INSTALLERS:
                missing.add(f"{needed} (for {name})")
    assert not missing


def imports(source: str) -> set[str]:
    """Top-level packages that a source imports absolutely."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def sources() -> dict[str, str]:
    """Python files, and the code cells of the chapters."""
    files = [f for folder in ("lib", "tests", "book") for f in (ROOT / folder).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): file.read_text("utf8") for file in files}
    for chapter in (ROOT / "notebooks").glob("*.md"):
        cells = jupytext.read(chapter).cells
        found[chapter.name] = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return found


def test_imports_are_declared() -> None:
    """Whatever is imported is a direct dependency, so its version is chosen, not met by chance."""
    assert imports("import a.b\nfrom c.d import e\nfrom . import f\ndef g():\n    import h") == {
        "a",
        "c",
        "h",
    }
    providers, declared = importlib.metadata.packages_distributions(), project_pins()
    ours = {"robustbook"} | {Path(name).stem for name in sources()}
    undeclared = set()
    for name, source in sources().items():
        for module in imports(source) - set(sys.stdlib_module_names) - ours:
            packages = {canonicalize_name(package) for package in providers.get(module, [module])}
            if not packages & declared.keys():
                undeclared.add(f"{module} (in {name})")
    assert not undeclared


# ------------------------------------------------------------------------------------------ the front


def test_first_screen_of_the_readme() -> None:
    first = (ROOT / "README.md").read_text("utf8").splitlines()[:40]
    assert "make book" in "\n".join(first) and "make test" in "\n".join(first)
    assert any("book/_static/screenshot.png" in line for line in first)


def test_links_of_the_front_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text("utf8")
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        assert not [target for target in targets if not (ROOT / target).exists()], name


def test_every_target_of_the_makefile_is_listed() -> None:
    makefile = (ROOT / "Makefile").read_text("utf8")
    phony = re.search(r"^\.PHONY: (?!\$)(.+)$", makefile, re.M)
    listed = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert phony and set(re.findall(r"make (\w+)", listed)) == set(phony[1].split())
    for target in phony[1].split():
        assert re.search(rf"^{target}:", makefile, re.M), f"make {target} does not exist"


def test_makefile_says_what_is_missing(tmp_path: Path) -> None:
    """Without a usable Python there is one clear line, and nothing is left that looks installed."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.1\nexit 1\n')
    old.chmod(0o755)
    for python, words in (
        ("no-such-python", "no no-such-python found"),
        (str(old), "Python 3.9.1 is too old"),
    ):
        command = ["make", "-C", str(tmp_path), "lint", f"PYTHON={python}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0 and words in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_interrupted_installation_starts_again(tmp_path: Path) -> None:
    """The environment counts only with a stamp that names this folder: half-made and moved ones go."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    python, stamp = tmp_path / ".venv/bin/python", tmp_path / ".venv/.installed"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)

    def plan() -> str:
        command = ["make", "-n", "-C", str(tmp_path), "lint"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "venv --clear" in plan()
    stamp.write_text("somewhere else\n")
    assert "venv --clear" in plan()
    stamp.write_text(f"{tmp_path.resolve()}\n")
    assert "pip install" not in plan()
    os.utime(tmp_path / "requirements.lock", (stamp.stat().st_mtime + 9,) * 2)
    assert "pip install" in plan() and "venv --clear" not in plan()


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    changes = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf8"), re.M)
    assert changes and robustbook.__version__ == PROJECT["version"] == citation["version"] == changes[1]


def test_citation_names_the_works() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"]
    assert citation["title"] == "Robustness, Reproduced"
    works = citation["references"]
    assert all(work["type"] and work["title"] and work["authors"] for work in works)
    families = {
        author.get("family-names", author.get("name")) for work in works for author in work["authors"]
    }
    assert {"Tibo", "Jaeger", "Larsen", "Wu", "Modas", "Anonymous authors"} <= families


def test_ci_runs_the_readme_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text("utf8").rstrip().endswith("make test")
    subprocess.run(["bash", "-n", str(script)], check=True)
