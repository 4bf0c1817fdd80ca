"""The Jacobian-based saliency map attack (Papernot et al., 2016): two values after the other to the bound."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_generator, check_share, needed_box
from .frame import UNIT, attack_correct, clip, crossed, width

AT_ONCE = 2**24
"""Sums of pairs that are held in memory at once."""


@ATTACKS.add("jsma")
def jsma(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    generator: torch.Generator | None = None,
    theta: float = 1.0,
    share: float = 0.145,
) -> Tensor:
    """JSMA towards a random class until any other one wins: the untargeted use of the SparseFool paper.

    Parameters
    ----------
    generator
        Where the targets are drawn from; without one there is an error.
    theta
        By how much a chosen value changes, in widths of the box: 1 raises it to the bound at once, a negative
        one lowers.
    share
        Part of the values that may change at most; 0.145 as published.
    """
    chance = check_generator(generator)
    check_share(share=share)
    number = isinstance(theta, (int, float)) and not isinstance(theta, bool)
    if not number or not 0 < abs(theta) <= 1:
        raise BookError(f"theta={theta!r}; give a part of the box, from -1 to 1 and not 0")

    def search(x: Tensor, y: Tensor) -> Tensor:
        needed_box(box, "JSMA")
        with torch.no_grad():
            classes = model(x[:1]).shape[1]
        away = torch.randint(1, classes, y.shape, generator=chance, device=chance.device).to(y.device)
        return follow(model, x, y, (y + away) % classes, theta * width(box), share, box)

    return attack_correct(model, x, y, box, search)


def follow(
    model: nn.Module, x: Tensor, y: Tensor, target: Tensor, step: float, share: float, box: Box
) -> Tensor:
    """Change the most salient pair for `target` by `step`, again and again; images leave when fooled."""
    result, rows, point = x.clone(), torch.arange(len(x), device=x.device), x
    rounds = int(share * x[0].numel() / 2)
    bound = (box or (-torch.inf, torch.inf))[step > 0]
    for turn in range(rounds + 1):
        logits, rise, fall = _slopes(model, point, target[rows])
        hit = crossed(logits, y[rows])
        result[rows[hit]] = point[hit]
        if turn == rounds or hit.all():
            break
        if step < 0:
            rise, fall = -rise, -fall
        pair, salient = best_pair(rise, fall, (point != bound).flatten(1))
        stays = ~hit & salient
        rows, moved = rows[stays], point[stays].flatten(1)
        moved = moved.scatter(1, pair[stays], moved.gather(1, pair[stays]) + step)
        point = clip(moved.reshape(-1, *x.shape[1:]), box)
        if len(rows) == 0:
            break
    return result


def _slopes(model: nn.Module, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, and (N, D): by how much each value raises the target's, and lowers all others' together."""
    x = x.detach().requires_grad_()
    logits = model(x)
    wanted = logits.gather(1, target[:, None]).sum()
    (rise,) = torch.autograd.grad(wanted, x, retain_graph=True)
    (rest,) = torch.autograd.grad(logits.sum() - wanted, x)
    return logits.detach(), rise.flatten(1), -rest.flatten(1)


def best_pair(rise: Tensor, fall: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    """The pair p, q with the largest (rise_p + rise_q)(fall_p + fall_q), both sums above 0 (algorithm 3).

    All are (N, D), `free` says which values may be taken. The product grows with both sums, so a value that
    two others match or beat in both is never needed: what is left is few, and all pairs of it are tried.

    Returns
    -------
    pair, salient
        (N, 2), and (N,): is there any such pair?
    """
    rise, fall = rise.where(free, -torch.inf), fall.where(free, -torch.inf)
    rise, order = rise.sort(dim=1, descending=True, stable=True)
    fall = fall.gather(1, order)
    kept = (fall > _second_before(fall)) & (rise > -torch.inf)
    few = int(kept.sum(1).max())
    if few < 2:
        return order[:, :2], torch.zeros(len(rise), dtype=torch.bool, device=rise.device)
    chosen = kept.byte().argsort(dim=1, descending=True, stable=True)[:, :few]
    rise, fall = (part.where(kept, -torch.inf).gather(1, chosen) for part in (rise, fall))
    parts = zip(*(part.split(max(1, AT_ONCE // few**2)) for part in (rise, fall)))
    scores, places = zip(*(_all_pairs(up, down) for up, down in parts))
    place, score = torch.cat(places), torch.cat(scores)
    pair = torch.stack([place // few, place % few], 1)
    return order.gather(1, chosen.gather(1, pair)), score > 0


def _second_before(values: Tensor) -> Tensor:
    """The second largest of all values to the left, (N, D); minus infinity where there are not two."""
    none = torch.full_like(values[:, :1], -torch.inf)
    first = torch.cat([none, values.cummax(1).values[:, :-1]], 1)
    beaten = values.minimum(first)  # of each new value and the largest so far, the smaller one
    return torch.cat([none, beaten.cummax(1).values[:, :-1]], 1)


def _all_pairs(rise: Tensor, fall: Tensor) -> tuple[Tensor, Tensor]:
    """Largest product of sums over the pairs, 0 if no pair has both above 0, and its place in the square."""
    up, down = rise[:, :, None] + rise[:, None], fall[:, :, None] + fall[:, None]
    apart = ~torch.eye(rise.shape[1], dtype=torch.bool, device=rise.device)
    score = (up * down).where((up > 0) & (down > 0) & apart, 0.0)
    best = score.flatten(1).max(1)
    return best.values, best.indices
