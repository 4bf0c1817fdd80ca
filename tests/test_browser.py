"""The built book, opened from disk in headless Chromium with the network cut.

The book is built once, at smoke scale, into a temporary folder; `ROBUSTBOOK_HTML` names one that is
there already. With `ROBUSTBOOK_SHOTS` set to a folder, screenshots are left in it.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import nbformat
import pytest
from robustbook.build import build, toc_pages
from robustbook.storage import results_folder

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PAGES = toc_pages()
CHAPTERS = [name for name in PAGES if name.startswith("notebooks/")]
WITH_FORMULAS = ["book/intro", *CHAPTERS]
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built book."""
    if given := os.environ.get("ROBUSTBOOK_HTML"):
        return Path(given).resolve()
    folder = tmp_path_factory.mktemp("book")
    # A copy: chapters may add to the store, and a test leaves the repository as it was.
    results = folder / "results"
    if results_folder().is_dir():
        shutil.copytree(results_folder(), results)
    return build("smoke", output=folder / "build", results=results).parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, or a reason to skip."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here; get one: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install '.[dev]'"
    )
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """What opening one page showed."""

    problems: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


FACTS = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    formulas: all("span.math, div.math").length,
    unrendered: all("span.math, div.math").filter((e) => !e.querySelector("mjx-container")).length,
    badFormulas: all("mjx-merror").length,
    badFonts: [...document.fonts].filter((f) => f.status === "error").map((f) => f.family),
    badImages: all("img").filter((i) => !(i.complete && i.naturalWidth > 0)).map((i) => i.src.slice(0, 80)),
    images: all("img").length,
    ids: all("[id]").map((e) => e.id),
    links: all("a[href]").map((a) => a.href),
    open: all("div.cell details.hide[open]").length,
    collapsed: all("div.cell details.hide").length,
  };
}"""
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = ".rb-scroll, pre, table, mjx-container, .math";
  const guilty = [...document.querySelectorAll("main *")]
    .filter((e) => e.getBoundingClientRect().right > width + 1 && !e.closest(scrolls))
    .map((e) => e.outerHTML.slice(0, 120));
  return [document.documentElement.scrollWidth - width, guilty.slice(0, 3)];
}"""


def new_page(browser: Any, visit: Visit, **options: Any) -> Any:
    """A page of a fresh profile that has no network and writes down what goes wrong."""
    context = browser.new_context(viewport=WIDE, color_scheme="light", **options)
    context.set_offline(True)
    page = context.new_page()

    def request(asked: Any) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:", "about:")):
            visit.foreign.append(asked.url)

    page.on("request", request)
    page.on("requestfailed", lambda r: visit.problems.append(f"failed request {r.url[:120]}"))
    page.on("pageerror", lambda e: visit.problems.append(f"page error {e}"))
    page.on("console", lambda m: visit.problems.append(m.text) if m.type in ("error", "warning") else None)
    return page


def shoot(page: Any, name: str) -> None:
    if folder := os.environ.get("ROBUSTBOOK_SHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(400)  # side bars slide
        page.screenshot(path=Path(folder) / f"{name.replace('/', '-')}.png", full_page=True)


def dark(page: Any) -> None:
    """Press the theme's own button until it is dark."""
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.theme") == "dark":
            return
        page.locator(".article-header-buttons .theme-switch-button, .theme-switch-button").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.fixture(scope="session")
def visits(browser: Any, book: Path) -> dict[str, Visit]:
    """Every page, opened once wide and once narrow."""
    found = {}
    for name in [*PAGES, "search", "genindex"]:
        visit = found[name] = Visit()
        page = new_page(browser, visit)
        page.goto((book / f"{name}.html").as_uri(), wait_until="load")
        visit.facts = page.evaluate(FACTS)
        shoot(page, f"{name}-light")
        page.set_viewport_size(PHONE)
        visit.facts["overflow"] = page.evaluate(OVERFLOW)
        shoot(page, f"{name}-phone")
        page.set_viewport_size(WIDE)
        dark(page)
        shoot(page, f"{name}-dark")
        page.context.close()
    return found


@pytest.mark.parametrize("name", [*PAGES, "search", "genindex"])
def test_page_is_sound(name: str, visits: dict[str, Visit]) -> None:
    visit = visits[name]
    assert visit.foreign == []
    assert visit.problems == []
    assert visit.facts["badImages"] == []
    assert visit.facts["badFonts"] == []
    assert visit.facts["unrendered"] == visit.facts["badFormulas"] == 0
    overflow, guilty = visit.facts["overflow"]
    assert overflow <= 0, guilty
    assert visit.facts["open"] == 0


@pytest.mark.parametrize("name", WITH_FORMULAS)
def test_formulas_are_there(name: str, visits: dict[str, Visit]) -> None:
    assert visits[name].facts["formulas"] > 0


def test_links_and_anchors_resolve(visits: dict[str, Visit], book: Path) -> None:
    ids = {(book / f"{name}.html").as_uri(): set(visit.facts["ids"]) for name, visit in visits.items()}
    broken = []
    for name, visit in visits.items():
        for target in set(visit.facts["links"]):
            address, anchor = urldefrag(target)
            if not address.startswith("file:"):
                continue
            address = address.split("?")[0]
            if not Path(unquote(address.removeprefix("file://"))).is_file():
                broken.append(f"{name}: no file {target}")
            elif anchor and address in ids and unquote(anchor) not in ids[address]:
                broken.append(f"{name}: no anchor {target}")
    assert not broken, "\n".join(broken)


def test_ids_are_unique(visits: dict[str, Visit]) -> None:
    for name, visit in visits.items():
        ids = [i for i in visit.facts["ids"] if not i.startswith(("MJX", "pst-", "__"))]
        assert len(ids) == len(set(ids)), (name, {i for i in ids if ids.count(i) > 1})


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_downloads_as_notebook(name: str, visits: dict[str, Visit], book: Path) -> None:
    links = [link for link in visits[name].facts["links"] if link.endswith(f"{Path(name).name}.ipynb")]
    assert links
    notebook = nbformat.read(unquote(links[0].removeprefix("file://")), as_version=4)
    nbformat.validate(notebook)
    assert any(cell.get("outputs") for cell in notebook.cells)
    assert not re.search(r"papermill|\"/(?!\")\w+/", json.dumps(notebook.metadata))


@pytest.mark.parametrize("name", CHAPTERS)
def test_helper_cells_are_collapsed(name: str, visits: dict[str, Visit]) -> None:
    assert visits[name].facts["collapsed"] > 0


@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_captions_show(name: str, scheme: str, browser: Any, book: Path) -> None:
    """Themes hide what stands beside a picture of the other colour scheme."""
    context = browser.new_context(viewport=WIDE, color_scheme=scheme)
    page = context.new_page()
    page.goto((book / f"{name}.html").as_uri())
    if scheme == "dark":
        dark(page)
    captions = page.locator("figcaption")
    assert captions.count() > 3
    hidden = [c.inner_text()[:60] for c in captions.all() if not c.is_visible()]
    assert not hidden
    context.close()


def test_dark_mode_switches_figures(browser: Any, book: Path) -> None:
    page = new_page(browser, Visit())
    page.goto((book / f"{CHAPTERS[0]}.html").as_uri())
    shown = "(k) => [...document.querySelectorAll(k)].map((e) => getComputedStyle(e).display !== 'none')"
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    light = page.evaluate(shown, "img.only-light")
    assert light and all(light) and not any(page.evaluate(shown, "img.only-dark"))
    dark(page)
    night = page.evaluate(shown, "img.only-dark")
    assert night and all(night) and not any(page.evaluate(shown, "img.only-light"))
    page.context.close()


def test_sliders_change_the_picture(browser: Any, book: Path) -> None:
    """Every slider and every list, without a kernel: another value, another part of the frames."""
    page = new_page(browser, Visit())
    page.goto((book / "notebooks" / "gallery.html").as_uri())
    for panel in page.locator(".rb-slider").all():
        seen = [panel.locator(".rb-frame").screenshot()]
        for control in panel.locator("select").all():
            control.select_option(index=1)
        for control in panel.locator("input[type=range]").all():
            control.focus()
            for _ in range(2):
                page.keyboard.press("ArrowRight")
                seen.append(panel.locator(".rb-frame").screenshot())
            assert control.get_attribute("aria-valuetext") != "0"
        assert len(set(seen)) == len(seen)
    assert page.locator(".rb-slider").count() == 2


def test_search_finds_a_word(browser: Any, book: Path) -> None:
    visit = Visit()
    page = new_page(browser, visit)
    page.goto((book / "book/intro.html").as_uri())
    page.locator(".search-button-field, .search-button").first.click()
    box = page.locator("dialog input[type=search], .search-button__search-container input[type=search]").first
    box.fill("regulariser")
    box.press("Enter")
    page.wait_for_url("**/search.html?q=regulariser*")
    page.wait_for_selector("#search-results li a")
    titles = page.locator("#search-results li a").all_inner_texts()
    assert any("moment" in title.lower() for title in titles), titles
    assert not visit.problems and not visit.foreign
    shoot(page, "search-result")
    page.context.close()


def test_menu_opens_on_a_phone(browser: Any, book: Path) -> None:
    page = new_page(browser, Visit())
    page.set_viewport_size(PHONE)
    page.goto((book / "book/intro.html").as_uri())
    entry = (
        page.locator(".bd-sidebar-primary a, #pst-primary-sidebar-modal a").filter(has_text="Scorecard").first
    )
    assert not entry.is_visible()
    page.locator(".primary-toggle:visible").first.click()
    page.wait_for_timeout(400)
    assert page.locator("a:visible").filter(has_text="Scorecard").count() > 0
    shoot(page, "menu-phone")
    page.context.close()


class Loaded(HTMLParser):
    """Addresses of everything a page loads by itself, and of its scripts' text."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        loads = {
            "script": "src",
            "img": "src",
            "iframe": "src",
            "source": "src",
            "video": "src",
            "link": "href",
        }
        if tag in loads and given.get(loads[tag]):
            self.addresses.append(str(given[loads[tag]]))
        self.addresses += re.findall(r"url\(([^)]+)\)", given.get("style") or "")


def test_pages_load_nothing_from_elsewhere(book: Path) -> None:
    """Read from the files, so that it also holds where there is no browser."""
    for file in (f for f in book.rglob("*.html") if "_static" not in f.parts):
        page = Loaded()
        page.feed(file.read_text(encoding="utf8"))
        foreign = [a for a in page.addresses if re.match(r"(https?:)?//", a.strip("'\""))]
        assert not foreign, (file.relative_to(book), foreign)
        for address in page.addresses:
            if not address.startswith(("data:", "#")):
                assert (file.parent / unquote(address.split("?")[0])).exists(), (file.name, address)
    for file in book.rglob("*.css"):
        loaded = re.findall(
            r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")]+)", file.read_text(encoding="utf8")
        )
        assert not loaded, (file.relative_to(book), loaded)


def test_formulas_need_no_network(book: Path) -> None:
    fonts = book / "_static" / "mathjax" / "output" / "chtml" / "fonts" / "woff-v2"
    assert (book / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert len(list(fonts.glob("*.woff"))) > 20
    assert "../_static/mathjax/tex-chtml.js" in (book / "book" / "intro.html").read_text(encoding="utf8")
