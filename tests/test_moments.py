"""The moment regulariser against what is known: Monte Carlo, dense matrices, finite differences, limits."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from robustbook.defenses.moments import (
    first_layer_moments,
    mean_forward,
    moment_loss,
    noisy_copies,
    relu_mean,
    shallow_mean,
    split_first_relu,
)
from robustbook.errors import BookError
from robustbook.networks import Normalise, make
from robustbook.rehearsal import rehearsal
from robustbook.training import fit
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn.functional import cross_entropy

F64 = torch.float64


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------- relu_mean and Theorem 1


@pytest.mark.parametrize(("n", "p", "d"), [(1, 1, 1), (2, 5, 3), (7, 4, 2), (30, 40, 10)])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.1, 1.0, 10.0])
def test_theorem_1_against_monte_carlo(n: int, p: int, d: int, scale: float) -> None:
    g = rng(100 * n + p)
    a, b = torch.randn(p, n, generator=g, dtype=F64), torch.randn(d, p, generator=g, dtype=F64)
    c1, c2 = torch.randn(p, generator=g, dtype=F64), torch.randn(d, generator=g, dtype=F64)
    mean, root = torch.randn(n, generator=g, dtype=F64), scale * torch.randn(n, n, generator=g, dtype=F64)
    x = mean + torch.randn(40_000, n, generator=g, dtype=F64) @ root.T
    outputs = torch.relu(x @ a.T + c1) @ b.T + c2
    error = (outputs.mean(0) - shallow_mean(a, c1, b, c2, mean, root @ root.T)).abs()
    assert (error <= 4 * outputs.std(0) / math.sqrt(len(x)) + 1e-12).all()


def test_theorem_1_sees_the_covariance() -> None:
    """With the diagonal alone, correlated inputs would give another mean."""
    a, one = torch.ones(1, 2, dtype=F64), torch.ones(1, 1, dtype=F64)
    zero, mean = torch.zeros(1, dtype=F64), torch.zeros(3, 2, dtype=F64)
    opposed = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=F64)
    assert torch.equal(shallow_mean(a, zero, one, zero, mean, opposed), torch.zeros(3, 1, dtype=F64))
    aligned = shallow_mean(a, zero, one, zero, mean, opposed.abs())
    assert torch.allclose(aligned, torch.full((3, 1), 2 / math.sqrt(2 * math.pi), dtype=F64))


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_limit_of_no_noise(dtype: torch.dtype) -> None:
    """Exactly ReLU, in value and derivative, also beside elements with noise."""
    mu = torch.tensor([-2.0, -1e-30, 0.0, 1e-30, 3.0, 0.5], dtype=dtype, requires_grad=True)
    sigma = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], dtype=dtype, requires_grad=True)
    value = relu_mean(mu, sigma)
    value.sum().backward()
    assert torch.equal(value[:5], torch.relu(mu)[:5])
    assert torch.equal(relu_mean(mu, 0.0), torch.relu(mu))
    assert mu.grad is not None and sigma.grad is not None
    assert mu.grad[:5].tolist() == [0, 0, 0, 1, 1]
    assert sigma.grad[:5].tolist() == [0] * 5
    assert 0 < mu.grad[5] < 1 and sigma.grad[5] > 0


@given(st.floats(-50, 50), st.floats(0, 50) | st.floats(0, 1e-30))
def test_relu_mean_lies_where_it_must(mu: float, sigma: float) -> None:
    """Jensen: at least ReLU of the mean; at most that plus the mean of |noise|/2."""
    for dtype, slack in ((F64, 1e-12), (torch.float32, 1e-5)):
        m = torch.tensor(mu, dtype=dtype, requires_grad=True)
        s = torch.tensor(sigma, dtype=dtype, requires_grad=True)
        value = relu_mean(m, s)
        value.backward()
        low = max(mu, 0.0)
        assert low - slack * (1 + abs(mu)) <= value.item()
        assert value.item() <= (low + sigma / math.sqrt(2 * math.pi)) * (1 + slack) + slack
        assert m.grad is not None and 0 <= m.grad.item() <= 1
        assert s.grad is not None and 0 <= s.grad.item() <= 0.4


def test_relu_mean_gradcheck_with_broadcasting() -> None:
    mu = torch.randn(3, 2, 4, dtype=F64, generator=rng(0), requires_grad=True)
    sigma = (torch.rand(1, 2, 1, dtype=F64, generator=rng(1)) + 0.2).requires_grad_()
    assert relu_mean(mu, sigma).shape == mu.shape
    assert gradcheck(relu_mean, (mu, sigma))
    assert gradcheck(relu_mean, (sigma.detach().requires_grad_(), mu.detach().abs() + 0.1))


# ---------------- the first layer, convolutional

STD = (0.5, 2.0)
AFFINE_PARTS = {
    "plain": lambda: nn.Sequential(nn.Conv2d(2, 3, 3)),
    "padded and normalised": lambda: nn.Sequential(Normalise((0.1, 0.4), STD), nn.Conv2d(2, 3, 3, padding=1)),
    "strided": lambda: nn.Sequential(nn.Identity(), Normalise(0.5, STD), nn.Conv2d(2, 3, 5, 2, padding=2)),
    "dilated": lambda: nn.Sequential(nn.Conv2d(2, 3, (2, 3), dilation=2, padding=(1, 2), bias=False)),
    "grouped": lambda: nn.Sequential(nn.Conv2d(2, 4, 3, groups=2, padding="same")),
    "dense": lambda: nn.Sequential(Normalise(0.5, STD), nn.Flatten(), nn.Linear(2 * 6 * 5, 7)),
    "scaled twice": lambda: nn.Sequential(nn.Conv2d(2, 2, 3), Normalise((0.0, 1.0), STD)),
}


def dense_matrix(affine: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """The matrix of an affine map, from what it does to unit vectors."""
    units = torch.eye(math.prod(shape), dtype=F64).reshape(-1, *shape)
    origin = affine(torch.zeros(1, *shape, dtype=F64))
    return (affine(units) - origin).flatten(1).T


@pytest.mark.parametrize("kind", AFFINE_PARTS)
@pytest.mark.parametrize("per_pixel", [False, True])
def test_squared_weights_equal_the_dense_diagonal(kind: str, per_pixel: bool) -> None:
    shape = (2, 6, 5)
    affine = AFFINE_PARTS[kind]().double()
    x = torch.rand(3, *shape, dtype=F64, generator=rng(2))
    variance = torch.rand(shape, dtype=F64, generator=rng(3)) if per_pixel else torch.tensor(0.3, dtype=F64)
    mu, sigma = first_layer_moments(affine, x, variance)
    a = dense_matrix(affine, shape)
    covariance = a @ torch.diag(variance.expand(shape).flatten()) @ a.T
    assert torch.allclose(mu, affine(x))
    assert torch.allclose(sigma.flatten(), covariance.diagonal().sqrt())
    assert sigma.shape == (1, *mu.shape[1:])


def test_variance_may_differ_between_images() -> None:
    affine = nn.Sequential(nn.Conv2d(1, 2, 3))
    x, variance = torch.rand(4, 1, 6, 6), torch.rand(4, 1, 6, 6)
    _, sigma = first_layer_moments(affine, x, variance)
    for image in range(4):
        _, alone = first_layer_moments(affine, x[image : image + 1], variance[image])
        assert torch.allclose(sigma[image], alone[0])


def test_first_layer_moments_of_the_real_network() -> None:
    """The published LeNet, against samples."""
    model = make("moment-lenet", seed=0, width=0.25)
    affine, _ = split_first_relu(model)
    x = torch.rand(1, 1, 28, 28, generator=rng(4))
    mu, sigma = first_layer_moments(affine, x, 0.25**2)
    noisy = affine(x + 0.25 * torch.randn(2000, 1, 28, 28, generator=rng(5)))
    assert torch.allclose(noisy.std(0), sigma[0], rtol=0.12)
    assert ((noisy.mean(0) - mu[0]).abs() < 5.5 * sigma[0] / math.sqrt(2000)).all()


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.ReLU()],
            "'1' (MaxPool2d) before the first ReLU is not affine",
        ),
        ([nn.Sequential(nn.Conv2d(1, 1, 3), nn.Sigmoid()), nn.ReLU()], "'0.1' (Sigmoid)"),
        ([nn.BatchNorm2d(1), nn.ReLU()], "'0' (BatchNorm2d)"),
        ([nn.Conv2d(1, 1, 3)], "no ReLU"),
        ([nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3), nn.ReLU()], "two linear layers"),
        ([nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), nn.ReLU()], "padding 'reflect'"),
    ],
)
def test_networks_it_cannot_take(layers: list[nn.Module], message: str) -> None:
    with pytest.raises(BookError) as error:
        mean_forward(nn.Sequential(*layers), torch.rand(1, 1, 8, 8), 0.1)
    assert message in str(error.value)


def test_network_that_is_not_sequential() -> None:
    with pytest.raises(BookError, match="a Bilinear cannot be cut"):
        split_first_relu(nn.Bilinear(1, 1, 1))


def test_negative_variance() -> None:
    with pytest.raises(BookError, match="cannot be negative"):
        mean_forward(make("lenet5", seed=0), torch.rand(1, 1, 28, 28), -0.1)


def test_variance_of_the_wrong_shape() -> None:
    with pytest.raises(BookError, match=r"shape \(28, 27\) do not fit images of shape \(1, 1, 28, 28\)"):
        mean_forward(make("lenet5", seed=0), torch.rand(1, 1, 28, 28), torch.rand(28, 27))


def test_split_is_the_whole_network() -> None:
    model = nn.Sequential(
        nn.Sequential(Normalise(0.1, 0.2), nn.Flatten()), make("lenet5", seed=0)[8], nn.ReLU()
    )
    model.append(nn.Sequential(nn.Linear(120, 4), nn.ReLU(), nn.Linear(4, 2)))
    affine, rest = split_first_relu(model)
    x = torch.rand(2, 1, 20, 20)
    assert torch.equal(rest(torch.relu(affine(x))), model(x))
    assert len(affine) == 3 and len(rest) == 3


def test_one_relu_used_twice() -> None:
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 4), relu, nn.Linear(4, 5), relu, nn.Linear(5, 2))
    affine, rest = split_first_relu(model)
    x = torch.randn(6, 3)
    assert torch.equal(rest(torch.relu(affine(x))), model(x))
    assert len(rest) == 3


# ---------------- equation 3 and the loss


def test_mean_forward_is_exact_for_one_hidden_layer() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 4)).double()
    x, variance = torch.rand(5, 3, 4, dtype=F64), torch.rand(3, 4, dtype=F64)
    first, last = model[1], model[3]
    exact = shallow_mean(
        first.weight, first.bias, last.weight, last.bias, x.flatten(1), torch.diag(variance.flatten())
    )
    assert torch.allclose(mean_forward(model, x, variance), exact)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 20.0])
def test_no_noise_gives_the_plain_loss(alpha: float) -> None:
    model = make("moment-lenet", seed=0, width=0.1)
    x, y = torch.rand(8, 1, 28, 28), torch.arange(8)
    loss, logits = moment_loss(0.0, alpha)(model, x, y)
    plain = cross_entropy(model(x), y)
    torch.testing.assert_close(logits, model(x), rtol=0, atol=1e-6)  # some processors round by batch size
    assert torch.allclose(loss, (1 + alpha) * plain)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    for got, want in zip(gradients, torch.autograd.grad(plain, list(model.parameters()))):
        assert torch.allclose(got, (1 + alpha) * want, atol=1e-5)


def test_loss_is_equation_2() -> None:
    model = make("moment-lenet", seed=0, width=0.1)
    x, y = torch.rand(8, 1, 28, 28), torch.arange(8)
    loss, _ = moment_loss(0.3, 2.0)(model, x, y)
    second = cross_entropy(mean_forward(model, x, 0.3**2), y)
    assert torch.allclose(loss, cross_entropy(model(x), y) + 2 * second)
    sigma = torch.full((1, 28, 28), 0.3)
    assert torch.allclose(loss, moment_loss(sigma, 2.0)(model, x, y)[0])


def test_moment_loss_gradcheck() -> None:
    """Through squared weights, the root, the ReLU mean and the rest, in weights and images."""
    model = nn.Sequential(
        Normalise(0.5, 0.7), nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    ).double()
    x, y = torch.rand(2, 1, 4, 4, dtype=F64, generator=rng(6), requires_grad=True), torch.tensor([0, 2])
    loss = moment_loss(0.4, 1.5)

    def value(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        parameters = {"1.weight": weight, "1.bias": bias}
        with torch.nn.utils.stateless._reparametrize_module(model, parameters):
            return loss(model, x, y)[0]

    weight, bias = (p.detach().clone().requires_grad_() for p in (model[1].weight, model[1].bias))
    assert gradcheck(value, (x, weight, bias))


def test_dead_filter_has_finite_gradients() -> None:
    """Where all weights of a filter are 0 so is sigma_2, whose root has no derivative."""
    model = make("moment-lenet", seed=0, width=0.1)
    with torch.no_grad():
        model.conv1.weight[0] = 0
    loss, _ = moment_loss(0.3, 1.0)(model, torch.rand(2, 1, 28, 28), torch.tensor([1, 2]))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    assert all(g.isfinite().all() for g in gradients)


def test_regulariser_trains() -> None:
    """Two classes that every pixel tells apart, the first one best: noise calls for all of them."""
    y = torch.arange(400) % 2
    x = 0.5 + (y - 0.5).reshape(-1, 1) * torch.tensor([1.0] + [0.15] * 99)

    def trained(**settings: Any) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(100, 20), nn.ReLU(), nn.Linear(20, 2))
        with torch.no_grad():
            model[0].weight[:, 1:] *= 0.01  # a start that trusts the first pixel
        fit(model, (x, y), epochs=5, batch_size=20, lr=1e-3, seed=0, validation=None, **settings)
        return model

    noisy = x + torch.randn(x.shape, generator=rng(7))
    right = [
        (trained(**loss)(noisy).argmax(1) == y).float().mean().item()
        for loss in ({}, {"loss": moment_loss(1.0, 5.0)})
    ]
    assert right[1] > right[0] + 0.03


@pytest.mark.parametrize(("sigma", "alpha"), [(-0.1, 1.0), (0.1, -1.0), (math.nan, 1.0), (0.1, math.nan)])
def test_wrong_settings(sigma: float, alpha: float) -> None:
    with pytest.raises(BookError, match="0 or more"):
        moment_loss(sigma, alpha)


def test_loss_says_what_it_is() -> None:
    assert repr(moment_loss(0.25, 1.0)) == "MomentLoss(sigma=0.25, alpha=1.0)"


# ---------------- noisy augmentation


def test_noisy_copies_are_fixed_and_lazy() -> None:
    x, y = torch.rand(6, 1, 4, 4), torch.arange(6)
    data = noisy_copies((x, y), 3, 0.5, seed=1)
    assert len(data) == 18
    images, labels = data.take(torch.arange(18))
    assert torch.equal(images[:6], x)
    assert torch.equal(labels, y.repeat(3))
    assert not (images[6:] == x.repeat(2, 1, 1, 1)).flatten(1).any(1).any()  # every copy has its noise
    order = torch.tensor([17, 3, 8])
    assert torch.equal(data.take(order)[0], images[order])
    again = noisy_copies((x, y), 3, 0.5, seed=1).take(torch.arange(18))[0]
    other = noisy_copies((x, y), 3, 0.5, seed=2).take(torch.arange(18))[0]
    assert torch.equal(images, again)
    assert not torch.isclose(images[6:], other[6:]).any(1).all()
    assert not torch.allclose(images[6:12] - x, images[12:] - x)


def test_noise_of_copies_is_gaussian_and_not_clipped() -> None:
    x, y = torch.zeros(500, 1, 6, 6), torch.zeros(500, dtype=torch.long)
    noise = noisy_copies((x, y), 2, 0.5, seed=0).take(torch.arange(500, 1000))[0].double().numpy().ravel()
    assert abs(noise.mean()) < 4 * 0.5 / math.sqrt(noise.size)
    assert abs(noise.std() - 0.5) < 4 * 0.5 / math.sqrt(2 * noise.size)
    assert noise.min() < -1
    assert abs(np.corrcoef(noise[:-36], noise[36:])[0, 1]) < 4 / math.sqrt(noise.size)


def test_one_fold_is_the_data_itself() -> None:
    x, y = torch.rand(4, 1, 2, 2), torch.arange(4)
    assert torch.equal(noisy_copies((x, y), 1, 0.5, seed=0).take(torch.arange(4))[0], x)


def test_validation_holds_no_copy_of_a_training_image() -> None:
    """Images are held out before they are copied; the augmented data is `folds` times what is left."""
    y = torch.arange(20) % 2
    x = (torch.arange(20) / 20).reshape(-1, 1, 1, 1).expand(-1, 1, 12, 12).clone()
    seen: list[Tensor] = []
    model = make("lenet5", seed=0, classes=2, size=12)

    def watch(_: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        seen.append(x.mean((1, 2, 3)))
        return x, y

    data = noisy_copies((x, y), 3, 0.001, seed=0)
    fit(model, data, epochs=1, batch_size=6, lr=1e-4, seed=0, validation=0.2, transform=watch)
    images = torch.cat(seen).mul(20).round().long()
    assert len(images) == 48
    assert images.unique().numel() == 16
    assert (images.bincount(minlength=20)[images.unique()] == 3).all()


@pytest.mark.parametrize(("folds", "sigma"), [(0, 0.1), (1.5, 0.1), (2, -0.1)])
def test_wrong_folds(folds: int, sigma: float) -> None:
    with pytest.raises(BookError, match="or more"):
        noisy_copies((torch.rand(2, 1), torch.arange(2)), folds, sigma, seed=0)


def test_rehearsal_of_copies() -> None:
    data = noisy_copies((torch.rand(50, 1, 12, 12), torch.arange(50) % 2), 21, 0.5, seed=0)
    with rehearsal():
        history = fit(
            make("lenet5", seed=0, classes=2, size=12), data, epochs=9, batch_size=32, lr=0.1, seed=0
        )
    assert history.steps == 1
