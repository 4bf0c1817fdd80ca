"""Recipes of chapter `synthesis`: one LeNet-5 on Fashion-MNIST, trained in every way of the book.

The setting `defence` names the way. Images, epochs, batches and the rate of Adam are the same for all, and so
is the network; nothing was tuned for this comparison. Strengths are those of the chapters where they have
one for grey images, else round numbers, stated in `STRENGTHS`; pruning needs no recipe.
"""

from typing import TYPE_CHECKING, Any

from ..augmentations import augmented, augmix_cifar, jsd_loss, prime_cifar, views
from ..augmentations.noise import SomeNoise
from ..augmentations.removal import LowPass
from ..defenses.cross_lipschitz import cross_lipschitz_loss
from ..defenses.moments import moment_loss
from ..errors import unknown
from .cotraining import method_fit
from .on_manifold import _wae, on_manifold
from .recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from ..defenses.adversarial import adversarial  # noqa: F401 - named for the fingerprint, as in on_manifold

STRENGTHS = {
    "none": 0.0,
    "gaussian-noise": 0.25,
    "moments": 0.25,
    "cross-lipschitz": 0.01,
    "co-training": 2.0,
    "on-manifold": 10.0,
    "adversarial-l2": 1.0,
    "adversarial-linf": 0.1,
    "augmix": 12.0,
    "prime": 12.0,
    "low-pass": 14.0,
}
"""Noise (its deviation), weights (lambda), budgets (eps), the weight of consistency, frequencies kept."""
STATISTICS = {"mean": 0.286, "std": 0.353}
"""Of the training pixels of Fashion-MNIST."""


def defended(defence: str, *, generator: str, width: int, steps: int, **plan: Any) -> dict[str, Any]:
    """Settings of `fit` for a defence.

    `generator` is the recipe of the auto-encoder, `width` that of co-training's g, `steps` those of the PGD
    in adversarial training.
    """
    if defence not in STRENGTHS:
        raise unknown("defence", defence, STRENGTHS)
    strength = STRENGTHS[defence]
    if defence == "co-training":
        return method_fit("cotraining", strength, generator=width, **plan)
    return method_fit("none", 0.0, **plan, **_parts(defence, strength, generator, steps))


def _parts(defence: str, strength: float, generator: str, steps: int) -> dict[str, Any]:
    """Transform and loss of all defences but co-training."""
    from ..defenses.adversarial import adversarial  # here, because attacks stand on this package

    if defence == "gaussian-noise":
        return {"transform": augmented(SomeNoise(strength, 1.0))}
    if defence == "moments":
        return {"loss": moment_loss(strength, 1.0)}
    if defence == "cross-lipschitz":
        return {"loss": cross_lipschitz_loss(strength)}
    if defence == "on-manifold":
        return on_manifold("r4", strength, generator, steps)
    if defence.startswith("adversarial"):
        norm = defence.removeprefix("adversarial-")
        return {"transform": adversarial(strength, norm=norm, steps=steps), "keep_best": False}
    if defence == "low-pass":
        return {"transform": augmented(LowPass(int(strength)))}
    if defence in ("augmix", "prime"):
        method = augmix_cifar() if defence == "augmix" else prime_cifar()
        return {"transform": views(method), "loss": jsd_loss(strength)}
    return {}


@RECIPES.add("synthesis-fashion-mnist")
def synthesis_fashion_mnist(defence: str = "none") -> Recipe:
    """LeNet-5 on 20,000 images of Fashion-MNIST, five epochs, whatever the defence."""
    parts: dict[str, Any] = {"generator": "wae-fashion-mnist", "width": 8, "steps": 5}
    fit = defended(defence, images=20_000, epochs=5, batch_size=64, **parts)
    return Recipe("lenet5", "fashion-mnist-20000", fit, STATISTICS)


@RECIPES.add("synthesis-fashion-mnist-small")
def synthesis_fashion_mnist_small(defence: str = "none") -> Recipe:
    """A few steps on the shipped part of Fashion-MNIST: for `smoke`."""
    parts: dict[str, Any] = {"generator": "synthesis-wae-small", "width": 2, "steps": 2}
    short: dict[str, Any] = {"lr": 3e-3, "max_steps": 8, "channels_last": False, "validation": None}
    fit = defended(defence, images=2_000, epochs=1, batch_size=32, **short, **parts)
    return Recipe("lenet5", "fashion-mnist-small", fit, STATISTICS)


@RECIPES.add("synthesis-fashion-mnist-paper")
def synthesis_fashion_mnist_paper(defence: str = "none") -> Recipe:
    """LeNet-5 on all of Fashion-MNIST, thirty epochs, for a GPU."""
    parts: dict[str, Any] = {"generator": "wae-fashion-mnist-paper", "width": 128, "steps": 10}
    fit = defended(defence, images=60_000, epochs=30, batch_size=64, **parts)
    return Recipe("lenet5", "fashion-mnist", fit, STATISTICS)


@RECIPES.add("synthesis-cifar10-small-l2")
def synthesis_cifar10_small_l2(eps: float = 0.0) -> Recipe:
    """A few steps on the shipped part of CIFAR-10, under attack in l2 if `eps`: for `smoke`."""
    from ..defenses.adversarial import adversarial

    attacked = {"transform": adversarial(eps, norm="l2", steps=1), "keep_best": False} if eps else {}
    short: dict[str, Any] = {"lr": 3e-3, "max_steps": 12, "validation": None}
    return Recipe("lenet5", "cifar10-small", {"epochs": 1, "batch_size": 32, **short, **attacked})


@RECIPES.add("synthesis-wae-small")
def synthesis_wae_small() -> Recipe:
    """An auto-encoder that has hardly learned: what `smoke` needs one for is that there is one."""
    fit = _wae(epochs=1, batch_size=50, lr=5e-3, channels_last=False, max_steps=20, validation=None)
    return Recipe("wae", "fashion-mnist-small", fit, {"width": 0.125, "hidden": 32})
