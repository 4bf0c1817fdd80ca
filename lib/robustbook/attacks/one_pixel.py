"""The one-pixel attack (Su et al., 2019): differential evolution over a few pixels, and then over more."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_generator, check_positive, check_share, needed_box
from .frame import UNIT, attack_correct, crossed

AT_ONCE = 512
"""Candidate images that pass through the network together: more are slower, as they leave the cache."""


@ATTACKS.add("one-pixel")
def one_pixel(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    generator: torch.Generator | None = None,
    population: int = 400,
    generations: int = 100,
    weight: float = 0.5,
    growth: float = 1.25,
    share: float = 0.5,
) -> Tensor:
    """Change k pixels at most, k = 1 first, and more of them until the label changes.

    A candidate is k pixels, each with a row, a column and a value a channel. A child is the sum of one member
    and `weight` times the difference of two others; it replaces its parent if the label's probability is
    lower. There is no crossover, as published. The search uses no gradients.

    Parameters
    ----------
    generator
        Where chance comes from; without one there is an error.
    population, generations
        Candidates an image, and how often they have children, for each k.
    growth
        The next k is this many times the last, and one more at least: with 1 it is 1, 2, 3, ..., as in
        the SparseFool paper; with more, large k cost less and are found less exactly.
    share
        Part of the pixels that may change at most.
    """
    chance = check_generator(generator)
    check_counts(population=population, generations=generations)
    check_positive(weight=weight, growth=growth)
    check_share(share=share)
    if population < 4 or growth < 1:
        raise BookError(f"population={population}, growth={growth!r}; give 4 or more, and 1 or more")

    def search(x: Tensor, y: Tensor) -> Tensor:
        bounds = needed_box(box, "the one-pixel attack")
        if x.dim() != 4:
            raise BookError(f"images of shape {tuple(x.shape)}; the one-pixel attack needs (N, C, H, W)")
        result, rows = x.clone(), torch.arange(len(x), device=x.device)
        for k in pixel_counts(share * x[0, 0].numel(), growth):
            evolution = _Evolution(model, x[rows], y[rows], bounds, chance, weight)
            hit, found = evolution.run(k, population, generations)
            result[rows[hit]] = found
            rows = rows[~hit]
            if len(rows) == 0:
                break
        return result

    return attack_correct(model, x, y, box, search)


def pixel_counts(most: float, growth: float) -> Iterator[int]:
    """1, and each time `growth` times as many, one more at least, up to `most`; 1 in any case."""
    k = 1
    while k <= max(1, most):
        yield k
        k = max(k + 1, math.ceil(k * growth))


class _Evolution:
    """Candidates of all images of a batch side by side, (N, P, k, 2 + C); images leave when fooled."""

    def __init__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        box: tuple[float, float],
        chance: torch.Generator,
        weight: float,
    ) -> None:
        self.model, self.x, self.y, self.chance, self.weight = model, x, y, chance, weight
        channels, *size = x.shape[1:]
        self.low = x.new_tensor([0, 0, *[box[0]] * channels])
        self.high = x.new_tensor([*size, *[box[1]] * channels])

    @torch.no_grad()
    def run(self, k: int, population: int, generations: int) -> tuple[Tensor, Tensor]:
        """Which images, (N,), were fooled with `k` pixels; and the images that do it."""
        hit = torch.zeros_like(self.y, dtype=torch.bool)
        result, rows = self.x.clone(), torch.arange(len(self.x), device=self.x.device)
        genes = self._first(k, population)
        fitness = torch.full_like(genes[..., 0, 0], -torch.inf)
        children = genes
        for generation in range(generations + 1):
            scores, wins = self._try(rows, children)
            fooled, best = wins.any(1), scores.where(wins, -torch.inf).argmax(1)
            result[rows[fooled]] = paint(self.x[rows[fooled]], children[fooled, best[fooled]])
            hit[rows] = fooled
            better = (scores > fitness)[~fooled]
            genes = children[~fooled].where(better[..., None, None], genes[~fooled])
            fitness, rows = scores[~fooled].where(better, fitness[~fooled]), rows[~fooled]
            if len(rows) == 0 or generation == generations:
                break
            children = self._children(genes)
        return hit, result[hit]

    def _first(self, k: int, population: int) -> Tensor:
        """Places anywhere; values normal around the middle of the box with half its width."""
        shape = (len(self.x), population, k, len(self.low))
        place = {"generator": self.chance, "device": self.chance.device, "dtype": self.x.dtype}
        uniform = torch.rand(*shape[:3], 2, **place)  # type: ignore[call-overload]
        normal = torch.randn(*shape[:3], shape[3] - 2, **place) / 2 + 0.5  # type: ignore[call-overload]
        drawn = torch.cat([uniform, normal], 3).to(self.x.device)
        return (self.low + (self.high - self.low) * drawn).clamp(self.low, self.high)

    def _children(self, genes: Tensor) -> Tensor:
        """a + weight (b - c) for each parent, a, b and c being three others."""
        images, population = genes.shape[:2]
        a, b, c = (
            genes.gather(1, other[..., None, None].expand_as(genes))
            for other in self._three(images, population)
        )
        return (a + self.weight * (b - c)).clamp(self.low, self.high)

    def _three(self, images: int, population: int) -> list[Tensor]:
        """For each member three different others, (images, population) each.

        They are so many places further, 1 to population - 1; a later draw that meets an earlier one, or lies
        beyond it, moves one up.
        """
        steps: list[Tensor] = []
        for taken in range(3):
            shape, place = (images, population), self.chance.device
            step = torch.randint(1, population - taken, shape, generator=self.chance, device=place)
            for earlier in torch.stack(steps).sort(0).values if steps else []:
                step = step + (step >= earlier)
            steps.append(step)
        member = torch.arange(population, device=self.x.device)
        return [(member + step.to(self.x.device)) % population for step in steps]

    def _try(self, rows: Tensor, genes: Tensor) -> tuple[Tensor, Tensor]:
        """For each candidate the log-odds of all other classes together, and whether the label changes."""
        scores, wins = [], []
        population = genes.shape[1]
        together = max(1, AT_ONCE // population)
        for part, some in zip(rows.split(together), genes.split(together)):
            y = self.y[part].repeat_interleave(population)
            x = self.x[part].repeat_interleave(population, 0)
            logits = self.model(paint(x, some.flatten(0, 1)))
            others = logits.scatter(1, y[:, None], -torch.inf).logsumexp(1)
            score = others - logits.gather(1, y[:, None])[:, 0]  # no probability, which would round to 1
            scores.append(score.reshape(-1, population))
            wins.append(crossed(logits, y).reshape(-1, population))
        return torch.cat(scores), torch.cat(wins)


def paint(x: Tensor, genes: Tensor) -> Tensor:
    """Images (N, C, H, W) with the pixels of `genes` (N, k, 2 + C) set; at one place the last one counts."""
    height, columns = x.shape[2:]
    row, column = (genes[..., i].long().clamp_max(size - 1) for i, size in enumerate((height, columns)))
    place = row * columns + column
    number = torch.arange(1, genes.shape[1] + 1, device=x.device).expand_as(place)
    latest = torch.zeros(len(x), height * columns, dtype=torch.long, device=x.device)
    latest = latest.scatter_reduce(1, place, number, "amax")
    values = genes[..., 2:].transpose(1, 2)
    values = torch.cat([torch.zeros_like(values[..., :1]), values], 2)
    painted = values.gather(2, latest[:, None].expand(-1, x.shape[1], -1))
    return painted.where(latest[:, None] > 0, x.flatten(2)).reshape(x.shape)
