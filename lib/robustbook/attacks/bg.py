"""BG: box-constrained generation of adversarial samples (Hein and Andriushchenko, 2017, section 4)."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_positive
from .frame import UNIT, attack_correct, clip, crossed
from .linear import boxed_step
from .norms import euclidean
from .search import bisect
from .tangents import rivals


@ATTACKS.add("bg")
def bg(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    candidates: int = 10,
    searched: int = 9,
    factor: float = 1.2,
    rounds: int = 40,
    halvings: int = 10,
) -> Tensor:
    """The closest boundary of the network linearised at `x`, then the way there until the label changes.

    For a class k the linearised problem asks for the smallest l2 norm of delta with
    <grad f_k - grad f_y, delta> = c (f_y - f_k) and x + delta in the box; its solution is exact. With c = 1
    it is the closest point with another label if the network is affine. For others c grows by `factor` until
    the label changes, or shrinks until it no longer does, and is bisected in between.

    Parameters
    ----------
    candidates
        How many classes of the highest scores, the label among them, are linearised.
    searched
        For how many of them, the nearest first, c is searched; the closest point found counts. The
        published code searches it for all.
    factor, rounds
        Growth of c (1.2 was published for MNIST, 1.3 for CIFAR-10), and values tried before giving up.
    """
    check_counts(candidates=candidates, searched=searched, rounds=rounds, halvings=halvings)
    check_positive(factor=factor)
    if candidates < 2 or factor <= 1:
        raise BookError(f"candidates={candidates}, factor={factor!r}; give 2 or more, and more than 1")

    def search(x: Tensor, y: Tensor) -> Tensor:
        problems = Problems(model, x, y, box, candidates)
        best, least = x.clone(), torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
        for rank in range(min(searched, problems.order.shape[1])):
            problems.choose(rank)
            found, size = problems.solve(least, factor, rounds, halvings)
            closer = size < least
            best[closer], least[closer] = found[closer], size[closer]
        return best

    return attack_correct(model, x, y, box, search)


class Problems:
    """The linearised problems of one batch: normals (N, K, D) and gaps (N, K) of the boundaries."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, box: Box, candidates: int) -> None:
        self.model, self.x, self.y, self.box = model, x, y, box
        low, high = (-torch.inf, torch.inf) if box is None else box
        self.low, self.high = (low - x).flatten(1), (high - x).flatten(1)
        image = x.detach().requires_grad_()
        logits = model(image)
        rises = logits.gather(1, rivals(logits, y, candidates)) - logits.gather(1, y[:, None])
        last = rises.shape[1] - 1
        slopes = [
            torch.autograd.grad(rises[:, k].sum(), image, retain_graph=k < last)[0] for k in range(last + 1)
        ]
        self.normals = torch.stack([slope.flatten(1) for slope in slopes], 1)
        self.gaps = (-rises.detach()).clamp_min(torch.finfo(x.dtype).tiny ** 0.5)
        sizes = [self._size(self.normals[:, k], self.gaps[:, k]) for k in range(last + 1)]
        self.order = torch.stack(sizes, 1).argsort(dim=1, stable=True)

    def _size(self, normal: Tensor, gap: Tensor) -> Tensor:
        """Distance of the linearised boundary in the box, infinite where there is none."""
        delta, scale = boxed_step(normal, gap, self.low, self.high)
        return delta.norm(dim=1).where(scale.isfinite(), torch.inf)

    def choose(self, rank: int) -> None:
        """Take for every image the boundary that is the `rank`-th nearest."""
        each = torch.arange(len(self.x), device=self.x.device)
        self.normal = self.normals[each, self.order[:, rank]]
        self.gap = self.gaps[each, self.order[:, rank]]

    def _most(self) -> Tensor:
        """The largest c for which the box holds a solution, (N,)."""
        gains = torch.where(self.normal > 0, self.high, self.low) * self.normal
        # A little less, for rounding; 0 times an infinite bound is no gain.
        return (1 - 1e-5) * gains.where(self.normal != 0, 0.0).sum(1) / self.gap

    def solve(self, least: Tensor, factor: float, rounds: int, halvings: int) -> tuple[Tensor, Tensor]:
        """Search c; the images found, and their distances, infinite where none is below `least` (N,)."""
        most = self._most()
        c, fails, works = most.clamp_max(1), torch.zeros_like(most), torch.full_like(most, torch.inf)
        reached = torch.zeros_like(most)  # the distance at which the label still stands: it grows with c
        for _ in range(rounds):
            open_ended = torch.where(works.isinf(), fails < most, fails == 0)
            rows = (open_ended & (reached < least)).nonzero()[:, 0]
            if len(rows) == 0:
                break
            images = self._images(rows, c[rows])
            hit = self._fooled(rows, images)
            works[rows[hit]], fails[rows[~hit]] = c[rows[hit]], c[rows[~hit]]
            reached[rows[~hit]] = euclidean(images - self.x[rows])[~hit]
            c = torch.where(works.isinf(), (factor * fails).minimum(most), works / factor)
        rows = (works.isfinite() & (reached < least)).nonzero()[:, 0]
        found, size = self.x.clone(), torch.full_like(most, torch.inf)
        if len(rows):
            found[rows] = self._closed_in(rows, fails[rows], works[rows], halvings)
            size[rows] = euclidean(found[rows] - self.x[rows])
        return found, size

    def _closed_in(self, rows: Tensor, fails: Tensor, works: Tensor, halvings: int) -> Tensor:
        """The images with the smallest c between the two for which the label changes."""
        _, c = bisect(self.model, self.y[rows], lambda c: self._images(rows, c), fails, works, halvings)
        return self._images(rows, c)

    def _images(self, rows: Tensor, c: Tensor) -> Tensor:
        delta, _ = boxed_step(self.normal[rows], c * self.gap[rows], self.low[rows], self.high[rows])
        return clip(self.x[rows] + delta.reshape(-1, *self.x.shape[1:]), self.box)

    @torch.no_grad()
    def _fooled(self, rows: Tensor, images: Tensor) -> Tensor:
        return crossed(self.model(images), self.y[rows])
