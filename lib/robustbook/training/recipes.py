"""Recipes: how each named network of the book is trained.

The settings come from the papers or were chosen on validation data; test data selects nothing.
`channels_last` is 10 to 30 % faster on a processor and changes last bits alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..defenses.moments import moment_loss
from ..registry import Registry


@dataclass(frozen=True)
class Recipe:
    """A network with its options, the data it learns from, and the settings of `fit`."""

    network: str
    dataset: str
    fit: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


RECIPES: Registry[Callable[..., Recipe]] = Registry("recipe")


@RECIPES.add("lenet5-mnist")
def lenet5_mnist() -> Recipe:
    """LeNet-5 on MNIST with the settings of "Hold me tight", in fewer epochs."""
    return Recipe(
        network="lenet5",
        dataset="mnist",
        fit={
            "epochs": 5,
            "batch_size": 128,
            "optimizer": "sgd",
            "lr": 0.21,
            "weight_decay": 5e-4,
            "schedule": "triangular",
            "clip_norm": 0.5,
            "channels_last": True,
        },
    )


@RECIPES.add("lenet5-mnist-small")
def lenet5_mnist_small() -> Recipe:
    """LeNet-5 on the subset that ships with the book: seconds, for `smoke` and for first tries."""
    return Recipe(
        network="lenet5",
        dataset="mnist-small",
        fit={
            "epochs": 8,
            "batch_size": 50,
            "optimizer": "sgd",
            "lr": 0.1,
            "weight_decay": 5e-4,
            "schedule": "triangular",
            "clip_norm": 0.5,
            "channels_last": True,
        },
    )


def _moment_fit(sigma: float, alpha: float, **fit: Any) -> dict[str, Any]:
    """Adam at 1e-3; with alpha > 0 the moment regulariser for noise of standard deviation sigma."""
    loss = {"loss": moment_loss(sigma, alpha)} if alpha else {}
    return {"optimizer": "adam", "lr": 1e-3, "channels_last": True, **loss, **fit}


@RECIPES.add("moment-lenet-mnist")
def moment_lenet_mnist(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's LeNet on MNIST, as published but for Adam's rate (1e-3), batch and 3 epochs."""
    return Recipe("moment-lenet", "mnist", _moment_fit(sigma, alpha, epochs=3, batch_size=100))


@RECIPES.add("moment-lenet-mnist-small")
def moment_lenet_mnist_small(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's LeNet, a quarter as wide, on the subset that ships with the book: seconds."""
    fit = _moment_fit(sigma, alpha, epochs=5, batch_size=50, lr=2e-3)
    return Recipe("moment-lenet", "mnist-small", fit, options={"width": 0.25})


@RECIPES.add("moment-lenet-mnist-half")
def moment_lenet_mnist_half(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's LeNet, half as wide: for sweeps over many settings on few images."""
    fit = _moment_fit(sigma, alpha, epochs=3, batch_size=50)
    return Recipe("moment-lenet", "mnist", fit, options={"width": 0.5})


@RECIPES.add("moment-lenet-cifar10-half")
def moment_lenet_cifar10_half(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's LeNet on CIFAR-10, half as wide."""
    fit = _moment_fit(sigma, alpha, epochs=3, batch_size=50)
    return Recipe("moment-lenet", "cifar10", fit, options={"width": 0.5})


@RECIPES.add("moment-alexnet-cifar10-quarter")
def moment_alexnet_cifar10_quarter(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's AlexNet on CIFAR-10, a quarter as wide, with Adam instead of SGD."""
    fit = _moment_fit(sigma, alpha, epochs=8, batch_size=50)
    return Recipe("moment-alexnet", "cifar10", fit, options={"width": 0.25})


@RECIPES.add("moment-alexnet-cifar10-small")
def moment_alexnet_cifar10_small(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's AlexNet, a sixteenth as wide, on the subset that ships with the book: seconds."""
    fit = _moment_fit(sigma, alpha, epochs=2, batch_size=50, channels_last=False)  # 4 channels: no use
    return Recipe("moment-alexnet", "cifar10-small", fit, options={"width": 0.0625})


def _lenet_of_table_2(dataset: str, sigma: float, alpha: float) -> Recipe:
    """LeNet's column of Table 2: Adam, up to 100 epochs, rate times 0.9 after 3 without progress."""
    plateau = {"schedule": "plateau", "schedule_options": {"factor": 0.9, "patience": 3}, "patience": 10}
    fit = _moment_fit(sigma, alpha, epochs=100, batch_size=1000, lr=1e-4, **plateau)
    return Recipe("moment-lenet", dataset, fit)


def _alexnet_of_table_2(dataset: str, sigma: float, alpha: float) -> Recipe:
    """AlexNet's column of Table 2: SGD with Nesterov momentum, rate halved after 5 without progress."""
    plateau = {"schedule": "plateau", "schedule_options": {"factor": 0.5, "patience": 5}, "patience": 20}
    sgd = {"optimizer": "sgd", "lr": 0.1, "nesterov": True, "weight_decay": 5e-4, "channels_last": False}
    fit = _moment_fit(sigma, alpha, epochs=100, batch_size=128, **plateau, **sgd)
    return Recipe("moment-alexnet", dataset, fit)


@RECIPES.add("moment-lenet-mnist-paper")
def moment_lenet_mnist_paper(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's LeNet on MNIST with the settings of its Table 2, for a GPU."""
    return _lenet_of_table_2("mnist", sigma, alpha)


@RECIPES.add("moment-lenet-cifar10-paper")
def moment_lenet_cifar10_paper(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The same on CIFAR-10."""
    return _lenet_of_table_2("cifar10", sigma, alpha)


@RECIPES.add("moment-lenet-cifar100-paper")
def moment_lenet_cifar100_paper(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The same on CIFAR-100."""
    return _lenet_of_table_2("cifar100", sigma, alpha)


@RECIPES.add("moment-alexnet-cifar10-paper")
def moment_alexnet_cifar10_paper(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The moment paper's AlexNet on CIFAR-10 with the settings of its Table 2, for a GPU."""
    return _alexnet_of_table_2("cifar10", sigma, alpha)


@RECIPES.add("moment-alexnet-cifar100-paper")
def moment_alexnet_cifar100_paper(sigma: float = 0.0, alpha: float = 0.0) -> Recipe:
    """The same on CIFAR-100."""
    return _alexnet_of_table_2("cifar100", sigma, alpha)
