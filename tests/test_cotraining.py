"""Co-training and cross-Lipschitz: losses against brute force, Algorithm 1 against a loop written out."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from robustbook.datasets import DATASETS, digest, load
from robustbook.datasets.fetch import stored
from robustbook.datasets.first import First
from robustbook.datasets.full import DIGITS, Stored
from robustbook.defenses.cotraining import (
    FLOOR,
    SecondShuffle,
    cotraining,
    cotraining_loss,
    disagreement,
    generator_loss,
    robustness_term,
)
from robustbook.defenses.cross_lipschitz import (
    cross_lipschitz,
    cross_lipschitz_loss,
    projected_cross_lipschitz,
    signs,
)
from robustbook.errors import BookError
from robustbook.networks import generator, make
from robustbook.training import RECIPES, fit, recipe_of, trained
from robustbook.training.chance import Streams
from torch import Tensor, nn

SMALL = {"width": 3, "blocks": 2, "hidden": 8, "size": 8}


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, seed: int = 0, channels: int = 1, size: int = 8) -> Tensor:
    return torch.rand(count, channels, size, size, generator=drawn(seed))


# --- the networks -------------------------------------------------------------------------------------


def test_sizes_of_f_and_g() -> None:
    f = make("framework-cnn", seed=0)
    convolutions = 25 * 128 * (1 + 128 + 128) + 3 * 2 * 128
    assert sum(p.numel() for p in f.parameters()) == convolutions + 128 * 49 * 1024 + 2 * 1024 + 10_250
    assert make("framework-cnn", seed=0, channels=3, size=32).fc1[0].in_features == 128 * 64
    g = generator(3, seed=0)
    assert sum(p.numel() for p in g.parameters()) == 25 * 128 * (3 + 128 + 128) + 3 * 256 + 25 * 128 * 3 + 3
    x = images(2, channels=3, size=12)
    made = g(x).detach()
    assert made.shape == x.shape and made.min() >= 0 and made.max() <= 1


def test_generator_depends_on_the_seed_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = (generator(1, seed=s, width=4) for s in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.out.weight, again.out.weight)
    assert not torch.equal(first.out.weight, other.out.weight)


@pytest.mark.parametrize("options", [{"blocks": 1}, {"size": 2}, {"width": 0}])
def test_mistakes_of_the_network(options: dict[str, int]) -> None:
    with pytest.raises(BookError):
        make("framework-cnn", seed=0, **options)
    with pytest.raises(BookError, match="layers=0"):
        generator(1, seed=0, layers=0)


# --- cross-Lipschitz ----------------------------------------------------------------------------------


def brute_force(model: nn.Module, x: Tensor) -> Tensor:
    """Omega by its definition: every image by itself, every pair of classes."""
    total = torch.zeros((), dtype=x.dtype)
    for image in x:
        jacobian = torch.autograd.functional.jacobian(lambda z: model(z[None])[0], image, create_graph=True)
        slopes = jacobian.flatten(1)
        for one in slopes:
            for two in slopes:
                total = total + (one - two).square().sum()
    return total / (len(x) * len(slopes) ** 2)


def smooth(seed: int = 0) -> nn.Module:
    """A network whose second derivatives are not zero."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Flatten(), nn.Linear(16, 7), nn.Softplus(), nn.Linear(7, 5))
    return net.double()


def test_penalty_equals_brute_force_and_so_does_its_gradient() -> None:
    model, x = smooth(), images(3, size=4).double().requires_grad_()
    exact, slow = cross_lipschitz(model(x), x), brute_force(model, x)
    assert torch.allclose(exact, slow, rtol=1e-10)
    one = torch.autograd.grad(exact, list(model.parameters())[:3])
    two = torch.autograd.grad(slow, list(model.parameters())[:3])
    assert all(torch.allclose(a, b, rtol=1e-8, atol=1e-12) for a, b in zip(one, two))


def test_penalty_of_a_convolutional_network_in_evaluation_mode() -> None:
    model = make("framework-cnn", seed=0, classes=4, **SMALL).double().eval()
    x = images(2).double().requires_grad_()
    assert torch.allclose(cross_lipschitz(model(x), x), brute_force(model, x), rtol=1e-9)


def test_linear_network_has_its_penalty_in_closed_form() -> None:
    """||w_l - w_m||^2 averaged over pairs, whatever the images."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    x, weight = images(5, size=2).requires_grad_(), model[1].weight
    expected = torch.cdist(weight, weight).square().mean()
    assert torch.allclose(cross_lipschitz(model(x), x), expected, rtol=1e-5)


def test_projection_has_no_bias() -> None:
    model, x = smooth(), images(3, size=4).double().requires_grad_()
    logits = model(x)
    exact = cross_lipschitz(logits, x).detach()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = torch.stack(
            [projected_cross_lipschitz(logits, x, signs(1, logits)).detach() for _ in range(3000)]
        )
        error = float(found.std() / math.sqrt(len(found)))
        assert abs(float(found.mean() - exact)) < 4 * error
        assert error < 0.02 * float(exact)  # else the line above could not fail
        many = projected_cross_lipschitz(logits, x, signs(2000, logits)).detach()
    assert abs(float(many - exact)) < 0.1 * float(exact)


def test_every_sign_pattern_together_is_exact() -> None:
    """Over all 2^K sign vectors the mean is no estimate but the penalty itself."""
    model, x = smooth(), images(2, size=4).double().requires_grad_()
    logits = model(x)
    patterns = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 5)
    directions = patterns[:, None, :].expand(-1, 2, -1)
    assert torch.allclose(projected_cross_lipschitz(logits, x, directions), cross_lipschitz(logits, x))


def test_training_with_the_penalty_flattens_the_network() -> None:
    x = images(60, size=4)
    y = (x.flatten(1).mean(1) > x.mean()).long()

    def penalty_after(weight: float) -> float:
        model = make("mlp", seed=0, classes=2, size=4, depth=2, width=16)
        plan = {"epochs": 20, "batch_size": 20, "lr": 0.01, "validation": None, "progress": False}
        fit(model, (x, y), seed=0, loss=cross_lipschitz_loss(weight), **plan)
        held = x.clone().requires_grad_()
        return cross_lipschitz(model(held), held).item()

    assert penalty_after(0.1) < 0.5 * penalty_after(0.0)


@pytest.mark.parametrize("arguments", [{"weight": -1}, {"weight": 1, "projections": -1}])
def test_mistakes_of_the_penalty(arguments: dict[str, int]) -> None:
    with pytest.raises(BookError):
        cross_lipschitz_loss(**arguments)


# --- equations 9, 10 and 12 ---------------------------------------------------------------------------


def by_hand_9(model: nn.Module, x: Tensor, found: Tensor) -> list[float]:
    values = []
    for image, other in zip(x, found):
        label = int(model(image[None]).argmax())
        scores = model(other[None]).softmax(1)[0].tolist()
        gap = scores[label] - max(score for k, score in enumerate(scores) if k != label)
        values.append(0.5 * float((image - other).square().sum()) + max(gap, 0.0))
    return values


def test_generator_loss_by_hand() -> None:
    model = make("lenet5", seed=0, size=12).eval()
    x, found = images(6, size=12), images(6, seed=1, size=12)
    assert torch.allclose(
        generator_loss(model, x, found), torch.tensor(by_hand_9(model, x, found)), rtol=1e-4
    )


def test_a_point_with_another_label_costs_its_distance_alone() -> None:
    """C3: j is another label than i also where i is no longer the best one."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2, bias=False))
    model[1].weight.data = torch.tensor([[10.0], [0.0]])
    x, found = torch.full((1, 1, 1, 1), 0.5), torch.full((1, 1, 1, 1), -0.5)
    assert torch.allclose(generator_loss(model, x, found), torch.tensor([0.5]))
    assert float(generator_loss(model, x, x).detach()) == pytest.approx(math.tanh(2.5), abs=1e-6)


def test_loss_of_f_by_hand() -> None:
    model = make("lenet5", seed=0, size=12).eval()
    x, found, y = images(4, size=12), images(4, seed=1, size=12), torch.tensor([0, 3, 3, 9])
    value, outputs = cotraining_loss(0.7)(model, torch.cat([x, found]), y)
    p, q = (model(one).softmax(1).detach() for one in (x, found))
    total = 0.0
    for k in range(4):
        cross = -float((p[k] * q[k].log()).sum())
        total += -math.log(p[k, y[k]]) + 0.7 * cross / (1 + float((x[k] - found[k]).square().sum()))
    assert float(value.detach()) == pytest.approx(total / 4, rel=1e-4)
    assert torch.allclose(outputs, model(x), atol=1e-6)


def test_nothing_is_detached_but_g() -> None:
    """U7: the gradient also flows through f(x) in CE."""
    own, other = torch.randn(2, 3, generator=drawn(0), requires_grad=True), torch.randn(2, 3)
    (slope,) = torch.autograd.grad(disagreement(own, other).sum(), own)
    assert float(slope.abs().sum()) > 0


def test_forms_of_the_robustness_term() -> None:
    """Equation 10 and equation 12 with a minus reward the same: distance, and outputs that agree (C4)."""
    own = torch.tensor([[4.0, 0.0]])
    near, far = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 3.0]])
    one, four = torch.tensor([1.0]), torch.tensor([4.0])
    for form in ("2021", "2020"):
        assert float(robustness_term(own, near, one, form)) < float(robustness_term(own, far, one, form))
        assert float(robustness_term(own, far, four, form)) < float(robustness_term(own, far, one, form))
    printed = [float(robustness_term(own, out, one, "2020-printed")) for out in (near, far)]
    assert printed[0] > printed[1]
    ratio = 2 / max(float(disagreement(own, far)), FLOOR)
    assert float(robustness_term(own, far, four, "2020")) == pytest.approx(-ratio)


def test_equal_outputs_do_not_send_equation_12_to_infinity() -> None:
    sure = torch.tensor([[50.0, 0.0]])
    assert float(robustness_term(sure, sure, torch.tensor([1.0]), "2020")) == pytest.approx(-1 / FLOOR)


# --- Algorithm 1 --------------------------------------------------------------------------------------


def test_every_image_comes_out_once_a_pass() -> None:
    shuffle, chance = SecondShuffle(40), drawn(0)
    batches = [torch.arange(k, k + 10).float()[:, None] for k in range(0, 200, 10)]
    found = [shuffle.swap(batch, chance) for batch in batches]
    assert all(len(set(part.flatten().tolist())) == 10 for part in found)
    late = torch.cat(found[4:]).flatten().tolist()
    assert len(late) == len(set(late)) == 160
    assert late != sorted(late)
    first = found[0].flatten().tolist()
    assert sorted(first) == list(range(10))


def written_out(model: nn.Module, x: Tensor, y: Tensor, seed: int, weight: float, steps: int) -> nn.Module:
    """Algorithm 1 as a loop of its own: one batch, the whole data, so that both shuffles hold the same."""
    chance = drawn(seed)
    g = generator(1, seed=int(torch.randint(2**31, (1,), generator=chance)), width=3, layers=2)
    step_f, step_g = torch.optim.Adam(model.parameters(), 0.01), torch.optim.Adam(g.parameters(), 0.02)
    for _ in range(steps):
        model.train()
        found = g(x).detach()
        step_f.zero_grad()
        cotraining_loss(weight)(model, torch.cat([x, found]), y)[0].backward()
        step_f.step()
        model.eval()
        step_g.zero_grad()
        generator_loss(model, x, g(x)).mean().backward()
        step_g.step()
    return model


def test_fit_follows_algorithm_1() -> None:
    x, y = images(12), torch.arange(12) % 3
    one, two = (make("framework-cnn", seed=5, classes=3, **SMALL).double() for _ in range(2))
    x = x.double()
    torch.set_default_dtype(torch.float64)
    try:
        transform = cotraining(width=3, layers=2, rates=((0, 0.02),), waiting=12)
        plan = {"epochs": 6, "batch_size": 12, "lr": 0.01, "validation": None, "progress": False}
        seed = Streams(7).transform(torch.device("cpu")).initial_seed()
        fit(one, (x, y), seed=7, transform=transform, loss=cotraining_loss(0.5), **plan)
        written_out(two, x, y, seed, 0.5, 6)
    finally:
        torch.set_default_dtype(torch.float32)
    for a, b in zip(one.eval().state_dict().values(), two.eval().state_dict().values()):
        assert torch.allclose(a.double(), b.double(), rtol=1e-6, atol=1e-8)
    assert transform.steps == 5  # the last update of g can teach f nothing


def test_g_learns_to_cross_a_boundary() -> None:
    """Against a fixed steep f the generator loss falls below that of g(x) = x, which is close to 1."""
    f = nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))
    f[1].weight.data = torch.stack([torch.ones(64), -torch.ones(64)])
    for p in f.parameters():
        p.requires_grad_(False)
    x = 0.5 + 0.05 * torch.rand(64, 1, 8, 8, generator=drawn(0))
    f.append(nn.Linear(2, 2))
    f[2].weight.data, f[2].bias.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([-64.0, 0.0])
    transform, chance = cotraining(width=4, layers=1, rates=((0, 0.01),), waiting=64), drawn(1)
    for _ in range(300):
        both, _ = transform(f, x, torch.zeros(64, dtype=torch.long), chance)
    assert transform.g is not None
    lazy = float(generator_loss(f, x, x).mean().detach())
    assert float(generator_loss(f, x, both[64:]).mean().detach()) < 0.6 * lazy
    assert float((f(both[64:]).argmax(1) != f(x).argmax(1)).double().mean()) > 0.5


def test_same_seed_same_network_and_a_new_network_gets_a_new_g() -> None:
    x, y = images(40), torch.arange(40) % 4
    transform = cotraining(width=2, layers=1, waiting=16)

    def train(use: object) -> Tensor:
        model = make("framework-cnn", seed=0, classes=4, **SMALL)
        plan = {"epochs": 2, "batch_size": 10, "lr": 0.01, "validation": None, "progress": False}
        fit(model, (x, y), seed=1, transform=use, loss=cotraining_loss(1.0), **plan)  # type: ignore[arg-type]
        return model.fc2.weight.detach().clone()

    first = train(transform)
    assert torch.equal(first, train(transform))
    assert torch.equal(first, train(cotraining(width=2, layers=1, waiting=16)))


def test_f_is_left_alone_by_the_step_of_g() -> None:
    model, x, y = make("framework-cnn", seed=0, **SMALL), images(8), torch.zeros(8, dtype=torch.long)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    transform, chance = cotraining(width=2, layers=1), drawn(0)
    model.train()
    for _ in range(3):
        transform(model, x, y, chance)
    assert transform.steps == 2 and model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_the_rate_of_g_drops() -> None:
    model, x, y = make("framework-cnn", seed=0, **SMALL), images(4), torch.zeros(4, dtype=torch.long)
    transform, chance = cotraining(width=2, layers=1, rates=((0, 0.1), (2, 0.001))), drawn(0)
    seen = []
    for _ in range(5):
        transform(model, x, y, chance)
        assert transform._optimizer is not None
        seen.append(transform._optimizer.param_groups[0]["lr"])
    assert seen == [0.1, 0.1, 0.1, 0.001, 0.001]


@pytest.mark.parametrize("name", ["defenses.cotraining", "defenses.cross_lipschitz", "training.cotraining"])
def test_each_module_can_be_imported_first(name: str) -> None:
    """The recipes import the defences: what a worker process unpickles first must not go in a circle."""
    command = [sys.executable, "-c", f"import robustbook.{name}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


def test_mistakes_of_cotraining() -> None:
    model, x, y = make("framework-cnn", seed=0, **SMALL), images(4), torch.zeros(4, dtype=torch.long)
    with pytest.raises(BookError, match="transform=cotraining"):
        cotraining_loss(1.0)(model, x, y)
    with pytest.raises(BookError, match="weight=-1"):
        cotraining_loss(-1)
    with pytest.raises(BookError, match="did you mean 2021"):
        cotraining_loss(1, form="2002")
    with pytest.raises(BookError, match="rates"):
        cotraining(rates=((5, 0.1),))
    with pytest.raises(BookError, match="width=0"):
        cotraining(width=0)


# --- recipes ------------------------------------------------------------------------------------------


def test_recipes_of_the_three_methods() -> None:
    plain = recipe_of("framework-cnn-mnist", {}).fit
    hein = recipe_of("framework-cnn-mnist", {"method": "hein", "weight": 0.1}).fit
    ours = recipe_of("framework-cnn-mnist", {"method": "cotraining", "weight": 2.0}).fit
    assert "loss" not in plain and "transform" not in plain
    assert hein["loss"].weight == 0.1 and hein["loss"].projections == 1
    assert ours["loss"].weight == 2.0 and ours["transform"].width == 16
    steps = 5 * math.ceil(18_000 / 32)
    assert ours["transform"].rates == ((0, 1e-3), (math.ceil(steps / 2), pytest.approx(1e-4)))
    exact = recipe_of("framework-cnn-mnist-paper", {"method": "hein", "weight": 0.1}).fit
    assert exact["loss"].projections == 0
    with pytest.raises(BookError, match="unknown method 'hien'; did you mean hein"):
        recipe_of("framework-cnn-mnist", {"method": "hien"})
    with pytest.raises(BookError, match="without a method"):
        recipe_of("framework-cnn-mnist", {"weight": 1.0})
    assert sum(name.startswith("framework-cnn") for name in RECIPES) >= 10


def test_a_small_network_is_trained_three_ways(store: object) -> None:
    first = {
        method: trained("framework-cnn-mnist-small", 0, progress=False, **settings).fc2.weight
        for method, settings in {
            "none": {},
            "hein": {"method": "hein", "weight": 0.1},
            "ours": {"method": "cotraining", "weight": 1.0},
        }.items()
    }
    assert not torch.equal(first["none"], first["hein"]) and not torch.equal(first["none"], first["ours"])


def test_drops_of_the_rate() -> None:
    x, y = images(20), torch.arange(20) % 2
    model, seen = make("framework-cnn", seed=0, classes=2, **SMALL), []
    options = {"at": (0.4, 0.8), "factors": (0.1, 0.01)}
    plan = {
        "batch_size": 20,
        "lr": 1.0,
        "seed": 0,
        "validation": None,
        "progress": False,
        "schedule": "drops",
    }
    fit(
        model,
        (x, y),
        epochs=10,
        optimizer="sgd",
        schedule_options=options,
        on_epoch=lambda e, m, r: seen.append(round(r.lr, 4)),
        **plan,
    )
    assert seen == [1.0] * 4 + [0.1] * 4 + [0.01] * 2
    with pytest.raises(BookError, match="rising fractions"):
        fit(model, (x, y), epochs=1, schedule_options={"at": (0.5, 0.2), "factors": (0.1, 0.01)}, **plan)


# --- the first 20,000 images --------------------------------------------------------------------------


def test_first_images_of_a_set(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    counts = {"train": 30, "test": 20}
    for split, count in counts.items():
        pixels = generator.integers(0, 256, (count, 5, 5, 1), dtype=np.uint8)
        labels = np.arange(count) % 10
        np.savez(data_dir / f"tiny-{split}.npz", images=pixels, labels=labels)
        (data_dir / f"tiny-{split}.json").write_text(f'{{"sha256": "{digest(pixels, labels)}"}}')
    whole = Stored("tiny", (5, 5, 1), DIGITS, counts)
    monkeypatch.setitem(DATASETS._entries, "tiny", lambda: whole)
    monkeypatch.setitem(DATASETS._entries, "tiny-12", lambda: First(whole, 12))
    all_of_it, part = load("tiny", "train"), load("tiny-12", "train")
    assert len(part) == 12 and torch.equal(part.x, all_of_it.x[:12]) and torch.equal(part.y, all_of_it.y[:12])
    assert part.checksum != all_of_it.checksum and "first 12 of 30" in part.note
    assert load("tiny-12", "test").checksum == load("tiny", "test").checksum
    assert stored("tiny-12") is whole  # what `data fetch` brings
