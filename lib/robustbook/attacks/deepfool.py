"""DeepFool (Moosavi-Dezfooli et al., 2016): step after step to the nearest boundary of a linearisation."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import evaluating
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_inputs, check_outputs
from .frame import UNIT, attack_correct, clip
from .subspace import Pixels, Subspaces, check_bases
from .tangents import Tally
from .walk import Rules, walk


@ATTACKS.add("deepfool")
def deepfool(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    norm: str = "l2",
    steps: int = 50,
    overshoot: float = 0.02,
    candidates: int = 10,
    floor: float = 1e-4,
    leeway: float = 1.5,
    basis: Tensor | None = None,
    tally: Tally | None = None,
) -> Tensor:
    """DeepFool with the settings of the published Python code, away from the given label.

    The paper starts from the network's own prediction: pass that as `y` for it. The returned perturbation
    is (1 + overshoot) times the sum of the steps, as published, and the next linearisation is taken there.

    Parameters
    ----------
    box
        The image is clipped to it after every step; None for the published attack, which knows no box.
    norm
        "l2", or "linf" and "l1" with the steps of the paper's section on other norms. The step of "l1" is
        one value of one pixel, which a box mostly forbids: `sparsefool` is the remedy.
    candidates
        How many classes of the highest scores on the clean image, the label among them, are looked at.
    floor
        Least length of a step. Without it clipped steps end on the tie between two classes.
    leeway
        After the first step a class is looked at again only if it could be the nearest with a slope that
        has steepened this many times more than those of the classes before it. `math.inf` looks at all
        classes at every step, as published.
    basis
        Orthonormal columns (n, d) to which the perturbation is confined, or (N, n, d), one basis an image.
        The norm is that of its d coordinates. Needs `box=None`, as clipping leaves the subspace.
    tally
        Counts the work done, if given.
    """
    rules = Rules.checked(norm, box, steps, overshoot, candidates, floor, leeway)
    count = Tally() if tally is None else tally
    if basis is not None:
        if box is not None:
            raise BookError("a clipped perturbation leaves the subspace; give box=None together with basis=")
        found = _confined(model, x, y, _one_basis(basis), rules, count)
        return x.detach() + found.delta[0]

    def search(x: Tensor, y: Tensor) -> Tensor:
        space = Pixels(x)
        total, fooled = walk(model, x, y, space, rules, count)
        rows = fooled.nonzero()[:, 0]
        result = x.clone()
        result[rows] = clip(x[rows] + space.images((1 + overshoot) * total[rows], rows), box)
        return result

    return attack_correct(model, x, y, box, search)


class InSubspaces(NamedTuple):
    """Perturbations (S, N, ...) of N images in S subspaces, and which of them, (S, N), change the label.

    Those that do not are 0, and so are those of images that are misclassified from the start.
    """

    delta: Tensor
    fooled: Tensor


def deepfool_subspaces(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    bases: Tensor | Sequence[Tensor],
    *,
    norm: str = "l2",
    steps: int = 100,
    overshoot: float = 0.02,
    candidates: int = 10,
    floor: float = 1e-4,
    leeway: float = 1.5,
    batch_size: int = 250,
    tally: Tally | None = None,
) -> InSubspaces:
    """Free DeepFool of every image in every subspace: the margins of the thesis' chapter 4, definition 1.

    All pairs of an image and a subspace are attacked side by side. The gradients of an image's first
    linearisation serve all its subspaces.

    Parameters
    ----------
    bases
        (S, n, d), or a sequence of S bases (n, d) with orthonormal columns, not necessarily of one d; or
        (S, N, n, d), with a basis for each image. The published margins have 100 steps, 10 candidates.
    batch_size
        Pairs attacked together, at least all those of one image.
    """
    rules = Rules.checked(norm, None, steps, overshoot, candidates, floor, leeway)
    check_counts(batch_size=batch_size)
    return _confined(model, x, y, bases, rules, Tally() if tally is None else tally, batch_size)


def _one_basis(basis: Tensor) -> Tensor:
    if not isinstance(basis, Tensor) or basis.dim() not in (2, 3):
        shape = tuple(basis.shape) if isinstance(basis, Tensor) else type(basis).__name__
        raise BookError(f"basis={shape}; give a tensor (n, d), or (N, n, d) with one basis an image")
    return basis[None]


def _confined(
    model: nn.Module, x: Tensor, y: Tensor, bases: Any, rules: Rules, tally: Tally, batch_size: int = 250
) -> InSubspaces:
    """The frame of `attack_correct` around `walk` in subspaces, a few images at a time."""
    check_inputs(model, x, y, None)
    x, y = x.detach(), y.long()
    own = isinstance(bases, Tensor) and bases.dim() == 4
    if own and bases.shape[1] != len(x):
        raise BookError(f"bases for {bases.shape[1]} images, but there are {len(x)}; give one an image")
    width = check_bases(bases.flatten(0, 1) if own else bases, x)
    delta = x.new_zeros(len(bases), *x.shape)
    fooled = torch.zeros(delta.shape[:2], dtype=torch.bool, device=x.device)
    with evaluating(model), torch.enable_grad():
        parts = zip(x.split(batch_size), y.split(batch_size))
        right = torch.cat([check_outputs(model, *part).argmax(1) == part[1] for part in parts])
        fooled[:, ~right] = True
        numbers = right.nonzero()[:, 0]
        count = math.ceil(len(numbers) / max(1, batch_size // len(bases)))
        for rows in numbers.tensor_split(count) if count else ():
            chosen = bases[:, rows].flatten(0, 1) if own else bases
            space = Subspaces(chosen, width, x[rows], own)
            total, hit = walk(model, x[rows], y[rows], space, rules, tally)
            total = ((1 + rules.overshoot) * total).where(hit[:, None], 0.0)
            everyone = torch.arange(len(total), device=x.device)
            delta[:, rows] = space.images(total, everyone).reshape(len(bases), len(rows), *x.shape[1:])
            fooled[:, rows] = hit.reshape(len(bases), len(rows))
    return InSubspaces(delta, fooled)
