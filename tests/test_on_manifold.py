"""The auto-encoder's loss, samples of its manifold, the two trainings on it, and the scores made of them."""

import math

import numpy as np
import pytest
import torch
from robustbook.defenses.manifold import (
    SCALES,
    Manifold,
    WaeLoss,
    decoded,
    manifold_loss,
    manifold_sampler,
    mmd,
    on_manifold_adversarial,
    worst_codes,
)
from robustbook.defenses.robust_loss import RobustLoss, neighbours
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from robustbook.framework import Constant, Pool, identity, indicator, sample_score
from robustbook.framework.on_manifold import (
    inverse,
    manifold_margins,
    measure_in,
    measure_on,
    score_of,
    sigma_of,
)
from robustbook.networks import make
from robustbook.networks.wae import Autoencoder, OnCodes, codes_of
from robustbook.training import fit, recipe_of, train_recipe
from torch import nn


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Line(nn.Module):
    """An auto-encoder that is known: codes are the first two of four numbers, decoding fills up with 0.5."""

    def encode(self, x):
        return x.flatten(1)[:, :2]

    def decode(self, codes):
        rest = torch.full((len(codes), 2), 0.5, dtype=codes.dtype)
        return torch.cat([codes, rest], 1).view(-1, 1, 2, 2)


class Half(nn.Module):
    """Two classes of images (N, 1, 2, 2), cut by a plane: `slope` times the pixels against `offset`."""

    def __init__(self, slope=(3.0, 4.0, 0.0, 0.0), offset=2.0):
        super().__init__()
        self.slope, self.offset = nn.Parameter(torch.tensor(slope)), offset

    def forward(self, x):
        value = x.flatten(1) @ self.slope - self.offset
        return torch.stack([-value, value], 1) / 2


# ------------------------------------------------------------------------------------------ network


@pytest.mark.parametrize(("size", "channels"), [(28, 1), (32, 3)])
def test_shapes_of_the_network(size, channels):
    model = make("wae", seed=0, channels=channels, size=size, width=0.25, hidden=20)
    x = torch.rand(3, channels, size, size)
    assert model.encode(x).shape == (3, 16)
    assert model.decode(torch.zeros(2, 16)).shape == (2, channels, size, size)
    assert torch.equal(model(x), model.decode(model.encode(x)).flatten(1))
    assert float(model(x).detach().min()) >= 0 and float(model(x).detach().max()) <= 1


def test_network_of_the_appendix():
    """Framework 2021, appendix B: 32, 64, 128 channels; dense 2048 and 7 x 7 x 64; the sides 14, 7, 4."""
    model = make("wae", seed=0)
    kinds = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
    weights = [tuple(layer.weight.shape) for layer in model.modules() if isinstance(layer, kinds)]
    encoder = [(32, 1, 3, 3), (64, 32, 3, 3), (128, 64, 3, 3), (16, 2048)]
    decoder = [(2048, 16), (7 * 7 * 64, 2048), (64, 64, 3, 3), (64, 32, 3, 3), (32, 1, 3, 3)]
    assert weights == encoder + decoder


@pytest.mark.parametrize("wrong", [{"size": 30}, {"latent": 0}, {"hidden": 0}, {"width": 0.0}])
def test_impossible_networks(wrong):
    with pytest.raises(BookError):
        make("wae", seed=0, **wrong)


def test_codes_of_many_images_come_in_parts():
    model, x = make("wae", seed=0, width=0.125, hidden=8), torch.rand(7, 1, 28, 28)
    assert torch.allclose(codes_of(model, x, batch_size=3), model.encode(x), atol=1e-6)


def test_the_decoder_is_no_part_of_a_classifier_on_codes():
    model = make("lenet5", seed=0)
    seen = OnCodes(model, make("wae", seed=1, width=0.125, hidden=8))
    assert {id(p) for p in seen.parameters()} == {id(p) for p in model.parameters()}
    assert seen(torch.zeros(2, 16)).shape == (2, 10)


# ---------------------------------------------------------------------------------- discrepancy, loss


def brute_mmd(codes, prior):
    """Kernel by kernel, pair by pair, in plain numbers."""
    k = codes.shape[1]

    def kernel(a, b):
        square = float(((a - b) ** 2).sum())
        return sum(2 * k * s / (2 * k * s + square) for s in SCALES)

    n = len(codes)
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                total += (kernel(codes[i], codes[j]) + kernel(prior[i], prior[j])) / (n * (n - 1))
            total -= 2 * kernel(codes[i], prior[j]) / n**2
    return total


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_discrepancy_by_brute_force(seed):
    codes = torch.randn(6, 3, generator=drawn(seed), dtype=torch.float64) * (seed + 1)
    prior = torch.randn(6, 3, generator=drawn(seed + 10), dtype=torch.float64)
    assert float(mmd(codes, prior)) == pytest.approx(brute_mmd(codes.numpy(), prior.numpy()), rel=1e-9)


def test_discrepancy_of_equal_distributions_is_zero_on_average():
    """The estimate is unbiased: its mean over many pairs of samples is 0 within three standard errors."""
    values = [
        float(mmd(*(torch.randn(20, 4, generator=g, dtype=torch.float64) for _ in range(2))))
        for g in [drawn(5)]
        for _ in range(400)
    ]
    assert abs(np.mean(values)) < 3 * np.std(values) / 20
    shifted = [
        float(mmd(torch.randn(20, 4, generator=g) + 1, torch.randn(20, 4, generator=g))) for g in [drawn(6)]
    ]
    assert shifted[0] > 5 * np.std(values)


def test_discrepancy_needs_two_samples_alike():
    with pytest.raises(BookError, match="two alike"):
        mmd(torch.zeros(3, 2), torch.zeros(4, 2))
    with pytest.raises(BookError, match="two alike"):
        mmd(torch.zeros(1, 2), torch.zeros(1, 2))


def test_loss_is_squared_error_and_weighted_discrepancy():
    model, x = make("wae", seed=0, width=0.125, hidden=8), torch.rand(5, 1, 28, 28, generator=drawn())
    y = torch.zeros(5, dtype=torch.long)
    missed = float((model(x) - x.flatten(1)).detach().square().sum(1).mean())
    assert float(WaeLoss(0.0)(model, x, y)) == pytest.approx(missed, rel=1e-6)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        loss = float(WaeLoss(10.0)(model, x, y))
        torch.manual_seed(3)
        codes = model.encode(x)
        expected = missed + 10 * float(mmd(codes, torch.randn_like(codes)))
    assert loss == pytest.approx(expected, rel=1e-5)
    assert float(WaeLoss()(model, x[:1], y[:1])) > 0  # one image has no discrepancy, but a loss


def test_loss_of_something_else_is_refused():
    with pytest.raises(BookError, match="auto-encoder"):
        WaeLoss()(make("lenet5", seed=0), torch.zeros(2, 1, 28, 28), torch.zeros(2))


def test_training_lowers_the_error_and_brings_codes_to_the_prior():
    """Images of one bright square at a random place: after a short training both parts are far lower."""
    g = drawn(1)
    x = torch.zeros(256, 1, 28, 28)
    for i, (r, c) in enumerate(torch.randint(0, 20, (256, 2), generator=g).tolist()):
        x[i, 0, r : r + 8, c : c + 8] = 1
    y = torch.zeros(256, dtype=torch.long)

    def state(model):
        with torch.no_grad():
            codes = model.encode(x)
            error = (model(x) - x.flatten(1)).square().sum(1).mean()
            return float(error), float(mmd(codes, torch.randn(codes.shape, generator=drawn(2))))

    model = make("wae", seed=0, width=0.25, hidden=64, latent=4)
    before = state(model)
    fit(
        model,
        (x, y),
        epochs=40,
        batch_size=32,
        lr=3e-3,
        seed=0,
        loss=WaeLoss(),
        validation=None,
        progress=False,
    )
    after = state(model)
    assert after[0] < 0.5 * before[0] and after[1] < 0.2 * before[1]


# ------------------------------------------------------------------------------------------- samples


def test_samples_are_decoded_noisy_codes():
    x = torch.rand(3, 1, 2, 2, generator=drawn())
    samples = manifold_sampler(Line, 0.1)(x, 20_000, drawn(1))
    assert samples.shape == (20_000, 3, 1, 2, 2)
    flat = samples.flatten(2)
    assert torch.all(flat[:, :, 2:] == 0.5)  # nothing leaves the manifold
    assert torch.allclose(flat[:, :, :2].mean(0), x.flatten(1)[:, :2], atol=4 * 0.1 / math.sqrt(20_000))
    assert torch.allclose(flat[:, :, :2].std(0), torch.tensor(0.1), rtol=0.03)
    again = decoded(Line().encode, Line().decode, 0.1)(x, 20_000, drawn(1))
    assert torch.equal(samples, again)


def test_the_autoencoder_is_loaded_once_and_not_before_it_is_needed():
    loads = []

    def load():
        loads.append(1)
        return Line()

    sampler = Manifold(load, 0.1)
    assert not loads
    for _ in range(3):
        sampler(torch.rand(2, 1, 2, 2), 2, drawn())
    assert len(loads) == 1


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan])
def test_noise_must_be_positive(sigma):
    with pytest.raises(BookError, match="sigma"):
        manifold_sampler(Line, sigma)


# ---------------------------------------------------------------------------------------- R4 training


def test_loss_is_the_generic_one_with_fresh_radii_and_inverse_weights():
    model, y = Half(), torch.tensor([0, 1])
    x, y = neighbours(manifold_sampler(Line, 0.5), 6)(
        model, torch.rand(2, 1, 2, 2, generator=drawn()), y, drawn(1)
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        value, logits = manifold_loss(2.0, radii=5, d=2.0)(model, x, y)
        second, _ = manifold_loss(2.0, radii=5, d=2.0)(model, x, y)
        torch.manual_seed(7)
        radii = (2.0 * (1 - torch.rand(5))).tolist()
    assert all(0 < eps <= 2 for eps in radii)
    expected, _ = RobustLoss(2.0, tuple(radii), inverse=True)(model, x, y)
    assert float(value) == float(expected) != float(second) and logits.shape == (2, 2)


def test_loss_by_hand():
    """One point, two samples, one of them within the only radius: CE - lambda/eps (-CE of that pair)."""
    model = Half(slope=(2.0, 0.0, 0.0, 0.0), offset=0.0)
    x = torch.tensor([[0.5, 0, 0, 0], [0.6, 0, 0, 0], [9.0, 0, 0, 0]]).view(3, 1, 2, 2)
    loss = RobustLoss(3.0, (0.2,), inverse=True)(model, x, torch.tensor([1]))[0]
    p, q = (1 / (1 + math.exp(-2 * value)) for value in (0.5, 0.6))
    pair = -(p * math.log(q) + (1 - p) * math.log(1 - q))
    assert float(loss) == pytest.approx(-math.log(p) + 3.0 / 0.2 * pair, rel=1e-5)


@pytest.mark.parametrize("wrong", [{"weight": -1.0}, {"weight": 1.0, "radii": 0}, {"weight": 1.0, "d": 0.0}])
def test_impossible_losses(wrong):
    with pytest.raises(BookError):
        manifold_loss(**wrong)


# --------------------------------------------------------------------------------- on-manifold adversaries


@pytest.mark.parametrize("label", [0, 1])
def test_worst_codes_of_a_plane_are_corners(label):
    """For a plane the loss rises most in the corner of the cube that lies against the slope's signs."""
    model, codes = OnCodes(Half(), Line()), torch.rand(4, 2, generator=drawn())
    y = torch.full((4,), label)
    found = worst_codes(model, codes, y, eps=0.3, steps=10, generator=drawn(1))
    side = 1.0 if label == 0 else -1.0
    assert torch.allclose(found, codes + 0.3 * side, atol=1e-6)


def test_half_of_the_batch_is_attacked_on_the_manifold():
    model = Half().train()
    x, y = torch.rand(5, 1, 2, 2, generator=drawn()), torch.tensor([0, 1, 0, 1, 0])
    images, labels = on_manifold_adversarial(Line, eps=0.2, steps=5)(model, x, y, drawn(2))
    assert torch.equal(labels, y) and torch.equal(images[2:], x[2:]) and model.training
    flat = images.flatten(1)
    assert torch.all(flat[:2, 2:] == 0.5)
    sides = torch.tensor([[0.2, 0.2], [-0.2, -0.2]])
    assert torch.allclose(flat[:2, :2], x.flatten(1)[:2, :2] + sides, atol=1e-6)
    assert torch.equal(on_manifold_adversarial(Line)(model, x[:1], y[:1], drawn())[0], x[:1])


def test_gradients_of_the_search_stay_out_of_training():
    model, net = Half(), make("wae", seed=0, width=0.125, hidden=8)
    classifier = make("lenet5", seed=0)
    on_manifold_adversarial(lambda: net, steps=2)(
        classifier, torch.rand(4, 1, 28, 28), torch.tensor([0, 1, 2, 3]), drawn()
    )
    assert all(p.grad is None for p in [*net.parameters(), *classifier.parameters(), *model.parameters()])


@pytest.mark.parametrize("wrong", [{"eps": 0.0}, {"steps": 0}])
def test_impossible_adversaries(wrong):
    with pytest.raises(BookError):
        on_manifold_adversarial(Line, **wrong)


# -------------------------------------------------------------------------------------------- scores


def normal(value):
    return 0.5 * (1 + math.erf(value / math.sqrt(2)))


def test_measure_on_a_known_manifold():
    """Half-space, noise on two coordinates: labels are kept with probability Phi(margin / sigma)."""
    f, sigma = Half(), 0.2
    x = torch.tensor([[0.4, 0.4, 0.5, 0.5], [0.1, 0.35, 0.5, 0.5], [0.2, 0.2, 0.5, 0.5]]).view(3, 1, 2, 2)
    found = measure_on(
        f, x, manifold_sampler(Line, sigma), torch.tensor([9.0]), count=20_000, generator=drawn(1)
    )
    exact = [normal(abs(3 * p[0] + 4 * p[1] - 2) / 5 / sigma) for p in x.flatten(1).tolist()]
    assert found.kept[0].tolist() == pytest.approx(exact, abs=4 * 0.5 / math.sqrt(20_000))
    assert not found.empty.any()


def test_score_in_parts_is_the_score_of_the_whole():
    f, x = Half(), torch.rand(7, 1, 2, 2, generator=drawn())
    sampler, radii = manifold_sampler(Line, 0.3), sigma_of(9, 1.5, drawn(1))
    found = measure_on(f, x, sampler, radii, count=12, generator=drawn(2), batch_size=7)
    samples = sampler(x, 12, drawn(2))
    for link in (identity, indicator):
        whole = sample_score(f, x, samples, radii.tolist(), link=link, factor=inverse)
        ours = score_of(found, link, inverse)
        assert ours[:3] == pytest.approx(whole[:3], rel=1e-9) and ours.empty == pytest.approx(whole.empty)
    parts = measure_on(f, x, sampler, radii, count=12, generator=drawn(2), batch_size=3)
    assert parts.kept.shape == (9, 7) and not torch.equal(parts.kept, found.kept)


def test_measure_in_a_pool_by_brute_force():
    f, x, others = Half(), *(torch.rand(n, 1, 2, 2, generator=drawn(n)) for n in (4, 30))
    radii = torch.tensor([0.05, 0.4, 0.8, 3.0], dtype=torch.float64)
    found = measure_in(f, x, Pool(others), radii)
    for i, eps in enumerate(radii.tolist()):
        for j, point in enumerate(x):
            near = [o for o in others if float((o - point).norm()) < eps]
            kept = [int(f(o[None]).argmax()) == int(f(point[None]).argmax()) for o in near]
            assert bool(found.empty[i, j]) == (not near)
            assert float(found.kept[i, j]) == pytest.approx(np.mean(kept) if near else 1.0)
    assert found.empty[0].any() and not found.empty[-1].any()


def test_bounds_of_the_score():
    """The constant classifier is at the ceiling, one that keeps nothing on the manifold at the floor."""
    x = torch.rand(6, 1, 2, 2, generator=drawn())
    sampler, radii = manifold_sampler(Line, 0.05), sigma_of(40, 2.0, drawn(1))
    how = dict(count=10, generator=drawn(2))
    most = score_of(measure_on(Constant(3), x, sampler, radii, **how), identity, inverse)
    assert (
        most.value == most.ceiling == pytest.approx(float((1 / radii).mean()))
        and most.share == most.room == 1
    )

    def off(points):
        """Is a point off the manifold?"""
        return (points.flatten(1)[:, 2:] != 0.5).any(1).long()

    least = score_of(measure_on(off, x, sampler, radii, **how), identity, inverse)
    assert least.value == pytest.approx(least.floor) and 0 < least.floor < least.ceiling
    assert least.room == pytest.approx(0) and 0 < least.empty < 1


def test_radii_are_uniform_and_never_zero():
    radii = sigma_of(100_000, 28.0, drawn())
    assert float(radii.min()) > 0 and float(radii.max()) <= 28
    assert float(radii.mean()) == pytest.approx(14, abs=0.1)
    with pytest.raises(BookError):
        sigma_of(0, 28.0, drawn())


def test_on_manifold_margin_of_a_plane():
    """From a point of the manifold the nearest other label on it is at |margin| over the slope along it."""
    f = Half(slope=(3.0, 4.0, 12.0, 0.0), offset=8.0)
    x = torch.tensor([[0.1, 0.2, 0.5, 0.5], [0.3, 0.1, 0.5, 0.5]]).view(2, 1, 2, 2)
    found = manifold_margins(f, Line(), x, d=2.0)
    exact = [abs(3 * p[0] + 4 * p[1] + 12 * p[2] - 8) / 5 for p in x.flatten(1).tolist()]
    assert found.distance.tolist() == pytest.approx(exact, rel=0.02)
    assert torch.allclose(found.moved, found.distance) and torch.allclose(
        found.latent, found.distance, rtol=1e-4
    )
    assert found.kind.tolist() == [0, 0]
    assert torch.all(f(found.points).argmax(1) != f(x).argmax(1))


def test_on_manifold_margin_where_the_reconstruction_is_elsewhere():
    f, x = Half(slope=(0.0, 0.0, 1.0, 0.0), offset=0.7), torch.tensor([[0.1, 0.2, 0.9, 0.5]]).view(1, 1, 2, 2)
    found = manifold_margins(f, Line(), x, d=2.0)
    assert found.kind.tolist() == [1] and float(found.moved) == 0
    assert float(found.distance) == pytest.approx(0.4, abs=1e-6)
    nothing = manifold_margins(f, Line(), torch.full((1, 1, 2, 2), 0.5), d=2.0)
    assert nothing.kind.tolist() == [2] and float(nothing.distance) == 2.0
    constant = manifold_margins(Constant(), Line(), x, d=2.0)
    assert constant.kind.tolist() == [2] and float(constant.distance) == 2.0


def test_type_of_network():
    assert isinstance(make("wae", seed=0, width=0.125, hidden=8), Autoencoder)


# ------------------------------------------------------------------------------------------- recipes


@pytest.mark.parametrize("method", ["r4", "stutz"])
@pytest.mark.parametrize("size", ["", "-sweep", "-small", "-paper"])
def test_recipes_name_their_autoencoder_and_load_nothing(method, size):
    recipe = recipe_of(f"manifold-fashion-mnist{size}", {"method": method, "weight": 2.0})
    assert recipe.network == "framework-cnn" and recipe.dataset.startswith("fashion-mnist")
    transform = recipe.fit["transform"]
    if method == "r4":
        name = "wae-fashion-mnist" + (size if size != "-sweep" else "")
        assert (transform.sampler.load.name, transform.sampler.sigma, transform.count) == (name, 0.06, 10)
        assert (recipe.fit["loss"].weight, recipe.fit["loss"].radii) == (2.0, 10)
    else:
        assert "loss" not in recipe.fit and callable(transform)


def test_recipe_of_an_unknown_method():
    with pytest.raises(BookError, match="method"):
        recipe_of("manifold-fashion-mnist", {"method": "r5"})


def test_a_classifier_depends_on_the_autoencoder_it_is_trained_with():
    reached = definitions(train_recipe, strings=["manifold-fashion-mnist"])
    assert {"wae_fashion_mnist", "WaeLoss", "ManifoldLoss", "Autoencoder"} <= set(reached)
    assert "wae_fashion_mnist_paper" not in reached
