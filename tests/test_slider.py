"""Sliders: every frame is where the page looks for it."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from robustbook.errors import BookError
from robustbook.figures import for_page
from robustbook.pages.slider import slider

AXES = {"kind": ["a", "b"], "size": ["s", "m", "l"], "strength": ["0", "1", "2", "3"]}


def frames() -> np.ndarray:
    """A flat colour for every combination, so that compression does not hide which one it is."""
    index = np.arange(24).reshape(2, 3, 4, 1, 1)
    shade = np.broadcast_to(10 * index, (2, 3, 4, 8, 8))
    return np.stack([shade, 255 - shade, np.zeros_like(shade)], axis=-1).astype(np.uint8)


def test_sheet_holds_the_frames_in_order() -> None:
    markup = slider(frames(), AXES, name="a test").markup
    (data,) = re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)", markup)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)
    assert sheet.shape == (6 * 8, 4 * 8, 3)
    assert "background-size:400% 600%" in markup
    for kind, size, strength in np.ndindex(2, 3, 4):
        row, index = 3 * kind + size, 12 * kind + 4 * size + strength
        middle = sheet[8 * row + 4, 8 * strength + 4]
        assert abs(middle[0] - 10 * index) < 8


def test_controls_have_labels_and_values() -> None:
    markup = slider(frames(), AXES, name="A test").markup
    assert markup.count("<label") == 3 and markup.count('type="range"') == 2
    assert '<option value="1">b</option>' in markup
    assert 'max="3"' in markup and 'data-names="0|1|2|3"' in markup
    assert 'id="a-test"' in markup and 'aria-label="A test"' in markup


def test_text_is_escaped() -> None:
    axes = {"<kind>": ["<a>", "b"], "size": ["s", "m", '"l"'], "strength": ["0", "1", "2", "3"]}
    markup = slider(frames(), axes, name="x").markup
    assert "<kind>" not in markup and "<a>" not in markup and '"l""' not in markup


@pytest.mark.parametrize(
    ("made", "message"),
    [(frames()[:1], "needs bytes of shape"), (frames().astype(float), "needs bytes of shape")],
)
def test_wrong_frames(made: np.ndarray, message: str) -> None:
    with pytest.raises(BookError, match=message):
        slider(made, AXES, name="x")


def test_too_many_frames() -> None:
    axes = {"kind": [str(i) for i in range(300)], "size": ["0"]}
    with pytest.raises(BookError, match="too many"):
        slider(np.zeros((300, 1, 64, 64, 3), np.uint8), axes, name="x")


@pytest.mark.parametrize(("side", "kind"), [(50, "png"), (600, "webp")])
def test_large_figures_go_to_the_page_as_webp(side: int, kind: str) -> None:
    """Noise does not compress: 600 x 600 pixels of it are a large PNG."""
    noise = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, format="png")
    found, content = for_page(file.getvalue())
    assert found == kind and len(content) <= len(file.getvalue())
    assert Image.open(io.BytesIO(content)).size == (side, side)
