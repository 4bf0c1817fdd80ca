"""Adversarial training: the inner maximisation against its closed form, and what it leaves alone."""

import pytest
import torch
from robustbook.augmentations import augmented, crop_and_flip
from robustbook.defenses.adversarial import adversarial
from robustbook.errors import BookError
from robustbook.training import fit
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def linear(weights: Tensor) -> nn.Sequential:
    """Two classes, f_1 - f_0 = w x."""
    layer = nn.Linear(weights.numel(), 2, bias=False)
    layer.weight.data = torch.stack([-weights, weights]) / 2
    return nn.Sequential(nn.Flatten(), layer)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_worst_image_of_a_linear_network(norm: str) -> None:
    """The walk ends where a linear loss is largest: at -eps y w / |w|, in the middle of the box."""
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(12, generator=generator)
    x = 0.4 + 0.2 * torch.rand(6, 3, 2, 2, generator=generator)
    y = torch.arange(6) % 2
    out, _ = adversarial(0.1, norm=norm, steps=20, step_size=0.1)(linear(w), x, y, generator)
    towards = torch.where(y == 1, -1.0, 1.0)[:, None] * (w.sign() if norm == "linf" else w / w.norm())
    assert torch.allclose((out - x).flatten(1), 0.1 * towards, atol=1e-4)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_within_budget_and_box_and_worse(norm: str, network: nn.Module) -> None:
    x = torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    y = network(x).argmax(1)
    eps = {"linf": 0.05, "l2": 1.0}[norm]
    out, _ = adversarial(eps, norm=norm, steps=5)(network, x, y, torch.Generator().manual_seed(1))
    order = torch.inf if norm == "linf" else 2
    assert (out - x).flatten(1).norm(order, dim=1).max() <= eps * (1 + 1e-5)
    assert out.min() >= 0 and out.max() <= 1
    assert cross_entropy(network(out), y) > cross_entropy(network(x), y)


def test_the_network_keeps_its_mode_and_statistics() -> None:
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 2)).train()
    before = model[0].running_mean.clone()
    adversarial(0.1, steps=2)(
        model, torch.rand(8, 1, 4, 4), torch.zeros(8, dtype=torch.long), torch.Generator()
    )
    assert model.training and torch.equal(model[0].running_mean, before)
    assert all(p.grad is None for p in model.parameters())


def test_the_first_transform_comes_first() -> None:
    """The budget is around the cropped image, not around the original."""
    x, y = torch.rand(8, 1, 8, 8), torch.zeros(8, dtype=torch.long)
    model = linear(torch.randn(64))
    cropped, _ = augmented(crop_and_flip())(model, x, y, torch.Generator().manual_seed(3))
    out, _ = adversarial(0.01, steps=1, first=augmented(crop_and_flip()))(
        model, x, y, torch.Generator().manual_seed(3)
    )
    assert (out - cropped).abs().max() <= 0.01 + 1e-6
    assert (out - x).abs().max() > 0.1


def test_training_with_it_makes_a_margin() -> None:
    """One useful noisy feature, one small exact one: only plain training relies on the small one."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (400,), generator=generator)
    sign = 2.0 * y - 1
    large = 0.5 + 0.3 * sign * torch.where(torch.rand(400, generator=generator) < 0.9, 1.0, -1.0)
    x = torch.stack([large, 0.5 + 0.02 * sign], dim=1).reshape(-1, 1, 1, 2)

    def weights(transform: object) -> Tensor:
        model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2))
        nn.init.zeros_(model[1].weight)
        fit(model, (x, y), epochs=60, batch_size=100, lr=0.1, seed=0, transform=transform, progress=False)
        return (model[1].weight[1] - model[1].weight[0]).detach()

    plain, robust = weights(None), weights(adversarial(0.05, steps=3))
    assert plain[1] > 1
    assert robust[1].abs() < 0.2 * plain[1] and robust[0] > 0.5


@pytest.mark.parametrize("options", [{"eps": 0}, {"eps": 0.1, "steps": 0}, {"eps": 0.1, "norm": "l7"}])
def test_mistakes(options: dict[str, object]) -> None:
    with pytest.raises(BookError) as error:
        adversarial(**options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
