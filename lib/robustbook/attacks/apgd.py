"""APGD: projected gradient ascent that sets its own step size (Croce and Hein, 2020, algorithm 1)."""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from ..errors import unknown
from .checks import Box, check_counts, check_generator, check_positive
from .frame import UNIT, attack_correct, clip, crossed, each
from .norms import Norm, norm_called
from .tangents import rivals

LOSSES = ("ce", "dlr")
MOMENTUM, PROGRESS = 0.75, 0.75
"""Alpha, the weight of the new step, and rho, the share of steps that must raise the loss."""


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
    """APGD within `eps`: the first point on its way with another label.

    Parameters
    ----------
    loss
        "ce", cross-entropy, or "dlr", the difference of logits ratio, which no scaling of the scores changes.
    targets
        0: away from the label. Otherwise towards each of so many best other classes, one after another.
    generator
        With one the climb starts at a random point of the budget, without at `x`.
    """
    check_positive(eps=eps)
    check_counts(steps=steps, targets=max(1, targets))
    if loss not in LOSSES:
        raise unknown("loss of APGD", str(loss), LOSSES)
    chance = None if generator is None else check_generator(generator)
    geometry = norm_called(norm)

    def search(x: Tensor, y: Tensor) -> Tensor:
        result, left = x.clone(), torch.arange(len(x), device=x.device)
        with torch.no_grad():
            logits = model(x)
        others = rivals(logits, y, logits.shape[1])[:, : targets or 1]
        for rank in range(others.shape[1]):
            aim = others[left, rank] if targets else None
            start = x[left] if chance is None else x[left] + eps * geometry.draw(x[left], chance)
            climb = _Climb.at(left, x[left], y[left], aim, clip(start, box), eps)
            found = climb.run(model, loss, geometry, eps, steps, box, result)
            left = left[~found]
            if len(left) == 0:
                break
        return result

    return attack_correct(model, x, y, box, search)


def loss_values(logits: Tensor, y: Tensor, aim: Tensor | None, loss: str) -> Tensor:
    """What is climbed, (N,): larger is closer to another label.

    "ce" is log sum_{k != y} exp z_k - z_y, which rises and falls with the cross-entropy and does not vanish
    in rounding; "dlr" is equation 3 of the paper, towards a class `aim` equation 7. With a class aimed at,
    "ce" is the difference of the two scores.
    """
    own = logits.gather(1, y[:, None])[:, 0]
    if aim is not None:
        rise = logits.gather(1, aim[:, None])[:, 0] - own
    elif loss == "ce":
        return logits.scatter(1, y[:, None], -torch.inf).logsumexp(1) - own
    else:
        rise = logits.scatter(1, y[:, None], -torch.inf).amax(1) - own
    if loss == "ce" or logits.shape[1] < 3:  # with two classes there is no third score to divide by
        return rise
    first = logits.topk(min(4, logits.shape[1]), dim=1).values
    low = first[:, 2] if aim is None or logits.shape[1] < 4 else (first[:, 2] + first[:, 3]) / 2
    return rise / (first[:, 0] - low + 1e-12)


def checkpoints(steps: int) -> list[int]:
    """Steps after which the size of a step is looked at: 0, 0.22, then gaps that shrink from 0.22 to 0.06."""
    parts = [0.0, 0.22]
    while parts[-1] < 1:
        parts.append(parts[-1] + max(parts[-1] - parts[-2] - 0.03, 0.06))
    return sorted({math.ceil(part * steps - 1e-9) for part in parts if part <= 1})


@dataclass
class _Climb:
    """The images that still climb; every field has one entry an image."""

    rows: Tensor
    x: Tensor
    y: Tensor
    aim: Tensor
    point: Tensor
    before: Tensor
    best_point: Tensor
    best: Tensor
    slope: Tensor
    best_slope: Tensor
    length: Tensor
    rises: Tensor
    reduced: Tensor
    best_then: Tensor

    @classmethod
    def at(
        cls, rows: Tensor, x: Tensor, y: Tensor, aim: Tensor | None, start: Tensor, eps: float
    ) -> "_Climb":
        """Before the first step."""
        none = torch.full((len(x),), -torch.inf, dtype=x.dtype, device=x.device)
        goal = torch.full_like(y, -1) if aim is None else aim
        length, never = torch.full_like(none, 2 * eps), torch.zeros_like(y)
        points, state = (start, start, start), (length, never, torch.ones_like(y).bool(), none.clone())
        return cls(rows, x, y, goal, *points, none, x, x, *state)

    def keep(self, chosen: Tensor) -> None:
        """Only these images go on."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[chosen])

    def run(
        self, model: nn.Module, loss: str, norm: Norm, eps: float, steps: int, box: Box, result: Tensor
    ) -> Tensor:
        """Climb; write fooling points into `result` and say which of the rows at the start they are."""
        start, marks, last = self.rows, checkpoints(steps), 0
        for step in range(steps + 1):
            hit, value = self.look(model, loss)
            result[self.rows[hit]] = self.point[hit]
            better = value > self.best
            self.rises = self.rises + (better if step else torch.zeros_like(better))
            self.best_point = self.point.where(each(better, self.x), self.best_point)
            self.best_slope = self.slope.where(each(better, self.x), self.best_slope)
            self.best = value.where(better, self.best)
            self.keep(~hit)
            if len(self.rows) == 0:
                break
            if step in marks[1:]:
                self.review(step - last)
                last = step
            self.move(norm, eps, box, first=step == 0)
        return ~torch.isin(start, self.rows)

    def look(self, model: nn.Module, loss: str) -> tuple[Tensor, Tensor]:
        """Is the label changed, and the loss; the slope is kept."""
        point = self.point.detach().requires_grad_()
        logits = model(point)
        aimed = bool((self.aim >= 0).all())
        value = loss_values(logits, self.y, self.aim if aimed else None, loss)
        (self.slope,) = torch.autograd.grad(value.sum(), point)
        return crossed(logits.detach(), self.y), value.detach()

    def move(self, norm: Norm, eps: float, box: Box, *, first: bool) -> None:
        """A step along the slope, and a part of the step before."""
        budget = torch.full_like(self.length, eps)

        def inside(point: Tensor) -> Tensor:
            return clip(self.x + norm.project(point - self.x, budget), box)

        there = inside(self.point + each(self.length, self.x) * norm.ascent(self.slope))
        if not first:
            drift = MOMENTUM * (there - self.point) + (1 - MOMENTUM) * (self.point - self.before)
            there = inside(self.point + drift)
        self.before, self.point = self.point, there

    def review(self, count: int) -> None:
        """Halve the step where too few of the last `count` raised the best loss; go back to the best."""
        few = self.rises < PROGRESS * count
        stuck = ~self.reduced & (self.best <= self.best_then)
        halve = few | stuck
        self.length = self.length.where(~halve, self.length / 2)
        back = each(halve, self.x)
        self.point, self.slope = (
            self.best_point.where(back, self.point),
            self.best_slope.where(back, self.slope),
        )
        self.before = self.point.where(back, self.before)
        self.reduced, self.best_then, self.rises = halve, self.best, torch.zeros_like(self.rises)
