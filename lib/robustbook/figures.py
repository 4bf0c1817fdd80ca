"""One style for all figures: readable at a glance, colour-blind safe, light and dark."""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg", force=False)

import numpy as np
from cycler import cycler
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from .errors import BookError
from .storage import replacing

# Okabe and Ito's palette, ordered so that neighbours differ in lightness too.
LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DARK = ("#56B4E9", "#E69F00", "#2FC79B", "#E39BC4", "#F0E442", "#7FA8FF", "#FFFFFF")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DPI = 144
LARGE = 400_000
"""Bytes of a PNG above which a page gets the picture as WebP: photographs take a tenth of the room."""


def _rc(dark: bool) -> dict[str, Any]:
    ink, paper = ("#E6E6E6", "#14181E") if dark else ("#222222", "#FFFFFF")
    colours = DARK if dark else LIGHT
    cycle = cycler(color=colours) + cycler(marker=MARKERS)
    plain = {name: ink for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")}
    return {
        **plain,
        "axes.edgecolor": ink,
        "figure.facecolor": paper,
        "axes.facecolor": paper,
        "savefig.facecolor": paper,
        "legend.frameon": False,
        "axes.prop_cycle": cycle,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": ink,
        "grid.alpha": 0.15,
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
        "font.size": 10,
        "axes.titlesize": 10,
        "figure.figsize": (6.4, 3.8),
        "figure.constrained_layout.use": True,
        "svg.hashsalt": "robustbook",
        "pdf.fonttype": 42,
    }


@contextlib.contextmanager
def style(*, dark: bool = False) -> Iterator[None]:
    """The book's look, for everything drawn inside the block."""
    settings: Any = _rc(dark)
    with rc_context(settings):
        yield


def band(axes: Any, x: Any, mean: Any, spread: Any, **kwargs: Any) -> None:
    """A curve with its spread over seeds as a shaded band."""
    (line,) = axes.plot(x, mean, **kwargs)
    axes.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, linewidth=0)


def mosaic(images: Any, columns: int) -> np.ndarray:
    """Images (N, C, H, W) in rows of `columns` as one picture (H', W', 3), thin white lines between them."""
    images = np.asarray(images)
    count, channels, height, width = images.shape
    framed = np.ones((count, channels, height + 1, width + 1), dtype=images.dtype)
    framed[:, :, :height, :width] = images
    grid = framed.reshape(count // columns, columns, channels, height + 1, width + 1)
    picture = grid.transpose(0, 3, 1, 4, 2).reshape(-1, columns * (width + 1), channels)
    return np.repeat(picture, 3, axis=2) if channels == 1 else picture


def sheet(axes: Any, images: Any, columns: int, names: Sequence[str], heads: Sequence[str]) -> None:
    """A mosaic with a name for each row and each column."""
    picture = mosaic(images, columns)
    axes.imshow(picture, interpolation="nearest")
    height, width = picture.shape[0] / len(names), picture.shape[1] / len(heads)
    axes.set_yticks([height * (i + 0.5) for i in range(len(names))], names)
    axes.set_xticks([width * (i + 0.5) for i in range(len(heads))], heads)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def ink() -> str:
    """The colour of text and neutral lines in the present style."""
    return str(matplotlib.rcParams["text.color"])


def render(draw: Callable[..., Figure], arguments: list[Any], *, dark: bool = False) -> Figure:
    """Call a drawing function in the book's style."""
    with style(dark=dark):
        figure = draw(*arguments)
        if not isinstance(figure, Figure):
            raise BookError(f"'{draw.__name__}' must return a matplotlib Figure, not {type(figure).__name__}")
        figure.canvas.draw()
    return figure


def png(draw: Callable[..., Figure], arguments: list[Any], *, dark: bool = False) -> bytes:
    """A figure as PNG bytes."""
    figure = render(draw, arguments, dark=dark)
    buffer = io.BytesIO()
    with style(dark=dark):
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    _close(figure)
    return buffer.getvalue()


def for_page(picture: bytes) -> tuple[str, bytes]:
    """The kind and the bytes of a picture for a web page: the PNG as it is, or WebP if that is large."""
    if len(picture) <= LARGE:
        return "png", picture
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(buffer, format="webp", quality=90, method=4)
    return "webp", buffer.getvalue()


def save(draw: Callable[..., Figure], arguments: list[Any], base: Path) -> list[Path]:
    """Write `<base>.png` and `<base>.pdf`, atomically."""
    figure = render(draw, arguments)
    written = []
    for kind, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "ModDate": None})):
        target = base.with_name(f"{base.name}.{kind}")
        with replacing(target) as part, style():
            figure.savefig(part, format=kind, dpi=2 * DPI, metadata=metadata)
        written.append(target)
    _close(figure)
    return written


def _close(figure: Figure) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)
