"""The rules of the house, read from the syntax trees: floors, sizes, and what no file may hold.

Every rule is a function from a source to its problems, and every rule is first shown an offender.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "lib" / "robustbook"
LINES = 300

FLOORS = {
    0: "__init__ errors registry storage rehearsal usage provenance memory threads vision fingerprint "
    "datasets networks spectral",
    1: "training attacks defenses augmentations corruptions",
    2: "measures framework",
    3: "results published claims figures",
    4: "__main__ cli build execute pages",
}
FLOOR = {part: floor for floor, parts in FLOORS.items() for part in parts.split()}


def sources() -> dict[str, Path]:
    """Dotted name below robustbook -> file; a package goes by its `__init__`."""
    files = sorted(LIBRARY.rglob("*.py"))
    return {".".join(file.relative_to(LIBRARY).with_suffix("").parts): file for file in files}


def tracked() -> list[Path]:
    """The files of the repository; in an unpacked archive, all that is not generated or installed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        files = [ROOT / name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        generated = {".venv", "_build", ".git", "__pycache__"}
        files = [file for file in ROOT.rglob("*") if not generated & set(file.relative_to(ROOT).parts)]
    return [file for file in files if file.is_file()]


def python_files() -> list[Path]:
    return [file for file in tracked() if file.suffix == ".py"]


# ---------------------------------------------------------------------------------------- floors


def called(node: ast.Call) -> str:
    """Last name of what is called: `importlib.import_module(...)` -> `import_module`."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def absolute(name: str, level: int, module: str) -> str:
    """`level` dots and `name`, seen from `module` (dotted, from robustbook on; a package has `__init__`)."""
    return ".".join([*module.split(".")[:-level], name] if level else [name])


def imported(source: str, module: str) -> Iterator[str]:
    """Absolute names a source imports, anywhere in it, also inside functions and by `import_module`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level, module).rstrip(".")
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__") and node.args:
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            name = str(getattr(first, "value", ""))
            level = len(name) - len(name.lstrip("."))
            yield absolute(name.lstrip("."), level, module)


def part_of(name: str) -> str | None:
    """The part of the house a dotted name belongs to; None for other people's packages."""
    package, _, rest = name.partition(".")
    if package != "robustbook":
        return None
    part = rest.split(".")[0]
    return (
        part
        if part in FLOOR or (LIBRARY / part).is_dir() or (LIBRARY / f"{part}.py").is_file()
        else "__init__"
    )


def upward(source: str, name: str) -> list[str]:
    """Imports of the module `name` (dotted, below robustbook) that climb, or that no floor is known for."""
    own = name.split(".")[0]
    if own not in FLOOR:
        return [f"{name}: no floor known; add it to FLOORS and to the map in CONTRIBUTING.md"]
    parts = {part_of(target) for target in imported(source, f"robustbook.{name}")} - {None, own}
    high = sorted(part for part in parts if part and FLOOR.get(part, 9) > FLOOR[own])
    return [f"{name} (floor {FLOOR[own]}) imports {part} (floor {FLOOR.get(part, '?')})" for part in high]


@pytest.mark.parametrize(
    "source",
    [
        "from .results import rows",
        "from . import results",
        "import robustbook.results.rows",
        "from robustbook import errors, cli",
        "def lazy():\n    from robustbook.figures import style\n",
        "import importlib\nimportlib.import_module('robustbook.claims.moments')",
        "from importlib import import_module\nimport_module(f'robustbook.claims.{paper}')",
        "from importlib import import_module\nimport_module('.pages', __package__)",
    ],
)
def test_offender_caught(source: str) -> None:
    assert upward(source, "storage")
    assert not upward(source, "cli")


def test_offender_caught_in_a_package() -> None:
    assert upward("from ..results import rows", "datasets.loading")
    assert upward("from ..results import rows", "datasets.__init__")
    assert not upward("from .loading import load\nfrom ..errors import BookError", "datasets.__init__")
    assert not upward("from . import loading, __init__\nimport results", "datasets.shipped")
    assert upward("", "attic") == [
        "attic: no floor known; add it to FLOORS and to the map in CONTRIBUTING.md"
    ]


def test_floors() -> None:
    problems = [p for name, file in sources().items() for p in upward(file.read_text("utf8"), name)]
    assert not problems, "\n".join(problems)


def test_map_in_contributing() -> None:
    """Whoever reads the map finds every part that exists, on its floor."""
    drawn: dict[str, int] = {}
    floor = -1
    for line in (ROOT / "CONTRIBUTING.md").read_text("utf8").splitlines():
        if match := re.match(r"([0-4])?\s{2,}(\w+)\s{2,}\S", line):
            floor = int(match[1]) if match[1] else floor
            drawn[match[2]] = floor
    parts = {name.split(".")[0] for name in sources()} - {"__init__", "__main__"}
    assert {part: drawn.get(part) for part in parts} == {part: FLOOR[part] for part in parts}


def test_modules_stay_readable() -> None:
    lengths = {name: len(file.read_text("utf8").splitlines()) for name, file in sources().items()}
    assert not {name: length for name, length in lengths.items() if length > LINES}


# ----------------------------------------------------------------------------------- forbidden text

# Written in pieces, so that this file does not hold what it looks for.
FOLDERS = "|".join(["work", "tmp", "root", "home", "opt"])
HOSTS = "|".join(
    rf"{host}\.{top}" for host, top in [("npmjs", "org"), ("pypi", "org"), ("python" + "hosted", "org")]
)
MARKS = "|".join(["TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error"])
FORBIDDEN = {
    "machine path": re.compile(rf"(?<![\w.~*<>)}}\]-])/(?:{FOLDERS})(?![\w.-])"),
    "registry host": re.compile(rf"\b(?:{HOSTS})\b|\bdeb\.debian\b"),
    "unfinished": re.compile(rf"\b(?:{MARKS})\b"),
}


def forbidden(text: str) -> list[str]:
    return [f"{kind}: {match[0]}" for kind, pattern in FORBIDDEN.items() for match in pattern.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "tmp/file",
        "file:///" + "opt/mirror",
        "https://registry.npm" + "js.org/",
        "# TO" + "DO later",
        "raise NotImplemented" + "Error",
    ],
)
def test_forbidden_text_caught(text: str) -> None:
    assert forbidden(text)


@pytest.mark.parametrize("before", ["tests", "..", "<b>", "the life or"])
def test_harmless_text_passes(before: str) -> None:
    """A name that only ends like a folder of this machine."""
    assert not any(forbidden(f"{before}/{folder}/x") for folder in FOLDERS.split("|"))
    assert not forbidden("results/networks/x NotImplemented pypi")


def test_no_forbidden_text() -> None:
    problems = []
    for file in tracked():
        try:
            text = file.read_text("utf8")
        except UnicodeDecodeError:
            continue
        problems += [f"{file.relative_to(ROOT)}: {problem}" for problem in forbidden(text)]
    assert not problems, "\n".join(problems)


# -------------------------------------------------------------------------------------- habits of code


def unsafe_loads(source: str) -> list[int]:
    """Lines with a torch.load that would unpickle whatever the file says."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
            safe = [k.value for k in node.keywords if k.arg == "weights_only"]
            if not (safe and isinstance(safe[0], ast.Constant) and safe[0].value is True):
                found.append(node.lineno)
    return found


CLOCK = re.compile(r"elapsed|seconds|duration|perf_counter|monotonic|process_time|time\.time|wall")


def asserted_seconds(source: str) -> list[int]:
    """Lines that assert an upper bound on time: they fail on somebody's slower machine."""
    asserts = [node.test for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    compares = [node for test in asserts for node in ast.walk(test) if isinstance(node, ast.Compare)]
    found = []
    for node in compares:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            small, large = (right, left) if isinstance(op, ast.Gt | ast.GtE) else (left, right)
            ordered = isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            if ordered and isinstance(large, ast.Constant) and CLOCK.search(ast.unparse(small)):
                found.append(node.lineno)
    return found


def test_unsafe_load_caught() -> None:
    assert unsafe_loads("import torch\ntorch.load(f)\ntorch.load(f, weights_only=False)") == [2, 3]
    assert unsafe_loads("torch.load(f, weights_only=True)") == []


def test_asserted_seconds_caught() -> None:
    assert asserted_seconds("assert elapsed < 5") == [1]
    assert asserted_seconds("assert time.perf_counter() - start <= 0.5") == [1]
    assert asserted_seconds("assert 5 > run.seconds") == [1]
    assert asserted_seconds("assert 0 <= row['seconds'] <= 60") == [1]
    assert not asserted_seconds("assert row['seconds'] >= 0\nassert seconds > 0\nassert a < b")
    assert not asserted_seconds("assert seconds < limit\nif elapsed < 5: pass")


def test_no_unsafe_load() -> None:
    found = {file.name: unsafe_loads(file.read_text("utf8")) for file in python_files()}
    assert not {name: lines for name, lines in found.items() if lines}


def test_no_asserted_seconds() -> None:
    tests = [file for file in python_files() if "tests" in file.parts]
    found = {file.name: asserted_seconds(file.read_text("utf8")) for file in tests}
    assert not {name: lines for name, lines in found.items() if lines}
