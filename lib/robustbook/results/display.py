"""What a notebook shows: tables and figures with their origin, settings and verdicts, as HTML."""

import base64
import html
from typing import Any

import pandas as pd

from ..claims import Verdict
from ..published import anchor, artifact, artifacts, claim
from .views import Table


class Html:
    """A piece of page; in a terminal it prints as plain text."""

    def __init__(self, markup: str, text: str = "", picture: bytes | None = None) -> None:
        self.markup, self.text, self.picture = markup, text, picture

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {"text/html": self.markup, "text/plain": self.text}
        if self.picture:
            bundle["image/png"] = _base64(self.picture)
        return bundle

    def __repr__(self) -> str:
        return self.text


def plus_minus(values: pd.Series, digits: int = 1, between: str = " ± ") -> str:
    """A cell of a page: the mean over seeds and, if there are several, their standard deviation."""
    width = f"{between}{values.std():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{width}"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _cell(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return "–" if pd.isna(value) else f"{value + 0.0:.4g}"  # no minus before a rounded zero
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_cell, value))
    return "–" if value is None or value is pd.NA else str(value)


def _words(name: Any) -> str:
    return str(name).replace("_", " ")


def _grid(frame: pd.DataFrame) -> str:
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])}
    head = "".join(
        f'<th class="rb-{"num" if name in numeric else "text"}">{html.escape(_words(name))}</th>'
        for name in frame.columns
    )
    rows = []
    for line in frame.itertuples(index=False, name=None):
        kinds = ["num" if name in numeric else "text" for name in frame.columns]
        cells = [f'<td class="rb-{k}">{html.escape(_cell(v))}</td>' for k, v in zip(kinds, line, strict=True)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="rb-scroll"><table class="rb-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def settings_table(settings: dict[str, tuple[Any, ...]], profiles: tuple[str, ...], active: str) -> Html:
    """All settings of the three profiles side by side."""
    names = [f"{p} (this page)" if p == active else p for p in profiles]
    frame = pd.DataFrame(
        [[name.replace("_", " "), *map(_cell, values)] for name, values in settings.items()],
        columns=["setting", *names],
    )
    return Html(_grid(frame), frame.to_string(index=False))


def note(table: Table, wanted: str) -> str:
    """The visible note for a table that is not what the page asked for."""
    notes = []
    if table.profile != wanted:
        notes.append(
            f"Computed at <b>{table.profile}</b> scale: its {wanted} rows are not complete yet. "
            f"<code>robustbook run {table.id} --profile {wanted}</code> computes them."
        )
    if table.stale:
        notes.append(f"Stale: {html.escape(table.stale)}. See the status page.")
    if table.provenance.get("stand_in"):
        notes.append(f"Stand-in data: {html.escape(table.provenance['stand_in'])}.")
    return "".join(f'<div class="rb-note">{text}</div>' for text in notes)


def _title(id: str) -> str:
    if id not in set(artifacts()["id"]):
        return id
    entry = artifact(id)
    return f"{id} · {entry['label']}: {entry['title']}"


def _table_anchor(id: str) -> str:
    """A table that stands beside the figure of the same id leaves the id to the figure."""
    known = artifacts().set_index("id")["kind"]
    drawn = known.get(id, "figure") in ("figure", "diagram")
    return f"{anchor(id)}-table" if drawn else anchor(id)


def _origin(table: Table) -> str:
    origin = table.provenance
    seeds = f", seeds {', '.join(map(str, origin['seeds']))}" if origin["seeds"] else ""
    return (
        f"{origin['profile']}, {origin['rows']} rows{seeds}, measured {origin['date']} in "
        f"{origin['seconds']:.0f} s · <code>robustbook run {table.id} --profile {origin['profile']}</code>"
    )


def table(result: Table, frame: pd.DataFrame, *, wanted: str, showing: int = 1) -> Html:
    """A table with caption, origin and, where due, a note; links lead to its first `showing` on a page."""
    place = _table_anchor(result.id) + (f"-{showing}" if showing > 1 else "")
    origin = f'<span class="rb-origin">{_origin(result)}</span>'
    caption = f"<figcaption>{html.escape(_title(result.id))}<br>{origin}"
    markup = (
        f'<figure class="rb-figure" id="{place}">{note(result, wanted)}{_grid(frame)}'
        f"{caption}</figcaption></figure>"
    )
    return Html(markup, frame.to_string(index=False))


def figure(plan: Any, tables: list[Table], *, wanted: str) -> Html:
    """A figure, light and dark, with caption and origin."""
    from .. import figures  # matplotlib is slow to import, and most commands draw nothing

    arguments = [t.frame if not t.arrays else (t.frame, t.arrays) for t in tables]
    shots = {mode: figures.png(plan.draw, arguments, dark=mode == "dark") for mode in ("light", "dark")}
    alt = html.escape(plan.caption, quote=True)
    sent = {mode: figures.for_page(shot) for mode, shot in shots.items()}
    images = "".join(
        f'<img class="only-{mode} rb-shot" alt="{alt}" src="data:image/{kind};base64,{_base64(shot)}">'
        for mode, (kind, shot) in sent.items()
    )
    caption = html.escape(f"{plan.id} · {plan.caption}")
    notes = "".join(dict.fromkeys(note(t, wanted) for t in tables))
    origin = "<br>".join(_origin(t) for t in tables)
    markup = (
        f'<figure class="rb-figure" id="{anchor(plan.id)}">{notes}{_DARK_CSS}<div>{images}</div>'
        f'<figcaption>{caption}<br><span class="rb-origin">{origin}</span></figcaption></figure>'
    )
    kind, light = sent["light"]
    return Html(markup, f"<figure {plan.id}>", light if kind == "png" else None)


# Outside the book, for example in JupyterLab, only the light version shows. The pictures have a box of their
# own, because the book's theme hides a caption that stands beside the version not shown.
_DARK_CSS = "<style>html:not([data-theme=dark]) .only-dark.rb-shot{display:none}</style>"


def badge(verdict: str) -> str:
    """A verdict as a coloured label."""
    return f'<span class="rb-badge rb-{verdict.replace(" ", "-")}">{html.escape(verdict)}</span>'


def verdicts(judged: list[Verdict]) -> Html:
    """Claims, verdicts and evidence; each row is the target of the scorecard's links."""
    rows = []
    for v in judged:
        text = claim(v.claim)
        rows.append(
            f'<tr id="{anchor(v.claim)}"><td>{v.claim}</td><td class="rb-text">{html.escape(text["claim"])}'
            f'<br><span class="rb-origin">Rule: {html.escape(text["test"])}</span></td>'
            f'<td>{badge(v.verdict)}</td><td class="rb-text">{html.escape(v.evidence)} ({v.profile})</td>'
            "</tr>"
        )
    head = (
        "<tr><th>claim</th><th>what the paper says, and our rule</th><th>verdict</th><th>evidence</th></tr>"
    )
    markup = (
        f'<div class="rb-scroll"><table class="rb-table rb-verdicts"><thead>{head}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    return Html(markup, "\n".join(f"{v.claim}: {v.verdict}" for v in judged))
