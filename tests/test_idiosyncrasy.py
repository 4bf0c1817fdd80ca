"""Data with known parts, and what the idiosyncrasy paper measures on it: closed forms against samples."""

import math

import pytest
import torch
from robustbook.datasets.parts import REGIMES, TwoClasses, regression
from robustbook.errors import BookError
from robustbook.measures.idiosyncrasy import (
    ball,
    distance_score,
    expected_robustness,
    least_absolute,
    least_squares,
    linear_accuracy,
    linear_robustness,
)
from torch import Tensor, nn

COUNT = 200_000


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear(w: Tensor) -> nn.Module:
    """The sign of w x as a network with two outputs."""
    layer = nn.Linear(len(w), 2, bias=False).double()
    layer.weight.data = torch.stack([-w, w])
    return layer.eval()


def test_the_parts_are_what_they_are_called() -> None:
    data = TwoClasses()
    parts = data.sample(COUNT, generator=generator())
    assert torch.equal(parts.x, parts.g + parts.d + parts.s)
    assert torch.allclose(parts.d.norm(dim=1), torch.tensor(data.size, dtype=torch.float64))
    assert torch.allclose((parts.d @ data.direction()) * parts.y, torch.tensor(data.size).double())
    assert (parts.g[:, 1:] == 0).all() and (parts.s[:, 0] == 0).all() and (parts.d[:, 0] == 0).all()
    assert parts.s[:, 1:].std().item() == pytest.approx(data.noise, rel=0.01)
    assert (parts.s.mT @ parts.y / COUNT).abs().max() < 5 * data.noise / math.sqrt(COUNT)
    assert parts.g[:, 0].mul(parts.y).mean().item() == pytest.approx(data.mean, abs=0.02)


@pytest.mark.parametrize("weight", [0.0, 10.0, 40.0])
def test_closed_forms_of_remark_1(weight: float) -> None:
    """Accuracy and expected robustness of linear models, within four standard errors of samples."""
    data = TwoClasses()
    parts = data.sample(COUNT, generator=generator(1))
    y, w = (parts.y > 0).long(), data.weights(weight)
    right = (parts.x @ w * parts.y > 0).double()
    assert abs(right.mean().item() - linear_accuracy(data, weight)) < 4 * right.std().item() / math.sqrt(
        COUNT
    )
    for radius in (0.1, 0.2, 2.0):
        sampled = expected_robustness(linear(w), parts.x, y, radius, generator=generator(2))
        assert abs(sampled - linear_robustness(data, weight, radius)) < 4 * 0.5 / math.sqrt(COUNT)
        worst = parts.x - radius * parts.y[:, None] * w / w.norm()
        lost = (worst @ w * parts.y > 0).double().mean().item() - linear_accuracy(data, weight)
        assert abs(lost - linear_robustness(data, weight, radius, worst=True)) < 4 * 0.5 / math.sqrt(COUNT)


def test_the_best_weight_is_the_best() -> None:
    data = TwoClasses()
    best = data.best_weight()
    here = linear_accuracy(data, best)
    assert here > linear_accuracy(data, 0.99 * best) and here > linear_accuracy(data, 1.01 * best)


def test_models_agree_on_the_semantic_part() -> None:
    """The premise of Remark 1: f(X_G) is the same for all weights of X_D."""
    data = TwoClasses()
    parts = data.sample(100, generator=generator())
    scores = [parts.g @ data.weights(weight) for weight in (0.0, 10.0, 80.0)]
    assert torch.equal(scores[0], scores[1]) and torch.equal(scores[1], scores[2])


def test_points_are_uniform_in_the_ball() -> None:
    """In three dimensions the share inside half the radius is an eighth, and all directions are alike."""
    points = ball(torch.zeros(50_000, 3, dtype=torch.float64), 2.0, generator=generator())
    length = points.norm(dim=1)
    assert length.max() <= 2 and abs((length < 1).double().mean().item() - 1 / 8) < 0.01
    assert points.mean(0).abs().max() < 0.02
    assert ball(torch.zeros(5, 1, 2, 2), 0.0, generator=generator()).abs().max() == 0


def test_scores_are_zero_where_nothing_was_won() -> None:
    x = torch.zeros(4, 1, 2, 2)
    found = x + torch.tensor([1.0, 2.0, 3.0, 4.0]).reshape(4, 1, 1, 1)
    right = torch.tensor([True, True, False, True])
    fooled = torch.tensor([True, False, True, True])
    assert distance_score(x, found, right, fooled).tolist() == [4.0, 0.0, 0.0, 64.0]
    with pytest.raises(BookError):
        distance_score(x, found, right[:2], fooled)


@pytest.mark.parametrize("regime", REGIMES)
def test_regression_parts(regime: str) -> None:
    parts = regression(regime, 0.1, samples=500, inputs=6, outputs=2, generator=generator())
    assert (parts.d.norm() / parts.g.norm()).item() == pytest.approx(0.1)
    told = torch.corrcoef(torch.stack([parts.d.sum(1), parts.y.sum(1)]))[0, 1].abs()
    assert parts.x.shape == ((500, 8) if regime == "apart" else (500, 6))
    if regime == "apart":
        assert (parts.g[:, 6:] == 0).all() and (parts.d[:, :6] == 0).all()
    elif regime == "noise":
        assert told < 0.2


def test_fits_on_noise_attenuate() -> None:
    """Errors in variables: with X_D of variance v per unit variance of X_G the fit is the truth / (1 + v)."""
    parts = regression("noise", 0.5, samples=20_000, inputs=3, outputs=2, generator=generator())
    with_noise, plain = least_squares(parts.x, parts.y), least_squares(parts.g, parts.y)
    assert torch.allclose(with_noise, plain / 1.25, atol=0.05)


def test_least_squares_is_the_smallest_solution() -> None:
    """Where inputs are always zero, so are their weights."""
    parts = regression("apart", 0.1, samples=50, inputs=3, outputs=2, generator=generator())
    assert torch.allclose(least_squares(parts.g, parts.y)[3:], torch.zeros(2, 2).double(), atol=1e-12)
    assert (least_absolute(parts.g, parts.y)[3:] == 0).all()


def test_least_absolute_finds_the_median_and_beats_its_neighbours() -> None:
    t = torch.tensor([[0.0], [1.0], [2.0], [10.0], [50.0]]).double()
    assert least_absolute(torch.ones(5, 1).double(), t).item() == pytest.approx(2.0)
    parts = regression("noise", 0.3, samples=40, inputs=4, outputs=2, generator=generator(3))
    found = least_absolute(parts.x, parts.y)
    error = (parts.x @ found - parts.y).abs().sum()
    for seed in range(20):
        other = found + 0.01 * torch.randn(found.shape, generator=generator(seed), dtype=torch.float64)
        assert (parts.x @ other - parts.y).abs().sum() > error


@pytest.mark.parametrize(
    "call",
    [
        lambda: TwoClasses(size=0.0),
        lambda: TwoClasses(dimension=0),
        lambda: regression("signal", 0.1, samples=5, inputs=2, outputs=1, generator=generator()),
        lambda: regression("noise", -1.0, samples=5, inputs=2, outputs=1, generator=generator()),
        lambda: ball(torch.zeros(2, 2), -1.0, generator=generator()),
    ],
)
def test_mistakes(call: object) -> None:
    with pytest.raises(BookError) as error:
        call()  # type: ignore[operator]
    assert "\n" not in str(error.value)
