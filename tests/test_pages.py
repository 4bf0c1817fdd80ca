"""The generated pages say what the catalogue and the store say, once each, and escape it."""

import json
import re
from pathlib import Path

import pytest
import robustbook.results
from robustbook import pages, published
from robustbook.errors import BookError
from robustbook.pages import markup

ORIGIN = {
    "artifact": "MOMENT-T4",
    "chapter": "moments",
    "profile": "laptop",
    "rows": 12,
    "seconds": 34.5,
    "date": "2026-01-02",
    "cpu": "some processor",
    "versions": {"python": "3.11", "torch": "2.13.0"},
}


@pytest.fixture
def build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build in which the moments chapter was executed."""
    monkeypatch.setenv("ROBUSTBOOK_BUILD", str(tmp_path))
    run = {
        "source": "notebooks/moments",
        "profile": "laptop",
        "seconds": 7.5,
        "date": "2026-01-02 03:04",
        "anchors": ["moment-t4", "moment-c01", "moment-f1", "moment-f2-table"],
    }
    (tmp_path / "execution.json").write_text(json.dumps({"notebooks/moments": run}))
    return tmp_path


def save_table(store: Path, profile: str, id_: str, **changes: object) -> None:
    folder = store / profile
    folder.mkdir(exist_ok=True)
    (folder / f"{id_}.csv").write_text("a\n1\n")
    (folder / f"{id_}.json").write_text(
        json.dumps({**ORIGIN, "artifact": id_, "profile": profile, **changes})
    )


def save_verdict(store: Path, profile: str, id_: str, verdict: str, evidence: str = "seen") -> None:
    folder = store / profile
    folder.mkdir(exist_ok=True)
    head = "claim_id,verdict,evidence,measured,tables,fingerprint\n"
    (folder / "claims.csv").write_text(f"{head}{id_},{verdict},{evidence},1,MOMENT-P1,abc\n")
    (folder / "claims.json").write_text(json.dumps({"chapters": {id_: "moments"}}))


def row(page: markup.Page, id_: str) -> str:
    """The mark-up of one row, by its HTML id."""
    found = re.findall(rf'<tr id="{id_}">(.*?)</tr>', page._repr_html_())
    assert len(found) == 1, id_
    return found[0]


def test_scorecard_has_every_claim_once(store, build_folder):
    page = pages.scorecard()
    for id_ in published.claims().claim_id:
        assert "not yet measured" in row(page, published.anchor(id_))


def test_scorecard_shows_the_larger_scale_and_links_to_the_cell(store, build_folder):
    save_verdict(store, "smoke", "MOMENT-C01", "not reproduced", "small")
    save_verdict(store, "laptop", "MOMENT-C01", "reproduced", "2 < 3 & all <b>well</b>")
    line = row(pages.scorecard("MOMENT"), "moment-c01")
    assert "rb-reproduced" in line and "laptop" in line and "small" not in line
    assert "2 &lt; 3 &amp; all &lt;b&gt;well&lt;/b&gt;" in line
    assert 'href="../notebooks/moments.html#moment-c01"' in line


def test_a_verdict_at_smoke_scale_does_not_count(store, build_folder):
    save_verdict(store, "smoke", "MOMENT-C01", "reproduced", "on twenty images")
    line = row(pages.scorecard("MOMENT"), "moment-c01")
    assert "rb-not-yet-measured" in line and "rb-reproduced" not in line
    assert "Tried at smoke scale only (reproduced): on twenty images" in line
    assert "<strong>140</strong>" in pages.counts()._repr_html_()


def test_counts_add_up(store, build_folder):
    save_verdict(store, "laptop", "MOMENT-C01", "direction only")
    page = pages.counts()._repr_html_()
    total = dict(re.findall(r'<strong>(\d+)</strong> <span class="rb-badge rb-([a-z-]+)"', page))
    assert total == {"0": "needs-paper-scale", "1": "direction-only", "139": "not-yet-measured"}
    moment = re.search(r"<tr>(<td[^>]*>Moment regulariser.*?)</tr>", page)
    assert moment and re.findall(r">(\d+)<", moment[1]) == ["0", "1", "0", "0", "0", "17", "18"]


def test_index_has_all_hundred(store, build_folder):
    page = pages.artifact_index()._repr_html_()
    assert len(re.findall("<tr id=", page)) == 100


def test_index_says_where_or_why_not(store, build_folder):
    save_table(store, "smoke", "MOMENT-T4", rows=3)
    save_table(store, "laptop", "MOMENT-T4")
    save_table(store, "smoke", "MOMENT-F2")
    page = pages.artifact_index("MOMENT")
    assert "laptop: 12 rows, 2026-01-02" in row(page, "moment-t4")
    assert 'href="../notebooks/moments.html#moment-t4"' in row(page, "moment-t4")
    assert 'href="../notebooks/moments.html#moment-f2-table"' in row(page, "moment-f2")
    assert "drawn" in row(page, "moment-f1") and "#moment-f1" in row(page, "moment-f1")
    assert "not measured yet" in row(page, "moment-t1") and "GPU" in row(page, "moment-t1")
    assert 'href="errata.html#u49"' in row(page, "moment-t1")
    assert "chapter planned" in row(pages.artifact_index("THESIS"), "thesis-f4-3")


def test_errata_and_choices_are_complete(store, build_folder):
    wrong, missing = pages.errata(), pages.choices()
    for id_ in published.errata().id:
        assert "Basis: " in row(wrong, published.anchor(id_))
    for id_ in published.choices().id:
        assert "Basis: " in row(missing, published.anchor(id_))
    assert 'href="index_of_artifacts.html#moment-f7"' in row(wrong, "c35")
    assert "MOMENT-E2" in row(wrong, "c38") and "#moment-e2" not in row(wrong, "c38")


def test_status_shows_build_tables_and_stale_reasons(store, build_folder, monkeypatch):
    save_table(store, "laptop", "MOMENT-T4")
    save_table(store, "laptop", "MOMENT-T1")
    reasons = {"MOMENT-T1": "3 of 12 rows were measured before a change of <lambda>"}
    monkeypatch.setattr(robustbook.results, "stale", lambda profile: reasons)
    page = pages.status()._repr_html_()
    assert "notebooks/moments" in page and "7.5" in page
    assert "before a change of &lt;lambda&gt;" in page
    assert re.search(r"MOMENT-T1</td>.*?stale", page) and re.search(r"MOMENT-T4</td>.*?current", page)
    assert page.count("some processor") == 1 and "torch 2.13.0" in page


def test_status_of_an_empty_store(store, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTBOOK_BUILD", str(tmp_path))
    page = pages.status()._repr_html_()
    assert "None yet." in page and "None." in page


def test_chapter_map_has_every_chapter_and_all_claims(store, build_folder):
    page = pages.chapter_map()._repr_html_()
    lines = re.findall(r"<tr>(<td.*?)</tr>", page)
    assert len(lines) == len(published.CHAPTERS)
    counted = [re.findall(r'rb-num">(\d+)<', line) for line in lines]
    assert sum(int(shown) for shown, _ in counted) == 100
    assert sum(int(claims) for _, claims in counted) == 140
    assert sum("written" in line for line in lines) == 1


def test_damaged_file_gets_one_line(store, build_folder):
    save_table(store, "laptop", "MOMENT-T4")
    (store / "laptop" / "MOMENT-T4.json").write_text("{")
    with pytest.raises(BookError, match=r"results/laptop/MOMENT-T4\.json .* git checkout"):
        pages.artifact_index()


def test_everything_is_escaped():
    page = markup.grid(
        ["<h>"],
        [
            (
                '"id"',
                [
                    "<b>",
                ],
            ),
            ("", [markup.link("a&b", "<i>")]),
        ],
    )
    assert "<b>" not in page and "<i>" not in page and "<h>" not in page
    assert "&lt;b&gt;" in page and 'href="a&amp;b"' in page and 'id="&quot;id&quot;"' in page


def test_mark_up_is_balanced(store, build_folder):
    for page in (pages.scorecard(), pages.artifact_index(), pages.errata(), pages.choices(), pages.counts()):
        text = page._repr_html_()
        for tag in ("tr", "td", "th", "span", "a", "table", "div", "li"):
            assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag
