"""AutoAttack (Croce and Hein, 2020) within linf: four attacks in a row, each on what the last ones left.

APGD on the cross-entropy, APGD towards each of nine classes on the DLR loss, FAB towards the same, Square. No
setting is tuned to a network. The authors' own package is `autoattack`; this is a short version of it behind
the book's signature, for want of one among the book's dependencies.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from .apgd import apgd
from .checks import Box, check_counts, check_generator, check_positive
from .fab import fab
from .frame import UNIT, attack_correct, each
from .norms import largest
from .square import square

MEMBERS = ("apgd-ce", "apgd-t", "fab-t", "square")
SLACK = 1e-6
"""What rounding may add to a perturbation of size eps."""


def autoattack(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    box: Box = UNIT,
    steps: int = 100,
    targets: int = 9,
    queries: int = 5000,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Images within `eps` of `x` in linf that fool the network; where all four attacks fail, `x` itself.

    Parameters
    ----------
    steps, targets
        Steps of the gradient attacks for each class, and classes of the two that aim; 100 and 9 as published.
    queries
        Tries of Square, 5000 as published.
    """
    check_positive(eps=eps)
    check_counts(steps=steps, targets=targets, queries=queries)
    chance = check_generator(generator)

    def search(x: Tensor, y: Tensor) -> Tensor:
        settings = {"eps": eps, "box": box, "steps": steps, "targets": targets, "queries": queries}
        *_, (_, found) = stages(model, x, y, generator=chance, **settings)  # type: ignore[arg-type]
        return found

    return attack_correct(model, x, y, box, search)


def stages(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    box: Box,
    steps: int,
    targets: int,
    queries: int,
    generator: torch.Generator,
) -> Iterator[tuple[str, Tensor]]:
    """After each of the four attacks its name and what has been found so far."""
    aims = {"eps": eps, "box": box, "steps": steps, "generator": generator}
    result, left = x.clone(), torch.arange(len(x), device=x.device)
    for name in MEMBERS:
        if len(left):
            some, labels = x[left], y[left]
            if name == "apgd-ce":
                found = apgd(model, some, labels, **aims)  # type: ignore[arg-type]
            elif name == "apgd-t":
                found = apgd(model, some, labels, loss="dlr", targets=targets, **aims)  # type: ignore[arg-type]
            elif name == "fab-t":
                found = fab(model, some, labels, box=box, steps=steps, targets=targets)
                found = found.where(each(largest(found - some) <= eps + SLACK, some), some)
            else:
                found = square(model, some, labels, eps=eps, box=box, queries=queries, generator=generator)
            hit = (found != some).flatten(1).any(1)
            result[left[hit]] = found[hit]
            left = left[~hit]
        yield name, result
