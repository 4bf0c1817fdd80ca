"""The framework's first version (2020) in terms of the second: a distribution Q(X), balls, and no density.

Definition 1 of 2020 conditions one distribution Q on the eps-ball around x, where 2021 has any kernel.
Definition 3 integrates over eps from 0 to d plainly, where 2021 has a density, and lets G depend on eps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..defenses.robust_loss import Sampler
from ..errors import BookError
from .classifiers import labeller
from .families import Family, lebesgue
from .kernels import Conditioned, Draws, Kernel, Radius, within
from .manifold import Independent, Sample
from .scores import Link, Score, mean_and_error


def ball_of(distribution: Sample, eps: Radius, norm: str = "l2") -> Conditioned:
    """Q(X | B_eps(x)) of Definition 1, by rejection: exact, and for low dimension."""
    return within(Independent(distribution), eps, norm)


def family_2020(distribution: Sample, d: float, *, least: float = 0.0, norm: str = "l2") -> Family:
    """What Definition 3 integrates: eps from `least` (0 in print) to d, each with Q(X | B_eps(x)).

    With it `scores.score` is R_{Q,H,G} of 2020; the weight's `factor` makes G depend on eps.
    """
    return Family(lambda eps: ball_of(distribution, eps, norm), lebesgue(least, d))


def sample_measure(f: Any, x: Tensor, samples: Tensor, radii: Sequence[float]) -> Tensor:
    """R_S^f(x, eps) of equation (8): of the samples closer than eps, the share with the label of x.

    `samples` (M, N, ...) are S(x); S_eps(x) are those of them within eps. Returns (radii, N); an empty
    S_eps(x) counts as perfectly robust (gap U10).
    """
    if samples.shape[1:] != x.shape:
        raise BookError(
            f"samples of shape {tuple(samples.shape)} for points {tuple(x.shape)}; give (M, N, ...)"
        )
    f = labeller(f)
    same = (Draws(samples).labels(f) == f(x)).double()
    distance = (samples - x).flatten(2).double().norm(dim=2)
    measures = []
    for eps in radii:
        near = distance < eps
        count = near.sum(0)
        measures.append(torch.where(count > 0, (same * near).sum(0) / count.clamp_min(1), 1.0))
    return torch.stack(measures)


def sample_score(
    f: Any,
    x: Tensor,
    samples: Tensor,
    radii: Sequence[float],
    *,
    link: Link,
    factor: Callable[[Tensor], Tensor] | None = None,
) -> Score:
    """R~ of equation (9): the mean of H(R_S^f(x, eps)) G over data points and a set Sigma of radii.

    `factor(radii)` is the part q(eps) of G. The error is over points, with Sigma fixed; the ceiling is the
    largest value that any classifier can reach on this Sigma (gap U10).
    """
    sigma = torch.as_tensor(list(radii), dtype=torch.float64)
    weights = torch.ones_like(sigma) if factor is None else factor(sigma).double()
    values = link(sample_measure(f, x, samples, radii)) * weights[:, None]
    most = link(torch.ones_like(sigma)) * weights
    distance = (samples - x).flatten(2).double().norm(dim=2)
    empty = torch.stack([(distance >= eps).all(0).double().mean() for eps in radii]).mean()
    return Score(*mean_and_error(values.mean(0)), float(most.mean()), float(empty))


def sampler_of(kernel: Kernel | Family) -> Sampler:
    """A kernel, or a family with a fresh parameter a draw, as the generator g of Figure 1 (2020).

    A draw that does not count becomes x itself, where nothing changes.
    """

    def sampler(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
        if isinstance(kernel, Family):
            nodes = kernel.density.nodes(count, len(x), generator)
            parts = [kernel.make(parameter).draw(x, 1, generator) for parameter, _ in nodes]
        else:
            parts = [kernel.draw(x, count, generator)]
        shape = (-1, len(x), *[1] * (x.dim() - 1))
        return torch.cat([torch.where(part.inside.reshape(shape), part.points, x) for part in parts])

    return sampler
