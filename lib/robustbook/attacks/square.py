"""Square: a random search within linf that asks for scores alone (Andriushchenko et al., 2020)."""

import torch
from torch import Tensor, nn

from .checks import Box, check_counts, check_generator, check_positive
from .frame import UNIT, attack_correct, clip, crossed, each, lead

HALVED = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)
"""After so many of 10,000 queries the share of pixels that change is halved."""


def square(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    box: Box = UNIT,
    queries: int = 5000,
    share: float = 0.8,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Square within `eps` in linf: the first of its tries with another label. No gradient is asked for.

    Parameters
    ----------
    queries
        Tries an image at most.
    share
        The part of the pixels that the first squares cover.
    generator
        Where chance comes from; it must be given.
    """
    check_positive(eps=eps, share=share)
    check_counts(queries=queries)
    chance = check_generator(generator)

    @torch.no_grad()
    def search(x: Tensor, y: Tensor) -> Tensor:
        stripes = x + eps * _signs((*x.shape[:2], 1, x.shape[3]), chance, x)
        best = clip(stripes.expand_as(x), box)
        logits = model(best)
        hit, value = crossed(logits, y), lead(logits, y)
        result, rows = x.clone(), torch.arange(len(x), device=x.device)
        for query in range(1, queries + 1):
            result[rows[hit]] = best[hit]
            rows, best, value = rows[~hit], best[~hit], value[~hit]
            if len(rows) == 0 or query == queries:
                break
            tried = _changed(x[rows], best, eps, _side(query, queries, share, x), box, chance)
            logits = model(tried)
            now = lead(logits, y[rows])
            better = now > value
            best, value = tried.where(each(better, x), best), now.where(better, value)
            hit = better & crossed(logits, y[rows])
        return result

    return attack_correct(model, x, y, box, search)


def _side(query: int, queries: int, share: float, x: Tensor) -> int:
    """Side of the square at this query, in pixels."""
    passed = sum(query * 10_000 / queries > mark for mark in HALVED)
    part = share / 2**passed
    least = min(x.shape[2:])
    return max(1, min(least, round((part * x.shape[2] * x.shape[3]) ** 0.5)))


def _changed(x: Tensor, best: Tensor, eps: float, side: int, box: Box, chance: torch.Generator) -> Tensor:
    """The best images, with one square set to x plus or minus eps, one sign a channel."""
    inside = None
    for axis, length in ((2, x.shape[2]), (3, x.shape[3])):
        first = torch.randint(0, length - side + 1, (len(x),), generator=chance, device=chance.device).to(
            x.device
        )
        place = torch.arange(length, device=x.device)
        part = (place >= first[:, None]) & (place < first[:, None] + side)
        part = part[:, None, :, None] if axis == 2 else part[:, None, None, :]
        inside = part if inside is None else inside & part
    changed = clip(x + eps * _signs((*x.shape[:2], 1, 1), chance, x), box)
    assert inside is not None
    return changed.where(inside, best)


def _signs(shape: tuple[int, ...], chance: torch.Generator, like: Tensor) -> Tensor:
    drawn = torch.randint(0, 2, shape, generator=chance, device=chance.device)
    return (2 * drawn - 1).to(like)
