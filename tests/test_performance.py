"""The performance page shows the stored benchmarks, with the date and the machine, and nothing else."""

import json
import re
from pathlib import Path

import pytest
from robustbook.errors import BookError
from robustbook.pages.performance import benchmark

FACTS = {
    "date": "2026-01-02",
    "cpu": "some processor",
    "threads": 1,
    "versions": {"torch": "2.13.0"},
    "peers": {"other": "1.0"},
}
TABLE = """task,attack,images,milliseconds,ratio,ratio_low,ratio_high,wanted,gradients,measure,result
"a <b> task",ours,1000,2.8311,1.0,1.0,1.0,,19.62,median L2,1.5791
"a <b> task",theirs,1000,8123.4,2.934,2.81,3.2351,2.0,,median L2,1.58
other,ours,30,0.5,1.0,1.0,1.0,,3,median L2,2
"""


@pytest.fixture
def folder(store: Path) -> Path:
    (store / "benchmarks").mkdir()
    (store / "benchmarks" / "one.csv").write_text(TABLE)
    (store / "benchmarks" / "one.json").write_text(json.dumps(FACTS))
    return store / "benchmarks"


def rows(name: str) -> list[list[str]]:
    markup = benchmark(name)._repr_html_()
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in re.findall(r"<tr>(.*?)</tr>", markup)]


def test_numbers_of_the_file(folder: Path) -> None:
    head, ours, theirs, other = rows("one")
    assert head[2:] == ["result", "ratio", "wanted", "images", "ms per image", "gradients an image"]
    assert ours == ["a &lt;b&gt; task", "ours", "median L2 1.58", "1", "", "1000", "2.83", "19.6"]
    assert theirs[:5] == ["", "theirs", "median L2 1.58", "2.93 (2.81 to 3.24)", "at least 2"]
    assert theirs[5:] == ["1000", "8123", ""]
    assert other[0] == "other" and other[2] == "median L2 2"


def test_date_and_machine(folder: Path) -> None:
    markup = benchmark("one", per="step")._repr_html_()
    assert "Measured on 2026-01-02, some processor, 1 thread; other 1.0, torch 2.13.0." in markup
    assert "ms per step" in markup


def test_missing_or_damaged(folder: Path) -> None:
    assert "make bench" in benchmark("two")._repr_html_()
    (folder / "one.json").write_text("{")
    with pytest.raises(BookError, match="make bench"):
        benchmark("one")
    (folder / "one.json").unlink()
    with pytest.raises(BookError, match="make bench"):
        benchmark("one")
