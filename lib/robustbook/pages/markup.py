"""HTML, in the few forms the pages need. All text is escaped unless it is `Raw`."""

import html
from collections.abc import Iterable, Sequence


class Raw(str):
    """Mark-up that is not to be escaped."""


class Page:
    """A piece of a generated page."""

    def __init__(self, *parts: str) -> None:
        self.markup = "\n".join(parts)

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return "a generated part of this page; it shows in the built book"


def text(value: object) -> str:
    """Escaped, unless it is mark-up already."""
    return value if isinstance(value, Raw) else html.escape(str(value))


def badge(verdict: str) -> Raw:
    """A verdict as a coloured label."""
    return Raw(f'<span class="rb-badge rb-{text(verdict.replace(" ", "-"))}">{text(verdict)}</span>')


def link(target: str, label: object) -> Raw:
    """A link."""
    return Raw(f'<a href="{text(target)}">{text(label)}</a>')


def small(*parts: object) -> Raw:
    """Text of second rank."""
    return Raw(f'<span class="rb-origin">{"".join(map(text, parts))}</span>')


def lines(*parts: object) -> Raw:
    """Several lines in one cell; empty ones are left out."""
    return Raw("<br>".join(text(part) for part in parts if part))


def grid(
    head: Sequence[str],
    rows: Iterable[tuple[str, Sequence[object]]],
    *,
    wide: Sequence[str] = (),
    kind: str = "",
) -> str:
    """A table; each row comes with its HTML id (or none), and the columns named in `wide` hold prose."""
    rows = list(rows)
    first = rows[0][1] if rows else [""] * len(head)
    kinds = [_kind(cell, name in wide) for name, cell in zip(head, first, strict=True)]
    body = []
    for id_, cells in rows:
        mark = f' id="{text(id_)}"' if id_ else ""
        inner = "".join(f'<td class="{k}">{text(c)}</td>' for k, c in zip(kinds, cells, strict=True))
        body.append(f"<tr{mark}>{inner}</tr>")
    top = "".join(f'<th class="{k}">{text(h)}</th>' for k, h in zip(kinds, head, strict=True))
    return (
        f'<div class="rb-scroll"><table class="rb-table {kind}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _kind(cell: object, wide: bool) -> str:
    return "rb-num" if isinstance(cell, int | float) else "rb-text" if wide else "rb-id"
