"""Margins in subspaces (thesis, chapter 4, definitions 1 and 2): how far the decision boundary is, and where.

Distances are those of DeepFool with the settings of "Hold me tight": 100 steps, ten classes, no box, away
from the network's own prediction, an overshoot of 2 % included.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..attacks import ddn, deepfool_subspaces, fmn_l2, pgd_minimum
from ..attacks.subspace import Within, check_bases
from ..errors import BookError
from ..rehearsal import shrink
from ..training.evaluation import predict

PERCENTILES = (5, 25, 50, 75, 95)
STEPS = 100


class Margins(NamedTuple):
    """Margins (S, N) of N images in S subspaces, NaN where an image was never fooled, and perturbations."""

    size: Tensor
    delta: Tensor


def margins(
    model: nn.Module,
    x: Tensor,
    bases: Tensor | Sequence[Tensor],
    *,
    steps: int = STEPS,
    bisections: int = 0,
    batch_size: int = 250,
) -> Margins:
    """Margins of all images in all subspaces in one go.

    Parameters
    ----------
    bases
        Orthonormal columns: (S, n, d), a sequence of S bases (n, d) such as `spectral.dct_blocks`, or
        (S, N, n, d) with one basis an image.
    steps, batch_size
        Steps of DeepFool at most, and pairs of an image and a subspace attacked together.
    bisections
        How often to halve the last part of the way, to end on the boundary. Where a network is flat DeepFool
        takes too long a step and lands far behind the boundary; 0 is the published measurement.
    """
    labels = predict(model, x, batch_size=batch_size).argmax(1)
    found = deepfool_subspaces(model, x, labels, bases, steps=shrink(steps, at_most=1), batch_size=batch_size)
    delta = found.delta
    if bisections:
        delta = torch.stack([drawn_back(model, x, labels, part, bisections) for part in delta])
    size = delta.flatten(2).double().norm(dim=2)
    return Margins(size.where(found.fooled, torch.nan), delta)


def closest_within(model: nn.Module, x: Tensor, basis: Tensor, steps: int) -> Tensor:
    """Margins (N,) in the span of orthonormal columns (n, d): the least that DDN, FMN and PGD find.

    Infinite where none of them finds another label. The box is left out, as for `margins`.
    """
    check_bases([basis], x)
    whole, pairs = Within(model, basis), torch.cat([x, torch.zeros_like(x)], 1)
    labels, least = predict(whole, pairs).argmax(1), torch.full((len(x),), torch.inf, dtype=torch.float64)
    rounds = shrink(max(1, steps // 7), at_most=1)
    for found in (
        ddn(whole, pairs, labels, box=None, steps=steps),
        fmn_l2(whole, pairs, labels, box=None, steps=steps),
        pgd_minimum(whole, pairs, labels, box=None, rounds=rounds),
    ):
        size = (found - pairs).flatten(1).double().norm(dim=1)
        fooled = predict(whole, found).argmax(1) != labels
        least = least.minimum(size.where(fooled, torch.inf))
    return least


def drawn_back(model: nn.Module, x: Tensor, labels: Tensor, delta: Tensor, rounds: int) -> Tensor:
    """Perturbations (N, ...) shortened to where, on the way from x to x + delta, the label changes."""
    near, far = torch.zeros(len(x), dtype=x.dtype, device=x.device), torch.ones(len(x)).to(x)
    shape = (-1, *[1] * (x.dim() - 1))
    for _ in range(rounds):
        middle = (near + far) / 2
        changed = predict(model, x + middle.reshape(shape) * delta).argmax(1) != labels
        near, far = near.where(changed, middle), middle.where(changed, far)
    return far.reshape(shape) * delta


def directions(delta: Tensor) -> Tensor:
    """Perturbations (N, ...) as bases (1, N, n, 1) of one dimension, one an image, for `margins`."""
    flat = delta.flatten(1)
    length = flat.norm(dim=1, keepdim=True)
    if not (length > 0).all():
        raise BookError("a perturbation of length 0 has no direction; leave its image out")
    return (flat / length)[None, :, :, None]


def linear_margins(weight: Tensor, bias: Tensor, x: Tensor, bases: Sequence[Tensor] | Tensor) -> Tensor:
    """The exact margins (S, N) of a linear classifier of two classes: the oracle of `margins`.

    |w'x + b| / ||B'w|| in the subspace spanned by B, w and b being differences between the two classes.
    """
    if weight.dim() != 2 or len(weight) != 2:
        raise BookError(f"weights of shape {tuple(weight.shape)}; the closed form is for two classes")
    w, b = (weight[1] - weight[0]).detach().double(), (bias[1] - bias[0]).detach().double()
    gap = (x.flatten(1).double() @ w + b).abs()
    return torch.stack([gap / (basis.double().mT @ w).norm() for basis in bases])


def distribution(size: Tensor) -> Iterator[dict[str, float | int]]:
    """For each subspace the percentiles of the margins (S, N), `images` and how many were `never` fooled.

    The percentiles are of the fooled images alone (NaN if there are none). Where `never` is not 0 they are
    too small: the missing ones are further away than DeepFool went.
    """
    if size.dim() != 2:
        raise BookError(f"margins of shape {tuple(size.shape)}; give (subspaces, images)")
    ranks = torch.tensor([p / 100 for p in PERCENTILES], dtype=size.dtype)
    for row in size:
        known = row[row.isfinite()]
        values = torch.quantile(known, ranks) if len(known) else torch.full_like(ranks, torch.nan)
        named = {f"margin_{p}": float(value) for p, value in zip(PERCENTILES, values)}
        yield {**named, "never": int((~row.isfinite()).sum()), "images": len(row)}
