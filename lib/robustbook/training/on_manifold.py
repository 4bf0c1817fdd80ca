"""Recipes of chapter `on_manifold`: the auto-encoder, and the classifiers that are trained with it.

The classifier, its data and its schedule are those of `framework-cnn-fashion-mnist` (chapter `cotraining`),
which has the unregularised and the R2-trained network. Here the setting `method` is "r4" (framework 2020,
section 7) with `weight` as lambda, or "stutz" (Stutz et al. 2019), which has none. The auto-encoder of seed 0
serves all of them: it is trained first and stays fixed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import unknown
from ..networks.wae import Autoencoder
from .cotraining import REDUCED, method_fit
from .recipes import RECIPES, Recipe
from .stored import trained

if TYPE_CHECKING:
    # Attacks stand on this package, so that these are imported when a recipe is asked for. They are named
    # here as well because fingerprints follow the imports at the top of a module alone.
    from ..defenses.manifold import (  # noqa: F401
        WaeLoss,
        manifold_loss,
        manifold_sampler,
        on_manifold_adversarial,
    )
    from ..defenses.robust_loss import neighbours  # noqa: F401

METHODS = ("r4", "stutz")
SIGMA, SAMPLES, RADII = 0.06, 10, 10
"""Noise in codes, samples of a point and values of eps in a step (section 7, gap U9)."""
WORST = 0.3
"""The cube in codes of Stutz et al."""


@dataclass(frozen=True)
class Stored:
    """A stored auto-encoder by its recipe's name; it is loaded when it is called."""

    name: str
    seed: int = 0

    def __call__(self) -> Autoencoder:
        model = trained(self.name, self.seed, progress=False)
        assert isinstance(model, Autoencoder)
        return model


def on_manifold(method: str, weight: float, generator: str, steps: int) -> dict[str, Any]:
    """Transform and loss of a method, as settings of `fit`."""
    from ..defenses.manifold import manifold_loss, manifold_sampler, on_manifold_adversarial
    from ..defenses.robust_loss import neighbours

    if method == "r4":
        sampler = manifold_sampler(Stored(generator), SIGMA)
        return {"transform": neighbours(sampler, SAMPLES), "loss": manifold_loss(weight, radii=RADII)}
    if method == "stutz":
        return {"transform": on_manifold_adversarial(Stored(generator), eps=WORST, steps=steps)}
    raise unknown("method", method, METHODS)


def _wae(**changes: Any) -> dict[str, Any]:
    """Adam with half a cosine down to 0; the auto-encoder's own loss decides which epoch is kept."""
    from ..defenses.manifold import WaeLoss

    loss = WaeLoss()
    shared = {"batch_size": 100, "lr": 2e-3, "schedule": "cosine", "channels_last": True}
    return {**shared, "loss": loss, "validation_loss": loss, **changes}


@RECIPES.add("wae-fashion-mnist")
def wae_fashion_mnist() -> Recipe:
    """The auto-encoder on 20,000 images, half as wide and with 128 instead of 2048 dense units: 1 MB."""
    return Recipe("wae", "fashion-mnist-20000", _wae(epochs=20), {"width": 0.5, "hidden": 128})


@RECIPES.add("wae-fashion-mnist-small")
def wae_fashion_mnist_small() -> Recipe:
    """A small one on the shipped part of Fashion-MNIST: seconds, and blurred."""
    fit = _wae(epochs=5, batch_size=50, lr=5e-3, channels_last=False)
    return Recipe("wae", "fashion-mnist-small", fit, {"width": 0.25, "hidden": 64})


@RECIPES.add("wae-fashion-mnist-paper")
def wae_fashion_mnist_paper() -> Recipe:
    """The auto-encoder of framework 2021, appendix B, on all of Fashion-MNIST, for a GPU."""
    return Recipe("wae", "fashion-mnist", _wae(epochs=50, lr=1e-3))


@RECIPES.add("manifold-fashion-mnist")
def manifold_fashion_mnist(method: str = "r4", weight: float = 0.0) -> Recipe:
    """The reduced f on 20,000 images; ten steps in codes for the method of Stutz et al."""
    parts = on_manifold(method, weight, "wae-fashion-mnist", steps=10)
    fit = method_fit("none", 0.0, images=20_000, epochs=5, **parts)
    return Recipe("framework-cnn", "fashion-mnist-20000", fit, REDUCED)


@RECIPES.add("manifold-fashion-mnist-sweep")
def manifold_fashion_mnist_sweep(method: str = "r4", weight: float = 0.0) -> Recipe:
    """The same on the 2,000 images that ship with the book, ten epochs: to compare values of lambda."""
    parts = on_manifold(method, weight, "wae-fashion-mnist", steps=10)
    fit = method_fit("none", 0.0, images=2_000, epochs=10, **parts)
    return Recipe("framework-cnn", "fashion-mnist-small", fit, REDUCED)


@RECIPES.add("manifold-fashion-mnist-small")
def manifold_fashion_mnist_small(method: str = "r4", weight: float = 0.0) -> Recipe:
    """A small f on the shipped part of Fashion-MNIST, half an epoch: for `smoke`."""
    parts = on_manifold(method, weight, "wae-fashion-mnist-small", steps=3)
    short: dict[str, Any] = {"max_steps": 36, "channels_last": False}
    fit = method_fit("none", 0.0, images=2_000, epochs=1, batch_size=25, lr=3e-3, **short, **parts)
    return Recipe("framework-cnn", "fashion-mnist-small", fit, {"width": 8, "blocks": 2, "hidden": 64})


@RECIPES.add("manifold-fashion-mnist-paper")
def manifold_fashion_mnist_paper(method: str = "r4", weight: float = 0.0) -> Recipe:
    """f as in appendix A.1 of 2021 on all images, forty steps in codes, for a GPU."""
    parts = on_manifold(method, weight, "wae-fashion-mnist-paper", steps=40)
    fit = method_fit("none", 0.0, images=60_000, epochs=10, **parts)
    return Recipe("framework-cnn", "fashion-mnist", fit)
