"""The box-constrained L-BFGS attack of Szegedy et al. (2014)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_positive
from .frame import UNIT, attack_correct, clip, crossed
from .linear import boxed_step
from .projected_lbfgs import minimise
from .search import bisect
from .tangents import rivals


@ATTACKS.add("lbfgs")
def lbfgs(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    rounds: int = 6,
    evaluations: int = 10,
    candidates: int = 10,
    factor: float = 2.0,
) -> Tensor:
    """Minimise c |delta|^2 + loss(x + delta) in the box, with the largest c that still changes the label.

    The loss is softplus(f_y - f_t), the cross-entropy between label and target alone; the target t is the
    class whose boundary in the box is nearest by the linearisation at `x`. On an affine network the result
    is then the closest point in the box with another label. c starts at its value for the linearised
    network, grows or shrinks by `factor` until it is bracketed, and is bisected; so is, after each c, the
    segment between the last delta that fails and the best one that works.

    Parameters
    ----------
    rounds, evaluations
        Values of c tried, and gradients at most for each.
    candidates
        How many classes of the highest scores, the label among them, the target is chosen from.
    """
    check_counts(rounds=rounds, evaluations=evaluations, candidates=candidates)
    check_positive(factor=factor)
    if candidates < 2 or factor <= 1:
        raise BookError(f"candidates={candidates}, factor={factor!r}; give 2 or more, and more than 1")

    def search(x: Tensor, y: Tensor) -> Tensor:
        return _Search(model, x, y, box, candidates).run(rounds, evaluations, factor)

    return attack_correct(model, x, y, box, search)


class _Search:
    """The state of one batch: for every image its target, the bracket of c and the best delta so far."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, box: Box, candidates: int) -> None:
        self.model, self.x, self.y, self.box = model, x, y, box
        low, high = (-torch.inf, torch.inf) if box is None else box
        self.low, self.high = (low - x).flatten(1), (high - x).flatten(1)
        self.target, self.c, self.delta = self._linearised(candidates)
        self.best, self.least = torch.zeros_like(self.delta), torch.full_like(self.c, torch.inf)

    def _linearised(self, candidates: int) -> tuple[Tensor, Tensor, Tensor]:
        """Target, c and delta that solve the problem if the network is affine.

        There delta = clip(w / 4c), w the gradient of f_t - f_y, as the slope of softplus is 1/2 at a tie.
        """
        x = self.x.detach().requires_grad_()
        logits = self.model(x)
        classes = rivals(logits, self.y, candidates)
        gaps = logits.gather(1, self.y[:, None]) - logits.gather(1, classes)
        target, c = classes[:, :1], torch.ones_like(gaps[:, 0].detach())
        least, best = torch.full_like(c, torch.inf), torch.zeros_like(self.low)
        for k in range(gaps.shape[1]):
            (slope,) = torch.autograd.grad(-gaps[:, k].sum(), x, retain_graph=k + 1 < gaps.shape[1])
            gap = gaps[:, k].detach().clamp_min(1e-12)
            delta, scale = boxed_step(slope.flatten(1), gap, self.low, self.high)
            size = delta.norm(dim=1).where(scale.isfinite(), torch.inf)
            closer = size < least
            least, c = size.where(closer, least), (1 / (4 * scale)).where(closer, c)
            best = delta.where(closer[:, None], best)
            target = classes[:, k : k + 1].where(closer[:, None], target)
        return target, c.clamp(1e-20, 1e20), best

    def run(self, rounds: int, evaluations: int, factor: float) -> Tensor:
        """Search c, and with each c the segment between failure and success."""
        works, fails = torch.zeros_like(self.c), torch.full_like(self.c, torch.inf)
        self.failed = torch.zeros_like(self.delta)
        for _ in range(rounds):
            self.delta = minimise(
                self._objective, self.delta, self.low, self.high, 2 * self.c, evaluations=evaluations
            )
            fooled = self._fooled(self.delta)
            works, fails = self.c.where(fooled, works), fails.where(fooled, self.c)
            self.failed = self.failed.where(fooled[:, None], self.delta)
            self._close_in()
            middle = (works * fails).sqrt()
            outside = torch.where(works > 0, self.c * factor, self.c / factor)
            self.c = middle.where((works > 0) & fails.isfinite(), outside)
        return self._images(self.best)

    def _images(self, delta: Tensor) -> Tensor:
        return clip(self.x + delta.reshape(self.x.shape), self.box)

    @torch.no_grad()
    def _fooled(self, delta: Tensor) -> Tensor:
        return crossed(self.model(self._images(delta)), self.y)

    def _objective(self, rows: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """c |delta|^2 + softplus(f_y - f_t) with its slope; remembers the smallest delta that fools."""
        images = (self.x[rows] + delta.reshape(-1, *self.x.shape[1:])).requires_grad_()
        logits = self.model(images)
        loss = softplus((logits.gather(1, self.y[rows, None]) - logits.gather(1, self.target[rows]))[:, 0])
        (slope,) = torch.autograd.grad(loss.sum(), images)
        self._remember(rows, delta, crossed(logits.detach(), self.y[rows]))
        c = self.c[rows]
        return loss.detach() + c * delta.square().sum(1), slope.flatten(1) + 2 * c[:, None] * delta

    def _remember(self, rows: Tensor, delta: Tensor, fooled: Tensor) -> None:
        size = delta.norm(dim=1)
        closer = fooled & (size < self.least[rows])
        self.least[rows] = size.where(closer, self.least[rows])
        self.best[rows] = delta.where(closer[:, None], self.best[rows])

    def _close_in(self) -> None:
        """Move the last failure and the best delta towards each other on the segment between them."""
        rows = self.least.isfinite().nonzero()[:, 0]
        if len(rows) == 0:
            return
        failed, best = self.failed[rows], self.best[rows]

        def delta(share: Tensor) -> Tensor:
            return torch.lerp(failed, best, share[:, None])

        def images(share: Tensor) -> Tensor:
            return clip(self.x[rows] + delta(share).reshape(-1, *self.x.shape[1:]), self.box)

        ones = torch.ones_like(self.c[rows])
        low, high = bisect(self.model, self.y[rows], images, torch.zeros_like(ones), ones, 4)
        self.failed[rows] = delta(low)
        self._remember(rows, delta(high), high < 1)
