"""Adversarial training (Madry et al. 2018): learn from the worst images that PGD finds within a budget."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..attacks.checks import check_counts, check_positive
from ..attacks.frame import UNIT, clip, each, loss_slope
from ..attacks.norms import norm_called

Transform = Callable[[nn.Module, Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]


def adversarial(
    eps: float,
    *,
    norm: str = "linf",
    steps: int = 7,
    step_size: float | None = None,
    first: Transform | None = None,
) -> Transform:
    """A transform for `fit`: every image becomes the end of a PGD walk within `eps`.

    The walk starts at a random point of the budget, keeps to [0, 1] and takes every step: an image that is
    fooled already goes on, unlike in the attack. The network is in evaluation mode meanwhile, so that the
    walk does not disturb the statistics of batch normalisation.

    Parameters
    ----------
    step_size
        Length of a step in `norm`; 2.5 eps / steps if not given.
    first
        A transform that comes before, such as `augmented(crop_and_flip())`.
    """
    check_positive(eps=eps, step_size=2.5 if step_size is None else step_size)
    check_counts(steps=steps)
    length, geometry = 2.5 * eps / steps if step_size is None else step_size, norm_called(norm)

    def transform(
        model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        if first is not None:
            x, y = first(model, x, y, generator)
        mode = model.training
        model.eval()
        budget = torch.full((len(x),), eps, dtype=x.dtype, device=x.device)
        point = clip(x + eps * geometry.draw(x, generator), UNIT)
        for _ in range(steps):
            _, slope = loss_slope(model, point, y)
            step = each(budget * (length / eps), x) * geometry.ascent(slope)
            point = clip(x + geometry.project(point + step - x, budget), UNIT)
        model.train(mode)
        return point, y

    return transform
