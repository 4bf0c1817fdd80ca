"""PRIME: its three primitives against closed forms and scipy, the laws of their draws, and the mixture."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from robustbook.augmentations import (
    AUGMENTATIONS,
    PRIMITIVES,
    Mixture,
    Prime,
    RandomColour,
    RandomDiffeo,
    RandomFilter,
    augmentation,
    colour,
    prime_cifar,
    prime_filling,
    prime_imagenet,
    spatial,
    spectral,
    temperature_range,
)
from robustbook.augmentations.colour import draw_coefficients, recoloured
from robustbook.augmentations.mixing import IDENTITY, blend
from robustbook.augmentations.spatial import amplitudes, displaced, draw_fields, sine_basis
from robustbook.augmentations.spectral import draw_kernels, filtered
from robustbook.errors import BookError
from torch import Tensor

F64 = torch.float64
LEVEL = 1e-3  # of the tests of distributions; the draws are fixed, so that none fails by chance
SMOOTHNESS = {"spectral": 3, "spatial": 6, "colour": 8}
STRENGTH = {"spectral": 0.5, "spatial": 0.02, "colour": 0.1}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int = 4, channels: int = 3, height: int = 12, width: int = 12, seed: int = 1) -> Tensor:
    return torch.rand(count, channels, height, width, generator=rng(seed), dtype=F64)


def full(count: int, value: float) -> Tensor:
    return torch.full((count,), value, dtype=F64)


def inside(x: Tensor) -> bool:
    return bool(((x >= 0) & (x <= 1)).all())


def follows(sample: Tensor, law: Any) -> bool:
    """Kolmogorov and Smirnov do not object."""
    return bool(scipy.stats.kstest(sample.double().flatten().numpy(), law).pvalue > LEVEL)


def close_in_mean(sample: Tensor, expected: Tensor | float, errors: float = 4.0) -> bool:
    """The mean over the first dimension is within so many standard errors."""
    gap = (sample.mean(0) - expected).abs()
    return bool((gap <= errors * sample.std(0) / math.sqrt(len(sample)) + 1e-15).all())


# --------------------------------------------------------------------------------- all primitives


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("shape", [(1, 1, 9, 9), (1, 3, 8, 8), (5, 3, 11, 7), (3, 1, 28, 28)])
def test_primitives_take_any_images(name: str, shape: tuple[int, ...]) -> None:
    x = images(*shape).float()
    change = PRIMITIVES[name]
    settings = {"strength": STRENGTH[name], "smoothness": SMOOTHNESS[name]}
    result = change(x, **settings, generator=rng())
    assert result.shape == x.shape and result.dtype == x.dtype
    assert inside(result)
    assert not torch.equal(result, x)
    assert torch.equal(result, change(x, **settings, generator=rng()))
    assert not torch.equal(result, change(x, **settings, generator=rng(1)))
    tail = x.contiguous(memory_format=torch.channels_last)
    assert torch.allclose(change(tail, **settings, generator=rng()), result, atol=1e-6)


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("smoothness", [1, 3, 15, 101])
def test_strength_zero_is_the_identity(name: str, smoothness: int) -> None:
    for x in (images(), images().float()):
        result = PRIMITIVES[name](x, strength=0.0, smoothness=smoothness, generator=rng())
        assert torch.equal(result, x)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_strength_for_each_image(name: str) -> None:
    x = images(3)
    strength = torch.tensor([0.0, STRENGTH[name], 0.0])
    result = PRIMITIVES[name](x, strength=strength, smoothness=SMOOTHNESS[name], generator=rng())
    assert torch.equal(result[::2], x[::2]) and not torch.equal(result[1], x[1])


@pytest.mark.parametrize("name", PRIMITIVES)
def test_distance_grows_with_strength(name: str) -> None:
    x = 0.3 + 0.4 * scipy_smooth(images(64))
    sizes = [
        (PRIMITIVES[name](x, strength=s * STRENGTH[name], smoothness=SMOOTHNESS[name], generator=rng()) - x)
        .square()
        .mean()
        for s in (0.05, 0.2, 0.8)
    ]
    assert sizes[0] < sizes[1] < sizes[2]


def scipy_smooth(x: Tensor) -> Tensor:
    """Natural images have neighbours alike."""
    return torch.from_numpy(scipy.ndimage.gaussian_filter(x.numpy(), (0, 0, 1.5, 1.5), mode="nearest"))


@pytest.mark.parametrize("law", [RandomFilter(), RandomDiffeo(), RandomColour(), RandomColour(50, 0.05, 7)])
def test_every_image_has_its_own_draw(law: Any) -> None:
    """The published code draws strength and smoothness once for a batch."""
    x = images(40)
    drawn = law.draw(x, rng())
    strengths, *rest = drawn if isinstance(drawn, tuple) else (drawn,)
    assert len(strengths.unique()) > 20
    assert all(len(cuts.unique()) > 5 for cuts in rest)
    same = x[:1].repeat(40, 1, 1, 1)
    results = law(same, generator=rng())
    assert len(results.flatten(1).unique(dim=0)) == 40
    assert torch.equal(law(x, generator=rng(), scale=0.0), x)


# -------------------------------------------------------------------------------------- spectral


@pytest.mark.parametrize("size", [1, 3, 5, 15])
def test_filter_is_scipys(size: int) -> None:
    x, kernels = images(2, 3, 9, 7), torch.randn(2, size, size, generator=rng(), dtype=F64)
    for image, kernel, result in zip(x, kernels, filtered(x, kernels)):
        for channel, found in zip(image, result):
            expected = scipy.ndimage.correlate(channel.numpy(), kernel.numpy(), mode="constant")
            assert np.allclose(found.numpy(), expected)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_identity_tap_is_in_the_centre(size: int) -> None:
    """The published code has it in the corner, one pixel off along the diagonal (gap U39)."""
    kernels = draw_kernels(full(1, 0.0), size, rng())
    assert kernels.sum() == 1 and kernels[0, size // 2, size // 2] == 1


def test_filter_is_shared_by_channels() -> None:
    x = images(2, 1).repeat(1, 3, 1, 1)
    result = spectral(x, strength=0.3, generator=rng())
    assert torch.equal(result[:, 0], result[:, 1]) and torch.equal(result[:, 0], result[:, 2])


def test_taps_are_normal() -> None:
    kernels = draw_kernels(full(2000, 4.0), 3, rng())
    kernels[:, 1, 1] -= 1
    assert follows(kernels / 4, "norm")
    assert close_in_mean(kernels.square().sum((1, 2)), 9 * 16.0)  # (B.4), (B.5): K^2 sigma^2
    taps = kernels.flatten(1) / 4
    assert close_in_mean(taps[:, :, None] * taps[:, None, :], torch.eye(9))


def test_distance_of_filtered_images() -> None:
    """(B.2): each tap adds sigma^2 times the energy under it; (B.3): at most |x|_1^2 K^2 sigma^2."""
    x, sigma = images(1, 1, 6, 5), 0.3
    many = x.repeat(4000, 1, 1, 1)
    distance = (filtered(many, draw_kernels(full(4000, sigma), 3, rng())) - many).square().sum((1, 2, 3))
    energy = scipy.signal.convolve2d(x[0, 0].square().numpy(), np.ones((3, 3)), mode="same").sum()
    assert close_in_mean(distance, sigma**2 * energy)
    assert distance.mean() <= x.abs().sum() ** 2 * 9 * sigma**2


def test_strength_of_filters_is_a_standard_deviation() -> None:
    """Gap U37: uniform on (0, 4)."""
    drawn = RandomFilter().draw(images(3000, 1, 3, 3), rng())
    assert follows(drawn, scipy.stats.uniform(0, 4).cdf)


# --------------------------------------------------------------------------------------- spatial


def plain_field(size: int, cut: int, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Waves sin(pi i r1) sin(pi j r2) at all pixels and variances 1 / (i^2 + j^2), mode by mode."""
    r = np.arange(size) / (at - 1)
    modes = [(i, j) for i in range(1, cut + 1) for j in range(1, cut + 1) if math.hypot(i, j) < cut + 0.5]
    waves = [np.outer(np.sin(np.pi * i * r), np.sin(np.pi * j * r)).ravel() for i, j in modes]
    return np.array(waves).T, np.array([1 / (i * i + j * j) for i, j in modes])


@pytest.mark.parametrize(("size", "cut"), [(9, 1), (9, 2), (9, 5), (9, 8), (9, 30), (6, 17)])
def test_folded_modes_have_the_same_law(size: int, cut: int) -> None:
    """Equation (5.5) with all its modes has the covariance of ours, with those the pixels can tell apart."""
    waves, variances = plain_field(size, cut, size)
    basis = torch.kron(sine_basis(size), sine_basis(size)).numpy()
    ours = (basis * amplitudes(size, size, cut).flatten().square().numpy()) @ basis.T
    assert np.allclose(ours, (waves * variances) @ waves.T, atol=1e-12)


def test_field_is_normal_with_that_variance() -> None:
    """And each component has its own: tau' has two, with E tau'^2 = sigma^2 sum sin^2 sin^2 / (i^2 + j^2)."""
    size, cut, sigma, count = 12, 40, 0.01, 3000
    down, right = draw_fields((size, size), full(count, sigma), torch.full((count,), cut), rng())
    waves, variances = plain_field(size, cut, size)
    expected = (sigma * size) ** 2 * torch.from_numpy(waves**2 @ variances).view(size, size)
    for field in (down, right):
        assert close_in_mean(field.square(), expected, errors=4.5)
        assert follows(field[:, 5, 7] / expected[5, 7].sqrt(), "norm")
    assert close_in_mean(down * right, 0.0, errors=4.5)


@pytest.mark.parametrize(("height", "width"), [(12, 12), (9, 15), (3, 3), (3, 8)])
def test_border_does_not_move(height: int, width: int) -> None:
    fields = draw_fields((height, width), full(8, 0.1), torch.tensor([2, 3, 5, 8, 13, 21, 100, 500]), rng())
    for field in fields:
        edges = torch.cat([field[:, 0], field[:, -1], field[:, :, 0], field[:, :, -1]], 1)
        assert (edges == 0).all() and (field[:, 1:-1, 1:-1] != 0).any()
    x = images(8, 3, height, width)
    moved = spatial(x, strength=0.1, smoothness=5, generator=rng())
    assert torch.allclose(moved[:, :, 0], x[:, :, 0]) and torch.allclose(moved[..., -1], x[..., -1])


def test_resampling_is_scipys() -> None:
    """Bilinear, with coordinates held inside the image; also for displacements that leave it."""
    x = images(3, 2, 9, 7)
    down, right = (3 * torch.randn(3, 9, 7, generator=rng(seed), dtype=F64) for seed in (2, 3))
    found = displaced(x, down, right)
    rows, columns = np.mgrid[:9, :7]
    for n, c in itertools.product(range(3), range(2)):
        places = [(rows + down[n].numpy()).clip(0, 8), (columns + right[n].numpy()).clip(0, 6)]
        expected = scipy.ndimage.map_coordinates(x[n, c].numpy(), places, order=1, mode="nearest")
        assert np.allclose(found[n, c].numpy(), expected)


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("cut", [2, 5, 10, 20, 100, 200])
def test_bounds_of_the_temperature(size: int, cut: int) -> None:
    """Gap U40: T1 is beyond T2 from K = 2 n / pi on, which is 20.4 for 32 pixels and 142.6 for 224."""
    low, high = (bound.item() for bound in temperature_range(size, torch.tensor(cut)))
    assert low == pytest.approx(1 / (math.pi * size**2 * math.log(cut)))
    assert high == pytest.approx(4 / (math.pi**3 * cut**2 * math.log(cut)))
    assert (low > high) == (cut > 2 * size / math.pi)
    sigma, cuts = RandomDiffeo(cut, cut).draw(torch.zeros(1, dtype=F64).expand(200, 1, size, size), rng())
    assert (cuts == cut).all()
    if low > high:  # then T1 alone
        assert torch.allclose(sigma.square(), full(200, low))
    else:
        share = (sigma.square() - low) / (high - low)
        assert inside(share.round(decimals=9)) and share.min() < 0.01 and share.max() > 0.99


def test_half_a_pixel_at_the_lower_bound() -> None:
    """Typical displacement, root mean square in the middle of the image."""
    for cut in (3, 10, 100):
        low, _ = temperature_range(32, torch.tensor(cut))
        down, _ = draw_fields((32, 32), full(500, low.sqrt().item()), torch.full((500,), cut), rng())
        assert down[:, 16, 16].square().mean().sqrt().item() == pytest.approx(0.5, rel=0.35)


def determinants(size: int, cut: int, temperature: float) -> Tensor:
    """det(I + grad tau') at all pixels of 200 fields, by central differences."""
    count = 200
    down, right = draw_fields((size, size), full(count, temperature**0.5), torch.full((count,), cut), rng())
    (dd, dr), (rd, rr) = (torch.gradient(field, dim=(1, 2)) for field in (down, right))
    return (1 + dd) * (1 + rr) - dr * rd


@pytest.mark.parametrize("cut", [2, 3, 5, 8, 10])
def test_no_folds(cut: int) -> None:
    """None at T1. At T2 the bound of Petrini et al. holds typically, not always; far beyond, not at all."""
    low, high = (float(bound) for bound in temperature_range(48, torch.tensor(cut)))
    assert (determinants(48, cut, low) > 0).all()
    assert (determinants(48, cut, high) > 0).double().mean() > 0.95
    assert (determinants(48, cut, 100 * high) > 0).double().mean() < 0.8


def test_laws_of_cut_and_temperature() -> None:
    """s = r = 1 is Beta(1/2, 1/2), not uniform; the largest cut is uniform on 3 .. 100."""
    sigma, cut = RandomDiffeo().draw(torch.zeros(1, dtype=F64).expand(6000, 1, 32, 32), rng())
    low, high = temperature_range(32, cut)
    free = high > 1.001 * low
    position = (sigma.square() - low)[free] / (high - low)[free]
    assert follows(position.clamp(0, 1), scipy.stats.beta(0.5, 0.5).cdf)
    assert not follows(position.clamp(0, 1), "uniform")
    assert torch.allclose(sigma[~free].square(), low[~free], rtol=1e-2) and (~free).any()
    arcsine, expected = scipy.stats.beta(0.5, 0.5), np.zeros(101)
    for most in range(3, 101):
        ends = np.arange(most) / (most - 1)
        expected[2 : most + 1] += np.diff(arcsine.cdf(ends)) / 98
    counts = np.bincount(cut.numpy(), minlength=101)
    assert counts[:2].sum() == 0 and len(counts) == 101
    assert scipy.stats.chisquare(counts[2:], 6000 * expected[2:]).pvalue > LEVEL


# ---------------------------------------------------------------------------------------- colour


@pytest.mark.parametrize("cut", [1, 2, 10, 100, 500])
def test_colour_map_is_the_series(cut: int) -> None:
    x, beta = images(2, 3, 7, 5), 0.1 * torch.randn(2, 3, cut, generator=rng(), dtype=F64)
    waves = (math.pi * x[..., None] * torch.arange(1, cut + 1)).sin()
    expected = x + (beta[:, :, None, None] * waves).sum(-1)
    bound = 4e-6 * beta.abs().sum(2).max().item()
    assert torch.allclose(recoloured(x, beta), expected, atol=bound, rtol=0)
    assert torch.allclose(recoloured(x.float(), beta.float()).double(), expected, atol=bound + 2e-5, rtol=0)


@pytest.mark.parametrize("options", [{"smoothness": 10}, {"smoothness": 500, "bandwidth": 20}])
def test_colour_maps_fix_black_and_white(options: dict[str, int]) -> None:
    x = (images(6, 3) > 0.5).float()
    assert torch.allclose(colour(x, strength=5.0, **options, generator=rng()), x, atol=1e-5)
    grey = torch.full_like(x, 0.3)
    assert not torch.allclose(colour(grey, strength=0.1, **options, generator=rng()), grey, atol=1e-3)


def test_a_colour_map_for_each_channel_and_image() -> None:
    x = torch.full((5, 3, 4, 4), 0.3)
    result = colour(x, strength=0.02, smoothness=5, generator=rng())
    assert len(result[:, :, 0, 0].flatten().unique()) == 15
    assert torch.equal(result, result[:, :, :1, :1].expand_as(result))


def test_colour_coefficients_are_normal() -> None:
    ones = torch.ones(2000, dtype=torch.int64)
    beta = draw_coefficients(full(2000, 0.3), ones, 4 * ones, 6, 3, rng())
    assert beta.shape == (2000, 3, 6) and (beta[..., 4:] == 0).all()
    assert follows(beta[..., :4] / 0.3, "norm")


def test_distance_of_recoloured_images() -> None:
    """E|x - gamma(x)|^2 = sigma^2 sum over pixels and frequencies of sin^2(pi k x), by independence."""
    x, sigma, cut = images(1, 1, 4, 4), 0.2, 6
    many, ones = x.repeat(4000, 1, 1, 1), torch.ones(4000, dtype=torch.int64)
    beta = draw_coefficients(full(4000, sigma), ones, cut * ones, cut, 1, rng())
    distance = (recoloured(many, beta) - many).square().sum((1, 2, 3))
    waves = (math.pi * x.flatten()[:, None] * torch.arange(1, cut + 1)).sin()
    assert close_in_mean(distance, sigma**2 * waves.square().sum())


def test_laws_of_colour() -> None:
    """Gap U37: the *variance* is uniform on (0, 0.01); the cut is uniform on 1 .. K."""
    sigma, cut = RandomColour(10, 0.01).draw(images(4000, 1, 3, 3), rng())
    assert follows(sigma.square(), scipy.stats.uniform(0, 0.01).cdf)
    assert scipy.stats.chisquare(np.bincount(cut.numpy(), minlength=11)[1:]).pvalue > LEVEL


def test_bandwidth_takes_neighbouring_frequencies() -> None:
    first, last = torch.tensor([1, 4, 9]), torch.tensor([3, 6, 9])
    beta = draw_coefficients(full(3, 1.0), first, last, 9, 2, rng())
    used = [[int(k) + 1 for k in beta[n, 0].nonzero()[:, 0]] for n in range(3)]
    assert used == [[1, 2, 3], [4, 5, 6], [9]]


# ----------------------------------------------------------------------------------------- mixture


@pytest.mark.parametrize("mixing", ["dirichlet", "beta", "none"])
def test_weights_are_convex(mixing: str) -> None:
    mixture = Mixture(mixing=mixing)
    weights = mixture.weights(1000, rng(), images())
    assert weights.shape == (1000, 1 + mixture.chains)
    assert (weights >= 0).all() and torch.allclose(weights.sum(1), full(1000, 1.0))


def test_laws_of_weights() -> None:
    """The clean image gets 1/4 on average in Algorithm 3, and 1/2 in the published form (gap U39)."""
    drawn = Mixture(width=3).weights(3000, rng(), images())
    assert all(follows(part, scipy.stats.beta(1, 3).cdf) for part in drawn.T)
    drawn = Mixture(width=3, mixing="beta").weights(3000, rng(), images())
    assert follows(drawn[:, 0], "uniform")
    assert all(follows(part / drawn[:, 1:].sum(1), scipy.stats.beta(1, 2).cdf) for part in drawn[:, 1:].T)
    drawn = Mixture(mixing="beta", beta=(5.0, 1.0)).weights(3000, rng(), images())
    assert follows(drawn[:, 1:].sum(1), scipy.stats.beta(5, 1).cdf)
    drawn = Mixture(width=2, concentration=0.5).weights(3000, rng(), images())
    assert follows(drawn[:, 1], scipy.stats.beta(0.5, 1.0).cdf)


def test_operations_of_chains() -> None:
    """Algorithm 3 draws the identity as often as any primitive; else chains have 1 .. depth operations."""
    kinds = Mixture().kinds(4000, 3, rng(), images())
    counts = np.bincount(kinds.flatten().numpy() + 1, minlength=4)
    assert kinds.shape == (3, 4000) and scipy.stats.chisquare(counts).pvalue > LEVEL
    kinds = Mixture(mixing="beta").kinds(6000, 3, rng(), images())
    lengths = (kinds != IDENTITY).sum(0)
    assert scipy.stats.chisquare(np.bincount(lengths.numpy(), minlength=4)[1:]).pvalue > LEVEL
    assert (kinds[0] != IDENTITY).all()  # the identity comes after, never before
    counts = np.bincount(kinds[kinds != IDENTITY].numpy(), minlength=3)
    assert scipy.stats.chisquare(counts).pvalue > LEVEL


def test_blend_is_the_convex_sum() -> None:
    x, chains = images(4), torch.stack([images(4, seed=s) for s in (2, 3)])
    weights = Mixture(width=2).weights(4, rng(), x)
    parts = torch.cat([x[None], chains])
    expected = (weights.T[:, :, None, None, None] * parts).sum(0)
    assert torch.allclose(blend(x, chains, weights[:, 1:]), expected)


# ------------------------------------------------------------------------------------------- prime


SUBSETS = [names for size in range(4) for names in itertools.combinations(PRIMITIVES, size)]


@pytest.mark.parametrize("primitives", SUBSETS, ids="+".join)
def test_combinations_of_primitives(primitives: tuple[str, ...]) -> None:
    """The eight of Table 5.5: the empty one is no augmentation at all."""
    x = images(16).float()
    x[:, :, 4:8] = x[:, :, 4:8].round()
    result = prime_cifar(primitives=primitives)(x, generator=rng())
    assert torch.equal(result, x) == (not primitives)
    if primitives == ("colour",):  # black and white stay
        assert torch.allclose(result[:, :, 4:8], x[:, :, 4:8], atol=1e-5)
    if primitives == ("spatial",):  # the border stays
        assert torch.allclose(result[:, :, 0], x[:, :, 0], atol=1e-5)


@pytest.mark.parametrize("mixing", ["dirichlet", "beta", "none"])
@pytest.mark.parametrize("shape", [(1, 1, 28, 28), (1, 3, 32, 32), (6, 3, 9, 11)])
def test_prime_takes_any_images(mixing: str, shape: tuple[int, ...]) -> None:
    prime, x = prime_cifar(mixing=mixing), images(*shape).float()
    before, state = x.clone(), torch.random.get_rng_state()
    result = prime(x, generator=rng())
    assert result.shape == x.shape and inside(result)
    assert torch.equal(result, prime(x, generator=rng())) and not torch.equal(result, x)
    assert torch.equal(x, before) and torch.equal(torch.random.get_rng_state(), state)
    again = prime(x.contiguous(memory_format=torch.channels_last), generator=rng())
    assert torch.equal(result, again)
    assert again.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name.startswith("prime")])
def test_presets_augment(name: str) -> None:
    x = images(8, 3, 16, 16).float()
    same = augmentation(name)(x[:1].repeat(8, 1, 1, 1), generator=rng())
    assert len(same.flatten(1).unique(dim=0)) == 8  # every image its own operations, strengths and weights
    assert inside(same)


@pytest.mark.parametrize("mixing", ["dirichlet", "beta", "none"])
def test_scale_zero_is_the_identity(mixing: str) -> None:
    x = images(8).float()
    assert torch.equal(prime_cifar(scale=0.0, mixing=mixing)(x, generator=rng()), x)


def test_scale_multiplies_strengths() -> None:
    """Section 5.4.3: a hundredth of the strength, a hundredth of the change where nothing is clipped."""
    x = 0.4 + 0.2 * scipy_smooth(images(32))
    sizes = [
        (prime_cifar(scale=scale)(x, generator=rng()) - x).abs().mean() for scale in (1e-5, 1e-3, 0.1, 1.0)
    ]
    assert sizes[1] / sizes[0] == pytest.approx(100, rel=0.05)
    assert sizes[1] < sizes[2] < sizes[3]


def test_constants_of_presets() -> None:
    """Section B.2.2 and the published configurations."""
    prime: Any = prime_cifar()
    assert (prime.spectral.sigma, prime.spectral.size) == (4.0, 3)
    assert (prime.spatial.cut_min, prime.spatial.cut_max) == (2, 100)
    assert (prime.colour.cut, prime.colour.variance, prime.colour.bandwidth) == (10, 0.01, None)
    assert (prime.mixture.width, prime.mixture.depth, prime.mixture.mixing) == (3, 3, "dirichlet")
    assert prime == Prime()
    published: Any = prime_cifar(colour_cut=100, mixing="beta")
    assert published.colour.cut == 100 and published.mixture.beta == (1.0, 1.0)
    large: Any = prime_imagenet()
    assert (large.spatial.cut_max, large.colour) == (500, RandomColour(500, 0.05, 20))
    weak: Any = prime_filling(depth=1, beta=(5.0, 1.0))
    assert weak.spectral.sigma**2 == pytest.approx(0.01) and weak.colour.variance == 0.001
    assert weak.spatial.cut_max == 10 and weak.mixture == Mixture(depth=1, mixing="beta", beta=(5.0, 1.0))


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.sampled_from([1, 3]), st.integers(3, 14), st.integers(3, 14), st.integers(0, 2**31)
)
def test_prime_stays_inside(count: int, channels: int, height: int, width: int, seed: int) -> None:
    x = images(count, channels, height, width, seed).float().round(decimals=1)
    result = prime_cifar(scale=3.0)(x, generator=rng(seed))
    assert inside(result)


# ------------------------------------------------------------------------------------------ mistakes


X = torch.rand(2, 3, 8, 8, generator=rng())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: prime_cifar()(X[0], generator=rng()), "x[None]"),
        (lambda: prime_cifar()((255 * X).byte(), generator=rng()), "255"),
        (lambda: prime_cifar()(2 * X, generator=rng()), "before normalising"),
        (lambda: prime_cifar()(X * torch.nan, generator=rng()), "nan"),
        (lambda: prime_cifar()(X[:0], generator=rng()), "no images"),
        (lambda: prime_cifar()(X[..., :2], generator=rng()), "at least 3"),
        (lambda: prime_cifar()(X.numpy(), generator=rng()), "tensor"),
        (lambda: prime_cifar()(X, generator=None), "manual_seed"),
        (lambda: spectral(X, strength=1.0, smoothness=4, generator=rng()), "odd"),
        (lambda: spectral(X, strength=-1.0, generator=rng()), "0 or more"),
        (lambda: spectral(X, strength=torch.ones(3), generator=rng()), "2 images"),
        (lambda: spatial(X, strength=0.1, smoothness=0, generator=rng()), "1 or more"),
        (lambda: spatial(X, strength=0.1, smoothness=2.5, generator=rng()), "whole"),
        (lambda: spatial(X, strength=math.inf, smoothness=2, generator=rng()), "finite"),
        (lambda: colour(X, strength="1", smoothness=2, generator=rng()), "number"),
        (lambda: colour(X, strength=0.1, smoothness=2, bandwidth=0, generator=rng()), "bandwidth"),
        (lambda: RandomDiffeo(1, 100), "2 or more"),
        (lambda: RandomDiffeo(5, 4), "lower one first"),
        (lambda: RandomColour(10, -0.1), "variance"),
        (lambda: Mixture(mixing="betta"), "did you mean beta"),
        (lambda: Mixture(width=0), "width"),
        (lambda: Mixture(beta=(1.0, 0.0)), "positive"),
        (lambda: Mixture(beta=1.0), "two"),  # type: ignore[arg-type]
        (lambda: prime_cifar(primitives=("color",)), "did you mean colour"),
        (lambda: prime_cifar(primitives="colour"), "tuple"),
        (lambda: prime_cifar(primitives=("colour", "colour")), "once"),
        (lambda: prime_cifar(scale=-1.0), "scale"),
        (lambda: augmentation("prime-cifar", alpha=1), "option"),
        (lambda: augmentation("prime"), "did you mean"),
    ],
)
def test_mistakes_are_one_line(call: Any, says: str) -> None:
    with pytest.raises(BookError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
