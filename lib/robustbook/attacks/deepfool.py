"""DeepFool (Moosavi-Dezfooli et al., 2016): step after step to the nearest boundary of a linearisation."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import ATTACKS
from .checks import Box, check_counts, check_positive
from .frame import UNIT, attack_correct, clip, crossed, each
from .norms import Norm, norm_called


@ATTACKS.add("deepfool")
def deepfool(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    norm: str = "l2",
    steps: int = 50,
    overshoot: float = 0.02,
    candidates: int = 10,
    floor: float = 1e-4,
) -> Tensor:
    """DeepFool with the settings of the published Python code, away from the given label.

    The paper starts from the network's own prediction: pass that as `y` for it. The returned perturbation
    is (1 + overshoot) times the sum of the steps, as published, and the next linearisation is taken there.

    Parameters
    ----------
    box
        The image is clipped to it after every step; None for the published attack, which knows no box.
    norm
        "l2", or "linf" with the steps of the paper's section on other norms.
    candidates
        How many classes of the highest scores on the clean image, the label among them, are looked at.
    floor
        Least length of a step. Without it clipped steps end on the tie between two classes.
    """
    check_counts(steps=steps, candidates=candidates)
    check_positive(floor=floor, overshoot=overshoot)
    if candidates < 2:
        raise BookError(f"candidates={candidates}; give 2 or more, the label is one of them")
    geometry = norm_called(norm)

    def search(x: Tensor, y: Tensor) -> Tensor:
        rows, point, total = torch.arange(len(x), device=x.device), x, torch.zeros_like(x)
        result, classes = x.clone(), None
        for step in range(steps + 1):
            point.requires_grad_()
            logits = model(point)
            classes = rivals(logits, y, candidates) if classes is None else classes
            hit = crossed(logits.detach(), y[rows])
            result[rows[hit]] = point.detach()[hit]
            if step == steps or hit.all():
                break
            distance, normal = nearest_boundary(logits, point, y[rows], classes[rows], geometry)
            move = each(distance.clamp_min(floor), x) * geometry.ascent(normal)
            stays = ~hit & distance.isfinite()  # infinite: no class has a gradient, there is no way on
            rows, total = rows[stays], (total + move)[stays]
            point = clip(x[rows] + (1 + overshoot) * total, box)
        return result

    return attack_correct(model, x, y, box, search)


def rivals(logits: Tensor, y: Tensor, candidates: int) -> Tensor:
    """The classes of the highest scores besides `y`: one fewer than `candidates`, or all there are."""
    others = logits.detach().scatter(1, y[:, None], -torch.inf)
    return others.topk(min(candidates, logits.shape[1]) - 1, dim=1).indices


def nearest_boundary(
    logits: Tensor, x: Tensor, y: Tensor, classes: Tensor, norm: Norm
) -> tuple[Tensor, Tensor]:
    """Distance (N,) from `x` to the nearest linearised boundary, and its normal.

    `logits` still hang on `x`; `classes` (N, K) are those to look at. The normal is the gradient of
    f_k - f_y, the distance |f_k - f_y| over its dual norm, infinite where every normal is 0.
    """
    best, normal = torch.full_like(logits[:, 0].detach(), torch.inf), torch.zeros_like(x)
    gaps = logits.gather(1, classes) - logits.gather(1, y[:, None])
    for k in range(gaps.shape[1]):
        (slope,) = torch.autograd.grad(gaps[:, k].sum(), x, retain_graph=k + 1 < gaps.shape[1])
        steepness = norm.dual(slope)
        distance = (gaps[:, k].detach().abs() / steepness).where(steepness > 0, torch.inf)
        closer = distance < best
        best = distance.where(closer, best)
        normal = slope.where(each(closer, x), normal)
    return best, normal
