"""Common corruptions: one table through which all go, then closed forms, plain loops, scipy and Pillow.

Where the published code does something else than it says, a test named `test_trap_...` states our choice.
"""

import colorsys
import math
from io import BytesIO

import numpy as np
import pytest
import scipy.ndimage
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from robustbook.corruptions import COMMON, GROUPS, NAMES, as_uint8, common, corrupt, fields, weather
from robustbook.corruptions.blur import DISC, clipped_zoom, disc, zoom_factors
from robustbook.corruptions.catalogue import SETS, Level
from robustbook.corruptions.digital import ELASTIC, PIXELS, QUALITY
from robustbook.corruptions.draws import Draws
from robustbook.corruptions.frost import textures
from robustbook.corruptions.noise import AMOUNT, DEVIATION, PHOTONS
from robustbook.corruptions.weather import FOG, FROST, LIGHT, SNOW
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from torch import Tensor
from torch.nn.functional import interpolate

SEVERITIES = range(1, 6)
CHANCELESS = {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
ALL = [(constants, severity) for constants in SETS for severity in SEVERITIES]


@pytest.fixture(scope="module")
def photos() -> Tensor:
    """Some of the real images that ship with the book, 32 px."""
    return next(iter(load("cifar10-small", "test", limit=60)))


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Images of independent pixels, at whole levels of 255."""
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(seed)) / 255


def flat(value: float, count: int = 4, side: int = 64, channels: int = 3) -> Tensor:
    return torch.full((count, channels, side, side), float(value))


# ------------------------------------------------------------------------------------------------ table


def test_names_and_groups() -> None:
    assert set(NAMES) == set(COMMON) and len(NAMES) == 15
    assert [len(names) for names in GROUPS.values()] == [3, 4, 4, 4]
    assert list(GROUPS) == ["noise", "blur", "weather", "digital"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(2, 3, 28, 28), (2, 1, 28, 37), (2, 3, 41, 30)])
def test_images_stay_images(name: str, shape: tuple[int, ...]) -> None:
    x = noise(*shape)
    before = x.clone()
    for constants, severity in ALL:
        y = corrupt(x, name, severity, constants=constants)
        assert y.shape == x.shape and y.dtype == x.dtype
        assert y.isfinite().all() and y.min() >= 0 and y.max() <= 1
        assert not torch.equal(y, x)
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", NAMES)
def test_double_precision_and_extremes(name: str) -> None:
    for value in (0.0, 1.0):
        y = corrupt(flat(value, 1, 32).double(), name, 3)
        assert y.dtype == torch.float64 and y.isfinite().all()


@pytest.mark.parametrize("constants", SETS)
@pytest.mark.parametrize("name", NAMES)
def test_an_image_depends_on_its_own_seed(
    name: str, constants: str, photos: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, seeds = photos[:9], torch.arange(9) * 7
    whole = corrupt(x, name, 4, constants=constants, seeds=seeds)
    rows = [5, 2, 7]
    assert torch.equal(corrupt(x[rows], name, 4, constants=constants, seeds=seeds[rows]), whole[rows])
    monkeypatch.setattr(common, "PART", 2 * x[0].numel())
    assert torch.equal(corrupt(x, name, 4, constants=constants, seeds=seeds.tolist()), whole)
    others = corrupt(x, name, 4, constants=constants, seeds=seeds + 1)
    assert torch.equal(others, whole) == (name in CHANCELESS)
    if name not in CHANCELESS:  # and the same image twice is not corrupted in the same way
        twice = corrupt(x[[0, 0]], name, 4, constants=constants, seeds=[3, 4])
        assert not torch.equal(twice[0], twice[1])


def test_generator(photos: Tensor) -> None:
    x = photos[:4]

    def drawn(seed: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    first, again = (corrupt(x, "fog", 2, generator=drawn(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, corrupt(x, "fog", 2, generator=drawn(4)))
    assert torch.equal(corrupt(x, "fog", 2), corrupt(x, "fog", 2, generator=drawn(0)))
    shared = drawn(3)
    assert not torch.equal(
        corrupt(x, "fog", 2, generator=shared), corrupt(x, "fog", 2, generator=shared)
    )  # a generator moves on


# Severities at which the mean distance is *smaller* than one severity before: so say the published constants.
# Glass: a wider Gaussian calms what the shuffling did. Frost: the image becomes darker faster than the ice
# brighter. Elastic: CIFAR-10-C turns from large affine shifts to small waves, ImageNet-C does after 2.
FALLS = {
    ("cifar10", "glass_blur"): [2, 3, 5],
    ("cifar10", "frost"): [4, 5],
    ("cifar10", "elastic_transform"): [2, 3, 4, 5],
    ("imagenet", "glass_blur"): [2, 4],
    ("imagenet", "frost"): [4],
    ("imagenet", "elastic_transform"): [3],
}
# Severities as far away as the one before. Motion: from (6, 2) to (8, 2) the ray only gets longer where the
# Gaussian has ended. Snow: fewer but larger flakes; the two differ by about one per cent.
EQUAL = {("cifar10", "motion_blur"): [4], ("imagenet", "snow"): [3]}


@pytest.mark.parametrize("constants", SETS)
@pytest.mark.parametrize("name", NAMES)
def test_severity_raises_the_distance(name: str, constants: str, photos: Tensor) -> None:
    x = photos
    if constants == "imagenet":
        x = interpolate(photos[:6], (160, 160), mode="bicubic").clamp(0, 1)
    changed = [corrupt(x, name, severity, constants=constants) - x for severity in SEVERITIES]
    distance = [delta.square().mean((1, 2, 3)).sqrt().mean().item() for delta in changed]
    ratios = {s: distance[s - 1] / distance[s - 2] for s in range(2, 6)}
    equal = EQUAL.get((constants, name), [])
    assert all(abs(ratios.pop(s) - 1) < 0.03 for s in equal)
    assert [s for s, ratio in ratios.items() if ratio < 0.999] == FALLS.get((constants, name), [])
    assert not [s for s, ratio in ratios.items() if 0.999 <= ratio <= 1.001]


@pytest.mark.parametrize("constants", SETS)
def test_frost_covers_more_with_severity(constants: str) -> None:
    """The distance does not say so (see above), the share of the ice does."""
    shares = [ice / image for image, ice in getattr(FROST, constants)]
    assert shares == sorted(shares) and len(set(shares)) == 5


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_grey_is_colour_of_equal_channels(constants: str, severity: int) -> None:
    """Noise, frost (which is tinted) and JPEG (which stores colours coarsely) are the exceptions."""
    x = noise(2, 1, 32, 32)
    for name in set(NAMES) - {*GROUPS["noise"], "frost", "jpeg_compression"}:
        grey, colour = (corrupt(x.repeat(1, c, 1, 1), name, severity, constants=constants) for c in (1, 3))
        assert (grey - colour).abs().max() < 1e-5, name


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_what_leaves_flat_images_flat(constants: str, severity: int) -> None:
    x = torch.tensor([0.2, 0.4, 0.6])[None, :, None, None].expand(2, 3, 32, 32)
    gain = float(disc(*DISC[Level(constants, severity)]).sum())
    for name in (*GROUPS["blur"], "contrast", "elastic_transform", "pixelate"):
        y = corrupt(x, name, severity, constants=constants)
        assert torch.allclose(y, x * gain if name == "defocus_blur" else x, atol=1e-5), name
    stored = corrupt(x, "jpeg_compression", severity, constants=constants)
    assert stored.std((2, 3)).max() < 1e-6  # though not of the same colour


# ------------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_noise_variance(constants: str, severity: int) -> None:
    level = Level(constants, severity)
    x, draws = flat(0.4, 12), Draws(range(12))
    delta = COMMON["gaussian_noise"](x, draws, level) - x  # before it is clipped
    assert delta.std().item() == pytest.approx(DEVIATION[level], rel=0.02)
    assert abs(delta.mean().item()) < 4 * DEVIATION[level] / math.sqrt(x.numel())
    counts = COMMON["shot_noise"](x, draws, level) * PHOTONS[level]
    assert torch.allclose(counts, counts.round(), atol=1e-3)
    assert counts.mean().item() == pytest.approx(0.4 * PHOTONS[level], rel=0.02)
    assert counts.var().item() == pytest.approx(0.4 * PHOTONS[level], rel=0.03)


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_trap_impulses_hit_channels_not_pixels(constants: str, severity: int) -> None:
    amount = AMOUNT[Level(constants, severity)]
    y = corrupt(flat(0.4, 20), "impulse_noise", severity, constants=constants)
    black, white = (y == 0).float(), (y == 1).float()
    spread = 4 * math.sqrt(amount / y.numel())
    assert abs(black.mean() - amount / 2) < spread and abs(white.mean() - amount / 2) < spread
    assert ((y == torch.tensor(0.4)) | (y == 0) | (y == 1)).all()
    hit = (y != torch.tensor(0.4)).float()
    whole = hit.prod(1).mean().item()  # pixels of which all three channels are hit
    assert whole == pytest.approx(amount**3, abs=4 * math.sqrt(amount**3 / (20 * 64 * 64)) + 1e-4)


# ------------------------------------------------------------------------------------------------- blur


@settings(max_examples=25)
@given(
    sigma=st.floats(0.05, 40),
    truncate=st.sampled_from([3.0, 4.0]),
    mode=st.sampled_from(["nearest", "reflect"]),
)
def test_gaussian_blur_is_scipys(sigma: float, truncate: float, mode: str) -> None:
    x = noise(2, 1, 28, 31)
    ours = fields.gaussian_blur(x, sigma, truncate, mode)
    theirs = scipy.ndimage.gaussian_filter(
        x.numpy(), sigma, mode=mode, truncate=truncate, axes=(2, 3), output=np.float64
    )
    assert ours.dtype == x.dtype and np.abs(ours.numpy() - theirs).max() < 1e-6
    rows = fields.blur_matrix(28, sigma, truncate, mode).sum(1)
    assert torch.allclose(rows, torch.ones_like(rows))


def test_gaussian_blur_of_one_direction() -> None:
    x = noise(1, 1, 28, 28)
    assert torch.equal(fields.gaussian_blur(x, 0), x)
    down = fields.gaussian_blur(x, (0.7, 0))
    theirs = scipy.ndimage.gaussian_filter1d(x.double().numpy(), 0.7, axis=2, mode="nearest")
    assert np.abs(down.numpy() - theirs).max() < 1e-6


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_kernels_sum_to_one(constants: str, severity: int) -> None:
    """Also a trap: discs that reach the border of their array are mirrored there before they are softened."""
    level = Level(constants, severity)
    expected = {8: 1.01298, 10: 1.01079}.get(DISC[level][0], 1.0)
    assert disc(*DISC[level]).sum().item() == pytest.approx(expected, abs=1e-5)
    assert torch.allclose(disc(*DISC[level]), disc(*DISC[level]).T.flip(0))


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_trap_small_discs_are_gaussians(severity: int) -> None:
    """CIFAR-10-C's first three radii are below one pixel: only the 3 x 3 Gaussian remains."""
    radius, softness = DISC.cifar10[severity - 1]
    line = torch.exp(-torch.tensor([1.0, 0, 1], dtype=torch.float64) / (2 * softness**2))
    line = line / line.sum()
    assert radius < 1
    assert torch.allclose(disc(radius, softness), line[:, None] * line)


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_defocus_is_scipys_convolution(constants: str, severity: int) -> None:
    """A border that is mirrored without being repeated is "mirror" in scipy's words."""
    x = noise(1, 3, 32, 32)
    kernel = disc(*DISC[Level(constants, severity)])[None, None].numpy()
    theirs = scipy.ndimage.correlate(x.double().numpy(), kernel, mode="mirror").clip(0, 1)
    assert np.abs(corrupt(x, "defocus_blur", severity, constants=constants).numpy() - theirs).max() < 1e-5


@settings(max_examples=25)
@given(
    angle=st.floats(-180, 180),
    radius=st.integers(1, 12),
    sigma=st.floats(0.5, 8),
)
def test_motion_blur_is_a_ray(angle: float, radius: int, sigma: float) -> None:
    x = noise(2, 3, 28, 30)
    ours = fields.motion_blur(x, radius, sigma, torch.tensor([angle, 0.0], dtype=torch.float64))[0]
    weights = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(2 * radius + 1)]
    expected = np.zeros((3, 28, 30))
    for i, weight in enumerate(weights):
        down, right = (
            math.ceil(i * turn(math.radians(angle)) - 0.5 - 1e-12) for turn in (math.sin, math.cos)
        )
        rows = (np.arange(28) + down).clip(0, 27)
        columns = (np.arange(30) + right).clip(0, 29)
        expected += weight / sum(weights) * x[0].numpy()[:, rows][:, :, columns]
    near_ties = any(
        abs((i * turn(math.radians(angle))) % 1 - 0.5) < 1e-9
        for i in range(2 * radius + 1)
        for turn in (math.sin, math.cos)
    )
    assert near_ties or np.abs(ours.numpy() - expected).max() < 1e-5


def test_trap_motion_is_one_sided() -> None:
    """Half a Gaussian over 2 radius + 1 pixels: at angle 0 a pixel sees those to its right."""
    x = torch.zeros(1, 1, 28, 28)
    x[..., 14, 20] = 1
    y = fields.motion_blur(x, 3, 2.0, torch.zeros(1))[0, 0]
    assert y[14].nonzero()[:, 0].tolist() == list(range(14, 21))
    assert y.sum().item() == pytest.approx(1) and y[14, 20] == y.max()
    assert fields.motion_kernel(3, 2.0).sum().item() == pytest.approx(1)
    assert len(fields.motion_kernel(6, 1.0)) == 13


@pytest.mark.parametrize(("name", "low", "high"), [("motion_blur", -45, 45), ("snow", -135, -45)])
def test_angles(name: str, low: float, high: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    def record(x: Tensor, radius: float, sigma: float, angles: Tensor) -> Tensor:
        seen.append(angles)
        return x

    monkeypatch.setattr(fields, "motion_blur", record)
    monkeypatch.setattr(weather, "motion_blur", record)
    corrupt(flat(0.5, 200, 28, 1), name, 1)
    angles = torch.cat(seen)
    assert low <= angles.min() < low + 3 and high - 3 < angles.max() <= high


def shuffled(x: np.ndarray, steps: np.ndarray, shift: int, swap: bool) -> np.ndarray:
    """One pass over an image (H, W, C), pixel by pixel from the last to the first."""
    x = x.copy()
    for row in range(x.shape[0] - shift, shift, -1):
        for column in range(x.shape[1] - shift, shift, -1):
            down, right = steps[:, row - shift - 1, column - shift - 1]
            kept = x[row, column].copy()
            x[row, column] = x[row + down, column + right]
            if swap:
                x[row + down, column + right] = kept
    return x


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("shift", "passes"), [(1, 2), (2, 3), (4, 2)])
def test_trap_glass_copies_pixels(shift: int, passes: int, swap: bool) -> None:
    """The published code copies in colour images, which loses pixels, and swaps in grey ones."""
    x, seeds = torch.rand(2, 3, 28, 33, generator=torch.Generator().manual_seed(0)), [4, 5]
    ours = fields.glass_shuffle(x, Draws(seeds), shift, passes, swap=swap)
    draws = Draws(seeds)
    theirs = x.movedim(1, -1).numpy()
    for _ in range(passes):
        steps = draws.integers(-shift, shift, 2, 28 - 2 * shift, 33 - 2 * shift).numpy()
        assert steps.min() == -shift and steps.max() == shift - 1
        theirs = np.stack([shuffled(image, step, shift, swap) for image, step in zip(theirs, steps)])
    assert np.array_equal(ours.movedim(1, -1).numpy(), theirs)
    kept = len(ours[0, 0].unique()) / x[0, 0].numel()
    assert kept == 1 if swap else kept < 0.8


def test_glass_with_a_chance() -> None:
    x = torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    moved = [
        (fields.glass_shuffle(x, Draws(range(20)), 1, 1, swap=True, chance=chance) != x).float().mean().item()
        for chance in (0.0, 0.1, 0.5, 1.0)
    ]
    # Few trade twice at a chance of 0.1: 26 x 26 of 28 x 28 pixels, two places each, one in four with itself.
    assert moved[0] == 0 and moved[1] == pytest.approx(0.1 * (26 / 28) ** 2 * 2 * 0.75, rel=0.12)
    assert moved[1] < moved[2] < moved[3]


def test_glass_blur_copies() -> None:
    """Severity 1, whose Gaussian is one pixel wide, is nothing but the shuffling that copies."""
    x = noise(2, 3, 32, 32)
    assert torch.equal(
        corrupt(x, "glass_blur", 1, seeds=[4, 5]), fields.glass_shuffle(x, Draws([4, 5]), 1, 1)
    )


def test_trap_glass_goes_through_bytes() -> None:
    """At severity 1 nothing is blurred (the kernel is one pixel): what remains is cut off to whole levels."""
    x = noise(1, 3, 32, 32) * (254 / 255) + 0.9 / 255
    y = corrupt(x, "glass_blur", 1) * 255
    assert torch.allclose(y, y.round(), atol=1e-4)
    assert set(y.round().unique().tolist()) <= set((x * 255 + 1e-4).floor().unique().tolist())


def test_trap_zoom_factors() -> None:
    """By rounding, a range of steps of 0.01 has its end in it, or not."""
    counts = {constants: [len(zoom_factors(Level(constants, s))) for s in SEVERITIES] for constants in SETS}
    assert counts == {"cifar10": [7, 12, 16, 21, 26], "imagenet": [12, 16, 11, 13, 11]}
    ends = [round(zoom_factors(Level("cifar10", s))[-1], 6) for s in SEVERITIES]
    assert ends == [1.06, 1.11, 1.15, 1.2, 1.25]
    ends = [round(zoom_factors(Level("imagenet", s))[-1], 6) for s in SEVERITIES]
    assert ends == [1.11, 1.15, 1.2, 1.24, 1.3]


def scipy_zoom(x: np.ndarray, factor: float) -> np.ndarray:
    """The middle of an image (1, C, side, side), enlarged by scipy, and the middle of that."""
    side = x.shape[-1]
    part = math.ceil(side / factor)
    low = (side - part) // 2
    zoomed = scipy.ndimage.zoom(x[..., low : low + part, low : low + part], (1, 1, factor, factor), order=1)
    low = (zoomed.shape[-1] - side) // 2
    return zoomed[..., low : low + side, low : low + side]


@pytest.mark.parametrize("factor", [1.06, 1.25, 1.3, 1.75, 2, 2.25, 2.5, 3, 4, 4.5])
@pytest.mark.parametrize("side", [28, 32, 45])
def test_zoom_is_scipys(factor: float, side: int) -> None:
    x = noise(1, 3, side, side).double()
    assert np.abs(clipped_zoom(x, factor).numpy() - scipy_zoom(x.numpy(), factor)).max() < 1e-6


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_trap_zoom_blur_has_the_image_twice(constants: str, severity: int) -> None:
    x = noise(1, 3, 32, 32).double().numpy()
    factors = zoom_factors(Level(constants, severity))
    total = 2 * x + sum(scipy_zoom(x, factor) for factor in factors[1:])
    ours = corrupt(torch.from_numpy(x), "zoom_blur", severity, constants=constants)
    assert np.abs(ours.numpy() - total / (len(factors) + 1)).max() < 1e-5


def test_zoom_of_small_factors() -> None:
    x = noise(1, 3, 32, 32)
    assert torch.equal(clipped_zoom(x, 1.0), x)
    assert torch.equal(clipped_zoom(x, 1.01), x)
    assert not torch.equal(clipped_zoom(x, 1.02), x)


# ---------------------------------------------------------------------------------------------- weather


def plain_plasma(chance: np.ndarray, decay: float) -> np.ndarray:
    """Diamond-square on a torus, point by point."""
    size = len(chance)
    heights, step, wibble = np.zeros((size, size)), size, 100.0
    while step >= 2:
        half = step // 2

        def settle(row: int, column: int, near: list[tuple[int, int]], wibble: float = wibble) -> None:
            mean = sum(heights[(row + a) % size, (column + b) % size] for a, b in near) / 4
            heights[row, column] = mean + wibble * (wibble * chance[row, column])

        for row in range(half, size, step):
            for column in range(half, size, step):
                settle(row, column, [(-half, -half), (-half, half), (half, -half), (half, half)])
        for row, column in [(r, c) for r in range(0, size, step) for c in range(half, size, step)]:
            settle(row, column, [(-half, 0), (half, 0), (0, -half), (0, half)])
        for row, column in [(r, c) for r in range(half, size, step) for c in range(0, size, step)]:
            settle(row, column, [(-half, 0), (half, 0), (0, -half), (0, half)])
        step, wibble = half, wibble / decay
    return (heights - heights.min()) / (heights.max() - heights.min())


@pytest.mark.parametrize("decay", [1.4, 2, 3])
def test_trap_plasma_wibbles_by_the_square(decay: float) -> None:
    chance = 2 * torch.rand(16, 16, generator=torch.Generator().manual_seed(5)) - 1
    ours = fields.plasma(Draws([9, 5]), 16, decay)
    assert np.abs(ours[1].numpy() - plain_plasma(chance.double().numpy(), decay)).max() < 1e-5
    assert torch.equal(fields.plasma(Draws([5]), 16, decay, crop=(3, 5))[0], ours[1, :3, :5])


def test_plasma_fills_the_unit_interval() -> None:
    haze = fields.plasma(Draws(range(40)), 256, 2)
    assert haze.shape == (40, 256, 256)
    assert (haze.amin((1, 2)) == 0).all() and (haze.amax((1, 2)) == 1).all()
    with pytest.raises(BookError, match="power of two"):
        fields.plasma(Draws([0]), 24, 2)


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_fog_is_the_plasma_of_its_map(constants: str, severity: int) -> None:
    """32 px wide for CIFAR-10-C, 256 for ImageNet-C, of which the corner is used; larger if need be."""
    strength, decay = FOG[Level(constants, severity)]
    for side in (28, 32, 40):
        map_side = max(32 if side <= 32 else 64, 256 if constants == "imagenet" else 0)
        x = noise(2, 3, side, side) * 0.8
        haze = fields.plasma(Draws([1, 2]), map_side, decay)[:, None, :side, :side]
        top = x.amax((1, 2, 3), keepdim=True)
        expected = (x + strength * haze) * top / (top + strength)
        y = corrupt(x, "fog", severity, constants=constants, seeds=[1, 2])
        assert torch.allclose(y, expected, atol=1e-6)
        assert (y <= top + 1e-6).all()


def test_frost_textures() -> None:
    """Made here, five, all different, with the colours and contrasts of the published photographs."""
    ice = textures()
    assert ice.shape == (5, 3, 640, 640) and ice.min() >= 0 and ice.max() <= 1
    assert all((a - b).abs().mean() > 0.03 for i, a in enumerate(ice) for b in ice[:i])
    means = [[0.305, 0.585, 0.65], *[[0.787, 0.805, 0.841]] * 2, [0.54, 0.6, 0.648], [0.441, 0.484, 0.528]]
    assert torch.allclose(ice.mean((2, 3)), torch.tensor(means), atol=0.01)
    deviations = torch.tensor([0.07, 0.086, 0.086, 0.112, 0.17])
    assert torch.allclose(ice[:, 1].std((1, 2)), deviations, atol=0.01)
    seam, inside = (ice[..., 0] - ice[..., -1]).abs().mean(), ice.diff(dim=-1).abs().mean()
    assert seam < 1.3 * inside  # what lies left of the left edge is the right edge


@pytest.mark.parametrize("constants", SETS)
def test_trap_frost_draws_from_five_textures(constants: str) -> None:
    """On black, frost is a weight times a piece of a texture, or of its every fifth pixel in CIFAR-10-C."""
    weight = getattr(FROST, constants)[2][1]
    pieces = corrupt(flat(0, 40, 32), "frost", 3, constants=constants) / weight
    ice = textures()[:, :, 2::5, 2::5] if constants == "cifar10" else textures()
    side, found = ice.shape[-1], []
    around = torch.cat([ice, ice[..., :32]], 3)
    around = torch.cat([around, around[:, :, :32]], 2)
    for piece in pieces:
        near = (ice - piece[:, :1, :1]).abs().amax(1) < 1e-5  # (5, side, side): places of its first pixel
        places = [
            (which, row, column)
            for which, row, column in near.nonzero().tolist()
            if torch.allclose(around[which, :, row : row + 32, column : column + 32], piece, atol=1e-5)
        ]
        assert len(places) == 1
        found.append(places[0])
    assert {which for which, _, _ in found} == set(range(5))
    assert len(set(found)) > 35 and max(row for _, row, _ in found) > side / 2


@pytest.mark.parametrize("constants", SETS)
def test_frost_weights(constants: str) -> None:
    for severity, (image, ice) in enumerate(getattr(FROST, constants), 1):
        dark, light = (
            corrupt(flat(value, 3, 32), "frost", severity, constants=constants) for value in (0, 0.1)
        )
        open_ = light < 1
        assert torch.allclose((light - dark)[open_], torch.tensor(0.1 * image), atol=1e-6)
        assert dark.max() <= ice + 1e-6


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_snow_falls_to_both_sides_and_whitens(constants: str, severity: int) -> None:
    weight = SNOW[Level(constants, severity)][-1]
    on_black = corrupt(flat(0, 6, 32), "snow", severity, constants=constants)
    assert torch.allclose(on_black, on_black.rot90(2, (2, 3)), atol=1e-6)
    assert on_black.min() >= 0.5 * (1 - weight) - 1e-6
    colour = torch.tensor([0.6, 0.3, 0.1])[:, None, None].expand(6, 3, 32, 32)
    luma = 0.299 * 0.6 + 0.587 * 0.3 + 0.114 * 0.1
    white = torch.maximum(colour, torch.tensor(1.5 * luma + 0.5))
    flakes = on_black - 0.5 * (1 - weight)
    expected = (weight * colour + (1 - weight) * white + flakes).clamp(0, 1)
    y = corrupt(colour, "snow", severity, constants=constants)
    assert torch.allclose(y[on_black < 1], expected[on_black < 1], atol=1e-5)


@settings(max_examples=60)
@given(
    pixel=st.tuples(*[st.integers(0, 255)] * 3), constants=st.sampled_from(SETS), severity=st.integers(1, 5)
)
def test_brightness_in_hsv(pixel: tuple[int, int, int], constants: str, severity: int) -> None:
    hue, saturation, value = colorsys.rgb_to_hsv(*(level / 255 for level in pixel))
    raised = min(1, value + LIGHT[Level(constants, severity)])
    expected = torch.tensor(colorsys.hsv_to_rgb(hue, saturation, raised))
    x = (torch.tensor(pixel) / 255)[None, :, None, None].expand(1, 3, 28, 28)
    y = corrupt(x, "brightness", severity, constants=constants)
    assert torch.allclose(y[0, :, 3, 3], expected.float(), atol=1e-5)


# ---------------------------------------------------------------------------------------------- digital


@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_contrast_keeps_the_mean(constants: str, severity: int, photos: Tensor) -> None:
    factor = {"cifar10": (0.75, 0.5, 0.4, 0.3, 0.15), "imagenet": (0.4, 0.3, 0.2, 0.1, 0.05)}[constants]
    y = corrupt(photos[:8], "contrast", severity, constants=constants)
    assert torch.allclose(y.mean((2, 3)), photos[:8].mean((2, 3)), atol=1e-5)
    assert torch.allclose(y.std((2, 3)), factor[severity - 1] * photos[:8].std((2, 3)), atol=1e-5)


def test_pixelate_gives_means_of_blocks(photos: Tensor) -> None:
    """ImageNet-C's second scale is a half: squares of 2 x 2; Pillow rounds twice on the way."""
    y = corrupt(photos[:8], "pixelate", 2, constants="imagenet")
    blocks = photos[:8].reshape(8, 3, 16, 2, 16, 2).mean((3, 5), keepdim=True).expand(8, 3, 16, 2, 16, 2)
    assert (y - blocks.reshape(8, 3, 32, 32)).abs().max() <= 1.01 / 255


def pillow(x: Tensor) -> Image.Image:
    array = (x * 255).round().byte().movedim(0, -1).numpy()
    return Image.fromarray(array[..., 0] if len(x) == 1 else array)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("constants", "severity"), ALL)
def test_pixelate_and_jpeg_are_pillows(constants: str, severity: int, channels: int) -> None:
    level = Level(constants, severity)
    x = noise(1, channels, 36, 45)
    small = (int(45 * PIXELS[level]), int(36 * PIXELS[level]))
    box, file = Image.Resampling.BOX, BytesIO()
    pillow(x[0]).save(file, "JPEG", quality=QUALITY[level])
    theirs = {
        "pixelate": pillow(x[0]).resize(small, box).resize((45, 36), box),
        "jpeg_compression": Image.open(file),
    }
    for name, image in theirs.items():
        ours = as_uint8(corrupt(x, name, severity, constants=constants))[0].movedim(0, -1).numpy()
        assert np.array_equal(ours.squeeze(), np.asarray(image)), name


@pytest.mark.parametrize(
    ("constants", "severity", "side"), [(*one, 32) for one in ALL] + [("imagenet", 3, 224)]
)
def test_trap_elastic_lengths(constants: str, severity: int, side: int) -> None:
    """Lengths are parts of the side; of 244 for images of 224 px in ImageNet-C, a slip of its code."""
    unit = {("cifar10", 32): 32, ("imagenet", 224): 244}.get((constants, side), side * 244 / 224)
    alpha, sigma, corner = (unit * part for part in ELASTIC[Level(constants, severity)])
    x, draws, half, third = noise(1, 1, side, side), Draws([3]), side // 2, side // 3
    corners = np.array([[half + third] * 2, [half + third, half - third], [half - third] * 2], dtype=float)
    moved = corners + draws.uniform(3, 2, low=-corner, high=corner)[0].double().numpy()
    # the map of the plane that takes the moved corners, as (x, y, 1), to where they were
    back = np.linalg.solve(np.column_stack([moved, np.ones(3)]), corners)
    rows, columns = np.mgrid[:side, :side].astype(float)
    source = np.stack([columns, rows, np.ones_like(rows)], -1) @ back
    first = scipy.ndimage.map_coordinates(
        x[0, 0].double().numpy(), [source[..., 1], source[..., 0]], order=1, mode="mirror"
    )
    waves = draws.uniform(2, side, side, low=-1, high=1)[0].double().numpy()
    if sigma > 0:
        waves = np.stack([scipy.ndimage.gaussian_filter(w, sigma, mode="reflect", truncate=3) for w in waves])
    second = scipy.ndimage.map_coordinates(
        first, [rows + alpha * waves[1], columns + alpha * waves[0]], order=1, mode="reflect"
    )
    ours = corrupt(x, "elastic_transform", severity, constants=constants, seeds=[3])[0, 0]
    assert np.abs(ours.numpy() - second).max() < 2e-3
    assert np.abs(ours.numpy() - second).mean() < 2e-5


def test_trap_bytes_are_cut_off() -> None:
    """Public arrays hold the whole part of 255 x, not the nearest level."""
    levels = torch.arange(256)
    assert as_uint8(levels / 255).tolist() == levels.tolist()
    assert as_uint8((levels[:-1] + 0.9) / 255).tolist() == levels[:-1].tolist()
    assert as_uint8(torch.tensor([0.999, 1.0])).tolist() == [254, 255]


# ------------------------------------------------------------------------------------ names and mistakes


def test_fingerprint_follows_the_name() -> None:
    """A row that names a corruption depends on it and its constants, and not on the one beside it."""
    reached = set(definitions(corrupt, strings=["fog"]))
    assert {"fog", "FOG", "plasma", "Draws"} <= reached
    assert not {"snow", "textures", "motion_blur", "gaussian_noise", "glass_shuffle"} & reached
    assert {"frost", "textures", "RECIPES"} <= set(definitions(corrupt, strings=["frost"]))


GOOD = torch.zeros(2, 3, 32, 32)


@pytest.mark.parametrize(
    ("x", "name", "severity", "options", "message"),
    [
        (GOOD, "fgo", 1, {}, "unknown corruption 'fgo'; did you mean fog"),
        (GOOD, "fog", 0, {}, "severity=0; give a whole number from 1 to 5"),
        (GOOD, "fog", 6, {}, "severity=6"),
        (GOOD, "fog", 2.5, {}, "severity=2.5"),
        (GOOD, "fog", True, {}, "severity=True"),
        (GOOD, "fog", "3", {}, "severity='3'"),
        (GOOD, "fog", 1, {"constants": "cifar"}, "unknown set of constants 'cifar'; did you mean cifar10"),
        (GOOD[0], "fog", 1, {}, r"images of shape \(3, 32, 32\); give \(N, C, H, W\)"),
        (GOOD[:0], "fog", 1, {}, r"images of shape \(0, 3, 32, 32\)"),
        (GOOD[:, :2], "fog", 1, {}, "one or three channels"),
        (GOOD[..., :27], "fog", 1, {}, "images of 32 x 27 px; at least 28 px"),
        (GOOD.byte(), "fog", 1, {}, "images of type torch.uint8"),
        (GOOD.numpy(), "fog", 1, {}, "images of type ndarray"),
        (GOOD + 1.5, "fog", 1, {}, r"images from 1.5 to 1.5; give values in \[0, 1\]"),
        (GOOD - 0.1, "fog", 1, {}, r"images from -0.1 to -0.1"),
        (GOOD * torch.nan, "fog", 1, {}, "images from nan to nan"),
        (GOOD, "fog", 1, {"seeds": [1]}, "1 seeds for 2 images"),
        (GOOD, "fog", 1, {"seeds": 3}, "seeds=3; give whole numbers"),
        (GOOD, "fog", 1, {"generator": 3}, "generator=3"),
        (GOOD, "fog", 1, {"seeds": [1, 2], "generator": torch.Generator()}, "leave one out"),
    ],
)
def test_mistakes_are_named(x: Tensor, name: str, severity: int, options: dict, message: str) -> None:
    with pytest.raises(BookError, match=message) as caught:
        corrupt(x, name, severity, **options)
    assert "\n" not in str(caught.value)
