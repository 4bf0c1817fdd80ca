"""Optimisers and learning-rate schedules by name."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, ReduceLROnPlateau

from ..errors import BookError, unknown
from ..registry import Registry

OPTIMIZERS: Registry[Callable[..., Optimizer]] = Registry("optimizer")
SCHEDULES: Registry[Callable[..., "Schedule"]] = Registry("schedule")


def _nothing(*_: float) -> None:
    """A schedule that has nothing to do at this point."""


@dataclass(frozen=True)
class Schedule:
    """What to call after every step, and after every epoch with its validation loss."""

    after_step: Callable[[], None] = _nothing
    after_epoch: Callable[[float], None] = _nothing
    needs_validation: bool = False


@OPTIMIZERS.add("adam")
def adam(parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float, **settings: Any) -> Optimizer:
    """Adam (Kingma & Ba 2015); weight decay is an L2 term in the gradient."""
    return Adam(
        parameters,
        lr=lr,
        betas=settings["betas"],
        eps=settings["eps"],
        weight_decay=weight_decay,
        fused=True,
    )


@OPTIMIZERS.add("sgd")
def sgd(parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float, **settings: Any) -> Optimizer:
    """Stochastic gradient descent with (Nesterov) momentum, no dampening."""
    return SGD(
        parameters,
        lr=lr,
        momentum=settings["momentum"],
        nesterov=settings["nesterov"],
        weight_decay=weight_decay,
    )


def make_optimizer(name: str, model: nn.Module, **settings: Any) -> Optimizer:
    """Build an optimiser for the parameters of `model` that are to be trained."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise BookError("the network has no parameter to train")
    try:
        return OPTIMIZERS[name](parameters, **settings)
    except ValueError as error:
        raise BookError(f"optimizer '{name}': {error}") from None


def make_schedule(
    name: str, optimizer: Optimizer, total: int | None, options: Mapping[str, Any] | None
) -> Schedule:
    """Build a schedule for `total` steps (None if nobody knows how many there will be)."""
    builder, options = SCHEDULES[name], options or {}
    parameters = inspect.signature(builder).parameters
    offered = [key for key in parameters if key not in ("optimizer", "total")]
    for key in options:
        if key not in offered:
            raise unknown(f"option of schedule '{name}'", key, offered)
    if "total" in parameters and total is None:
        raise BookError(f"schedule '{name}' must know how many steps there are; pass max_steps")
    given = {"total": total} if "total" in parameters else {}
    try:
        return builder(optimizer, **given, **options)
    except ValueError as error:
        raise BookError(f"schedule '{name}': {error}") from None


def _by_step(optimizer: Optimizer, factor: Callable[[int], float]) -> Schedule:
    return Schedule(after_step=LambdaLR(optimizer, factor).step)


@SCHEDULES.add("constant")
def constant(optimizer: Optimizer) -> Schedule:
    """The learning rate stays."""
    return Schedule()


@SCHEDULES.add("one-cycle")
def one_cycle(optimizer: Optimizer, *, total: int, pct: float = 0.3) -> Schedule:
    """Cosine up to `lr` for the fraction `pct` of the steps, cosine down to nearly 0 (torch's OneCycleLR).

    As there the momentum goes the other way, 0.95 to 0.85 and back.
    """
    if pct * total == 1:  # the rise would take no step at all, and torch divides by its length
        pct *= 1 + 1e-6
    return Schedule(after_step=OneCycleLR(optimizer, optimizer.defaults["lr"], total, pct_start=pct).step)


@SCHEDULES.add("triangular")
def triangular(optimizer: Optimizer, *, total: int, peak: float = 0.4) -> Schedule:
    """From 0 straight up to `lr` at the fraction `peak` of the steps, straight down to 0 at the last."""
    if not 0 < peak < 1:
        raise ValueError(f"peak={peak} is not between 0 and 1")

    def factor(step: int) -> float:
        done = min((step + 1) / total, 1.0)
        return min(done / peak, (1 - done) / (1 - peak))

    return _by_step(optimizer, factor)


@SCHEDULES.add("drops")
def drops(
    optimizer: Optimizer, *, total: int, at: tuple[float, ...] = (0.5,), factors: tuple[float, ...] = (0.1,)
) -> Schedule:
    """`lr` times factors[k] from the fraction at[k] of the steps on."""
    if len(at) != len(factors) or list(at) != sorted(at):
        raise ValueError(f"at={at} and factors={factors} are not rising fractions with a factor each")

    def factor(step: int) -> float:
        return next((f for start, f in reversed(list(zip(at, factors))) if step >= start * total), 1.0)

    return _by_step(optimizer, factor)


@SCHEDULES.add("linear")
def linear(optimizer: Optimizer, *, total: int, end: float = 0.0) -> Schedule:
    """From `lr` straight down to `end` times `lr`, which the step after the last would have."""
    return _by_step(optimizer, lambda step: 1 - (1 - end) * min(step / total, 1.0))


@SCHEDULES.add("cosine")
def cosine(optimizer: Optimizer, *, total: int, end: float = 0.0) -> Schedule:
    """From `lr` along half a cosine down to `end` times `lr`, which the step after the last would have."""

    def factor(step: int) -> float:
        return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))

    return _by_step(optimizer, factor)


@SCHEDULES.add("plateau")
def plateau(
    optimizer: Optimizer, *, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4
) -> Schedule:
    """Multiply the rate by `factor` after more than `patience` epochs without a better validation loss."""
    scheduler = ReduceLROnPlateau(optimizer, factor=factor, patience=patience, threshold=threshold)
    return Schedule(after_epoch=scheduler.step, needs_validation=True)
