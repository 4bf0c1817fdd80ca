"""A change that can alter a row makes it stale; one that cannot does not."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import robustbook
from robustbook.errors import BookError
from robustbook.fingerprint import definition_fingerprint, definitions

PACKAGE = Path(robustbook.__file__).parent

PROBE = """
import sys
from robustbook.fingerprint import definition_fingerprint
from robustbook.training import fit, trained
from robustbook import networks

def row(network, seed):
    model = networks.make(network, seed=seed)
    fit(model, None, epochs=1, batch_size=1, lr=0.1, seed=seed)
    return {"value": 0.0}

print(definition_fingerprint(row, strings=[sys.argv[1]]))
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the library to edit, and a function that fingerprints a training row with it."""
    shutil.copytree(PACKAGE, tmp_path / "robustbook", ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE)

    def fingerprint(network="lenet5"):
        done = subprocess.run(
            [sys.executable, str(probe), network], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.strip()

    return tmp_path / "robustbook", fingerprint


def edit(path, old, new):
    text = path.read_text()
    assert old in text, f"{old!r} is not in {path}"
    path.write_text(text.replace(old, new, 1))


def test_an_unused_network_changes_nothing_and_the_training_loop_does(copied):
    library, fingerprint = copied
    before = fingerprint()
    assert fingerprint("moment-lenet") != before, "the network in the settings counts"
    (library / "networks" / "brand_new.py").write_text(
        'from .catalogue import NETWORKS\n\n\n@NETWORKS.add("brand-new")\ndef brand_new():\n    return None\n'
    )
    loop = library / "training" / "loop.py"
    loop.write_text("# a comment\n" + loop.read_text())
    assert fingerprint() == before
    text = loop.read_text()
    assert ".backward()" in text
    loop.write_text(text.replace(".backward()", ".backward(retain_graph=False)", 1))
    assert fingerprint() != before


def source_module(tmp_path, name, text):
    """Import a small module from text, as a notebook's cells would define it."""
    import importlib.util

    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BASE = '''
SCALE = 2.0
UNUSED = 1

def helper(x: float) -> float:
    """A docstring."""
    if x < 0:
        raise ValueError("negative")
    return SCALE * x

def row(x):
    # a comment
    return {"y": helper(x)}
'''

SAME = {
    "docstring": ("A docstring.", "Another text."),
    "comment": ("# a comment", "# another"),
    "annotation": ("x: float", "x: int"),
    "error text": ('"negative"', '"must not be negative"'),
    "constant nobody reads": ("UNUSED = 1", "UNUSED = 2"),
    "layout": ("return SCALE * x", "return (SCALE\n            * x)"),
}
OTHER = {
    "constant": ("SCALE = 2.0", "SCALE = 3.0"),
    "helper": ("SCALE * x", "SCALE + x"),
    "row": ("helper(x)", "helper(x + 1)"),
    "condition": ("x < 0", "x <= 0"),
}


@pytest.mark.parametrize("change", SAME)
def test_harmless_changes(tmp_path, change):
    before = definition_fingerprint(source_module(tmp_path, "first", BASE).row)
    after = definition_fingerprint(source_module(tmp_path, "second", BASE.replace(*SAME[change])).row)
    assert before == after


@pytest.mark.parametrize("change", OTHER)
def test_changes_that_count(tmp_path, change):
    before = definition_fingerprint(source_module(tmp_path, "first", BASE).row)
    after = definition_fingerprint(source_module(tmp_path, "second", BASE.replace(*OTHER[change])).row)
    assert before != after


def test_registered_names_lead_to_their_definition():
    def row(network):
        return {"n": network}

    assert "lenet5" not in " ".join(definitions(row))
    assert any("lenet5" in name.lower() for name in definitions(row, strings=["lenet5"]))


def test_a_global_without_fingerprint_is_refused(tmp_path):
    module = source_module(
        tmp_path, "bad", "table = object()\n\ndef row(x):\n    return {'y': str(table) + x}\n"
    )
    with pytest.raises(BookError, match="'table'"):
        definition_fingerprint(module.row)


def test_a_local_variable_may_share_the_name_of_a_global(tmp_path):
    text = "x = object()\n\ndef row(n):\n    x = n + 1\n    return {'y': x}\n"
    assert definition_fingerprint(source_module(tmp_path, "fine", text).row)


def test_a_function_called_through_its_package_counts_though_a_submodule_has_its_name(tmp_path):
    """`measures.accuracy` is the function: the import in the package hides the module of that name."""
    text = "from robustbook import attacks, measures\n\ndef row(x):\n    return {'y': %s}\n"
    for call, name in (("measures.accuracy(x, x)", "correct"), ("attacks.pgd(x, x, x)", "climb")):
        module = source_module(tmp_path, "through_" + name, text % call)
        assert {call.partition("(")[0].partition(".")[2], name} <= set(definitions(module.row))
