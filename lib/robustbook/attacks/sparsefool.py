"""SparseFool (Modas et al., 2019; chapter 3 of the thesis): few pixels, through a boundary made flat."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import evaluating
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_inputs, check_outputs, check_positive
from .frame import UNIT, attack_correct, crossed, each
from .linear import sparse_step
from .norms import TINY, euclidean
from .subspace import Pixels
from .tangents import Tally, Tangents, overtaken, rivals
from .walk import Rules, walk

BEYOND = 1e-3
"""How far beyond the plane a step goes, as in the published code: on the plane the label may still stand."""


@dataclass
class Rounds(Tally):
    """Counts the rounds of algorithm 2 besides, one for each image that takes part in one."""

    rounds: int = 0


@ATTACKS.add("sparsefool")
def sparsefool(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    lam: float = 3.0,
    alpha: float | None = None,
    target: Tensor | None = None,
    steps: int = 50,
    overshoot: float = 0.02,
    candidates: int = 10,
    walk_steps: int = 50,
    tally: Tally | None = None,
) -> Tensor:
    """SparseFool: algorithm 2 of the thesis, away from the given label.

    In each round l2-DeepFool, which knows no box, finds a point of the boundary; the plane through that point
    with the boundary's normal is reached in the smallest l1 norm inside the box (`sparse_step`). Choices
    where the printed algorithm is open or does not end: errata C21 and C22, gap U24.

    Parameters
    ----------
    lam
        Lambda of section 3.2.3, 1 or more: the plane goes through x + lambda (x_B - x). Near 1 perturbations
        are sparser, above they take fewer rounds. The thesis has 1 on MNIST and 3 on CIFAR-10.
    alpha
        No value changes by more than this, as in figure 3.6; None for the box alone.
    target
        Classes (N,) to reach, one an image; without it any other than `y` will do.
    steps
        Rounds. An image leaves when it is fooled, when DeepFool finds no boundary or the box no way.
    overshoot
        The result is (1 + overshoot) times the sum of the steps, clipped to the box.
    candidates, walk_steps
        Classes and steps of DeepFool.
    tally
        Counts the work done, if given; a `Rounds` counts the rounds too.
    """
    check_counts(steps=steps)
    check_positive(lam=lam, alpha=1.0 if alpha is None else alpha)
    if lam < 1:
        raise BookError(f"lam={lam!r}; give 1 or more, below it the plane is not reached")
    rules = Rules.checked("l2", None, walk_steps, overshoot, candidates, floor=1e-4)
    goal = None if target is None else _goal(model, x, y, box, target)
    count = Tally() if tally is None else tally

    def search(x: Tensor, y: Tensor) -> Tensor:
        low, high = _bounds(x, box, alpha)
        result, point, rows = x.clone(), x.clone(), torch.arange(len(x), device=x.device)
        for _ in range(steps):
            if isinstance(count, Rounds):
                count.rounds += len(rows)
            aim = None if goal is None else goal[rows]
            normal, gap, found = flat_boundary(model, point[rows], y[rows], aim, lam, rules, count)
            rows = rows[found]
            if len(rows) == 0:
                break
            here, least, most = point[rows], low[rows], high[rows]
            room = ((bound - here).flatten(1) for bound in (least, most))
            step, _ = sparse_step(normal.flatten(1), gap, *room)
            point[rows] = (here + step.reshape(here.shape)).clamp(least, most)
            shown = (x[rows] + (1 + overshoot) * (point[rows] - x[rows])).clamp(least, most)
            hit = _fooled(_scores(model, shown, count), y[rows], None if goal is None else goal[rows])
            result[rows[hit]] = shown[hit]
            rows = rows[~hit & (step != 0).any(1)]  # a step of 0 would be the same in the next round
            if len(rows) == 0:
                break
        return result

    return attack_correct(model, x, y, box, search)


def flat_boundary(
    model: nn.Module, x: Tensor, y: Tensor, target: Tensor | None, lam: float, rules: Rules, tally: Tally
) -> tuple[Tensor, Tensor, Tensor]:
    """The plane for the boundary near `x`: lines 3-5 of algorithm 2, with lambda in the plane's place only.

    With a target it is the boundary between that and the present label, which may no longer be `y`.

    Returns, where a boundary was found, unit normals (M, ...) towards the other class (eq. 3.6, taken at x_B)
    and distances (M,) along them; and where that is, (N,).
    """
    if target is not None:
        y = rivals(_scores(model, x, tally), target, 2)[:, 0]
    space = Pixels(x)
    total, found = walk(model, x, y, space, rules, tally, target)
    rows = found.nonzero()[:, 0]
    moved = space.images(total[rows], rows)
    if len(rows) == 0:
        return moved, total[rows, 0], found
    there = Tangents(model, x[rows] + moved, tally)
    other = rivals(there.logits, y[rows], 2)[:, 0] if target is None else target[rows]
    slope = there.slopes(torch.arange(len(rows), device=x.device), other, y[rows])
    size = euclidean(slope)
    normal = slope / each(size.clamp_min(TINY), slope)
    gap = lam * (normal * moved).flatten(1).sum(1).clamp_min(0) + BEYOND
    usable = (size > 0) & gap.isfinite()
    found[rows[~usable]] = False
    return normal[usable], gap[usable], found


@torch.no_grad()
def _scores(model: nn.Module, x: Tensor, tally: Tally) -> Tensor:
    tally.forward += len(x)
    return model(x)


def _fooled(logits: Tensor, y: Tensor, target: Tensor | None) -> Tensor:
    """Is the label left, or the target ahead of all others?"""
    if target is None:
        return crossed(logits, y)
    return overtaken(logits, rivals(logits, target, 2)[:, 0], target)


def _bounds(x: Tensor, box: Box, alpha: float | None) -> tuple[Tensor, Tensor]:
    """Lowest and highest values of the images."""
    low, high = (-torch.inf, torch.inf) if box is None else box
    room = torch.inf if alpha is None else alpha
    return (x - room).clamp_min(low), (x + room).clamp_max(high)


def _goal(model: nn.Module, x: Tensor, y: Tensor, box: Box, target: Tensor) -> Tensor:
    """The targets of those images that are classified as `y`, which are the ones attacked."""
    check_inputs(model, x, y, box)
    if not isinstance(target, Tensor) or target.shape != y.shape or target.is_floating_point():
        raise BookError(f"target={target!r:.60}; give a tensor of {len(x)} classes, one an image")
    with evaluating(model):
        logits = check_outputs(model, x.detach(), y.long())
    if (target == y).any() or target.min() < 0 or target.max() >= logits.shape[1]:
        raise BookError(f"a target is the label itself, or not one of the {logits.shape[1]} classes")
    return target.long()[logits.argmax(1) == y]
