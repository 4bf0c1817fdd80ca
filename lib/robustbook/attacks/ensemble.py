"""The ensemble of the general framework: FGSM, PGD and BG, drawn back to the boundary, the closest kept."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BookError, unknown
from .bg import bg
from .catalogue import ATTACKS, COMMON
from .checks import Box, check_counts, check_inputs
from .fgsm import fgsm
from .frame import UNIT, attack_correct, each, width
from .norms import euclidean
from .pgd import pgd
from .search import bisect

Options = Mapping[str, Mapping[str, Any]]

MEMBERS: dict[str, Callable[..., Tensor]] = {"fgsm": fgsm, "pgd": pgd, "bg": bg}


@ATTACKS.add("ensemble")
def ensemble(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    halvings: int = 16,
    options: Options | None = None,
) -> Tensor:
    """The closest in l2 of the points that `boundary_points` finds; its parameters are explained there."""

    def search(x: Tensor, y: Tensor) -> Tensor:
        points = boundary_points(model, x, y, box=box, halvings=halvings, options=options)
        best, least = x, torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
        for found in points.values():
            size = euclidean(found - x)
            closer = (size > 0) & (size < least)  # at distance 0 nothing was found
            best, least = found.where(each(closer, x), best), size.where(closer, least)
        return best

    _merged(UNIT, halvings, options)  # mistakes in the options are named even if no image is attacked
    return attack_correct(model, x, y, box, search)


def boundary_points(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    halvings: int = 16,
    options: Options | None = None,
) -> dict[str, Tensor]:
    """What each member of the ensemble finds, on the boundary between it and `x` (section 3.2).

    The segment from `x` to an adversarial image is bisected, as if it crossed one boundary only. Where a
    member fails the image comes back: it is skipped (gap U6).

    Parameters
    ----------
    halvings
        Bisections of the segment.
    options
        By member, what differs from its defaults: {"pgd": {"steps": 100}}. The papers name no settings.
        PGD moves in l2, 40 steps of 0.25 within 5, in widths of the box (gap U6); FGSM takes the smallest
        eps of its grid and BG is as published.

    Returns
    -------
    dict
        Images like `x` by the names "fgsm", "pgd", "bg".
    """
    check_inputs(model, x, y, box)
    settings = _merged(box, halvings, options)
    found = {}
    for name, member in MEMBERS.items():

        def search(x: Tensor, y: Tensor, member: Any = member, own: Any = settings[name]) -> Tensor:
            return _drawn_back(model, x, y, member(model, x, y, box=box, **own), halvings)

        found[name] = attack_correct(model, x, y, box, search)
    return found


def _merged(box: Box, halvings: int, options: Options | None) -> dict[str, dict[str, Any]]:
    """Every member's options: the defaults here, and what the caller changes."""
    check_counts(halvings=halvings)
    settings: dict[str, dict[str, Any]] = {name: {} for name in MEMBERS}
    settings["pgd"] = {"norm": "l2", "eps": 5.0 * width(box), "step_size": 0.25 * width(box), "steps": 40}
    if not isinstance(options, Mapping | None):
        raise BookError(f"options={options!r}; give a dictionary by member: {{'pgd': {{'steps': 100}}}}")
    for name, own in (options or {}).items():
        if name not in MEMBERS:
            raise unknown("member of the ensemble, in options:", str(name), MEMBERS)
        if not isinstance(own, Mapping):
            raise BookError(f"options={options!r}; give a dictionary for '{name}': {{'{name}': {{...}}}}")
        offered = set(signature(MEMBERS[name]).parameters) - {*COMMON, "box"}
        for key in own:
            if key not in offered:
                raise unknown(f"option of '{name}' in options:", str(key), offered)
        settings[name].update(own)
    return settings


def _drawn_back(model: nn.Module, x: Tensor, y: Tensor, found: Tensor, halvings: int) -> Tensor:
    """The points closest to `x` on the segments to `found` where the label is still another one."""
    rows = (found != x).flatten(1).any(1).nonzero()[:, 0]
    if len(rows) == 0:
        return found
    start, end = x[rows], found[rows]

    def point(share: Tensor) -> Tensor:
        return torch.lerp(start, end, each(share, x))

    one = torch.ones(len(rows), dtype=x.dtype, device=x.device)
    _, share = bisect(model, y[rows], point, torch.zeros_like(one), one, halvings)
    result = found.clone()
    result[rows] = point(share)
    return result
