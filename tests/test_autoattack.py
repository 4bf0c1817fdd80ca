"""AutoAttack's four attacks: affine networks whose answer is known, and who beats whom."""

import pytest
import torch
from pyautoattack import AutoAttack
from robustbook.attacks import apgd, autoattack, fab, fmn_l2, pgd, square
from robustbook.attacks.autoattack import MEMBERS, stages
from robustbook.errors import BookError
from torch import nn

SHORT = {"steps": 10, "targets": 3, "queries": 30}
ATTACKS = {
    "apgd-ce": lambda f, x, y, **k: apgd(f, x, y, steps=25, **k),
    "apgd-dlr": lambda f, x, y, **k: apgd(f, x, y, steps=25, loss="dlr", **k),
    "apgd-t": lambda f, x, y, **k: apgd(f, x, y, steps=25, loss="dlr", targets=3, **k),
    "fab-t": lambda f, x, y, **k: fab(f, x, y, steps=20, targets=3, **k),
    "autoattack": lambda f, x, y, **k: autoattack(f, x, y, **SHORT, **k),
}


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def affine(classes: int = 4, seed: int = 0) -> nn.Module:
    layer = nn.Linear(64, classes)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(classes, 64, generator=drawn(seed)))
        layer.bias.copy_(-layer.weight.sum(1) / 2)  # boundaries run through the middle
    return nn.Sequential(nn.Flatten(), layer)


def problem(
    model: nn.Module, norm: str = "linf", count: int = 40
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images away from the box, their labels, and the exact distance to another label."""
    x = 0.5 + 0.1 * torch.randn(count, 1, 8, 8, generator=drawn(1)).clamp(-2, 2)
    with torch.no_grad():
        logits = model(x)
    y, weight = logits.argmax(1), model[1].weight.detach()
    gaps, apart = logits.gather(1, y[:, None]) - logits, weight[y][:, None] - weight
    steep = apart.abs().sum(2) if norm == "linf" else apart.norm(dim=2)
    distance = (gaps / steep).scatter(1, y[:, None], torch.inf).amin(1)
    return x, y, distance


def sizes(change: torch.Tensor, norm: str) -> torch.Tensor:
    flat = change.flatten(1)
    return flat.abs().amax(1) if norm == "linf" else flat.norm(dim=1)


@pytest.mark.parametrize("classes", [2, 3])
def test_few_classes_are_attacked_as_far_as_the_losses_go(classes: int) -> None:
    model = affine(classes)
    x, y, distance = problem(model)
    eps = float(distance.median())
    fooled = model(autoattack(model, x, y, eps=eps, **SHORT, generator=drawn(0))).argmax(1) != y
    clear = (distance - eps).abs() > 0.05 * eps
    assert torch.equal(fooled[clear], (distance < eps)[clear])


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ATTACKS)
def test_an_affine_network_is_fooled_if_and_only_if_the_budget_is_enough(name: str, norm: str) -> None:
    model = affine(2 if name == "apgd-ce" else 4)  # by cross-entropy all classes pull, not the nearest alone
    x, y, distance = problem(model, norm)
    eps = float(distance.median())
    found = ATTACKS[name](model, x, y, eps=eps, norm=norm, generator=drawn(2))
    fooled = model(found).argmax(1) != y
    clear = (distance - eps).abs() > 0.05 * eps
    assert 5 < int((distance < eps)[clear].sum()) < 35
    assert torch.equal(fooled[clear], (distance < eps)[clear])
    assert sizes(found - x, norm).amax() <= eps * (1 + 1e-4) and found.amin() >= 0 and found.amax() <= 1


def test_fast_minimum_norm_finds_the_distance_of_an_affine_network() -> None:
    model = affine(2)
    x, y, distance = problem(model, "l2")
    near = sizes(fmn_l2(model, x, y, steps=60) - x, "l2")
    found = near > 0  # where its first step lands on the plane exactly it never leaves it
    assert found.float().mean() > 0.8
    assert ((near >= distance * 0.999) & (near <= 1.1 * distance))[found].all()


def test_the_four_in_a_row_are_those_of_the_package() -> None:
    model = affine(10)
    x, y, distance = problem(model)
    eps = float(distance.median())
    whole = AutoAttack(
        model, eps=eps, version="custom", attacks=["apgd-ce", "apgd-t", "fab-t", "square"], seed=0
    )
    for part in (whole.apgd, whole.apgd_targeted, whole.fab):
        part.n_restarts, part.n_iter = 1, 20
    whole.square.n_queries = 20
    with torch.random.fork_rng():
        theirs = whole.run_standard_evaluation(x, y)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    ours = autoattack(model, x, y, eps=eps, steps=20, queries=20, generator=drawn(0))
    assert torch.equal(model(ours).argmax(1) != y, model(theirs).argmax(1) != y)


def test_every_attack_of_the_row_adds_to_what_is_found() -> None:
    model = affine()
    x, y, distance = problem(model)
    kept = []
    for name, found in stages(model, x, y, eps=float(distance.median()), **SHORT, generator=drawn(0)):
        kept.append((name, int((model(found).argmax(1) == y).sum())))
    names, counts = zip(*kept)
    assert names == MEMBERS and list(counts) == sorted(counts, reverse=True) and counts[-1] < len(x)


def test_another_box_is_another_unit() -> None:
    model = affine()
    x, y, distance = problem(model)

    class Wide(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return model((x + 2) / 4)

    eps = float(distance.median())
    once = autoattack(model, x, y, eps=eps, **SHORT, generator=drawn(0))
    wide = autoattack(Wide(), 4 * x - 2, y, eps=4 * eps, box=(-2, 2), **SHORT, generator=drawn(0))
    same = (model(once).argmax(1) != y) == (Wide()(wide).argmax(1) != y)
    assert same[(distance - eps).abs() > 0.05 * eps].all()
    assert (wide - (4 * x - 2)).abs().amax() <= 4 * eps * (1 + 1e-4)


def test_chance_comes_from_the_generator_and_the_network_is_left_as_it_was() -> None:
    model = affine()
    x, y, distance = problem(model)
    torch.manual_seed(5)
    before, eps = torch.get_rng_state(), 3 * float(distance.median())
    model.train()
    runs = [square(model, x, y, eps=eps, queries=20, generator=drawn(seed)) for seed in (0, 0, 1)]
    autoattack(model, x, y, eps=eps, **SHORT, generator=drawn(0))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    assert model.training and all(p.grad is None and p.requires_grad for p in model.parameters())


def test_square_asks_for_scores_alone() -> None:
    model = affine()
    x, y, distance = problem(model)

    class Blind(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert len(x)  # classifiers from elsewhere may refuse an empty batch
            return model(x).detach()

    eps = float(distance.max()) * 3
    found = square(Blind(), x, y, eps=eps, queries=400, generator=drawn(0))
    assert (model(found).argmax(1) != y).float().mean() > 0.9  # sign by sign it climbs an affine network
    none = square(model, x, y, eps=float(distance.min()) * 0.9, queries=50, generator=drawn(0))
    assert torch.equal(none, x)


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
    eps, masked = float(distance.median()) * 3, Masked(model)
    y = masked(x).argmax(1)
    by_pgd = pgd(masked, x, y, eps=eps, steps=10)
    by_all = autoattack(masked, x, y, eps=eps, steps=5, targets=2, queries=300, generator=drawn(0))
    pgd_kept, all_kept = (float((masked(found).argmax(1) == y).float().mean()) for found in (by_pgd, by_all))
    assert pgd_kept == 1.0 and all_kept < 0.7


def test_mistakes_are_named() -> None:
    model = affine()
    x, y, _ = problem(model, count=4)
    with pytest.raises(BookError, match="draws at random"):
        autoattack(model, x, y, eps=0.1)
    with pytest.raises(BookError, match="unknown loss"):
        apgd(model, x, y, eps=0.1, loss="dlrr", generator=drawn(0))
    with pytest.raises(BookError, match="unknown norm"):
        square(model, x, y, eps=0.1, norm="l1", generator=drawn(0))
    with pytest.raises(BookError, match="eps=0"):
        autoattack(model, x, y, eps=0, generator=drawn(0))
    with pytest.raises(BookError, match="needs a box"):
        fab(model, x, y, eps=0.1, box=None, generator=drawn(0))
    with pytest.raises(BookError, match="4 classes or more"):
        apgd(affine(3), x, y.clamp_max(2) * 0, eps=0.1, targets=2, generator=drawn(0))
