"""Margins in subspaces against a closed form and a loop; synthetic features; networks behind a view."""

import math
from itertools import pairwise

import pytest
import torch
from robustbook import networks, spectral
from robustbook.attacks import deepfool, pgd
from robustbook.datasets import load
from robustbook.datasets.features import one_feature, rotation, two_features
from robustbook.defenses.adversarial import adversarial
from robustbook.errors import BookError
from robustbook.measures import directions, distribution, linear_margins, margins
from robustbook.measures.margins import closest_within
from robustbook.training import RECIPES, fit, predict, recipe_of, trained
from torch import Tensor, nn


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ------------------------------------------------------------------------------------------------ margins


def test_a_linear_classifier_has_the_margins_of_the_closed_form() -> None:
    model = networks.make("mlp", seed=0, classes=2, channels=30, size=1, depth=0)
    x, q = torch.randn(40, 30, generator=chance()), rotation(30, generator=chance(1))
    bases = [q[:, :1], q[:, 1:], q[:, 3:6]]
    exact = linear_margins(model.out.weight, model.out.bias, x, bases)
    found = margins(model, x, bases)
    assert torch.allclose(found.size, 1.02 * exact, rtol=1e-3)
    # The perturbation has that length and stays inside its subspace.
    assert torch.allclose(found.delta.flatten(2).norm(dim=2).double(), found.size)
    assert (found.delta[2] @ q[:, :3]).abs().max() < 1e-4 < found.delta[2].abs().max()


def test_all_at_once_agree_with_a_plain_loop_over_images() -> None:
    """The bar of the chapter: within 2 % in the median; here on a trained LeNet and real digits."""
    model = trained("lenet5-mnist", 0)
    x = load("mnist-small", "test", limit=12).x
    blocks = spectral.dct_blocks(28, 8, 10, 1)
    together = margins(model, x, blocks).size
    alone = torch.full_like(together, torch.nan)
    for i in range(len(x)):
        label = predict(model, x[i : i + 1]).argmax(1)
        for s, basis in enumerate(blocks):
            moved = deepfool(model, x[i : i + 1], label, box=None, basis=basis, steps=100, leeway=math.inf)
            if predict(model, moved).argmax(1) != label:
                alone[s, i] = (moved - x[i]).double().norm()
    assert torch.equal(together.isnan(), alone.isnan()) and together.isfinite().float().mean() > 0.5
    assert ((together - alone).abs() / alone).nanmedian() < 0.02


def test_bisection_ends_on_the_boundary() -> None:
    """A step where the score saturates: DeepFool jumps far behind it, the boundary is at 0."""

    class Steep(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            rise = torch.tanh(3 * x[:, :1])
            return torch.cat([-rise, rise], dim=1)

    x = torch.tensor([[-1.0, 0.0], [-1.2, 5.0], [0.9, 1.0]])
    along = [torch.eye(2)[:, :1]]
    loose, tight = (margins(Steep(), x, along, bisections=n).size[0] for n in (0, 14))
    assert (loose > 1.5 * x[:, 0].abs()).all()
    assert torch.allclose(tight, x[:, 0].abs().double(), rtol=5e-3)


def test_never_fooled_is_counted_and_not_averaged() -> None:
    """A classifier that does not look at the second half of its input has no boundary there."""
    model = networks.make("mlp", seed=1, classes=2, channels=8, size=1, depth=0)
    with torch.no_grad():
        model.out.weight[:, 4:] = 0
    eye, x = torch.eye(8), torch.randn(20, 8, generator=chance(2))
    seen, blind = distribution(margins(model, x, [eye[:, :4], eye[:, 4:]]).size)
    assert seen["never"] == 0 and blind["never"] == 20 == blind["images"]
    assert 0 < seen["margin_5"] < seen["margin_50"] < seen["margin_95"] and math.isnan(blind["margin_50"])


def test_distribution_leaves_the_never_fooled_out() -> None:
    (row,) = distribution(torch.tensor([[1.0, 2.0, 3.0, math.nan]], dtype=torch.float64))
    assert row["margin_50"] == 2.0 and row["never"] == 1 and row["images"] == 4
    with pytest.raises(BookError):
        next(distribution(torch.zeros(3)))


def test_the_margin_along_ones_own_perturbation_is_its_length() -> None:
    model = networks.make("mlp", seed=3, classes=2, channels=6, size=1, depth=0)
    x = torch.randn(10, 6, generator=chance(5))
    free = margins(model, x, torch.eye(6)[None])
    along = margins(model, x, directions(free.delta[0]))
    assert torch.allclose(along.size[0], free.size[0], rtol=1e-3)
    with pytest.raises(BookError):
        directions(torch.zeros(2, 6))


def test_the_closed_form_is_for_two_classes() -> None:
    with pytest.raises(BookError):
        linear_margins(torch.zeros(3, 4), torch.zeros(3), torch.zeros(1, 4), [torch.eye(4)])


# ----------------------------------------------------------------------------------------- synthetic data


def test_one_feature_has_its_gap_along_the_first_column() -> None:
    data = one_feature(4000, 5.0, 1.0, basis=rotation(10, generator=chance()), generator=chance(1))
    parts = data.parts()
    first = parts[:, 0]
    assert torch.allclose(first, 5.0 * (data.y - 0.5), atol=1e-4)
    assert parts[:, 1:].std().item() == pytest.approx(1.0, abs=0.03)
    assert data.y.float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_two_features_alternate_along_the_second_column() -> None:
    data = two_features(2000, 0.5, 20.0, 1.0, 3, basis=rotation(6, generator=chance()), generator=chance(1))
    first, second = data.parts()[:, 0], data.parts()[:, 1] / 20
    assert torch.allclose(first.abs(), torch.full_like(first, 0.25), atol=1e-4)
    place = second - 0.5 * (1 - data.y)
    assert torch.allclose(place, place.round(), atol=1e-4)
    assert set(place.round().int().tolist()) == {-3, -2, -1, 0, 1, 2}
    # Sorted along u_2 the classes take turns.
    order = {round(2 * float(s)): int(label) for s, label in zip(second, data.y)}
    labels = [order[key] for key in sorted(order)]
    assert len(labels) == 12 and all(a != b for a, b in pairwise(labels))


def test_mistakes_in_synthetic_data() -> None:
    basis = rotation(6, generator=chance())
    for wrong in (
        lambda: one_feature(10, -1.0, 1.0, basis=basis, generator=chance()),
        lambda: one_feature(10, 1.0, 1.0, basis=basis[:1], generator=chance()),
        lambda: two_features(10, 1.0, math.inf, 1.0, 3, basis=basis, generator=chance()),
    ):
        with pytest.raises(BookError):
            wrong()


# ------------------------------------------------------------------------------------- networks and views


def test_mlp_with_he_initialisation_keeps_the_signal() -> None:
    model = networks.make("mlp", seed=0, classes=2, channels=100, size=1)
    assert sum(isinstance(layer, nn.ReLU) for layer in model) == 10
    spread = predict(model, torch.randn(200, 100, generator=chance())).std()
    assert 0.1 < spread < 5
    for wrong in ({"depth": -1}, {"width": 0}, {"gain": 0.0}):
        with pytest.raises(BookError):
            networks.make("mlp", seed=0, **wrong)


def test_densenet_takes_small_images() -> None:
    model = networks.make("densenet121", seed=0, channels=3, size=32)
    assert predict(model, torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize("name", ["plain", "flip", "low", "high"])
def test_a_viewed_network_is_its_inner_one_on_images_in_that_view(name: str) -> None:
    whole = networks.make(
        "viewed", seed=0, channels=3, size=32, network="resnet9", mean=(0.5, 0.4, 0.3), view=name, width=2
    )
    x = torch.rand(4, 3, 32, 32, generator=chance())
    inner = predict(whole.network, spectral.view(x, name))
    assert torch.allclose(predict(whole, x), inner, atol=1e-5)
    # What the inner network subtracts is the mean image in the same view.
    mean = torch.tensor([0.5, 0.4, 0.3])[:, None, None].expand(3, 32, 32)
    expected = spectral.view((x - mean), name) / whole.network.normalise.std
    assert torch.allclose(whole.network.normalise(spectral.view(x, name)), expected, atol=1e-5)


def test_an_attack_on_a_flipped_network_keeps_to_ball_and_box_on_both_sides() -> None:
    """What the published Dykstra projection is for: in the ball and, flipped back, in the box."""
    whole = networks.make("viewed", seed=0, network="lenet5", mean=(0.1307,), view="flip")
    x, y = torch.rand(8, 1, 28, 28, generator=chance()), torch.arange(8)
    moved, _ = adversarial(2.0, norm="l2", steps=3)(whole, x, y, chance(1))
    inside = spectral.flip(moved)  # what the inner network is trained on
    assert torch.allclose(
        (inside - spectral.flip(x)).flatten(1).norm(dim=1), (moved - x).flatten(1).norm(dim=1), rtol=1e-4
    )
    assert (moved - x).flatten(1).norm(dim=1).max() <= 2.0 + 1e-4
    back = spectral.flip(inside)
    assert back.min() >= -1e-5 and back.max() <= 1 + 1e-5
    assert inside.min() < -0.1  # in the flipped domain there is no such box
    attacked = pgd(whole, x, predict(whole, x).argmax(1), eps=2.0, norm="l2", steps=3)
    assert attacked.min() >= 0 and attacked.max() <= 1


def test_recipes_differ_in_nothing_but_the_view() -> None:
    names = [name for name in RECIPES if name.endswith("-view")]
    assert len(names) == 10
    for name in names:
        plain, flipped = recipe_of(name, {}), recipe_of(name, {"view": "flip"})
        assert plain.fit == flipped.fit and plain.dataset == flipped.dataset
        assert {**plain.options, "view": "flip"} == flipped.options
        assert "transform" not in plain.fit  # no augmentation


def test_training_behind_a_view_is_training_in_that_view() -> None:
    """Two ways to the same weights: the whole on plain images, the inner network on flipped ones."""
    data = load("mnist-small", "train", limit=200)
    options = {"network": "lenet5", "mean": (0.1307,), "view": "flip"}

    def weights(whole: nn.Module, model: nn.Module, x: Tensor) -> Tensor:
        fit(model, (x, data.y), epochs=1, batch_size=50, lr=0.05, seed=0, optimizer="sgd", progress=False)
        return whole.network.fc3.weight.detach()

    outer = networks.make("viewed", seed=0, **options)
    inner = networks.make("viewed", seed=0, **options)
    a = weights(outer, outer, data.x)
    b = weights(inner, inner.network, spectral.flip(data.x))
    learned = (a - networks.make("viewed", seed=0, **options).network.fc3.weight).abs().max()
    assert (a - b).abs().max() < 0.01 * learned


def test_attacks_of_today_keep_to_a_subspace_and_find_the_closed_form() -> None:
    model = networks.make("mlp", seed=0, classes=2, channels=30, size=1, depth=0)
    x, q = torch.randn(20, 30, generator=chance()), rotation(30, generator=chance(1))
    for basis in (q[:, :1], q[:, 3:9], q):
        exact = linear_margins(model.out.weight, model.out.bias, x, [basis])[0]
        found = closest_within(model, x, basis, 200)
        assert (found >= 0.999 * exact).all()
        assert (found / exact).median() < 1.01
    flat = torch.linalg.svd((model.out.weight[1:] - model.out.weight[:1]).detach()).Vh[1:3].mT.contiguous()
    assert (
        closest_within(model, x, flat, 50)
        > 100 * linear_margins(model.out.weight, model.out.bias, x, [q])[0].median()
    ).all()
    with pytest.raises(BookError, match="orthonormal"):
        closest_within(model, x, 2 * q[:, :2], 5)
