"""The walk of DeepFool: linearise, step to the nearest boundary, and again, until the label changes."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..errors import BookError
from .checks import Box, check_counts, check_positive
from .frame import clip, crossed
from .norms import Geometry, geometry_called
from .subspace import Space
from .tangents import Tally, Tangents, overtaken, rivals


class Rules(NamedTuple):
    """The options of `deepfool`, checked."""

    geometry: Geometry
    box: Box
    steps: int
    overshoot: float
    candidates: int
    floor: float
    leeway: float

    @classmethod
    def checked(
        cls,
        norm: str,
        box: Box,
        steps: int,
        overshoot: float,
        candidates: int,
        floor: float,
        leeway: float = 1.5,
    ) -> "Rules":
        """Options that make sense, or an error."""
        check_counts(steps=steps, candidates=candidates)
        check_positive(floor=floor, overshoot=overshoot)
        if candidates < 2:
            raise BookError(f"candidates={candidates}; give 2 or more, the label is one of them")
        if leeway != math.inf:
            check_positive(leeway=leeway)
            if leeway < 1:
                raise BookError(f"leeway={leeway!r}; give 1 or more, or math.inf")
        return cls(geometry_called(norm), box, steps, overshoot, candidates, floor, leeway)


def walk(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    space: Space,
    rules: Rules,
    tally: Tally,
    target: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Walk P problems over N images `x` from their labels `y` (N,) to any class, or to that of `target` (N,).

    Returns the sums of the steps in coordinates of the space, (P, width), without overshoot, and at which of
    them, (P,), with overshoot, the label is left, or the target overtakes it.
    """
    owner = space.owner
    rows, found = torch.arange(len(owner), device=x.device), torch.zeros_like(owner, dtype=torch.bool)
    total = x.new_zeros(len(owner), space.width)
    start = Tangents(model, x, tally)
    classes = rivals(start.logits, y, rules.candidates) if target is None else target[:, None]
    nearest, steep = first_boundaries(start, y, classes, space, rules)
    for step in range(rules.steps):
        moves = nearest.distance.isfinite()  # infinite: no class has a gradient, there is no way on
        rows = rows[moves]
        if len(rows) == 0:
            break
        total[rows] += nearest.step(rules.floor)[moves]
        images = owner[rows]
        point = clip(x[images] + space.images((1 + rules.overshoot) * total[rows], rows), rules.box)
        here = Tangents(model, point, tally)
        if target is None:
            hit = crossed(here.logits, y[images])
        else:
            hit = overtaken(here.logits, y[images], target[images])
        found[rows[hit]] = True
        live = (~hit).nonzero()[:, 0]
        if len(live) == 0 or step + 1 == rules.steps:
            break
        rows, images = rows[live], images[live]
        nearest = next_boundaries(here, live, y[images], classes[images], steep, rows, space, rules)
    return total, found


class Nearest:
    """The nearest boundary seen so far by each of M problems: distance (M,) and normal (M, width)."""

    def __init__(self, count: int, space: Space, geometry: Geometry, like: Tensor) -> None:
        self.geometry = geometry
        self.distance = like.new_full((count,), torch.inf)
        self.normal = like.new_zeros(count, space.width)

    def look(self, rows: Tensor, gap: Tensor, slope: Tensor) -> Tensor:
        """Look at boundaries with gaps (L,) and slopes (L, width); returns the dual norms of the slopes."""
        steep = self.geometry.dual(slope)
        distance = (gap.abs() / steep).where(steep > 0, torch.inf)
        closer = distance < self.distance[rows]
        self.distance[rows] = distance.where(closer, self.distance[rows])
        self.normal[rows] = slope.where(closer[:, None], self.normal[rows])
        return steep

    def step(self, floor: float) -> Tensor:
        """The shortest step to the boundary, at least `floor` long."""
        return self.distance.clamp_min(floor)[:, None] * self.geometry.ascent(self.normal)


def first_boundaries(
    start: Tangents, y: Tensor, classes: Tensor, space: Space, rules: Rules
) -> tuple[Nearest, Tensor]:
    """Look at all classes (N, K); an image's gradient serves every problem it owns.

    Returns the nearest boundaries, and the dual norms of all slopes, (P, K).
    """
    owner = space.owner
    nearest = Nearest(len(owner), space, rules.geometry, start.logits)
    gaps = start.logits.gather(1, classes) - start.logits.gather(1, y[:, None])
    steep = gaps.new_zeros(len(owner), classes.shape[1])
    images, problems = (torch.arange(count, device=owner.device) for count in (len(y), len(owner)))
    for k in range(classes.shape[1]):
        slope = start.slopes(images, classes[:, k], y)[owner]
        steep[:, k] = nearest.look(problems, gaps[owner, k], space.coordinates(slope, problems))
    return nearest, steep


def next_boundaries(
    here: Tangents,
    live: Tensor,
    y: Tensor,
    classes: Tensor,
    steep: Tensor,
    rows: Tensor,
    space: Space,
    rules: Rules,
) -> Nearest:
    """Look at the class that seems nearest, and at others only as long as they could be nearer.

    Of each of M problems `rows`, at the points `live` of `here`: gaps are known for all classes (M, K), and
    slopes were as steep as `steep` (P, K) says when last seen; it is kept up to date. As slopes steepen
    together, an unseen one is taken to have done so `leeway` times as much as any that is looked at here.
    """
    nearest = Nearest(len(live), space, rules.geometry, here.logits)
    scores = here.logits[live]
    gaps = scores.gather(1, classes) - scores.gather(1, y[:, None])
    known = steep[rows]
    guess, order = (gaps.abs() / known).where(known > 0, 0.0).sort(dim=1, stable=True)
    left, steeper = torch.arange(len(live), device=live.device), torch.ones_like(nearest.distance)
    for turn in range(classes.shape[1]):
        left = left[~(guess[left, turn] > rules.leeway * steeper[left] * nearest.distance[left])]
        if len(left) == 0:
            break
        rank = order[left, turn]
        slope = here.slopes(live[left], classes[left, rank], y[left])
        seen = nearest.look(left, gaps[left, rank], space.coordinates(slope, rows[left]))
        steep[rows[left], rank] = seen
        steeper[left] = steeper[left].maximum((seen / known[left, rank]).nan_to_num(1.0))
    return nearest
