"""A network linearised at a batch of points, one pair of classes at a time."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .frame import crossed

FEW = 0.6
"""Below this part of a batch it is cheaper to pass the points through the network again than to send zeros
back for the others: a pass back costs a convolutional network about 1.5 passes forward."""

PART = 250
"""Points that pass through the network together: larger parts are no faster, and their memory goes back to
the system and is asked for again at every step."""


@dataclass
class Tally:
    """What an attack has asked of a network: points passed forward, and gradients passed back."""

    forward: int = 0
    gradients: int = 0


class Tangents:
    """The network at points `x` (N, ...): scores `logits` (N, classes), and slopes on demand."""

    def __init__(self, model: nn.Module, x: Tensor, tally: Tally) -> None:
        self.model, self.tally = model, tally
        self.x = x.detach().requires_grad_()
        self._scores = torch.cat([model(part) for part in self.x.split(PART)])
        self.logits = self._scores.detach()
        tally.forward += len(x)

    def slopes(self, rows: Tensor, plus: Tensor, minus: Tensor) -> Tensor:
        """Gradients (M, ...) of f_plus - f_minus at the points with numbers `rows`; arguments are (M,)."""
        if len(rows) < FEW * len(self.x):
            part = Tangents(self.model, self.x[rows], self.tally)
            return part.slopes(torch.arange(len(rows), device=rows.device), plus, minus)
        rise = self._scores[rows, plus] - self._scores[rows, minus]
        (slope,) = torch.autograd.grad(rise.sum(), self.x, retain_graph=True)
        self.tally.gradients += len(self.x)
        return slope[rows]


def rivals(logits: Tensor, y: Tensor, candidates: int) -> Tensor:
    """The classes of the highest scores besides `y`: one fewer than `candidates`, or all there are."""
    others = logits.detach().scatter(1, y[:, None], -torch.inf)
    return others.topk(min(candidates, logits.shape[1]) - 1, dim=1).indices


def overtaken(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    """Does the target score higher than `y`, by more than rounding? What the others score does not matter."""
    pair = logits.gather(1, torch.stack([y, target], 1))
    return crossed(pair, torch.zeros_like(y))
