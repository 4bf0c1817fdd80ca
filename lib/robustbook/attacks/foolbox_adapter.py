"""Attacks that Foolbox (Rauber et al., 2017 and 2020) has and does well, behind our signature."""

import contextlib
import math
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
from .checks import Box, check_counts, check_positive, needed_box
from .frame import UNIT, attack_correct, each, lead
from .norms import euclidean


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


@ATTACKS.add("cw")
def cw(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    rounds: int = 5,
    steps: int = 100,
    step_size: float | None = None,
    initial_c: float | None = None,
) -> Tensor:
    """The l2 attack of Carlini and Wagner (2017) with their binary search of c, by Foolbox.

    Minimises |delta|^2 + c max(0, f_y - max_k f_k) by Adam over w, x + delta = tanh(w) stretched to the box,
    so it needs one. Nothing stops early: Foolbox would stop a batch together, and an image's result would
    depend on its neighbours.

    Parameters
    ----------
    rounds, steps
        Values of c tried, and steps for each; all are taken. Published are 9 and 10,000.
    step_size
        How far Adam moves w in a step (published 0.01); without one, each image has that by which an affine
        network would need its values changed, root mean square.
    initial_c
        The first c (published 0.001); without one, each image has that which an affine network would need. It
        grows tenfold until the label changes, and is bisected then.
    """
    check_counts(rounds=rounds, steps=steps)
    check_positive(
        step_size=1 if step_size is None else step_size, initial_c=1 if initial_c is None else initial_c
    )
    foolbox = _foolbox()

    def search(x: Tensor, y: Tensor) -> Tensor:
        low, high = needed_box(box, "the attack of Carlini and Wagner")
        c, distance = _if_affine(model, x, y)
        length = (2 / (high - low) / math.sqrt(x[0].numel()) * distance).clamp(1e-4, 1)
        attack = foolbox.attacks.L2CarliniWagnerAttack(
            binary_search_steps=rounds,
            steps=steps,
            stepsize=each(length, x) if step_size is None else step_size,
            initial_const=c.cpu().numpy() if initial_c is None else initial_c,
            abort_early=False,
        )
        found = _call(attack, model, x, y, box)
        none = (found == 0).flatten(1).all(1)  # what Foolbox gives where it found nothing
        return x.where(each(none, x), found)

    return attack_correct(model, x, y, box, search)


def _if_affine(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The c that puts the minimum on the boundary, and its distance, if the network were affine; (N,) each.

    There 2 delta = c w, w the slope of the lead, and w . delta is the gap.
    """
    x = x.detach().requires_grad_()
    gap = -lead(model(x), y)
    (slope,) = torch.autograd.grad(gap.sum(), x)
    gap, steepness = gap.detach(), euclidean(slope)
    c, distance = 2 * gap / steepness.square(), gap / steepness
    return c.where(c.isfinite(), 1.0).clamp(1e-10, 1e10), distance.where(distance.isfinite(), 1.0)


@ATTACKS.add("fmn-l0")
def fmn_l0(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    steps: int = 100,
    step_size: float = 1.0,
    gamma: float = 0.05,
) -> Tensor:
    """The fast minimum-norm attack (Pintor et al., 2021) for l0: as few values as possible, by Foolbox.

    It counts values, not pixels: three for a pixel of which all colours change.

    Parameters
    ----------
    steps
        Gradient steps; all are taken.
    step_size, gamma
        The first length of a step in l2, and the first part by which the number of values grows or
        shrinks after one; both fall along a cosine.
    """
    check_counts(steps=steps)
    check_positive(step_size=step_size, gamma=gamma)
    attack = _foolbox().attacks.L0FMNAttack(steps=steps, max_stepsize=step_size, gamma=gamma)
    project = attack.project

    def project_within(x: Any, x0: Any, epsilon: Any) -> Any:
        """Foolbox's projection, which fails when all values may change: its index is one too high then."""
        return project(x=x, x0=x0, epsilon=epsilon.minimum(math.prod(x.shape[1:]) - 1))

    attack.project = project_within
    return run(attack, model, x, y, box)


def fmn_l2(
    model: nn.Module, x: Tensor, y: Tensor, *, box: Box = UNIT, steps: int = 100, gamma: float = 0.05
) -> Tensor:
    """The fast minimum-norm attack (Pintor et al., 2021) for l2, by Foolbox; `gamma` as for `fmn_l0`."""
    check_counts(steps=steps)
    check_positive(gamma=gamma)
    attack = _foolbox().attacks.L2FMNAttack(steps=steps, gamma=gamma)

    def project(x: Any, x0: Any, epsilon: Any) -> Any:
        """Foolbox's own divides a norm by itself (version 3.3.4) and leaves every point where it is."""
        delta = x - x0
        size = delta.flatten(1).norms.l2(axis=-1).maximum(1e-12)
        factor = (epsilon / size).minimum(1)
        return x0 + delta * factor.reshape((-1,) + (1,) * (x.ndim - 1))

    attack.project = project
    return run(attack, model, x, y, box)


def run(attack: Any, model: nn.Module, x: Tensor, y: Tensor, box: Box) -> Tensor:
    """Run a minimisation attack of Foolbox on the images classified as `y`."""

    def search(x: Tensor, y: Tensor) -> Tensor:
        return _call(attack, _Tempered(model).eval(), x, y, box)

    return attack_correct(model, x, y, box, search)


def _call(attack: Any, model: nn.Module, x: Tensor, y: Tensor, box: Box) -> Tensor:
    """What the attack finds; the network and the state of chance are left as they were."""
    bounds = (-torch.inf, torch.inf) if box is None else box
    wrapped = _foolbox().PyTorchModel(model, bounds=bounds, device=home(model))
    with _frozen(model), isolated(0, x.device):  # it draws a direction where a gradient is exactly 0
        found: Tensor = attack.run(wrapped, x, y)
    return found


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
