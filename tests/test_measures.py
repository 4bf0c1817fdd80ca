"""Measures against closed forms: a linear classifier's kept rate, and the mean norm of Gaussian noise."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from robustbook.errors import BookError
from robustbook.measures import accuracy, expected_norm, gnr, kept_rate, noise_levels
from robustbook.networks import make
from scipy import stats
from torch import Tensor, nn

COUNT = 20_000


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear_classifier(n: int) -> tuple[nn.Module, Tensor, float]:
    """Two classes, one image many times, and its distance from the boundary."""
    w = torch.randn(n, generator=rng(n))
    layer = nn.Linear(n, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.stack([w, -0.5 * w]))
        layer.bias.copy_(torch.tensor([0.3, 0.1]))
        x = torch.rand(1, n, generator=rng(n + 1))
        scores = layer(x)[0]
        x += (0.35 - (scores[0] - scores[1]) / (1.5 * w.norm())) * w / w.norm()
    return nn.Sequential(nn.Flatten(), layer), x.expand(COUNT, n), 0.35


def kept_under_gaussian(distance: float, n: int, sigma: float) -> float:
    return float(stats.norm.cdf(distance / sigma)) if sigma else 1.0


def kept_on_the_sphere(distance: float, n: int, sigma: float) -> float:
    """One coordinate of a uniform direction in n dimensions is 2 Beta((n-1)/2, (n-1)/2) - 1."""
    if sigma == 0:
        return 1.0
    reach = min(1.0, distance / (sigma * math.sqrt(n)))
    return float(stats.beta.cdf((reach + 1) / 2, (n - 1) / 2, (n - 1) / 2))


CLOSED = {"gaussian": kept_under_gaussian, "fixed-norm": kept_on_the_sphere}


@pytest.mark.parametrize("noise", CLOSED)
@pytest.mark.parametrize("n", [2, 5, 60])
def test_kept_rate_of_a_linear_classifier(noise: str, n: int) -> None:
    model, x, distance = linear_classifier(n)
    sigmas = [0.0, 0.1, 0.2, 0.5, 2.0]
    rates = kept_rate(model, x, sigmas, generator=rng(), noise=noise)
    exact = torch.tensor([CLOSED[noise](distance, n, s) for s in sigmas], dtype=torch.float64)
    assert rates.shape == (5,) and rates.dtype == torch.float64
    assert ((rates - exact).abs() <= 4 * (exact * (1 - exact) / COUNT).sqrt() + 1e-12).all()


@pytest.mark.parametrize("noise", CLOSED)
def test_gnr_of_a_linear_classifier(noise: str) -> None:
    n = 5
    model, x, distance = linear_classifier(n)
    exact = np.array([CLOSED[noise](distance, n, s) for s in np.linspace(0, 0.5, 30)])
    error = 100 * math.sqrt((exact * (1 - exact)).sum() / COUNT) / 30
    assert abs(gnr(model, x, generator=rng(), noise=noise) - 100 * exact.mean()) <= 4 * error


def test_the_two_noises_differ_in_few_dimensions() -> None:
    """Otherwise the two closed forms could be exchanged unnoticed."""
    assert abs(kept_on_the_sphere(0.35, 5, 0.5) - kept_under_gaussian(0.35, 5, 0.5)) > 0.02
    assert kept_on_the_sphere(0.35, 10**6, 0.5) == pytest.approx(kept_under_gaussian(0.35, 1, 0.5), abs=1e-5)


def test_kept_means_the_clean_prediction_not_the_label() -> None:
    """A network that is always wrong but never changes its mind is perfectly robust."""
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([1.0, 0.0]))
    x, y = torch.rand(50, 4), torch.ones(50, dtype=torch.long)
    assert accuracy(layer, (x, y)) == 0
    assert gnr(layer, x, generator=rng()) == 100


class Watch(nn.Module):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return x.flatten(1)[:, :2]


def test_noise_has_the_stated_norm_and_is_not_clipped() -> None:
    x = torch.rand(40, 1, 5, 5)
    watch = Watch()
    kept_rate(watch, x, [0.0, 0.3, 0.5], generator=rng())
    shown = torch.stack(watch.seen)
    assert len(shown) == 3  # the clean images, then one noise for each level above 0
    norms = (shown[1:] - x).flatten(2).norm(dim=2)
    assert torch.allclose(norms, torch.tensor([[0.3 * 5], [0.5 * 5]]).expand(2, 40))
    assert shown.min() < 0 and shown.max() > 1
    assert not torch.allclose((shown[1] - x) / 0.3, (shown[2] - x) / 0.5)


def test_gnr_levels() -> None:
    """30 levels in [0, 0.5], evenly spaced, both ends included."""
    assert noise_levels() == pytest.approx(list(np.linspace(0, 0.5, 30)))
    x, watch = torch.rand(3, 9), Watch()
    value = gnr(watch, x, generator=rng())
    assert len(watch.seen) == 30
    rates = kept_rate(watch, x, noise_levels(), generator=rng())
    assert value == pytest.approx(100 * rates.mean().item())
    assert gnr(watch, x, generator=rng(), top=1e-9) == 100


def test_same_generator_same_number_whatever_the_batch() -> None:
    model, x = make("lenet5", seed=0), torch.rand(30, 1, 28, 28)
    first = kept_rate(model, x, [0.2, 0.5], generator=rng(1))
    assert torch.equal(first, kept_rate(model, x, [0.2, 0.5], generator=rng(1), batch_size=7))


def test_every_counts_images_that_keep_under_all_samples() -> None:
    """For independent noise the rates are p (mean) and p^m (every)."""
    model, x, distance = linear_classifier(5)
    p = kept_on_the_sphere(distance, 5, 0.5)
    mean, every = (
        kept_rate(model, x, [0.5], generator=rng(), samples=3, every=rule).item() for rule in (False, True)
    )
    assert abs(mean - p) <= 4 * math.sqrt(p * (1 - p) / (3 * COUNT))
    assert abs(every - p**3) <= 4 * math.sqrt(p**3 * (1 - p**3) / COUNT)


@given(st.integers(1, 10**7), st.floats(1e-3, 1e3))
def test_expected_norm_against_scipy(n: int, sigma: float) -> None:
    assert expected_norm(n, sigma) == pytest.approx(sigma * stats.chi.mean(n), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 784, 999, 1000, 1001, 3072, 150_528])
def test_expected_norm_at_sizes_of_images(n: int) -> None:
    assert expected_norm(n) == pytest.approx(stats.chi.mean(n), rel=1e-11)


def test_expected_norm_tends_to_the_root_of_n() -> None:
    assert expected_norm(1) == pytest.approx(math.sqrt(2 / math.pi))
    assert expected_norm(784) / math.sqrt(784) == pytest.approx(1 - 1 / (4 * 784), rel=1e-6)


def test_accuracy_leaves_the_network_as_it_was() -> None:
    model = make("lenet5", seed=0)
    model.pool1.eval()
    x = torch.rand(20, 1, 28, 28)
    y = model(x).argmax(1)
    y[:5] = (y[:5] + 1) % 10
    assert accuracy(model, (x, y), batch_size=6) == 0.75
    assert model.training and not model.pool1.training


def test_mistakes() -> None:
    model, x = nn.Linear(4, 2), torch.rand(3, 4)
    for call, message in [
        (lambda: accuracy(model, (x, torch.arange(2))), "3 images but 2 labels"),
        (lambda: accuracy(model, (x[:0], torch.arange(0))), "there are 0"),
        (lambda: gnr(model, x, generator=rng(), levels=1), "at least 2"),
        (lambda: kept_rate(model, x, [0.1], generator=rng(), samples=0), "samples=0"),
        (lambda: kept_rate(model, x, [0.1], generator=rng(), noise="gausian"), "did you mean gaussian"),
        (lambda: expected_norm(0), "n=0"),
    ]:
        with pytest.raises(BookError, match=message):
            call()  # type: ignore[no-untyped-call]
