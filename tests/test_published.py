"""The catalogue is complete and consistent: whatever a chapter looks up is there, once, and well formed."""

import re
import subprocess
import sys

import pandas as pd
import pytest
from robustbook import published
from robustbook.errors import BookError

WORKS = {"FW20", "FW21", "IDIO", "THESIS", "MOMENT"}


def ids(column: pd.Series) -> set[str]:
    """All ids of a column of `;`-separated lists."""
    return {i for cell in column for i in cell.split(";") if i}


def test_sizes():
    assert len(published.artifacts()) == 203
    assert len(published.numbers()) == 1840
    assert len(published.claims()) == 140
    assert published.artifacts().kind.isin(published.SHOWN).sum() == 100
    assert published.errata().id.to_list() == [f"C{i}" for i in range(1, 39)]
    expected = {f"L{i}" for i in range(1, 15)} | {f"U{i}" for i in range(1, 54)} | {"D1"}
    assert set(published.choices().id) == expected


@pytest.mark.parametrize(
    "table, keys",
    [
        ("papers", ["paper"]),
        ("artifacts", ["id"]),
        ("claims", ["claim_id"]),
        ("errata", ["id"]),
        ("choices", ["id"]),
        ("numbers", ["artifact_id", "row", "column", "metric"]),
    ],
)
def test_keys_are_unique(table, keys):
    frame = getattr(published, table)()
    repeated = frame[frame.duplicated(keys, keep=False)]
    assert repeated.empty, repeated[keys]


@pytest.mark.parametrize(
    "table, columns",
    [
        ("papers", ["paper", "work", "short", "authors", "title", "venue", "reference"]),
        ("artifacts", ["id", "label", "section", "title", "needs"]),
        ("claims", ["claim", "test", "artifact_ids"]),
        ("numbers", ["artifact_id", "column", "metric"]),
        ("errata", ["where", "problem", "reading", "basis", "artifacts"]),
        ("choices", ["title", "problem", "resolution", "basis"]),
    ],
)
def test_required_fields_are_filled(table, columns):
    frame = getattr(published, table)()
    for column in columns:
        blank = frame[frame[column].str.strip() == ""]
        assert blank.empty, (column, blank.iloc[:, 0].to_list())


def test_vocabulary():
    a, c = published.artifacts(), published.claims()
    assert set(published.papers().paper) == WORKS
    assert set(a.paper) == set(c.paper) == set(published.errata().paper) == WORKS
    assert set(a.kind) == set(published.KINDS)
    assert set(a.chapter) == set(published.CHAPTERS)
    assert set(c.scale) == set(published.SCALES)
    for table in (published.errata(), published.choices()):
        assert ids(table.basis) <= set(published.BASES)


def test_ids_carry_their_paper():
    a, c = published.artifacts(), published.claims()
    assert all(i.startswith(f"{p}-") for i, p in zip(a.id, a.paper))
    assert all(re.fullmatch(rf"{p}-C\d\d", i) for i, p in zip(c.claim_id, c.paper))


def test_references_between_tables():
    known = set(published.artifacts().id)
    assert set(published.numbers().artifact_id) <= known
    assert ids(published.claims().artifact_ids) <= known
    assert ids(published.errata().artifacts) <= known
    assert ids(published.choices().artifacts) <= known


def test_gaps_named_in_text_exist():
    points = set(published.errata().id) | set(published.choices().id)
    for table, column in ((published.choices(), "resolution"), (published.errata(), "reading")):
        named = {i for text in table[column] for i in re.findall(r"\b[CDLU]\d{1,2}\b(?! )", text)}
        assert named <= points


def test_numbers_are_numbers():
    n = published.numbers()
    assert n.value.dtype == n["std"].dtype == float
    without = n[n.value.isna()]
    assert without.note.str.startswith("value is text").all()
    assert (n["std"].dropna() >= 0).all()


def test_every_results_table_has_numbers():
    a = published.artifacts()
    tables = set(a.id[a.kind == "table"])
    # Table 3 of the moment paper lists the names of attacks.
    assert tables - set(published.numbers().artifact_id) == {"MOMENT-T3"}


def test_no_machine_paths():
    for name in ("papers", "artifacts", "numbers", "claims", "errata", "choices"):
        frame = getattr(published, name)()
        text = frame.to_csv()
        assert not re.search(r"(?<![\w:/.])/(?:home|root|tmp|usr|work)/", text), name


def test_lookups():
    assert published.artifact("MOMENT-T4").label == "Table 4"
    assert published.claim("MOMENT-C01").artifact_ids == "MOMENT-P1"
    assert set(published.numbers("MOMENT-T4").artifact_id) == {"MOMENT-T4"}
    assert len(published.claims("MOMENT")) == 18
    assert 77.45 in published.numbers("MOMENT-T4").value.to_list()


@pytest.mark.parametrize(
    "call, hint",
    [
        (lambda: published.artifact("MOMENT-T5"), "MOMENT-T4"),
        (lambda: published.claim("MOMENT-C19"), "MOMENT-C1"),
        (lambda: published.numbers("moment-t4"), "MOMENT-T4"),
        (lambda: published.claims("MOMENTS"), "MOMENT"),
    ],
)
def test_unknown_names_get_the_nearest(call, hint):
    with pytest.raises(BookError, match=hint):
        call()


def test_copies_are_independent():
    frame = published.artifacts()
    frame["title"] = "changed"
    row = published.claim("MOMENT-C01")
    row["claim"] = "changed"
    assert "changed" not in set(published.artifacts().title)
    assert published.claim("MOMENT-C01").claim != "changed"


def test_anchors_are_unique_and_plain():
    all_ids = [*published.artifacts().id, *published.claims().claim_id]
    anchors = [published.anchor(i) for i in all_ids]
    assert published.anchor("THESIS-F4.3") == "thesis-f4-3"
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", a) for a in anchors)


def test_open_points():
    assert published.open_points("MOMENT-F7") == ["C35", "L12", "U47"]
    assert published.open_points("MOMENT-T3") == ["C37"]


def test_reading_the_catalogue_does_not_import_torch():
    code = "import sys, robustbook.published as p; p.artifacts(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
