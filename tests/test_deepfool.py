"""DeepFool in all its forms, SparseFool, the random baseline: affine networks, linear programs, Foolbox."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from robustbook.attacks import deepfool
from robustbook.attacks.deepfool import deepfool_subspaces
from robustbook.attacks.linear import sparse_step
from robustbook.attacks.norms import GEOMETRIES
from robustbook.attacks.sparse_random import sparse_random
from robustbook.attacks.sparsefool import BEYOND, Rounds, sparsefool
from robustbook.attacks.tangents import Tally
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.measures import fooled
from torch import Tensor, nn

F64 = torch.float64
UNIT = (0.0, 1.0)
DUAL = {"l1": math.inf, "l2": 2, "linf": 1}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def affine(classes: int, n: int = 40, seed: int = 0) -> nn.Sequential:
    layer = nn.Linear(n, classes, dtype=F64)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(classes, n, dtype=F64, generator=rng(seed)) / math.sqrt(n))
        layer.bias.copy_(0.3 * torch.randn(classes, dtype=F64, generator=rng(seed + 1)))
    return nn.Sequential(nn.Flatten(), layer)


def images(count: int = 30, n: int = 40, seed: int = 5) -> Tensor:
    """Images in [0, 1], half of their values on a bound."""
    return (2 * torch.rand(count, 1, 4, n // 4, dtype=F64, generator=rng(seed)) - 0.5).clamp(0, 1)


def distances(model: nn.Sequential, x: Tensor, norm: str) -> Tensor:
    """The exact distance of each image to the nearest boundary of an affine network."""
    scores = model(x).detach()
    y, weight = scores.argmax(1), model[1].weight.detach()
    gap, slope = scores.gather(1, y[:, None]) - scores, weight[y][:, None] - weight
    return (gap / slope.norm(p=DUAL[norm], dim=2)).scatter(1, y[:, None], torch.inf).amin(1)


def orthonormal(n: int, d: int, seed: int = 0, dtype: Any = F64) -> Tensor:
    return torch.linalg.qr(torch.randn(n, d, dtype=F64, generator=rng(seed))).Q.to(dtype)


@pytest.fixture(scope="module")
def digits(network: nn.Module) -> tuple[Tensor, Tensor]:
    """Images and what the network takes them for, as DeepFool was published."""
    x = next(iter(load("mnist-small", "test", limit=20)))
    return x, network(x).argmax(1)


# ------------------------------------------------------------------------------------ affine networks


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("norm", DUAL)
def test_exact_on_affine_networks(norm: str, classes: int) -> None:
    model, x = affine(classes), images()
    tally = Tally()
    x_adv = deepfool(model, x, model(x).argmax(1), box=None, norm=norm, floor=1e-9, tally=tally)
    size = GEOMETRIES[norm].size(x_adv - x)
    torch.testing.assert_close(size, 1.02 * distances(model, x, norm), rtol=1e-9, atol=1e-12)
    assert tally == Tally(2 * len(x), (classes - 1) * len(x))  # one step, no second look


@pytest.mark.parametrize("norm", DUAL)
def test_subspace_is_the_restricted_network(norm: str) -> None:
    """Along a basis B an affine network is one of the coordinates, with weights W B and scores f(x) at 0."""
    model, x, basis = affine(4), images(12), orthonormal(40, 7)
    y = model(x).argmax(1)
    x_adv = deepfool(model, x, y, box=None, norm=norm, basis=basis)
    for k in range(len(x)):
        restricted = affine(4, n=7)
        with torch.no_grad():
            restricted[1].weight.copy_(model[1].weight @ basis)
            restricted[1].bias.copy_(model(x[k : k + 1])[0])
        zero = torch.zeros(1, 7, dtype=F64)
        z = deepfool(restricted, zero, y[k : k + 1], box=None, norm=norm)
        torch.testing.assert_close((x_adv[k] - x[k]).flatten(), basis @ z[0], rtol=0, atol=1e-12)
        assert (z != 0).any()


def test_full_basis_is_free_deepfool(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    free = deepfool(network, *digits, box=None)
    turned = deepfool(network, *digits, box=None, basis=orthonormal(784, 784, dtype=torch.float32))
    torch.testing.assert_close(turned, free, rtol=0, atol=1e-4)


# ------------------------------------------------------------------------------------------- subspaces


def bases_of(network: nn.Module, dimensions: tuple[int, ...] = (64, 8, 200, 64)) -> list[Tensor]:
    return [orthonormal(784, d, seed, torch.float32) for seed, d in enumerate(dimensions)]


def test_many_subspaces_are_one_by_one(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """In one go, in small batches, by name of the basis: the same perturbations, inside the subspaces."""
    bases = bases_of(network)
    together, tally = Tally(), Tally()
    found = deepfool_subspaces(network, *digits, bases, tally=together)
    assert found.delta.shape == (4, *digits[0].shape) and found.fooled.shape == (4, len(digits[0]))
    assert found.fooled.all()
    small = deepfool_subspaces(network, *digits, bases, batch_size=13)
    torch.testing.assert_close(small.delta, found.delta, rtol=0, atol=1e-4)
    for basis, delta in zip(bases, found.delta, strict=True):
        alone = deepfool(network, *digits, box=None, basis=basis, steps=100, tally=tally)
        torch.testing.assert_close(alone - digits[0], delta, rtol=0, atol=1e-4)
        inside = (delta.flatten(1) @ basis) @ basis.mT
        torch.testing.assert_close(inside, delta.flatten(1), rtol=0, atol=1e-5)
        assert fooled(network, digits[0] + delta, digits[1]).all()
    shared = 9 * 3 * len(digits[0])  # gradients of the first step, of three of the four subspaces
    assert together.gradients <= tally.gradients - 0.9 * shared


def test_too_few_steps_are_said_so(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """What was not fooled is 0 and called so: no norm of a walk that ended half-way is taken for a margin."""
    x, y = digits
    found = deepfool_subspaces(network, x, y, bases_of(network), steps=1)
    assert 5 < found.fooled.sum() < found.fooled.numel() - 5
    assert torch.equal((found.delta != 0).flatten(2).any(2), found.fooled)
    for delta, hit in zip(found.delta, found.fooled, strict=True):
        assert torch.equal(fooled(network, x + delta, y), hit)
    x_adv = deepfool(network, x, y, box=None, steps=1, basis=bases_of(network)[0])
    torch.testing.assert_close(x_adv - x, found.delta[0], rtol=0, atol=1e-4)


def test_a_basis_for_each_image(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    x, y = digits
    own = torch.stack([orthonormal(784, 30, seed, torch.float32) for seed in range(2 * len(x))])
    found = deepfool_subspaces(network, x, y, own.reshape(2, len(x), 784, 30))
    for k in (0, 7):
        for s in range(2):
            one = deepfool(
                network, x[k : k + 1], y[k : k + 1], box=None, basis=own[s * len(x) + k], steps=100
            )
            torch.testing.assert_close(found.delta[s, k], one[0] - x[k], rtol=0, atol=1e-4)
    x_adv = deepfool(network, x, y, box=None, steps=100, basis=own[: len(x)])
    torch.testing.assert_close(x_adv - x, found.delta[0], rtol=0, atol=1e-4)


def test_bases_are_asked_for_one_at_a_time() -> None:
    """Bases may be computed when they are needed, as those of large images must be."""

    class Lazy:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, number: int) -> Tensor:
            if number >= 3:
                raise IndexError
            return orthonormal(40, 5, number)

    model, x = affine(4), images(6)
    y = model(x).argmax(1)
    found = deepfool_subspaces(model, x, y, Lazy())  # type: ignore[arg-type]
    dense = deepfool_subspaces(model, x, y, torch.stack([Lazy()[s] for s in range(3)]))
    assert found.fooled.all()
    torch.testing.assert_close(found.delta, dense.delta, rtol=0, atol=1e-12)


def test_subspaces_in_which_nothing_can_be_fooled() -> None:
    """A network that looks at the first half of the values only, and a misclassified image."""
    model, x = affine(3), images(8)
    with torch.no_grad():
        model[1].weight[:, 20:] = 0
    y = model(x).argmax(1)
    y[2] = (y[2] + 1) % 3
    bases = torch.eye(40, dtype=F64)[:, [[*range(5)], [*range(30, 35)]]].permute(1, 0, 2)
    found = deepfool_subspaces(model, x, y, bases)
    assert found.fooled[0].all() and found.fooled[1].tolist() == [k == 2 for k in range(8)]
    assert (found.delta[1] == 0).all() and (found.delta[:, 2] == 0).all()
    changed = (found.delta[0] != 0).flatten(1)
    assert changed[:, :5].any(1).tolist() == [k != 2 for k in range(8)] and not changed[:, 5:].any()


def test_network_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(40, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    model.double()[1].eval()
    before, x = copy.deepcopy(model.state_dict()), images(5)
    with torch.no_grad():
        deepfool_subspaces(model, x, torch.zeros(5, dtype=torch.long), orthonormal(40, 5)[None])
        assert not torch.is_grad_enabled()
    assert [module.training for module in model] == [True, False, True, True, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


# --------------------------------------------------------------------------------- fewer gradients


@pytest.mark.parametrize("options", [{}, {"norm": "linf"}, {"box": None}], ids=["l2", "linf", "free"])
def test_few_looks_find_what_all_looks_find(
    options: dict[str, Any], network: nn.Module, digits: tuple[Tensor, Tensor]
) -> None:
    few, all_, passes = Tally(), Tally(), Passes(network)
    x_adv = deepfool(passes, *digits, tally=few, **options)
    exact = deepfool(network, *digits, leeway=math.inf, tally=all_, **options)
    torch.testing.assert_close(x_adv, exact, rtol=0, atol=1e-4)
    assert few.gradients < 0.8 * all_.gradients
    assert (passes.forwards - 2 * len(digits[0]), passes.gradients) == (few.forward, few.gradients)


class Passes(nn.Module):
    """A network that counts for itself."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.forwards, self.gradients = model, 0, 0

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += len(x)
        scores: Tensor = self.model(x)
        if scores.requires_grad and x.requires_grad:
            scores.register_hook(self._count)
        return scores

    def _count(self, slope: Tensor) -> None:
        self.gradients += len(slope)


def test_class_whose_slope_was_flat_is_found() -> None:
    """From x the score of class 2 is constant; from the next point its boundary is by far the nearest."""

    class Hidden(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            t = x.flatten(1)[:, 0]
            late = (t - 0.9).relu()
            return torch.stack([0 * t, 1.1 * t - 1 - 1.09 * late, 50 * late - 1.5], 1)

    x = torch.zeros(1, 1, 2, 2, dtype=F64)
    x_adv = deepfool(Hidden(), x, torch.tensor([0]), box=None)
    exact = deepfool(Hidden(), x, torch.tensor([0]), box=None, leeway=math.inf)
    assert torch.equal(x_adv, exact) and 0.93 < x_adv.flatten()[0] < 0.94


# -------------------------------------------------------------------------------- the linear program


def program(normal: Tensor, gap: float, low: Tensor, high: Tensor) -> float:
    """The least l1 norm of delta = up - down, by HiGHS; infinite where there is none."""
    n = len(normal)
    result = scipy.optimize.linprog(
        np.ones(2 * n),
        A_eq=torch.cat([normal, -normal])[None].numpy(),
        b_eq=[gap],
        bounds=[*zip(np.zeros(n), high.tolist()), *zip(np.zeros(n), (-low).tolist())],
        method="highs",
    )
    assert result.status in (0, 2), result.message
    return float(result.fun) if result.status == 0 else math.inf


@given(st.integers(1, 25), st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]))
def test_sparse_step_solves_the_linear_program(n: int, seed: int, size: float) -> None:
    g = rng(seed)
    normal = torch.randn(6, n, dtype=F64, generator=g) * (torch.rand(6, n, generator=g) > 0.2)
    low, high = -torch.rand(6, n, dtype=F64, generator=g), torch.rand(6, n, dtype=F64, generator=g)
    low[0], high[0] = -torch.inf, torch.inf
    low[1], normal[2] = 0.0, normal[2].round()  # one-sided; with ties
    gap = size * torch.randn(6, dtype=F64, generator=g)
    gap[5] = 0.0
    delta, possible = sparse_step(normal, gap, low, high)
    assert delta.isfinite().all() and (delta >= low).all() and (delta <= high).all()
    for k in range(6):
        exact = program(normal[k], float(gap[k]), low[k], high[k])
        assert bool(possible[k]) == math.isfinite(exact)
        reached = float(normal[k] @ delta[k])
        if possible[k]:
            assert delta[k].abs().sum() == pytest.approx(exact, rel=1e-7, abs=1e-9)
            assert reached == pytest.approx(float(gap[k]), rel=1e-9, abs=1e-12)
        else:  # as far as the box goes
            furthest = torch.where(normal[k] * gap[k] > 0, high[k], low[k]).where(normal[k] != 0, 0.0)
            most = furthest @ normal[k]
            assert reached == pytest.approx(float(most), rel=1e-9) and abs(most) < abs(gap[k])


# ------------------------------------------------------------------------------------------ SparseFool


@pytest.mark.parametrize("alpha", [None, 0.4])
def test_sparsefool_is_the_linear_program_on_affine_networks(alpha: float | None) -> None:
    """Two classes: one round, to the plane and a little beyond, and 2 % more."""
    model, x = affine(2, seed=3), images()
    scores = model(x).detach()
    y, rounds = scores.argmax(1), Rounds()
    x_adv = sparsefool(model, x, y, lam=1.0, alpha=alpha)
    slope = model[1].weight.detach().diff(dim=0)[0] * (1 - 2 * y[:, None])
    gap = (scores.diff(dim=1)[:, 0].abs() + BEYOND * slope.norm(dim=1)).tolist()
    room = 1.0 if alpha is None else alpha
    low, high = (-x).clamp_min(-room).flatten(1), (1 - x).clamp_max(room).flatten(1)
    exact = torch.tensor([program(*args) for args in zip(slope, gap, low, high)], dtype=F64)
    size = (x_adv - x).flatten(1).abs().sum(1)
    possible = exact.isfinite()
    assert possible.sum() >= 20
    assert torch.equal(fooled(model, x_adv, y), possible)
    sparsefool(model, x[possible], y[possible], lam=1.0, alpha=alpha, tally=rounds)
    assert rounds.rounds == possible.sum()
    assert (size[~possible] == 0).all() and (size >= exact - 1e-9)[possible].all()
    assert (size <= 1.02 * exact + 1e-9)[possible].all()
    assert ((x_adv - x).flatten(1) >= low - 1e-12).all() and ((x_adv - x).flatten(1) <= high + 1e-12).all()


def pixels(x: Tensor, x_adv: Tensor) -> Tensor:
    return (x != x_adv).any(1).flatten(1).sum(1)


def test_sparsefool_on_a_network(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """Fools all, with few pixels; lambda trades rounds for sparsity."""
    x, y = digits
    sparse, fast = Rounds(), Rounds()
    one = sparsefool(network, x, y, lam=1.0, tally=sparse)
    three = sparsefool(network, x, y, lam=3.0, tally=fast)
    for x_adv in (one, three):
        assert fooled(network, x_adv, y).all() and x_adv.min() >= 0 and x_adv.max() <= 1
    assert pixels(x, one).double().median() < pixels(x, three).double().median() < 0.1 * 784
    assert sparse.gradients > fast.gradients and sparse.rounds > fast.rounds > 0
    single = torch.cat([sparsefool(network, x[k : k + 1], y[k : k + 1], lam=1.0) for k in range(6)])
    torch.testing.assert_close(single, one[:6], rtol=0, atol=1e-4)


def test_sparsefool_in_a_narrow_box(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """No value moves by more than alpha; where that is too little it ends, and says so."""
    x, y = (part[:8] for part in digits)
    wide = sparsefool(network, x, y, alpha=0.5, lam=2.0)
    assert fooled(network, wide, y).all() and (wide - x).abs().max() <= 0.5 + 1e-6
    narrow = sparsefool(network, x, y, alpha=1e-3, steps=5)
    assert torch.equal(narrow, x)


def test_sparsefool_with_targets(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """Also where images are misclassified and left out, targets stay with their images."""
    x, y = digits[0], digits[1].clone()
    y[[0, 3]] = (y[[0, 3]] + 5) % 10
    target = (y + torch.arange(len(y)) % 9 + 1) % 10
    x_adv = sparsefool(network, x, y, target=target, lam=2.0)
    changed = (x_adv != x).flatten(1).any(1)
    assert torch.equal(network(x_adv).argmax(1)[changed], target[changed])
    assert not changed[[0, 3]].any() and changed.sum() >= len(x) - 3


def test_l1_deepfool_does_not_survive_the_box(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """Section 3.2.1 of the thesis: a handful of values, far outside the box, and little left inside."""
    x, y = digits
    free = deepfool(network, x, y, norm="l1", box=None)
    assert fooled(network, free, y).all()
    assert pixels(x, free).double().median() <= 5 and (free - x).abs().max() > 1
    assert fooled(network, deepfool(network, x, y, norm="l1"), y).double().mean() < 0.5


# ------------------------------------------------------------------------------------- random baseline


def test_random_baseline_replaces_so_many_elements() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 2, dtype=F64))
    with torch.no_grad():
        model[1].weight.zero_()[1] = 1.0  # every element that turns white counts, at once
        model[1].bias.copy_(torch.tensor([0.5 * 192 + 1e-3, 0.0]))
    x = torch.full((200, 3, 8, 8), 0.5, dtype=F64)
    y = torch.zeros(200, dtype=torch.long)
    x_adv = sparse_random(model, x, y, box=(-1.0, 2.0), generator=rng(), counts=[4, 0, 9])
    hit = fooled(model, x_adv, y)
    assert 60 < hit.sum() < 120  # 13 coins: more white than black
    changed = (x_adv != x).flatten(2).sum(2)
    assert (changed[hit] == torch.tensor([4, 0, 9])).all() and (changed[~hit] == 0).all()
    assert set(x_adv.unique().tolist()) == {-1.0, 0.5, 2.0}
    assert torch.equal(x_adv, sparse_random(model, x, y, box=(-1, 2), generator=rng(), counts=[4, 0, 9]))
    assert torch.equal(sparse_random(model, x, y, generator=rng(), counts=0), x)


def test_fewest_random_elements(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """With one element fewer of the same order the label stands."""
    x = 0.25 + 0.5 * digits[0]  # no value is x or white: every replaced element shows
    y = network(x).argmax(1)
    x_adv = sparse_random(network, x, y, generator=rng())
    count = pixels(x, x_adv)
    assert fooled(network, x_adv, y).sum() > 10
    for number in count[count > 1].unique().tolist()[:5]:
        rows = count == number
        same, fewer = (sparse_random(network, x, y, generator=rng(), counts=number - less) for less in (0, 1))
        assert torch.equal(same[rows], x_adv[rows]) and torch.equal(fewer[rows], x[rows])


# --------------------------------------------------------------------------------------------- Foolbox


def test_agrees_with_foolbox(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """A wide box binds nobody; Foolbox adds its floor of 1e-4 to every step, ours is a least length."""
    foolbox = pytest.importorskip("foolbox")
    model, x = copy.deepcopy(network).double(), digits[0].double()
    y = model(x).argmax(1)
    attacks = foolbox.attacks
    for norm, kind in [("l2", attacks.L2DeepFoolAttack), ("linf", attacks.LinfDeepFoolAttack)]:
        wrapped = foolbox.PyTorchModel(model, bounds=(-10, 10), device=x.device)
        theirs = kind(steps=50, candidates=10, overshoot=0.02).run(wrapped, x, y)
        ours = deepfool(model, x, y, norm=norm, box=None)
        ratio = GEOMETRIES[norm].size(ours - x) / GEOMETRIES[norm].size(theirs - x)
        assert (ratio - 1).abs().median() < 0.003 and (ratio < 1.05).all()


# -------------------------------------------------------------------------------------------- mistakes


X, Y = images(4), torch.zeros(4, dtype=torch.long)
BASIS = orthonormal(40, 3)


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        (None, "give a tensor"),
        ([], "give a tensor"),
        ([BASIS.numpy()], "give a tensor"),
        (BASIS, "need .40, d."),
        (torch.zeros(1, 40, 0, dtype=F64), "need .40, d."),
        (BASIS[None, :30], "need .40, d."),
        ([BASIS, 2 * BASIS], "not orthonormal"),
        ([BASIS * math.nan], "not orthonormal"),
        ([BASIS.float()], "use .to"),
        (torch.stack([BASIS] * 3)[None], "3 images, but there are 4"),
    ],
)
def test_bad_bases(bases: Any, message: str) -> None:
    with pytest.raises(BookError, match=message) as caught:
        deepfool_subspaces(affine(3), X, Y, bases)
    assert "\n" not in str(caught.value)


BAD = [
    (deepfool, {"basis": BASIS}, "box=None"),
    (deepfool, {"basis": [1, 2], "box": None}, "give a tensor"),
    (deepfool, {"leeway": 0.5}, "leeway"),
    (deepfool, {"leeway": math.nan}, "leeway"),
    (deepfool, {"norm": "l3"}, "norm"),
    (sparsefool, {"lam": 0.9}, "lam"),
    (sparsefool, {"alpha": 0.0}, "alpha"),
    (sparsefool, {"steps": 0}, "steps"),
    (sparsefool, {"walk_steps": 0}, "steps"),
    (sparsefool, {"target": 3}, "give a tensor"),
    (sparsefool, {"target": Y[:3] + 1}, "one an image"),
    (sparsefool, {"target": Y}, "the label itself"),
    (sparsefool, {"target": Y + 3}, "not one of the 3 classes"),
    (sparse_random, {}, "generator="),
    (sparse_random, {"generator": rng(), "counts": -1}, "counts"),
    (sparse_random, {"generator": rng(), "counts": []}, "counts"),
    (sparse_random, {"generator": rng(), "counts": 1.5}, "counts"),
    (sparse_random, {"generator": rng(), "counts": [1, 2]}, "1 channels"),
]


@pytest.mark.parametrize(("attack", "options", "message"), BAD)
def test_bad_options(attack: Any, options: dict[str, Any], message: str) -> None:
    model = affine(3)
    with torch.no_grad():
        model[1].bias[0] += 100  # all are class 0
    with pytest.raises(BookError, match=message) as caught:
        attack(model, X, Y, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [X - 1, X * math.nan, X[0, 0, 0]])
def test_bad_images(bad: Tensor) -> None:
    for attack in (sparsefool, deepfool):
        with pytest.raises(BookError):
            attack(affine(3), bad, Y)
    if not bad.isfinite().all():
        with pytest.raises(BookError, match="NaN"):
            deepfool_subspaces(affine(3), bad, Y, BASIS[None])
