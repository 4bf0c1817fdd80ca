"""MNIST-C: closed forms, and a test for every place where the published set is not what its names say."""

import colorsys
import itertools
import math

import numpy as np
import pytest
import torch
from robustbook.corruptions import mnist_c
from robustbook.corruptions.canny import canny
from robustbook.corruptions.draws import Draws
from robustbook.corruptions.fields import plasma
from robustbook.corruptions.mnist_c import MNIST_C, corrupt_mnist, default_severity
from robustbook.corruptions.mnist_lines import corners, dotted_lines, line, zigzag, zigzags
from robustbook.datasets import load
from robustbook.errors import BookError
from scipy import ndimage
from torch import Tensor

NAMES = list(MNIST_C)
GRADED = [name for name in NAMES if default_severity(name)]
CHANCE = [name for name in NAMES if name not in ("identity", "scale", "brightness", "stripe", "canny_edges")]
PLACES = torch.arange(28, dtype=torch.float64) - 13.5


@pytest.fixture(scope="module")
def digits() -> Tensor:
    return load("mnist-small", "test", limit=60).x


def plain(value: float, count: int = 1) -> Tensor:
    return torch.full((count, 1, 28, 28), value)


# -------------------------------------------------------------------------------------- all of them


def test_names_and_severities_of_the_published_set() -> None:
    published = (
        "identity shot_noise impulse_noise glass_blur motion_blur shear scale rotate brightness "
        "translate stripe fog spatter dotted_line zigzag canny_edges"
    )
    assert published.split() == NAMES
    assert {name: default_severity(name) for name in GRADED} == {
        **{"shot_noise": 5, "impulse_noise": 4, "glass_blur": 1, "motion_blur": 1, "shear": 2, "scale": 3},
        **{"rotate": 2, "brightness": 5, "translate": 3, "fog": 5, "spatter": 4},
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_image_depends_on_its_own_seed_only(
    name: str, digits: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, seeds = digits[:20], list(range(100, 120))
    before = x.clone()
    whole = corrupt_mnist(x, name, seeds=seeds)
    assert whole.shape == x.shape and whole.dtype == x.dtype and torch.equal(x, before)
    assert whole.min() >= 0 and whole.max() <= 1
    monkeypatch.setattr(mnist_c, "PART", 3)
    assert torch.equal(corrupt_mnist(x, name, seeds=seeds), whole)
    chosen = [17, 4, 9]
    assert torch.equal(corrupt_mnist(x[chosen], name, seeds=[seeds[k] for k in chosen]), whole[chosen])
    assert torch.equal(corrupt_mnist(x.double(), name, seeds=seeds).float(), whole)
    assert (name != "identity") == (not torch.equal(whole, x))


@pytest.mark.parametrize("name", NAMES)
def test_chance(name: str, digits: Tensor) -> None:
    """Other seeds, other pixels, where there is chance at all; equal seeds, equal ones."""
    x = digits[:8]
    first, again = corrupt_mnist(x, name), corrupt_mnist(x, name, generator=torch.Generator().manual_seed(0))
    other = corrupt_mnist(x, name, generator=torch.Generator().manual_seed(1))
    assert torch.equal(first, again) and torch.equal(first, other) == (name not in CHANCE)


@pytest.mark.parametrize("name", GRADED)
def test_severity_raises_the_distance(name: str, digits: Tensor) -> None:
    """As published, but for three steps: two plateaus, and spatter, whose drops are smaller from 4 on."""
    distances = [
        (corrupt_mnist(digits, name, severity) - digits).flatten(1).norm(dim=1).mean().item()
        for severity in range(1, 6)
    ]
    rises = [b / a - 1 for a, b in itertools.pairwise(distances)]
    plateau = {"glass_blur": 0, "fog": 2}.get(name)
    if plateau is not None:
        assert abs(rises.pop(plateau)) < 0.03
    if name == "spatter":
        assert rises.pop(2) < -0.1
    assert min(rises) > 0, distances
    assert torch.equal(corrupt_mnist(digits, name), corrupt_mnist(digits, name, default_severity(name)))


# ------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize(("severity", "rate"), [(1, 60), (3, 12), (5, 3)])
def test_shot_noise_is_poisson(severity: int, rate: int) -> None:
    noisy = corrupt_mnist(plain(0.1, 60), "shot_noise", severity)
    counts = noisy * rate
    assert torch.allclose(counts, counts.round(), atol=1e-4)
    share = 60 * 784
    none = math.exp(-0.1 * rate)  # probability of no count, which clipping does not change
    assert abs((noisy == 0).float().mean() - none) < 4 * math.sqrt(none * (1 - none) / share)
    if severity == 1:  # far from 1, so that nothing is clipped
        assert abs(noisy.mean() - 0.1) < 4 * math.sqrt(0.1 / 60 / share)
        assert noisy.var() == pytest.approx(0.1 / 60, rel=0.05)
    assert not corrupt_mnist(plain(0.0), "shot_noise").any()


@pytest.mark.parametrize(("severity", "amount"), [(1, 0.03), (4, 0.17), (5, 0.27)])
def test_impulse_noise_hits_half_black_half_white(severity: int, amount: float) -> None:
    noisy = corrupt_mnist(plain(0.4, 60), "impulse_noise", severity)
    error = 4 * math.sqrt(amount / 2 / (60 * 784))
    for value in (0, 1):
        assert abs((noisy == value).float().mean() - amount / 2) < error
    assert noisy.unique().tolist() == pytest.approx([0, 0.4, 1])


# -------------------------------------------------------------------------------------------- blur


def test_glass_blur_runs_up_and_down_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published code takes the columns of a 2-D digit for colours, and blurs within each."""
    monkeypatch.setattr(mnist_c, "glass_shuffle", lambda x, *_, **__: x)
    upright = (torch.arange(28) % 5 / 5).expand(1, 1, 28, 28)  # every column of one grey
    flat = mnist_c.cut_off(upright)
    assert torch.allclose(corrupt_mnist(upright, "glass_blur"), flat, atol=1e-6)
    lying = upright.transpose(2, 3)
    expected = ndimage.gaussian_filter1d(lying[0, 0].double().numpy(), 0.7, axis=0, mode="nearest")
    expected = np.floor(expected * 255 + 1e-4) / 255  # grey levels between the two blurs
    expected = ndimage.gaussian_filter1d(expected, 0.7, axis=0, mode="nearest")
    assert np.allclose(corrupt_mnist(lying, "glass_blur")[0, 0], expected, atol=1e-6)


def test_glass_blur_swaps_and_loses_no_pixel(digits: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """On grey arrays the published swap is one (on colour images it copies)."""
    monkeypatch.setattr(mnist_c, "gaussian_blur", lambda x, sigma: x)
    ramp = (torch.arange(784).reshape(1, 1, 28, 28) % 256 / 255).expand(30, -1, -1, -1)
    traded = corrupt_mnist(ramp, "glass_blur", 2)  # one pass
    assert torch.allclose(traded.flatten(1).sort(1)[0], ramp.flatten(1).sort(1)[0])
    # With probability 1/2 a pixel trades at all, in 1 of 16 cases with itself, and others trade with it.
    assert 0.15 < (traded == ramp)[:, :, 4:24, 4:24].float().mean() < 0.5
    assert torch.equal(traded[:, :, 0], ramp[:, :, 0])  # the first row is out of reach


def test_motion_blur_smears_within_45_degrees() -> None:
    dot = plain(0.0, 40)
    dot[:, :, 14, 14] = 1
    smeared = corrupt_mnist(dot, "motion_blur")[:, 0].double()
    assert smeared.sum((1, 2)) == pytest.approx(1, abs=1e-5)
    down = (smeared.sum(2) * (torch.arange(28) - 14)).sum(1)
    along = (smeared.sum(1) * (torch.arange(28) - 14)).sum(1)
    assert (down.abs() <= along.abs() + 1).all() and along.abs().min() > 1
    assert down.max() > 0.5 and down.min() < -0.5
    assert torch.allclose(corrupt_mnist(plain(0.3), "motion_blur"), plain(0.3), atol=1e-6)


# ------------------------------------------------------------------------------------------ shapes


def ramps() -> tuple[Tensor, Tensor]:
    """Grey rising to the right, and grey rising downwards: interpolation in them is exact."""
    along = (0.5 + PLACES / 40).float().expand(1, 1, 28, 28)
    return along, along.transpose(2, 3)


def source_points(name: str, severity: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """From which column and row, seen from the centre, each pixel was taken; and where that is inside."""
    along, down = (
        (corrupt_mnist(x, name, severity, seeds=[seed])[0, 0].double() - 0.5) * 40 for x in ramps()
    )
    inside = corrupt_mnist(plain(1.0), name, severity, seeds=[seed])[0, 0] > 1 - 1e-6
    return along, down, inside


def both_signs(name: str, severity: int, angle: float, matrix: list[list[float]]) -> None:
    """Of the points, half come from `matrix`, half from the one with the angle's sign changed."""
    (a, b), (c, d) = matrix
    signs = set()
    for seed in range(12):
        along, down, inside = source_points(name, severity, seed)
        for sign in (1, -1):
            expected = (a * PLACES + sign * b * PLACES[:, None], sign * c * PLACES + d * PLACES[:, None])
            if all(torch.allclose(f[inside], e[inside], atol=1e-4) for f, e in zip((along, down), expected)):
                signs.add(sign)
    assert signs == {1, -1} and inside.sum() > 300


def test_shear_has_the_matrix_of_old_scikit_image() -> None:
    """Second column (-sin a, cos a); since 0.21 it is (-tan a, 1), which is not the published set."""
    both_signs("shear", 2, 0.4, [[1, -math.sin(0.4)], [0, math.cos(0.4)]])


@pytest.mark.parametrize(("severity", "angle"), [(1, 0.2), (2, 0.4)])
def test_rotate(severity: int, angle: float) -> None:
    cos, sin = math.cos(angle), math.sin(angle)
    both_signs("rotate", severity, angle, [[cos, -sin], [sin, cos]])


@pytest.mark.parametrize(("severity", "part"), [(1, 0.9), (3, 0.7), (5, 0.5)])
def test_scale_shrinks_about_the_centre(severity: int, part: float) -> None:
    along, down, inside = source_points("scale", severity, 0)
    assert torch.allclose(along[inside], (PLACES / part).expand(28, 28)[inside], atol=1e-4)
    assert torch.allclose(down[inside], (PLACES / part)[:, None].expand(28, 28)[inside], atol=1e-4)
    assert inside.sum() == (PLACES.abs() <= 13.5 * part).sum() ** 2
    disc = (PLACES**2 + PLACES[:, None] ** 2 < 81).float()[None, None]
    assert corrupt_mnist(disc, "scale", severity).sum() == pytest.approx(
        part**2 * disc.sum().item(), rel=0.02
    )


def test_translate_by_three_pixels_each_way() -> None:
    dot = plain(0.0, 40)
    dot[:, :, 10, 12] = 0.75
    moved = corrupt_mnist(dot, "translate")
    places = moved[:, 0].nonzero()[:, 1:]
    assert len(places) == 40 and (moved.amax((1, 2, 3)) == 0.75).all()
    assert set(map(tuple, places.tolist())) == {(7, 9), (7, 15), (13, 9), (13, 15)}
    white = corrupt_mnist(plain(1.0), "translate", 5)[0, 0]
    assert white.sum() == 23 * 23  # what comes in from beyond the border is black


# --------------------------------------------------------------------------------- light and cover


@pytest.mark.parametrize(("severity", "more"), [(1, 0.1), (5, 0.5)])
def test_brightness_is_the_value_of_hsv(severity: int, more: float) -> None:
    levels = (torch.arange(784).reshape(1, 1, 28, 28) % 256) / 255
    found = corrupt_mnist(levels, "brightness", severity).flatten()
    for level, value in zip(levels.flatten().tolist(), found.tolist()):
        hue, saturation, brightness = colorsys.rgb_to_hsv(level, level, level)
        expected = colorsys.hsv_to_rgb(hue, saturation, min(brightness + more, 1))
        assert expected == pytest.approx((value,) * 3, abs=1e-6)


def test_stripe_inverts_the_outer_quarters(digits: Tensor) -> None:
    striped = corrupt_mnist(digits, "stripe")
    assert torch.equal(striped[..., :7], 1 - digits[..., :7])
    assert torch.equal(striped[..., 21:], 1 - digits[..., 21:])
    assert torch.equal(striped[..., 7:21], digits[..., 7:21])
    assert torch.allclose(corrupt_mnist(striped, "stripe"), digits, atol=1e-7)


def test_fog_is_the_corner_of_a_plasma_scaled_by_the_brightest_pixel(digits: Tensor) -> None:
    x, seeds = 0.8 * digits[:5], [5, 6, 7, 8, 9]
    whole = plasma(Draws(seeds), 256, 1.4)[:, None]
    brightest = x.amax((1, 2, 3), keepdim=True)
    expected = (x + 3 * whole[..., :28, :28]) * brightest / (brightest + 3)
    foggy = corrupt_mnist(x, "fog", seeds=seeds)
    assert torch.allclose(foggy, expected, atol=1e-6)
    assert (foggy.amax((1, 2, 3)) <= brightest.flatten()).all()
    # The plasma reaches 0 and 1 somewhere in its 256 x 256 pixels, not in the corner.
    assert (whole[..., :28, :28].amax((1, 2, 3)) < 1).all() and (whole.amax((1, 2, 3)) == 1).all()
    assert not corrupt_mnist(plain(0.0), "fog").any()


def test_spatter_covers_with_one_grey() -> None:
    grey = 63 / 255
    on_black, on_white = (corrupt_mnist(plain(value, 20), "spatter") for value in (0.0, 1.0))
    cover = on_black / grey
    drops = cover > 0
    assert 0.05 < drops.float().mean() < 0.5
    assert (cover[drops] >= 0.8 - 1e-6).all() and (cover <= 1 + 1e-6).all()
    assert torch.allclose(on_white, 1 - cover * (1 - grey), atol=1e-6)


# ------------------------------------------------------------------------------------------- lines


def test_profile_of_a_line() -> None:
    """log(1 - d / 2.3) + 1, of the distance up or down; the column of the end stays empty."""
    level = line((0, 5), (27, 5))
    fade = {0: 1.0, 1: math.log(1 - 1 / 2.3) + 1, 2: 0.0}
    for distance, shade in fade.items():
        for row in (5 - distance, 5 + distance):
            assert level[row, :27].tolist() == pytest.approx([shade] * 27)
    assert level.count_nonzero() == 3 * 27 and not level[:, 27].any()
    steep = line((3.2, 4), (9.5, 4 + 6.3 * 2))
    assert steep.any(0).nonzero().flatten().tolist() == list(range(3, 10))
    assert steep[10, 6] == pytest.approx(math.log(1 - 0.4 / 2.3) + 1)  # there the line is in row 9.6


def test_dashes_of_a_dotted_line() -> None:
    lines = dotted_lines()
    assert lines.shape == (27, 27, 28, 28)
    inked = lines.flatten(0, 1).amax((0, 1)).nonzero().flatten().tolist()
    assert inked == [2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26]  # begins with a gap; 27 stays empty
    assert torch.equal(lines[3, 20][:, inked], line((0, 3), (27, 20))[:, inked])


def test_corners_of_a_zigzag() -> None:
    expected = [(2, 10), (4, 12), (8, 8), (12, 12), (16, 8), (20, 12), (24, 8), (25, 10 - 1 / 3)]
    assert np.allclose(corners(10, 0), expected)
    for fall in (-5, 4):
        points = np.array(corners(10, fall))
        slope = fall / 23
        off = (points[:, 1] - 10 - slope * (points[:, 0] - 2)) / math.hypot(1, slope)
        assert off[:-1] == pytest.approx([0, 2, -2, 2, -2, 2, -2])
        steps = (points - points[0]) @ np.array([1, slope]) / math.hypot(1, slope)
        assert steps == pytest.approx([0, 2, 6, 10, 14, 18, 22, math.hypot(23, fall)])


def test_zigzag_is_drawn_through_its_corners() -> None:
    picture = zigzag(10, 0)
    for column, row in [(4, 12), (8, 8), (12, 12), (16, 8), (20, 12), (24, 8)]:
        assert picture[row, column] == 1
    assert picture.max() == 1 and not picture[:, [0, 1, 25, 26, 27]].any()
    assert torch.equal(zigzags()[10, 5], picture) and zigzags().shape == (27, 10, 28, 28)


def test_lines_are_added_to_the_digit(digits: Tensor) -> None:
    for name, table in (("dotted_line", dotted_lines()), ("zigzag", zigzags())):
        changed, alone = corrupt_mnist(digits, name), corrupt_mnist(torch.zeros_like(digits), name)
        assert torch.allclose(changed, (digits + alone).clamp(max=1), atol=1e-6)
        known = table.flatten(0, 1).float()
        assert all((known == picture).all((1, 2)).any() for picture in alone[:, 0])
        assert len(alone.flatten(1).unique(dim=0)) > 40


# ------------------------------------------------------------------------------------------- edges


def step(height: float, rows: slice = slice(None)) -> Tensor:
    """A step of this height between columns 13 and 14."""
    x = plain(0.2)
    x[:, :, rows, 14:] += height
    return x


def edge_places(x: Tensor) -> set[tuple[int, int]]:
    return set(map(tuple, canny(x)[0, 0].nonzero().tolist()))


def test_both_sides_of_a_step_are_edges_but_not_the_border() -> None:
    expected = {(row, column) for row in range(1, 27) for column in (13, 14)}
    assert edge_places(step(0.5)) == expected
    assert edge_places(step(0.5).transpose(2, 3)) == {(column, row) for row, column in expected}
    assert not canny(plain(0.7)).any() and not canny(plain(0.0)).any()


def test_thresholds_of_canny() -> None:
    """The gradient of the blurred step is 4 (k_0 + k_1) times its height, k the Gaussian's weights."""
    kernel = np.exp(-(np.arange(-4, 5) ** 2) / 2)
    slope = 4 * (kernel[4] + kernel[5]) / kernel.sum()
    assert edge_places(step(1.02 * 0.2 / slope)) and not edge_places(step(0.98 * 0.2 / slope))
    assert not edge_places(step(1.1 * 0.1 / slope))
    fading = plain(0.2)
    fading[..., 14:] += torch.linspace(1.5 * 0.2 / slope, 1.1 * 0.1 / slope, 28)[:, None]
    # Where the step is weak, its edge hangs on to that where it is strong.
    assert {row for row, column in edge_places(fading) if column in (13, 14)} == set(range(1, 27))


def slow_canny(x: np.ndarray) -> np.ndarray:
    """The same, pixel by pixel, on scipy's filters."""
    weight = ndimage.gaussian_filter(np.ones_like(x), 1, mode="constant")
    smooth = ndimage.gaussian_filter(x, 1, mode="constant") / weight
    down, along = (ndimage.sobel(smooth, axis=axis) for axis in (0, 1))
    size = np.hypot(down, along)
    ridge = np.zeros(x.shape, bool)
    for r, c in itertools.product(range(1, 27), repeat=2):
        i, j = down[r, c], along[r, c]
        if size[r, c] == 0:
            continue
        straight = (int(np.sign(i)), 0) if abs(i) >= abs(j) else (0, int(np.sign(j)))
        diagonal = (int(np.sign(i)) or 1, int(np.sign(j)) or 1)
        w = min(abs(i), abs(j)) / max(abs(i), abs(j))
        ahead = w * size[r + diagonal[0], c + diagonal[1]] + (1 - w) * size[r + straight[0], c + straight[1]]
        behind = w * size[r - diagonal[0], c - diagonal[1]] + (1 - w) * size[r - straight[0], c - straight[1]]
        ridge[r, c] = max(ahead, behind) <= size[r, c] * (1 + 1e-9)
    labels, _ = ndimage.label(ridge & (size >= 0.1), np.ones((3, 3)))
    return (labels > 0) & np.isin(labels, np.unique(labels[ridge & (size >= 0.2)]))


def test_canny_pixel_by_pixel(digits: Tensor) -> None:
    noise = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    for image in torch.cat([digits[:10], noise]):
        assert np.array_equal(canny(image[None])[0, 0] > 0, slow_canny(image[0].double().numpy()))


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("x", "options", "text"),
    [
        (torch.zeros(2, 1, 32, 32), {}, "made for"),
        (torch.zeros(2, 3, 28, 28), {}, "made for"),
        (torch.zeros(28, 28), {}, "made for"),
        (plain(1.5), {}, r"\[0, 1\]"),
        (plain(math.nan), {}, r"\[0, 1\]"),
        (plain(1.0).byte(), {}, "divide grey levels by 255"),
        (plain(0.5), {"severity": 6}, "severity=6"),
        (plain(0.5), {"severity": 0}, "severity=0"),
        (plain(0.5), {"severity": True}, "severity=True"),
        (plain(0.5), {"name": "stripe", "severity": 1}, "no severities"),
        (plain(0.5), {"name": "gaussian_noise"}, "unknown corruption of MNIST-C"),
        (plain(0.5), {"seeds": [1, 2]}, "2 seeds for 1 images"),
        (plain(0.5), {"seeds": [1], "generator": torch.Generator()}, "leave one out"),
    ],
)
def test_mistakes(x: Tensor, options: dict, text: str) -> None:
    with pytest.raises(BookError, match=text):
        corrupt_mnist(x, **{"name": "fog", **options})
