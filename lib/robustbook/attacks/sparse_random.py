"""The random sparse baseline of the thesis (section 3.3.1): elements set to black or white by chance."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_generator
from .frame import UNIT, attack_correct, crossed

Point = Callable[[Tensor, Tensor], Tensor]


@ATTACKS.add("sparse-random")
def sparse_random(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    generator: torch.Generator | None = None,
    counts: int | Sequence[int] | None = None,
) -> Tensor:
    """Random elements of each channel, replaced by the lowest or the highest value of the box.

    Parameters
    ----------
    box
        Without one the extremes are 0 and 1.
    generator
        Where chance comes from; without one there is an error.
    counts
        How many elements: one number for every channel, or one a channel. The thesis takes, channel by
        channel, the median over images of what SparseFool perturbs. Without it, the fewest, equally many in
        all channels, that change the label: the elements of an image follow a random order, their number
        doubles until the label changes, and is then bisected.
    """
    chance = check_generator(generator)
    numbers = None if counts is None else _numbers(counts)

    def search(x: Tensor, y: Tensor) -> Tensor:
        low, high = (0.0, 1.0) if box is None else box
        planes = x.flatten(2) if x.dim() > 2 else x[:, None]
        order, coin = (torch.rand(planes.shape, generator=chance, device=chance.device) for _ in range(2))
        rank = order.argsort(2).argsort(2).to(x.device)
        noise = torch.where(coin < 0.5, low, high).to(x)

        def point(rows: Tensor, numbers: Tensor) -> Tensor:
            """Images `rows` (M,) of which the first `numbers`, (M, channels) or (M, 1), are replaced."""
            chosen = rank[rows] < numbers[:, :, None]
            return noise[rows].where(chosen, planes[rows]).reshape(-1, *x.shape[1:])

        if numbers is None:
            return fewest(model, x, y, planes.shape[2], point)
        if len(numbers) not in (1, planes.shape[1]):
            raise BookError(
                f"counts={counts!r} for {planes.shape[1]} channels; give one number, or one a channel"
            )
        everyone = torch.arange(len(x), device=x.device)
        return point(everyone, torch.tensor([numbers], device=x.device).expand(len(x), -1))

    return attack_correct(model, x, y, box, search)


def _numbers(counts: int | Sequence[int]) -> list[int]:
    numbers = list(counts) if isinstance(counts, Sequence) else [counts]
    if not numbers or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise BookError(f"counts={counts!r}; give a whole number, 0 or more, or a list with one a channel")
    return numbers


@torch.no_grad()
def fewest(model: nn.Module, x: Tensor, y: Tensor, most: int, point: Point) -> Tensor:
    """The `point` with the fewest elements, up to `most`, that changes the label; `x` where none does."""
    rows = torch.arange(len(x), device=x.device)
    fails, works = torch.zeros_like(rows), torch.full_like(rows, most + 1)
    number = torch.ones_like(rows)
    while len(rows):
        hit = crossed(model(point(rows, number[rows, None])), y[rows])
        works[rows[hit]], fails[rows[~hit]] = number[rows[hit]], number[rows[~hit]]
        middle = (fails + works) // 2
        number = torch.where(works > most, (2 * fails).clamp(max=most), middle)
        rows = ((works - fails > 1) & (fails < most)).nonzero()[:, 0]
    found = (works <= most).nonzero()[:, 0]
    result = x.clone()
    result[found] = point(found, works[found, None])
    return result
