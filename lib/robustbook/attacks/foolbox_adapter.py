"""Attacks that Foolbox (Rauber et al., 2017 and 2020) has and does well, behind our signature."""

import contextlib
import types
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.chance import isolated
from ..training.evaluation import home
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_positive
from .frame import UNIT, attack_correct


@ATTACKS.add("ddn")
def ddn(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    steps: int = 100,
    init_eps: float = 1.0,
    gamma: float = 0.05,
) -> Tensor:
    """Decoupled direction and norm (Rony et al., 2019): a strong attack of small l2 norm, by Foolbox.

    Parameters
    ----------
    steps
        Gradient steps; all are taken.
    init_eps, gamma
        First norm of the perturbation, and the part by which it shrinks or grows after each step.
    """
    check_counts(steps=steps)
    check_positive(init_eps=init_eps, gamma=gamma)
    foolbox = _foolbox()
    return run(foolbox.attacks.DDNAttack(init_epsilon=init_eps, steps=steps, gamma=gamma), model, x, y, box)


def run(attack: Any, model: nn.Module, x: Tensor, y: Tensor, box: Box) -> Tensor:
    """Run a minimisation attack of Foolbox on the images classified as `y`."""
    bounds = (-torch.inf, torch.inf) if box is None else box

    def search(x: Tensor, y: Tensor) -> Tensor:
        wrapped = _foolbox().PyTorchModel(_Tempered(model).eval(), bounds=bounds, device=home(model))
        with _frozen(model), isolated(0, x.device):  # it draws a direction where a gradient is exactly 0
            return attack.run(wrapped, x, y)

    return attack_correct(model, x, y, box, search)


class _Tempered(nn.Module):
    """The network, with scores scaled down where it is so sure that single precision loses the loss.

    In float32 the slope of the cross-entropy forgets the score of the label when that leads by more than
    about 15. The predictions are the network's own.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Class scores of which no lead is larger than 10."""
        logits = self.model(x)
        first, second = logits.detach().topk(2, dim=1).values.T
        return logits / ((first - second) / 10).clamp_min(1)[:, None]


def _foolbox() -> types.ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it imports an old name of scipy
            import foolbox
    except ImportError as error:
        raise BookError(f"this attack needs Foolbox ({error}); run: pip install foolbox==3.3.4") from error
    return foolbox


@contextlib.contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """No gradients for the parameters inside: Foolbox's backward pass would leave them there."""
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in wanted:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in wanted:
            parameter.requires_grad_(True)
