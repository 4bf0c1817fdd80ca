"""Sliders over ready-made frames: a picture that answers without a kernel, also offline."""

import base64
import io
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from ..errors import BookError
from .markup import Page, text

LARGEST = 16_000
"""Pixels that a WebP file may be high or wide, with some to spare."""


def slider(frames: np.ndarray, axes: Mapping[str, Sequence[str]], *, side: int = 224, name: str) -> Page:
    """One picture and a control for each of `axes`; moving one changes the frame.

    Parameters
    ----------
    frames
        Bytes (n1, n2, ..., H, W, 3): a frame for every combination of the axes' values.
    axes
        Name of each axis -> its values. The first is a list to choose from, the others are sliders.
    side
        Height and width on the page, in pixels.
    name
        What the picture is called for those who cannot see it, and its id on the page.
    """
    counts = tuple(len(values) for values in axes.values())
    if frames.dtype != np.uint8 or frames.shape[:-3] != counts or frames.shape[-1] != 3:
        raise BookError(f"frames of shape {frames.shape}; {name} needs bytes of shape {counts} + (H, W, 3)")
    columns = counts[-1]
    sheet = base64.b64encode(_sprite(frames, columns)).decode()
    rows = len(frames.reshape(-1, *frames.shape[-3:])) // columns
    code = "-".join(name.lower().split())
    controls = "".join(
        _control(code, place, label, values) for place, (label, values) in enumerate(axes.items())
    )
    style = (
        f"width:{side}px;height:{side}px;max-width:100%;image-rendering:auto;"
        f"background-image:url(data:image/webp;base64,{sheet});"
        f"background-size:{100 * columns}% {100 * rows}%;background-position:0 0"
    )
    return Page(
        f'<figure class="rb-slider" id="{code}" data-counts="{",".join(map(str, counts))}">'
        f'<div class="rb-frame" role="img" aria-label="{text(name)}" style="{style}"></div>'
        f'<div class="rb-controls">{controls}</div></figure>',
        f"<script>{SCRIPT.replace('CODE', code)}</script>",
    )


def _sprite(frames: np.ndarray, columns: int) -> bytes:
    """All frames in one picture: the last axis to the right, everything else downwards."""
    height, width = frames.shape[-3:-1]
    flat = frames.reshape(-1, columns, height, width, 3)
    if len(flat) * height > LARGEST or columns * width > LARGEST:
        raise BookError(f"{len(flat) * columns} frames of {height} x {width} are too many for one picture")
    sheet = flat.transpose(0, 2, 1, 3, 4).reshape(len(flat) * height, columns * width, 3)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, format="webp", quality=82, method=4)
    return file.getvalue()


def _control(code: str, place: int, label: str, values: Sequence[str]) -> str:
    """A list of names for the first axis, a slider for the others."""
    id = f"{code}-{place}"
    if place == 0:
        options = "".join(f'<option value="{i}">{text(value)}</option>' for i, value in enumerate(values))
        return f'<label for="{id}">{text(label)}</label><select id="{id}">{options}</select>'
    names = text("|".join(values))
    return (
        f'<label for="{id}">{text(label)}</label>'
        f'<span><input type="range" id="{id}" min="0" max="{len(values) - 1}" value="0" step="1" '
        f'data-names="{names}"> <output for="{id}">{text(values[0])}</output></span>'
    )


SCRIPT = """
(() => {
  const panel = document.getElementById("CODE");
  const counts = panel.dataset.counts.split(",").map(Number);
  const frame = panel.querySelector(".rb-frame");
  const inputs = counts.map((_, i) => document.getElementById("CODE-" + i));
  const share = (index, count) => count > 1 ? 100 * index / (count - 1) : 0;
  const show = () => {
    const values = inputs.map(input => Number(input.value));
    inputs.forEach((input, i) => {
      if (!input.dataset.names) return;
      const said = input.dataset.names.split("|")[values[i]];
      input.nextElementSibling.value = said;
      input.setAttribute("aria-valuetext", said);
    });
    const columns = counts[counts.length - 1];
    const rows = counts.slice(0, -1).reduce((a, b) => a * b, 1);
    const row = values.slice(0, -1).reduce((sum, value, i) => sum * counts[i] + value, 0);
    const column = values[values.length - 1];
    frame.style.backgroundPosition = share(column, columns) + "% " + share(row, rows) + "%";
  };
  inputs.forEach(input => input.addEventListener("input", show));
  show();
})();
"""
