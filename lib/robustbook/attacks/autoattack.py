"""AutoAttack (Croce and Hein, 2020): four attacks in a row, each on what the last ones left.

APGD on the cross-entropy, APGD towards each of nine classes on the DLR loss, FAB towards the same, Square
(Andriushchenko et al., 2020). All four come from the authors' package, pyautoattack, and stand here behind
the book's signature. The package keeps to [0, 1], draws from the global random state and leaves gradients in
the network; none of that is seen from outside.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from pyautoattack.autopgd_base import APGDAttack, APGDAttack_targeted
from pyautoattack.fab_pt import FABAttack_PT
from pyautoattack.square import SquareAttack
from torch import Tensor, nn

from ..errors import BookError, unknown
from ..training.chance import isolated
from .checks import Box, check_counts, check_generator, check_positive, needed_box
from .foolbox_adapter import _frozen
from .frame import UNIT, attack_correct

MEMBERS = ("apgd-ce", "apgd-t", "fab-t", "square")
NORMS = {"linf": "Linf", "l2": "L2"}
LOSSES = ("ce", "dlr")
RHO, FIRST_SHARE = 0.75, 0.8
"""The share of steps that must raise the loss, and the part of the pixels that the first squares cover."""


def apgd(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    steps: int = 100,
    loss: str = "ce",
    targets: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """APGD within `eps`: gradient ascent from a random start that sets its own step size.

    Parameters
    ----------
    loss
        "ce", cross-entropy, or "dlr", the difference of logits ratio, which no scaling of the scores changes
        and which needs three classes, four with targets.
    targets
        0: away from the label. Otherwise towards each of so many best other classes, on the DLR loss.
    """
    check_counts(steps=steps, targets=max(1, targets))
    if loss not in LOSSES:
        raise unknown("loss of APGD", str(loss), LOSSES)

    def attack(predict: Predict, eps: float, seed: int, classes: int) -> Any:
        shared = {"n_iter": steps, "norm": _norm(norm), "eps": eps, "seed": seed, "rho": RHO}
        if not targets:
            _enough(classes, 3 if loss == "dlr" else 2, "the DLR loss")
            return APGDAttack(predict, loss=loss, **shared)
        _enough(classes, 4, "the DLR loss with targets")
        return APGDAttack_targeted(predict, n_target_classes=min(targets, classes - 1), **shared)

    return _run(attack, model, x, y, eps, box, generator)


def fab(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    steps: int = 100,
    targets: int = 9,
    generator: torch.Generator | None = None,
) -> Tensor:
    """FAB: walks along the decision boundary towards the image; what comes to within `eps` counts."""
    check_counts(steps=steps, targets=targets)

    def attack(predict: Predict, eps: float, seed: int, classes: int) -> Any:
        towards = min(targets, classes - 1)
        shared = {"n_iter": steps, "norm": _norm(norm), "eps": eps, "seed": seed}
        return FABAttack_PT(predict, targeted=True, n_target_classes=towards, **shared)

    return _run(attack, model, x, y, eps, box, generator)


def square(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    queries: int = 5000,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Square within `eps`: a random search that asks for scores alone, `queries` times at most."""
    check_counts(queries=queries)

    def attack(predict: Predict, eps: float, seed: int, classes: int) -> Any:
        settings = {"p_init": FIRST_SHARE, "resc_schedule": False}  # as AutoAttack has them
        return SquareAttack(predict, norm=_norm(norm), n_queries=queries, eps=eps, seed=seed, **settings)

    return _run(attack, model, x, y, eps, box, generator, slopes=False)


def autoattack(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    steps: int = 100,
    targets: int = 9,
    queries: int = 5000,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Images within `eps` of `x` that fool the network; where all four attacks fail, `x` itself.

    A network with batch normalisation has to be in evaluation mode (`model.eval()`): the second attack looks
    at its outputs once before any attack sets a mode.

    Parameters
    ----------
    steps, targets
        Steps of the gradient attacks for each class, and classes of the two that aim; 100 and 9 as published.
    queries
        Tries of Square, 5000 as published.
    """
    *_, (_, found) = stages(
        model,
        x,
        y,
        eps=eps,
        norm=norm,
        box=box,
        steps=steps,
        targets=targets,
        queries=queries,
        generator=generator,
    )
    return found


def stages(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    norm: str = "linf",
    box: Box = UNIT,
    steps: int = 100,
    targets: int = 9,
    queries: int = 5000,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[str, Tensor]]:
    """After each of the four attacks its name and what has been found so far.

    The second one's loss needs four classes: with three it does not aim, with two it is the first one again.
    """
    shared: dict[str, Any] = {"eps": eps, "norm": norm, "box": box, "generator": generator}
    aimed = {"steps": steps, "targets": targets, **shared}
    members: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "apgd-ce": lambda x, y: apgd(model, x, y, steps=steps, **shared),
        "apgd-t": lambda x, y: _aimed(model, x, y, **aimed),
        "fab-t": lambda x, y: fab(model, x, y, **aimed),
        "square": lambda x, y: square(model, x, y, queries=queries, **shared),
    }
    result, left = x.detach().clone(), torch.arange(len(x), device=x.device)
    for name, attack in members.items():
        if len(left):
            some = x[left].detach()
            found = attack(some, y[left])
            hit = (found != some).flatten(1).any(1)
            result[left[hit]] = found[hit]
            left = left[~hit]
        yield name, result.clone()


def _aimed(model: nn.Module, x: Tensor, y: Tensor, *, targets: int, **settings: Any) -> Tensor:
    """APGD on the DLR loss as far as the number of classes allows."""
    with torch.no_grad():
        classes = model(x[:1]).shape[1]
    loss = "dlr" if classes > 2 else "ce"
    return apgd(model, x, y, loss=loss, targets=targets if classes > 3 else 0, **settings)


Predict = Callable[[Tensor], Tensor]
Make = Callable[[Predict, float, int, int], Any]


def _run(
    make: Make,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    eps: float,
    box: Box,
    generator: torch.Generator | None,
    *,
    slopes: bool = True,
) -> Tensor:
    """Let an attack of the package search among images of [0, 1], and bring back what it finds."""
    check_positive(eps=eps)
    chance = check_generator(generator)
    low, high = needed_box(box, "AutoAttack")

    def search(x: Tensor, y: Tensor) -> Tensor:
        seed = int(torch.randint(2**31, (1,), generator=chance, device=chance.device))
        with torch.no_grad():
            classes = model(x[:1]).shape[1]

        def predict(unit: Tensor) -> Tensor:
            if not len(
                unit
            ):  # Square asks about no image once it has fooled all, which not every model takes
                return unit.new_zeros(0, classes)
            return model(low + (high - low) * unit)  # type: ignore[no-any-return]

        unit = (x - low) / (high - low)
        with _frozen(model), isolated(seed, x.device), torch.set_grad_enabled(slopes), _quiet():
            found: Tensor = make(predict, eps / (high - low), seed, classes).perturb(unit, y)
        return low + (high - low) * found.detach()

    return attack_correct(model, x, y, box, search)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the package's warning of gradients that vanish: Square is there for such networks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Warning)
        yield


def _norm(name: str) -> str:
    """The package's name of a norm."""
    if name not in NORMS:
        raise unknown("norm of AutoAttack", str(name), NORMS)
    return NORMS[name]


def _enough(classes: int, least: int, what: str) -> None:
    if classes < least:
        raise BookError(f"{what} needs {least} classes or more, the network has {classes}")
