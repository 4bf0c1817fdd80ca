"""Attacks: one table through which all of them go, and the oracles: affine networks, scipy, Foolbox."""

import copy
import inspect
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from robustbook.attacks import (
    ATTACKS,
    bg,
    boundary_points,
    cw,
    deepfool,
    ensemble,
    fgsm,
    jsma,
    lbfgs,
    minimum,
    one_pixel,
    pgd,
    pgd_minimum,
)
from robustbook.attacks.bg import Problems
from robustbook.attacks.frame import lead
from robustbook.attacks.jsma import best_pair, follow
from robustbook.attacks.linear import boxed_step
from robustbook.attacks.norms import NORMS
from robustbook.attacks.one_pixel import paint, pixel_counts
from robustbook.attacks.pgd import climb
from robustbook.attacks.projected_lbfgs import minimise
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from robustbook.measures import distances, fooled
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

F64 = torch.float64
UNIT = (0.0, 1.0)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def by_name(name: str, **options: Any) -> Callable[..., Tensor]:
    def attack(model: nn.Module, x: Tensor, y: Tensor, **more: Any) -> Tensor:
        return minimum(name, model, x, y, generator=rng(), **options, **more)

    return attack


def budget(**options: Any) -> Callable[..., Tensor]:
    def attack(model: nn.Module, x: Tensor, y: Tensor, **more: Any) -> Tensor:
        return pgd(model, x, y, **options, **more)

    return attack


CHEAP: dict[str, dict[str, Any]] = {  # less work for the slow ones, and enough freedom in a tiny image
    "ddn": {"steps": 50},
    "cw": {"rounds": 3, "steps": 40},
    "jsma": {"share": 0.5},
    "one-pixel": {"population": 12, "generations": 4, "growth": 5.0, "share": 1.0},
}
TABLE: dict[str, Callable[..., Tensor]] = {
    **{name: by_name(name, **CHEAP.get(name, {})) for name in ATTACKS},
    "pgd-minimum-linf": by_name("pgd", norm="linf"),
    "deepfool-linf": by_name("deepfool", norm="linf"),
    "pgd-linf": budget(norm="linf", eps=0.15, steps=10),
    "pgd-l2": budget(norm="l2", eps=2.5, steps=10),
    "pgd-linf-random": lambda model, x, y, **more: pgd(
        model, x, y, eps=0.15, steps=10, generator=rng(), **more
    ),
}
DRAWING = {name for name in ATTACKS if "generator" in inspect.signature(ATTACKS[name]).parameters}
RANDOM = {*DRAWING, "pgd-linf-random"}
FAILING = {"pgd-linf", "pgd-l2", "pgd-linf-random", "bg", *DRAWING}  # on some of the images
every_attack = pytest.mark.parametrize("attack", TABLE.values(), ids=TABLE)


# ------------------------------------------------------------------------------------ networks to attack


def affine(classes: int, n: int = 40, *, scale: float = 1.0, seed: int = 0, dtype: Any = F64) -> nn.Module:
    layer = nn.Linear(n, classes, dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(scale * torch.randn(classes, n, dtype=F64, generator=rng(seed)) / math.sqrt(n))
        layer.bias.copy_(0.3 * scale * torch.randn(classes, dtype=F64, generator=rng(seed + 1)))
    return nn.Sequential(nn.Flatten(), layer)


def images(count: int = 30, n: int = 40, seed: int = 5) -> Tensor:
    """Images in [0, 1], half of their values on a bound, as in MNIST."""
    return (2 * torch.rand(count, 1, 4, n // 4, dtype=F64, generator=rng(seed)) - 0.5).clamp(0, 1)


def boundaries(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Predictions of an affine network, and for each other class the gap and the normal of its boundary."""
    logits = model(x).detach()
    y = logits.argmax(1)
    weight = model[1].weight.detach()  # type: ignore[index]
    others = torch.stack([torch.tensor([k for k in range(logits.shape[1]) if k != label]) for label in y])
    gaps = logits.gather(1, y[:, None]) - logits.gather(1, others)
    return y, gaps, weight[others] - weight[y][:, None]


def bounds(x: Tensor, box: Any) -> tuple[Tensor, Tensor]:
    """How far each value may go down and up."""
    low, high = (-torch.inf, torch.inf) if box is None else box
    return low - x.flatten(1), high - x.flatten(1)


def boxed_distance(normal: Tensor, gap: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """|clip(s normal)| for the s, found by bisection, at which normal . clip(s normal) = gap."""
    least, most = torch.zeros_like(gap), torch.full_like(gap, 1e6)
    for _ in range(200):
        middle = (least + most) / 2
        enough = ((middle[:, None] * normal).clamp(low, high) * normal).sum(1) >= gap
        least, most = least.where(enough, middle), middle.where(enough, most)
    return (most[:, None] * normal).clamp(low, high).norm(dim=1).where(most < 9e5, torch.inf)


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor]:
    return tuple(load("mnist-small", "test", limit=24))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def found(network: nn.Module, digits: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """What every attack of the table finds, computed once."""
    return {name: attack(network, *digits) for name, attack in TABLE.items()}


# --------------------------------------------------------------------------------- oracles: affine networks


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("linf", 1)])
def test_deepfool_is_exact_on_affine_networks(classes: int, norm: str, dual: int) -> None:
    model, x = affine(classes), images()
    y, gaps, normals = boundaries(model, x)
    exact = (gaps / normals.norm(p=dual, dim=2)).amin(1)
    size = NORMS[norm].size(deepfool(model, x, y, box=None, norm=norm, floor=1e-9) - x)
    torch.testing.assert_close(size, 1.02 * exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("box", [None, UNIT], ids=["free", "boxed"])
def test_lbfgs_reaches_the_optimum_of_affine_networks(classes: int, scale: float, box: Any) -> None:
    model, x = affine(classes, scale=scale), images()
    y, exact = nearest(model, x, box)
    ratio = NORMS["l2"].size(lbfgs(model, x, y, box=box) - x) / exact
    assert (ratio > 0.9999).all() and (ratio < 1.01).all()


def nearest(model: nn.Module, x: Tensor, box: Any) -> tuple[Tensor, Tensor]:
    """Predictions of an affine network, and the exact l2 distance in the box to the nearest other class."""
    y, gaps, normals = boundaries(model, x)
    low, high = bounds(x, box)
    return y, torch.stack(
        [boxed_distance(normals[:, k], gaps[:, k], low, high) for k in range(gaps.shape[1])]
    ).amin(0)


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize(("scale", "box"), [(0.01, None), (100.0, UNIT), (1.0, (-1.0, 3.0))])
def test_bg_and_the_ensemble_are_exact_on_affine_networks(classes: int, scale: float, box: Any) -> None:
    model, x = affine(classes, scale=scale), images()
    y, exact = nearest(model, x, box)
    for attack, tolerance in [(bg, 5e-4), (ensemble, 5e-5)]:
        ratio = NORMS["l2"].size(attack(model, x, y, box=box) - x) / exact
        assert (ratio > 1 - 1e-9).all() and (ratio < 1 + tolerance).all(), attack.__name__


@pytest.mark.parametrize(
    ("classes", "scale", "box"), [(2, 0.01, UNIT), (5, 100.0, UNIT), (5, 1.0, (-1.0, 3.0))]
)
def test_cw_reaches_the_optimum_of_affine_networks(classes: int, scale: float, box: Any) -> None:
    """At any scale of the scores; a few images take longer, as tanh is flat at the bounds."""
    model, x = affine(classes, scale=scale), images(16)
    y, exact = nearest(model, x, box)
    ratio = NORMS["l2"].size(cw(model, x, y, box=box, rounds=5, steps=200) - x) / exact
    assert (ratio > 1 - 1e-9).all() and ratio.median() < 1.01 and ratio.max() < 1.5


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("box", [None, UNIT], ids=["free", "boxed"])
def test_pgd_minimum_on_two_affine_classes(norm: str, box: Any) -> None:
    model, x = affine(2, seed=3), images()
    y, gaps, normals = boundaries(model, x)
    normal, gap = normals[:, 0], gaps[:, 0]
    if norm == "l2":
        exact = boxed_distance(normal, gap, *bounds(x, box))
    else:
        exact = linf_distance(x, normal, gap, box)
    ratio = NORMS[norm].size(pgd_minimum(model, x, y, norm=norm, box=box) - x) / exact
    assert (ratio > 0.999).all() and (ratio < 1.02).all()


def linf_distance(x: Tensor, normal: Tensor, gap: Tensor, box: Any) -> Tensor:
    """The eps at which x + eps sign(normal), clipped, closes the gap: gap / |normal|_1 without a box."""
    if box is None:
        return gap / normal.abs().sum(1)
    least, most = torch.zeros_like(gap), torch.ones_like(gap)
    for _ in range(60):
        middle = (least + most) / 2
        moved = (x.flatten(1) + middle[:, None] * normal.sign()).clamp(*box) - x.flatten(1)
        enough = (moved * normal).sum(1) >= gap
        least, most = least.where(enough, middle), middle.where(enough, most)
    return most


@pytest.mark.parametrize("box", [None, UNIT, (-1.0, 3.0)], ids=["free", "boxed", "wide"])
def test_fgsm_is_exact_on_two_affine_classes(box: Any) -> None:
    model, x = affine(2, seed=3), images()
    y, gaps, normals = boundaries(model, x)
    exact = linf_distance(x, normals[:, 0], gaps[:, 0], box)
    size = NORMS["linf"].size(fgsm(model, x, y, box=box, halvings=20) - x)
    torch.testing.assert_close(size, exact, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["fgsm", "pgd", "ddn", "lbfgs", "deepfool", "cw", "fmn-l0", "bg", "ensemble"]
)
def test_networks_too_sure_for_single_precision(name: str) -> None:
    """The cross-entropy is flat around every image, but its direction is still found."""
    model, x = affine(2, seed=3, scale=1e4, dtype=torch.float32), images().float().requires_grad_()
    y = model(x).argmax(1)
    cross_entropy(model(x), y, reduction="sum").backward()
    flat = (x.grad == 0).flatten(1).all(1)
    assert flat.sum() > 20
    assert fooled(model, minimum(name, model, x, y), y).all()


def test_ddn_is_close_on_two_affine_classes() -> None:
    for scale in (1.0, 100.0):  # at 100 the loss is flat in single precision
        model, x = affine(2, seed=3, scale=scale, dtype=torch.float32), images().float()
        y, gaps, normals = boundaries(model, x)
        exact = gaps[:, 0] / normals[:, 0].norm(dim=1)
        x_adv = minimum("ddn", model, x, y, box=None)
        ratio = (x_adv - x).flatten(1).norm(dim=1) / exact
        assert fooled(model, x_adv, y).all()
        assert (ratio > 0.999).all() and ratio.median() < 1.01


@pytest.mark.parametrize("name", ["additive-gaussian", "additive-uniform"])
def test_additive_noise_on_two_affine_classes(name: str) -> None:
    """The boundary is at gap / (noise . normal) along each of the same draws, if that is positive."""
    model, x = affine(2, seed=3), images()
    y, gaps, normals = boundaries(model, x)
    generator, exact = rng(7), torch.full((len(x),), torch.inf, dtype=F64)
    for _ in range(4):
        draw = torch.randn if name == "additive-gaussian" else torch.rand
        noise = draw(x.shape, dtype=F64, generator=generator).flatten(1)
        noise = noise if name == "additive-gaussian" else 2 * noise - 1
        scale = gaps[:, 0] / (noise * normals[:, 0]).sum(1)
        size = (scale * noise.norm(dim=1)).where((scale > 0) & (scale <= 50), torch.inf)
        exact = exact.minimum(size)
    options = {"largest": 50.0, "levels": 60, "halvings": 20, "repeats": 4}
    x_adv = minimum(name, model, x, y, box=None, generator=rng(7), **options)
    size = distances(x, x_adv, fooled(model, x_adv, y)).l2
    assert exact.isfinite().sum() > 10
    torch.testing.assert_close(size.nan_to_num(torch.inf), exact, rtol=1e-3, atol=1e-6)


# ---------------------------------------------------------------------------------- oracles: inner problems


@given(st.integers(1, 30), st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]))
def test_boxed_step(n: int, seed: int, size: float) -> None:
    g = rng(seed)
    normal = torch.randn(6, n, dtype=F64, generator=g) * (torch.rand(6, n, generator=g) > 0.2)
    low, high = -torch.rand(6, n, dtype=F64, generator=g), torch.rand(6, n, dtype=F64, generator=g)
    low[0], high[0] = -torch.inf, torch.inf
    low[1] = 0.0
    gap = size * torch.rand(6, dtype=F64, generator=g) + 1e-6
    delta, scale = boxed_step(normal, gap, low, high)
    exact = boxed_distance(normal, gap, low, high)
    assert torch.equal(scale.isfinite(), exact.isfinite())
    possible = exact.isfinite()
    torch.testing.assert_close(delta[possible].norm(dim=1), exact[possible], rtol=1e-6, atol=1e-9)
    assert ((delta >= low) & (delta <= high))[possible].all()
    assert ((delta * normal).sum(1) >= gap - 1e-9)[possible].all()


@given(st.integers(2, 8), st.integers(0, 10_000))
@settings(max_examples=25)
def test_inner_problem_of_bg_against_a_qp_solver(n: int, seed: int) -> None:
    g = rng(seed)
    normal = torch.randn(1, n, dtype=F64, generator=g)
    low, high = -torch.rand(1, n, dtype=F64, generator=g), torch.rand(1, n, dtype=F64, generator=g)
    most = torch.where(normal > 0, high, low).mul(normal).sum()
    for part in (0.3, 0.95, 1.05):  # the last is out of reach in this box
        delta, scale = boxed_step(normal, part * most[None], low, high)
        solved = scipy.optimize.minimize(
            lambda d: (d @ d / 2, d),
            np.zeros(n),
            jac=True,
            bounds=list(zip(low[0].tolist(), high[0].tolist())),
            constraints={
                "type": "ineq",
                "fun": lambda d, part=part: normal[0].numpy() @ d - part * float(most),
                "jac": lambda d: normal[0].numpy(),
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert bool(scale.isfinite()) == (part < 1)
        if part < 1:
            np.testing.assert_allclose(delta[0].numpy(), solved.x, atol=1e-5)


@given(st.integers(2, 12), st.integers(0, 10_000), st.sampled_from(["apart", "alike", "opposed", "tied"]))
def test_best_pair_against_all_pairs(n: int, seed: int, kind: str) -> None:
    """Papernot's saliency of every pair, one by one; also where many pixels tie or none helps."""
    g = rng(seed)
    rise, other = torch.randn(5, n, dtype=F64, generator=g), torch.randn(5, n, dtype=F64, generator=g)
    fall = {"apart": other, "alike": rise + 0.1 * other, "opposed": 0.1 * other - rise, "tied": other}[kind]
    if kind == "tied":
        rise, fall = rise.round(), fall.round()
    free = torch.rand(5, n, generator=g) > 0.3
    pair, salient = best_pair(rise, fall, free)
    for k in range(5):
        saliency = {
            (p, q): float((rise[k, p] + rise[k, q]) * (fall[k, p] + fall[k, q]))
            for p, q in itertools.combinations(free[k].nonzero()[:, 0].tolist(), 2)
            if rise[k, p] + rise[k, q] > 0 and fall[k, p] + fall[k, q] > 0
        }
        assert bool(salient[k]) == bool(saliency)
        if saliency:
            p, q = sorted(pair[k].tolist())
            assert math.isclose(saliency[p, q], max(saliency.values()), rel_tol=1e-12)


@pytest.mark.parametrize(("step", "share"), [(1.0, 0.03), (-0.4, 0.06)])
def test_jsma_is_the_plain_loop(
    network: nn.Module, digits: tuple[Tensor, Tensor], step: float, share: float
) -> None:
    """Papernot et al., algorithm 2, image by image with the whole Jacobian; ours in a batch."""
    network, x, y = copy.deepcopy(network).double(), digits[0][:3].double(), digits[1][:3]
    target = (y + torch.tensor([1, 2, 3])) % 10
    found = follow(network, x, y, target, step, share, UNIT)
    for k in range(len(x)):
        expected = plain_jsma(network, x[k], int(y[k]), int(target[k]), step, rounds=int(share * 784 / 2))
        torch.testing.assert_close(found[k], expected, rtol=0, atol=1e-12)
    assert (found != x).any()


def plain_jsma(model: nn.Module, x: Tensor, y: int, target: int, step: float, rounds: int) -> Tensor:
    point, sign = x.flatten().clone(), math.copysign(1, step)
    bound = float(step > 0)
    for _ in range(rounds):
        jacobian = torch.autograd.functional.jacobian(lambda p: model(p.reshape(1, *x.shape))[0], point)
        alpha = jacobian[target]
        beta = jacobian.sum(0) - alpha
        usable = point != bound
        a, b = (sign * (v[:, None] + v[None]) for v in (alpha, beta))
        score = torch.where((a > 0) & (b < 0), -a * b, 0).masked_fill(~(usable[:, None] & usable[None]), 0)
        score.fill_diagonal_(0)
        if score.max() <= 0:
            break
        place = int(score.argmax())
        for i in (place // len(point), place % len(point)):
            point[i] = (point[i] + step).clamp(0, 1)
        if int(model(point.reshape(1, *x.shape)).argmax()) != y:
            return point.reshape(x.shape)
    return x


def test_minimise_against_scipy() -> None:
    """Convex problems with many active bounds; each batched solution equals L-BFGS-B's."""
    n, count = 20, 8
    mix = torch.randn(count, n, n, dtype=F64, generator=rng(1)) / math.sqrt(n)
    hessian = mix @ mix.mT + 0.1 * torch.eye(n, dtype=F64)
    tilt = torch.randn(count, n, dtype=F64, generator=rng(2))
    low, high = torch.full_like(tilt, -0.5), torch.full_like(tilt, 0.4)

    def objective(rows: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
        slope = (hessian[rows] @ point[..., None])[..., 0]
        return (point * (slope / 2 + tilt[rows])).sum(1), slope + tilt[rows]

    start, one = torch.zeros_like(tilt), torch.ones(count, dtype=F64)
    found = minimise(objective, start, low, high, one, evaluations=200, tolerance=1e-9)
    for k in range(count):
        matrix, vector = hessian[k].numpy(), tilt[k].numpy()
        exact = scipy.optimize.minimize(
            lambda p, matrix=matrix, vector=vector: (p @ matrix @ p / 2 + p @ vector, matrix @ p + vector),
            np.zeros(n),
            jac=True,
            bounds=[(-0.5, 0.4)] * n,
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        np.testing.assert_allclose(found[k].numpy(), exact.x, atol=1e-5)
    assert ((found == low) | (found == high)).sum() > 20


def test_lbfgs_against_scipy_on_a_network(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """Szegedy et al. as published, image by image, to the same target: ours is as close."""
    x, y = (part[:2] for part in digits)
    x_adv = lbfgs(network, x, y)
    targets = network(x_adv).argmax(1)
    assert (targets != y).all()
    ours = (x_adv - x).flatten(1).norm(dim=1)
    theirs = torch.tensor([scipy_lbfgs(network, x[k], int(y[k]), int(targets[k])) for k in range(len(x))])
    assert (ours <= 1.03 * theirs).all()


def scipy_lbfgs(model: nn.Module, x: Tensor, label: int, target: int) -> float:
    """Smallest |delta| over eight values of c."""
    flat, best, low, high = x.flatten().double().numpy(), math.inf, 0.02, 20.0

    def value(delta: np.ndarray, c: float) -> tuple[float, np.ndarray]:
        image = torch.tensor(flat + delta, dtype=x.dtype).requires_grad_()
        scores = model(image.reshape(1, *x.shape))[0]
        loss = softplus(scores[label] - scores[target])
        (slope,) = torch.autograd.grad(loss, image)
        return float(loss.detach()) + c * float(delta @ delta), slope.double().numpy() + 2 * c * delta

    for _ in range(8):
        c = math.sqrt(low * high)
        bounds = list(zip(-flat, 1 - flat))
        delta = scipy.optimize.minimize(
            value, np.zeros_like(flat), args=(c,), jac=True, bounds=bounds, options={"maxfun": 30}
        ).x
        image = torch.tensor(flat + delta, dtype=x.dtype).reshape(1, *x.shape)
        if int(model(image).argmax()) != label:
            low, best = c, min(best, float(np.linalg.norm(delta)))
        else:
            high = c
    return best


# ---------------------------------------------------------------------------------------- oracles: Foolbox


def foolbox_run(attack: Any, model: nn.Module, x: Tensor, y: Tensor, **options: Any) -> Tensor:
    foolbox = pytest.importorskip("foolbox")
    wrapped = foolbox.PyTorchModel(model, bounds=UNIT, device=x.device)
    result = attack.run(wrapped, x, y, **options)
    model.zero_grad()
    return result


def test_pgd_walks_as_foolbox(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    attacks = pytest.importorskip("foolbox").attacks
    network, x, y = copy.deepcopy(network).double(), digits[0].double(), digits[1]
    for norm, eps, kind in [("l2", 0.5, attacks.L2PGD), ("linf", 0.04, attacks.LinfPGD)]:
        theirs = kind(steps=8, rel_stepsize=0.2, random_start=False)
        full = torch.full((len(x),), eps, dtype=F64)
        ours, hit = climb(network, x, y, x, full, 0.2 * full, NORMS[norm], 8, UNIT)
        reference = foolbox_run(theirs, network, x, y, epsilon=eps)
        assert (~hit).sum() > 10
        torch.testing.assert_close(ours[~hit], reference[~hit], rtol=0, atol=1e-8)


def test_fgsm_changes_the_label_where_foolbox_does(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    attack = pytest.importorskip("foolbox").attacks.LinfFastGradientAttack()
    network, x, y = copy.deepcopy(network).double(), digits[0].double(), digits[1]
    x_adv = fgsm(network, x, y)
    eps = NORMS["linf"].size(x_adv - x)
    rows = (eps > 0).nonzero()[:, 0]
    assert len(rows) > 15
    for k in rows:
        one, label = x[k : k + 1], y[k : k + 1]
        above, below = (
            foolbox_run(attack, network, one, label, epsilon=float(eps[k]) * factor)
            for factor in (1 + 1e-9, 0.998)
        )
        torch.testing.assert_close(above, x_adv[k : k + 1], rtol=0, atol=1e-8)
        assert not fooled(network, below, label).any()


def test_deepfool_agrees_with_foolbox(
    network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    attacks = pytest.importorskip("foolbox").attacks
    x, y = digits
    for name, kind in [("deepfool", attacks.L2DeepFoolAttack), ("deepfool-linf", attacks.LinfDeepFoolAttack)]:
        reference = foolbox_run(kind(steps=50, candidates=10, overshoot=0.02), network, x, y)
        ours, theirs = ((part - x).flatten(1).norm(dim=1) for part in (found[name], reference))
        assert (ours / theirs - 1)[ours > 0].abs().median() < 0.01
        assert ours.median() <= 1.01 * theirs.median()


def test_ddn_is_foolbox_where_the_network_is_not_too_sure(
    network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    attacks = pytest.importorskip("foolbox").attacks
    x, y = digits
    reference = foolbox_run(attacks.DDNAttack(steps=50), network, x, y)
    ours, theirs = ((part - x).flatten(1).norm(dim=1) for part in (found["ddn"], reference))
    close = (ours - theirs).abs() < 1e-3
    assert close.float().mean() > 0.7
    assert ours.median() <= 1.01 * theirs.median()


def test_cw_and_fmn_walk_as_foolbox(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    attacks = pytest.importorskip("foolbox").attacks
    network, x, y = copy.deepcopy(network).double(), digits[0][:8].double(), digits[1][:8]
    theirs = {
        "cw": attacks.L2CarliniWagnerAttack(3, 40, stepsize=0.1, initial_const=1.0, abort_early=False),
        "fmn-l0": attacks.L0FMNAttack(steps=40),
    }
    options = {"cw": {"rounds": 3, "steps": 40, "step_size": 0.1, "initial_c": 1.0}, "fmn-l0": {"steps": 40}}
    for name, attack in theirs.items():
        ours = minimum(name, network, x, y, **options[name])
        reference = foolbox_run(attack, network, x, y)
        same = ((ours - reference).abs() < 1e-6).flatten(1).all(1)
        assert fooled(network, ours, y).sum() > 4 and same.all(), name


def test_nothing_found_is_not_a_black_image() -> None:
    """Foolbox's C&W gives zeros for failure, which here would change the label; its FMN a wrong index."""
    model, x = affine(10), images(12)
    y = model(x).argmax(1)
    assert fooled(model, torch.zeros_like(x), y).sum() > 6
    assert torch.equal(cw(model, x, y, rounds=1, steps=1, step_size=1e-4), x)
    x, y = images(3).float(), torch.zeros(3, dtype=torch.long)
    assert torch.equal(minimum("fmn-l0", Constant(), x, y, steps=200, gamma=0.5), x)


# ------------------------------------------------------------------------------- the table: all attacks


@pytest.mark.parametrize("name", TABLE)
def test_result_is_in_the_box_and_fools_or_is_unchanged(
    name: str, network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    x, y = digits
    x_adv = found[name]
    assert x_adv.shape == x.shape and x_adv.dtype == x.dtype and x_adv.device == x.device
    assert not x_adv.requires_grad and x_adv.data_ptr() != x.data_ptr()
    assert x_adv.min() >= 0 and x_adv.max() <= 1
    changed = (x_adv != x).flatten(1).any(1)
    for batch_size in (1, 7, 1000):  # rounding differs between sizes, the verdict does not
        assert torch.equal(fooled(network, x_adv, y, batch_size=batch_size), changed | fooled(network, x, y))
    wrong = fooled(network, x, y)
    assert torch.equal(x_adv[wrong], x[wrong])
    assert changed.sum() > (3 if name in FAILING else len(x) - wrong.sum() - 1)


def test_label_is_changed_by_more_than_rounding(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    """However often the step is halved, the result is not on the tie, where the batch size decides."""
    x, y = digits
    logits = network(fgsm(network, x, y, halvings=40)).detach()
    assert (lead(logits, y) > 5e-6 * logits.abs().amax(1))[fooled(network, x, y).logical_not()].all()


@every_attack
def test_misclassified_images_come_back(
    attack: Callable[..., Tensor], network: nn.Module, digits: tuple[Tensor, Tensor]
) -> None:
    x = digits[0][:4]
    wrong = (network(x).argmax(1) + 1) % 10
    x_adv = attack(network, x, wrong)
    assert torch.equal(x_adv, x)
    assert (distances(x, x_adv, fooled(network, x_adv, wrong)).l2 == 0).all()


class Constant(nn.Module):
    """Class 0, whatever the image; with a gradient of zeros, or with none that the image could follow."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.tensor([1.0, *[0.0] * (classes - 1)]))

    def forward(self, x: Tensor) -> Tensor:
        return self.scores + 0 * x.flatten(1).sum(1, keepdim=True)


@every_attack
def test_images_that_cannot_be_fooled_come_back(attack: Callable[..., Tensor]) -> None:
    x, y = images(3).float(), torch.zeros(3, dtype=torch.long)
    x_adv = attack(Constant(), x, y)
    assert torch.equal(x_adv, x)
    assert distances(x, x_adv, fooled(Constant(), x_adv, y)).mean_squared.isnan().all()


@pytest.fixture
def half_trained() -> nn.Module:
    """A network with layers that behave differently in training, in a mixture of modes."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(48, 4)
        )
    model[0].eval()
    model[5].bias.requires_grad_(False)
    return model


@every_attack
def test_network_is_left_as_it_was(attack: Callable[..., Tensor], half_trained: nn.Module) -> None:
    model, before = half_trained, copy.deepcopy(half_trained.state_dict())
    x, chance = torch.rand(5, 1, 6, 6, generator=rng()), torch.random.get_rng_state()
    y, original = copy.deepcopy(model).eval()(x).argmax(1), x.clone()
    with torch.no_grad():
        first = attack(model, x, y)
        assert not torch.is_grad_enabled()
    assert [module.training for module in model] == [False, *[True] * 5]
    assert [p.requires_grad for p in model.parameters()] == [True] * 5 + [False]
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(x, original) and torch.equal(torch.random.get_rng_state(), chance)
    assert torch.equal(attack(model, x.requires_grad_(), y.int()), first)
    assert not torch.equal(first, original)


@pytest.mark.parametrize("name", [name for name in TABLE if name not in RANDOM])
def test_one_image_or_many(
    name: str, network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    x, y = (part[:4] for part in digits)
    single = torch.cat([TABLE[name](network, x[k : k + 1], y[k : k + 1]) for k in range(len(x))])
    torch.testing.assert_close(single, found[name][:4], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", sorted(DRAWING))
def test_chance_comes_from_the_generator(
    name: str, network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    x, y = digits
    assert torch.equal(TABLE[name](network, x, y), found[name])
    assert not torch.equal(minimum(name, network, x, y, generator=rng(1), **CHEAP.get(name, {})), found[name])
    with pytest.raises(BookError, match="generator="):
        minimum(name, network, x, y)


def test_random_start_stays_in_the_budget(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    x, y = digits
    for norm, eps in [("linf", 0.2), ("l2", 2.0)]:
        starts = [pgd(network, x, y, eps=eps, norm=norm, steps=5, generator=rng(seed)) for seed in (0, 0, 1)]
        assert torch.equal(starts[0], starts[1]) and not torch.equal(starts[0], starts[2])
        assert all((NORMS[norm].size(start - x) <= eps * (1 + 1e-5)).all() for start in starts)
        drawn = NORMS[norm].draw(torch.zeros(500, 3), rng())
        assert (NORMS[norm].size(drawn) <= 1).all() and NORMS[norm].size(drawn).max() > 0.95


MORE: list[tuple[str, str, tuple[float, ...], dict[str, Any]]] = [
    ("deepfool", "steps", (1, 3, 50), {}),
    ("pgd", "rounds", (1, 3, 6, 12), {}),
    ("lbfgs", "rounds", (1, 2, 4, 8), {}),
    ("fgsm", "halvings", (1, 4, 10), {}),
    ("cw", "steps", (10, 30, 60), {"rounds": 1, "initial_c": 10.0}),
    ("cw", "rounds", (1, 2, 4), {"steps": 30}),
    ("bg", "searched", (1, 3, 9), {}),
    ("bg", "halvings", (1, 4, 10), {}),
    ("ensemble", "halvings", (1, 12), {}),
    ("jsma", "share", (0.02, 0.05, 0.145), {}),
    ("additive-gaussian", "repeats", (1, 2, 4), {}),
    ("additive-uniform", "halvings", (1, 5), {}),
]


@pytest.mark.parametrize(("name", "option", "values", "fixed"), MORE, ids=[f"{m[0]}-{m[1]}" for m in MORE])
def test_more_effort_never_worsens(
    name: str,
    option: str,
    values: tuple[float, ...],
    fixed: dict[str, Any],
    network: nn.Module,
    digits: tuple[Tensor, Tensor],
) -> None:
    x, y = (part[:12] for part in digits)
    last = torch.full((len(x),), torch.inf, dtype=F64)
    for value in values:
        x_adv = minimum(name, network, x, y, generator=rng(), **{option: value}, **fixed)
        size = distances(x, x_adv, fooled(network, x_adv, y)).l2.nan_to_num(torch.inf)
        assert (size <= last * (1 + 1e-6)).all()
        last = size
    assert last.isfinite().sum() > 6


def test_more_steps_of_pgd_lose_nobody(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    x, y = digits
    sets = [fooled(network, pgd(network, x, y, eps=0.15, steps=n, step_size=0.02), y) for n in (1, 4, 8, 20)]
    assert all((fewer <= more).all() for fewer, more in itertools.pairwise(sets))
    assert sets[0].sum() < sets[-1].sum()


def test_bg_takes_the_closest_of_all_classes(
    network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    """Also those whose linearised boundary is not the nearest, although most of them are given up early."""
    right = ~fooled(network, *digits)
    x, y = (part[right] for part in digits)
    problems, sizes = Problems(network, x, y, UNIT, 10), []
    for rank in range(9):
        problems.choose(rank)
        sizes.append(problems.solve(torch.full((len(x),), torch.inf), 1.2, 40, 10)[1])
    closest = torch.stack(sizes).min(0)
    assert (closest.indices > 0).any()
    torch.testing.assert_close(NORMS["l2"].size(found["bg"][right] - x), closest.values)


def test_ensemble_is_the_closest_of_its_members(
    network: nn.Module, digits: tuple[Tensor, Tensor], found: dict[str, Tensor]
) -> None:
    x, y = digits
    points = boundary_points(network, x, y)
    members = {
        "fgsm": found["fgsm"],
        "bg": found["bg"],
        "pgd": pgd(network, x, y, norm="l2", eps=5.0, steps=40, step_size=0.25),
    }
    assert set(points) == set(members)
    right = ~fooled(network, x, y)
    sizes = {
        name: distances(x, x_adv, fooled(network, x_adv, y)).l2.nan_to_num(torch.inf)[right]
        for name, x_adv in {**points, "ensemble": found["ensemble"]}.items()
    }
    for name, x_adv in members.items():
        size = distances(x, x_adv, fooled(network, x_adv, y)).l2.nan_to_num(torch.inf)[right]
        assert (sizes[name] <= size * (1 + 1e-6)).all()
        inside = (x_adv - x).flatten(1), (points[name] - x).flatten(1)
        cosine = torch.cosine_similarity(*inside)[right & (inside[0] != 0).any(1)]
        assert (cosine > 1 - 1e-5).all()
    closest = torch.stack([sizes[name] for name in points]).amin(0)
    assert torch.equal(sizes["ensemble"], closest)
    weaker = ensemble(network, x, y, options={"pgd": {"steps": 1}, "bg": {"searched": 1}})
    assert (distances(x, weaker, fooled(network, weaker, y)).l2[right] >= closest - 1e-6).all()
    assert not torch.equal(weaker, found["ensemble"])


# -------------------------------------------------------------------------------------- few pixels


@pytest.mark.parametrize("share", [0.005, 0.02, 0.145])
def test_sparse_attacks_change_no_more_than_they_may(
    share: float, network: nn.Module, digits: tuple[Tensor, Tensor]
) -> None:
    x, y = digits
    for x_adv in (
        jsma(network, x, y, generator=rng(), share=share),
        one_pixel(network, x, y, generator=rng(), **{**CHEAP["one-pixel"], "share": share}),
    ):
        assert (x_adv != x).flatten(1).sum(1).max() <= share * 784
    raised = jsma(network, x, y, generator=rng(), share=share)
    assert (raised[raised != x] == 1).all()  # theta is 1: to the upper bound


def test_jsma_in_a_batch_or_alone(network: nn.Module, digits: tuple[Tensor, Tensor]) -> None:
    x, y = (part[:6] for part in digits)
    target = (y + 3) % 10
    whole = follow(network, x, y, target, 1.0, 0.145, UNIT)
    alone = [follow(network, x[k][None], y[k][None], target[k][None], 1.0, 0.145, UNIT) for k in range(6)]
    torch.testing.assert_close(torch.cat(alone), whole, rtol=0, atol=1e-4)


def test_one_pixel_finds_every_single_pixel_of_an_affine_network() -> None:
    """There the best value of a pixel is a bound: all of them can be tried."""
    model, x = affine(5, scale=3.0), images(40)
    y = model(x).argmax(1)
    changed = x.repeat_interleave(80, 0).flatten(1)
    place = torch.arange(80).repeat(40) % 40
    changed[torch.arange(len(changed)), place] = (torch.arange(80).repeat(40) >= 40).double()
    possible = (model(changed).argmax(1).reshape(40, 80) != y[:, None]).any(1)
    x_adv = one_pixel(model, x, y, generator=rng(), population=100, generations=30, share=1 / 40)
    assert torch.equal(fooled(model, x_adv, y), possible) and 4 < possible.sum() < 36
    assert (x_adv != x).flatten(1).sum(1).max() == 1
    earlier = one_pixel(model, x, y, generator=rng(), population=100, generations=1, share=1 / 40)
    assert (fooled(model, earlier, y) <= possible).all() and fooled(model, earlier, y).sum() < possible.sum()


def test_one_pixel_evolves() -> None:
    """Eight pixels must be bright at once: by chance few draws do that, but better ones survive."""
    layer = nn.Linear(40, 2, dtype=F64)
    with torch.no_grad():
        layer.weight.copy_(torch.stack([torch.zeros(40), torch.ones(40)]))
        layer.bias.copy_(torch.tensor([0.0, -20.0 - 8 * 0.4]))
    model, x = nn.Sequential(nn.Flatten(), layer), torch.full((10, 1, 4, 10), 0.5, dtype=F64)
    y, options = model(x).argmax(1), {"growth": 8.0, "share": 0.2, "population": 100}
    for generations, least, most in [(1, 0, 2), (100, 10, 10)]:
        x_adv = minimum("one-pixel", model, x, y, generator=rng(), generations=generations, **options)
        assert least <= fooled(model, x_adv, y).sum() <= most


def test_one_pixel_paints_all_channels_of_a_pixel() -> None:
    x = torch.zeros(1, 3, 2, 4)
    genes = torch.tensor([[[0.2, 1.9, 0.1, 0.2, 0.3], [2.0, 4.0, 1.0, 1.0, 1.0], [0.9, 1.0, 0.7, 0.8, 0.9]]])
    expected = torch.zeros(1, 3, 2, 4)
    expected[0, :, 0, 1], expected[0, :, 1, 3] = torch.tensor([0.7, 0.8, 0.9]), 1.0
    assert torch.equal(paint(x, genes), expected)
    assert list(pixel_counts(10, 1.0)) == list(range(1, 11))
    assert list(pixel_counts(30, 1.5)) == [1, 2, 3, 5, 8, 12, 18, 27]
    assert list(pixel_counts(0.2, 2.0)) == [1]


# ------------------------------------------------------------------------------------------- by name


def test_names() -> None:
    expected = (
        "fgsm pgd deepfool lbfgs ddn cw fmn-l0 bg jsma one-pixel ensemble additive-gaussian additive-uniform"
    )
    assert set(expected.split()) <= set(ATTACKS)
    model, x, y = affine(2), images(2), torch.zeros(2, dtype=torch.long)
    with pytest.raises(BookError, match="unknown attack 'deepfol'; did you mean deepfool"):
        minimum("deepfol", model, x, y)
    with pytest.raises(BookError, match="unknown option of attack 'deepfool' 'step'; did you mean steps"):
        minimum("deepfool", model, x, y, step=3)


def test_minimum_in_batches() -> None:
    model, x = affine(5), images(11)
    y = model(x).argmax(1)
    whole = minimum("deepfool", model, x, y)
    torch.testing.assert_close(minimum("deepfool", model, x, y, batch_size=4), whole, rtol=0, atol=1e-9)
    assert torch.equal(whole, deepfool(model, x, y))


def test_options_with_one_entry_an_image_are_split_too() -> None:
    model, x = affine(5), images(11)
    y = model(x).argmax(1)
    target = (y + 1) % 5
    whole = minimum("sparsefool", model, x, y, target=target)
    parts = minimum("sparsefool", model, x, y, target=target, batch_size=4)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-9)  # some processors round by batch size
    bases = torch.stack(
        [torch.linalg.qr(torch.randn(40, 8, dtype=F64, generator=rng(k)))[0] for k in range(11)]
    )
    options: dict[str, Any] = {"basis": bases, "box": None}
    whole = minimum("deepfool", model, x, y, **options)
    parts = minimum("deepfool", model, x, y, batch_size=4, **options)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-9)
    assert not torch.equal(whole, x)


def test_fingerprint_follows_the_name() -> None:
    """A row that names an attack depends on it, and not on the one beside it."""
    reached = definitions(minimum, strings=["pgd"])
    assert {"pgd_minimum", "climb", "attack_correct", "loss_slope"} <= set(reached)
    assert not {"deepfool", "lbfgs", "fgsm", "ddn"} & set(reached)
    reached = definitions(minimum, strings=["ensemble"])
    assert {"fgsm", "pgd", "bg", "boxed_step", "bisect"} <= set(reached)
    assert not {"deepfool", "lbfgs", "cw", "jsma", "one_pixel"} & set(reached)


@pytest.mark.parametrize("name", ["ddn", "cw", "fmn-l0"])
def test_without_foolbox(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "foolbox", None)
    with pytest.raises(BookError, match=r"pip install foolbox==3\.3\.4"):
        minimum(name, affine(2), images(2), torch.zeros(2, dtype=torch.long))


# -------------------------------------------------------------------------------------------- mistakes


X, Y = images(4).float(), torch.zeros(4, dtype=torch.long)
NAN, INF = X.clone(), X.clone()
NAN[1, 0, 0, 0], INF[2, 0, 1, 1] = math.nan, math.inf
BAD: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "one image": (X[0, 0, 0], Y, {}, "give a batch"),
    "a number": (torch.tensor(0.5), Y, {}, "give a batch"),
    "array": (X.numpy(), Y, {}, "give a tensor"),
    "no images": (X[:0], Y[:0], {}, "no images"),
    "no pixels": (X[..., :0], Y, {}, "no images"),
    "bytes": ((255 * X).byte(), Y, {}, "give floats"),
    "nan": (NAN, Y, {}, "NaN"),
    "infinite": (INF, Y, {"box": None}, "infinite"),
    "wrong size": (X[..., :5], Y, {}, "does not take images of shape"),
    "double": (X.double(), Y, {}, "does not take images .*float64"),
    "label list": (X, [0, 0, 0, 0], {}, "give a tensor"),
    "float labels": (X, Y.float(), {}, "whole numbers"),
    "bool labels": (X, Y.bool(), {}, "whole numbers"),
    "too few labels": (X, Y[:3], {}, "4 images"),
    "one-hot labels": (X, torch.eye(4, dtype=torch.long), {}, "4 images"),
    "high label": (X, Y + 3, {}, "from 3 to 3, .* 3 outputs"),
    "negative label": (X, Y - 1, {}, "from -1 to -1"),
    "below the box": (X - 0.1, Y, {}, "outside the box"),
    "above the box": (2 * X, Y, {}, "outside the box"),
    "box of three": (X, Y, {"box": (0, 1, 2)}, "give .lowest, highest. or None"),
    "box reversed": (X, Y, {"box": (1.0, 0.0)}, "lower one first"),
    "box not finite": (X, Y, {"box": (0.0, math.inf)}, "finite"),
    "box of words": (X, Y, {"box": ("a", "b")}, "give .lowest, highest. or None"),
    "box as text": (X, Y, {"box": "01"}, "give .lowest, highest. or None"),
    "box of one number": (X, Y, {"box": 1.0}, "give .lowest, highest. or None"),
}


@every_attack
def test_bad_input(attack: Callable[..., Tensor]) -> None:
    model = affine(3, dtype=torch.float32).train()
    for what, (x, y, options, message) in BAD.items():
        with pytest.raises(BookError, match=message) as caught:
            attack(model, x, y, **options)
        assert "\n" not in str(caught.value), what
    assert all(module.training for module in model.modules())


def test_bad_input_for_the_members_of_the_ensemble() -> None:
    for x, y, options, message in BAD.values():
        with pytest.raises(BookError, match=message):
            boundary_points(affine(3, dtype=torch.float32), x, y, **options)


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([usual] * (2 * len(others)) + list(others))


@st.composite
def mangled(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Images, labels and a box of which each may be right, or wrong in some way."""
    shape = draw(mostly((3, 1, 4, 10), (3, 40), (3, 4, 10), (1, 1, 4, 10), (3, 1, 4, 9), (40,), (0, 40), ()))
    kind = draw(mostly(torch.float32, F64, torch.float16, torch.long, torch.bool, torch.complex64))
    x = torch.rand(shape, generator=rng(draw(st.integers(0, 99)))).to(kind)
    if x.numel() and kind in (torch.float32, F64):
        x.flatten()[0] = draw(mostly(0.5, 0.0, 1.0, -1e-3, 1.5, math.nan, math.inf, -math.inf))
    label = draw(mostly(0, 1, 2, 3, -1, 2**31, -(2**63)))
    y = torch.full((draw(mostly(3, 0, 1, 40)),), label).to(
        draw(mostly(torch.long, torch.int32, torch.uint8, F64))
    )
    box = draw(mostly(UNIT, (-1, 2), None, (0.5, 0.5), (math.nan, 1.0), 1.0, "01", (0, None)))
    return x, draw(mostly(y, y.tolist(), None)), box


@every_attack
@given(given_by_hand=mangled())
@settings(max_examples=40)
def test_any_input_is_attacked_or_refused_in_one_line(
    attack: Callable[..., Tensor], given_by_hand: Any
) -> None:
    x, y, box = given_by_hand
    model = affine(3, dtype=torch.float32)
    try:
        x_adv = attack(model, x, y, box=box)
    except BookError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert x_adv.shape == x.shape and x_adv.dtype == x.dtype and x_adv.isfinite().all()
        assert box is None or (x_adv.min() >= box[0] and x_adv.max() <= box[1])


@pytest.mark.parametrize("name", ["cw", "jsma", "one-pixel"])
def test_attacks_that_need_a_box(name: str) -> None:
    model = affine(3, dtype=torch.float32)
    with pytest.raises(BookError, match=r"needs a box; give box=\(lowest, highest\)"):
        minimum(name, model, X, model(X).argmax(1), generator=rng(), box=None)


def test_one_pixel_needs_rows_and_columns() -> None:
    model = affine(3, dtype=torch.float32)
    with pytest.raises(BookError, match=r"needs \(N, C, H, W\)"):
        minimum("one-pixel", model, X.flatten(1), model(X).argmax(1), generator=rng())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Flatten(0), "must give"),
        (nn.Sequential(nn.Flatten(), nn.Linear(40, 1)), "must give"),
        (
            nn.Sequential(nn.Flatten(), nn.Linear(40, 3), nn.Threshold(1e9, math.nan)),
            "NaN or infinite scores",
        ),
        ("lenet5", "torch.nn.Module"),
    ],
    ids=["flat", "one class", "nan", "name"],
)
def test_bad_network(model: Any, message: str) -> None:
    for attack in TABLE.values():
        with pytest.raises(BookError, match=message):
            attack(model, X, Y)


BAD_OPTIONS = [
    ("fgsm", {"levels": 0}),
    ("fgsm", {"halvings": 1.5}),
    ("fgsm", {"smallest": 2.0}),
    ("fgsm", {"largest": math.inf}),
    ("deepfool", {"steps": 0}),
    ("deepfool", {"candidates": 1}),
    ("deepfool", {"overshoot": -0.1}),
    ("deepfool", {"overshoot": None}),
    ("deepfool", {"floor": 0.0}),
    ("deepfool", {"norm": "l7"}),
    ("pgd", {"norm": "l0"}),
    ("pgd", {"steps": True}),
    ("pgd", {"step_ratio": math.nan}),
    ("pgd", {"tolerance": 1.0}),
    ("pgd", {"rounds": "3"}),
    ("lbfgs", {"factor": 1.0}),
    ("lbfgs", {"factor": "2"}),
    ("lbfgs", {"evaluations": 0}),
    ("lbfgs", {"candidates": 1}),
    ("ddn", {"steps": -1}),
    ("ddn", {"gamma": 0}),
    ("cw", {"rounds": 0}),
    ("cw", {"steps": 2.0}),
    ("cw", {"step_size": -0.1}),
    ("cw", {"initial_c": math.nan}),
    ("fmn-l0", {"steps": 0}),
    ("fmn-l0", {"step_size": 0}),
    ("fmn-l0", {"gamma": "0.05"}),
    ("bg", {"candidates": 1}),
    ("bg", {"searched": 0}),
    ("bg", {"factor": 1.0}),
    ("bg", {"rounds": None}),
    ("bg", {"halvings": -1}),
    ("jsma", {"theta": 0}),
    ("jsma", {"theta": 1.5}),
    ("jsma", {"theta": "1"}),
    ("jsma", {"share": 0}),
    ("jsma", {"share": 14.5}),
    ("one-pixel", {"population": 3}),
    ("one-pixel", {"generations": 0}),
    ("one-pixel", {"growth": 0.5}),
    ("one-pixel", {"weight": math.inf}),
    ("one-pixel", {"share": math.nan}),
    ("ensemble", {"halvings": 0}),
    ("ensemble", {"options": [1]}),
    ("ensemble", {"options": {"deepfool": {}}}),
    ("ensemble", {"options": {"pgd": 3}}),
    ("ensemble", {"options": {"bg": {"steps": 3}}}),
    ("ensemble", {"options": {"fgsm": {"box": None}}}),
    ("additive-gaussian", {"repeats": 0}),
    ("additive-uniform", {"smallest": 0}),
    ("additive-uniform", {"batch_size": 0}),
]


@pytest.mark.parametrize(("name", "options"), BAD_OPTIONS)
def test_bad_options(name: str, options: dict[str, Any]) -> None:
    model = affine(3, dtype=torch.float32)
    with pytest.raises(BookError, match=next(iter(options))):
        minimum(name, model, X, Y, generator=rng(), **options)


@pytest.mark.parametrize(
    "options", [{"eps": 0.0}, {"eps": -1}, {"step_size": 0}, {"steps": 0}, {"norm": "l1"}]
)
def test_bad_budget(options: dict[str, Any]) -> None:
    with pytest.raises(BookError, match=next(iter(options))):
        pgd(affine(3, dtype=torch.float32), X, Y, **{"eps": 0.1, **options})
    with pytest.raises(BookError, match="generator"):
        pgd(affine(3, dtype=torch.float32), X, Y, eps=0.1, generator=7)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- distances


def test_distances() -> None:
    x = torch.zeros(3, 1, 2, 2)
    x_adv = torch.stack([torch.full((1, 2, 2), 0.5), torch.zeros(1, 2, 2), torch.ones(1, 2, 2)])
    l2, mean_squared = distances(x, x_adv, torch.tensor([True, True, False]))
    assert l2.dtype == F64 and l2[:2].tolist() == [1.0, 0.0] and mean_squared[:2].tolist() == [0.25, 0.0]
    assert l2[2].isnan() and mean_squared[2].isnan()
    with pytest.raises(BookError, match="two equal batches"):
        distances(x, x_adv[:2], torch.ones(3, dtype=torch.bool))
    with pytest.raises(BookError, match="one True or False"):
        distances(x, x_adv, torch.ones(3))
    with pytest.raises(BookError, match="one an image"):
        fooled(affine(3), images(2), torch.zeros(3, dtype=torch.long))
