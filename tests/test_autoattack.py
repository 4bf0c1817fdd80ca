"""AutoAttack's four attacks: affine networks whose answer is known, a linear program, and who beats whom."""

import numpy as np
import pytest
import torch
from robustbook.attacks import apgd, autoattack, fab, fmn_l2, pgd, square
from robustbook.attacks.apgd import checkpoints, loss_values
from robustbook.attacks.fab import plane_step
from robustbook.errors import BookError
from scipy.optimize import linprog
from torch import nn

ATTACKS = {
    "apgd-ce": lambda f, x, y, eps, g: apgd(f, x, y, eps=eps, steps=25, generator=g),
    "apgd-dlr": lambda f, x, y, eps, g: apgd(f, x, y, eps=eps, steps=25, loss="dlr", generator=g),
    "apgd-t": lambda f, x, y, eps, g: apgd(f, x, y, eps=eps, steps=25, loss="dlr", targets=2, generator=g),
    "autoattack": lambda f, x, y, eps, g: autoattack(
        f, x, y, eps=eps, steps=10, targets=2, queries=30, generator=g
    ),
}


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def affine(classes: int = 3, seed: int = 0, scale: float = 1.0) -> nn.Module:
    layer = nn.Linear(64, classes)
    with torch.no_grad():
        layer.weight.copy_(scale * torch.randn(classes, 64, generator=drawn(seed)))
        layer.bias.copy_(scale * -layer.weight.sum(1) / 2 / scale)  # boundaries run through the middle
    return nn.Sequential(nn.Flatten(), layer)


def problem(model: nn.Module, count: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images away from the box, their labels, and the exact linf distance to another label."""
    x = 0.5 + 0.1 * torch.randn(count, 1, 8, 8, generator=drawn(1)).clamp(-2, 2)
    with torch.no_grad():
        logits = model(x)
    y, weight = logits.argmax(1), model[1].weight.detach()
    gaps = logits.gather(1, y[:, None]) - logits
    steep = (weight[y][:, None] - weight).abs().sum(2)
    distance = (gaps / steep).scatter(1, y[:, None], torch.inf).amin(1)
    return x, y, distance


@pytest.mark.parametrize("name", ATTACKS)
def test_an_affine_network_is_fooled_if_and_only_if_the_budget_is_enough(name: str) -> None:
    model = affine(2 if name == "apgd-ce" else 3)  # by cross-entropy all classes pull, not the nearest alone
    x, y, distance = problem(model)
    eps = float(distance.median())
    found = ATTACKS[name](model, x, y, eps, drawn(2))
    fooled = model(found).argmax(1) != y
    clear = (distance - eps).abs() > 0.01 * eps
    assert 5 < int((distance < eps)[clear].sum()) < 35
    assert torch.equal(fooled[clear], (distance < eps)[clear])
    assert (found - x).abs().amax() <= eps + 1e-6 and found.amin() >= 0 and found.amax() <= 1


def test_l2_budget_and_distance_of_an_affine_network() -> None:
    model = affine(2)
    x, y, _ = problem(model)
    weight = model[1].weight.detach()
    logits = model(x).detach()
    distance = (logits[:, 0] - logits[:, 1]).abs() / (weight[0] - weight[1]).norm()
    eps = float(distance.median())
    found = apgd(model, x, y, eps=eps, norm="l2", steps=30)
    clear = (distance - eps).abs() > 0.02 * eps
    assert torch.equal((model(found).argmax(1) != y)[clear], (distance < eps)[clear])
    assert (found - x).flatten(1).norm(dim=1).amax() <= eps * (1 + 1e-5)
    near = (fmn_l2(model, x, y, steps=60) - x).flatten(1).norm(dim=1)
    found = near > 0  # where its first step lands on the plane exactly it never leaves it
    assert found.float().mean() > 0.8
    assert ((near >= distance * 0.999) & (near <= 1.1 * distance))[found].all()


def test_fab_finds_the_exact_distance_of_an_affine_network() -> None:
    model = affine()
    x, y, distance = problem(model)
    found = fab(model, x, y, steps=15, targets=2)
    assert (model(found).argmax(1) != y).all()
    torch.testing.assert_close((found - x).flatten(1).abs().amax(1), distance, rtol=0.06, atol=1e-4)


def test_the_step_to_a_plane_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        slope, n = rng.normal(size=7), 7
        low, high = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
        most = np.where(slope > 0, slope * high, slope * low).sum()
        gap = rng.uniform(-0.9, 0.9) * most
        gap = max(gap, 0.9 * np.where(slope > 0, slope * low, slope * high).sum())
        bounded = [(a, b) for a, b in zip(low, high)] + [(0, None)]
        over = np.vstack(
            [np.hstack([np.eye(n), -np.ones((n, 1))]), np.hstack([-np.eye(n), -np.ones((n, 1))])]
        )
        best = linprog(
            np.eye(n + 1)[n], over, np.zeros(2 * n), np.append(slope, 0)[None], [gap], bounds=bounded
        )
        given = (torch.from_numpy(np.asarray(part))[None] for part in (slope, low, high))
        s, lo, hi = given
        step = plane_step(s, torch.tensor([gap]), lo, hi)
        assert float((s * step).sum()) == pytest.approx(gap, abs=1e-5 * abs(most))
        assert ((step >= lo) & (step <= hi)).all()
        assert float(step.abs().amax()) == pytest.approx(best.fun, rel=1e-4, abs=1e-6)


def test_square_asks_for_scores_alone_and_keeps_to_its_budget() -> None:
    model = affine()
    x, y, distance = problem(model)
    asked = []

    class Blind(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            asked.append(torch.is_grad_enabled())
            return model(x).detach()

    eps = float(distance.max()) * 3
    found = square(Blind(), x, y, eps=eps, queries=400, generator=drawn(0))
    assert not any(asked[1:]) and (found - x).abs().amax() <= eps + 1e-6
    assert (model(found).argmax(1) != y).float().mean() > 0.9  # sign by sign it climbs an affine network
    none = square(model, x, y, eps=float(distance.min()) * 0.9, queries=50, generator=drawn(0))
    assert torch.equal(none, x)
    again = square(Blind(), x, y, eps=eps, queries=400, generator=drawn(0))
    assert torch.equal(found, again)


class Masked(nn.Module):
    """A network whose scores are rounded: its gradient is 0 everywhere."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(self.inner(x) * 50) / 50


def test_square_sees_through_masked_gradients() -> None:
    model = affine()
    x, y, distance = problem(model)
    eps = float(distance.median()) * 3
    masked = Masked(model)
    y = masked(x).argmax(1)
    by_pgd = pgd(masked, x, y, eps=eps, steps=10)
    by_all = autoattack(masked, x, y, eps=eps, steps=5, targets=2, queries=300, generator=drawn(0))
    pgd_kept, all_kept = (float((masked(found).argmax(1) == y).float().mean()) for found in (by_pgd, by_all))
    assert pgd_kept == 1.0 and all_kept < 0.5


def test_the_dlr_loss_forgets_the_scale_of_the_scores() -> None:
    logits, y = torch.randn(6, 5, generator=drawn(0)), torch.arange(5).repeat(2)[:6]
    for aim in (None, (y + 1) % 5):
        once, scaled = (loss_values(factor * logits, y, aim, "dlr") for factor in (1.0, 100.0))
        torch.testing.assert_close(once, scaled, rtol=1e-4, atol=1e-5)
    by_hand = torch.tensor([[3.0, 1.0, 0.0, -2.0]])
    assert float(loss_values(by_hand, torch.tensor([0]), None, "dlr")) == pytest.approx(-2 / 3)
    assert float(loss_values(by_hand, torch.tensor([0]), torch.tensor([2]), "dlr")) == pytest.approx(-3 / 4)


def test_checkpoints_are_those_of_the_paper() -> None:
    assert checkpoints(100) == [0, 22, 41, 57, 70, 80, 87, 93, 99]


def test_mistakes_are_named() -> None:
    model = affine()
    x, y, _ = problem(model, 4)
    with pytest.raises(BookError, match="draws at random"):
        autoattack(model, x, y, eps=0.1)
    with pytest.raises(BookError, match="draws at random"):
        square(model, x, y, eps=0.1)
    with pytest.raises(BookError, match="unknown loss"):
        apgd(model, x, y, eps=0.1, loss="dlrr")
    with pytest.raises(BookError, match="eps=0"):
        autoattack(model, x, y, eps=0, generator=drawn(0))
