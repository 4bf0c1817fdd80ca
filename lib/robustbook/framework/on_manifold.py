"""Scores of sections 3.2 and 7 of the framework (2020): R4 and its kin, by samples of a manifold generator.

`measure_on` gives R_S^f(x, eps) of equation (8) for many points without holding all samples in memory;
`score_of` makes a score of equation (9) from it, with the two bounds that every classifier keeps to: the
ceiling, and the floor that empty sets S_eps(x) grant to any classifier (gap U10).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..attacks import minimum
from ..defenses.robust_loss import Sampler
from ..errors import BookError
from ..networks.wae import Autoencoder, OnCodes, codes_of
from ..training.evaluation import predict
from .classifiers import Constant, labeller
from .manifold import Pool
from .scores import Link, mean_and_error
from .version_2020 import sample_measure


class Measured(NamedTuple):
    """Equation (8): `kept` (radii, N) is R_S^f(x, eps), `empty` (radii, N) says where S_eps(x) is empty."""

    radii: Tensor
    kept: Tensor
    empty: Tensor


class Bounded(NamedTuple):
    """A score of equation (9), its standard error over points, and the bounds of any classifier."""

    value: float
    error: float
    ceiling: float
    floor: float
    empty: float

    @property
    def share(self) -> float:
        """The score as a part of its ceiling."""
        return self.value / self.ceiling

    @property
    def room(self) -> float:
        """Where the score lies between the floor (0) and the ceiling (1)."""
        return (self.value - self.floor) / (self.ceiling - self.floor)


def sigma_of(count: int, d: float, generator: torch.Generator) -> Tensor:
    """Sigma: `count` values of eps, uniform on (0, d]."""
    if count < 1 or not d > 0:
        raise BookError(f"{count} radii up to {d}; give 1 or more, and a positive diameter")
    return d * (1 - torch.rand(count, dtype=torch.float64, generator=generator))


def measure_on(
    f: Any,
    x: Tensor,
    sampler: Sampler,
    radii: Tensor,
    *,
    count: int,
    generator: torch.Generator,
    batch_size: int = 50,
) -> Measured:
    """R_S^f(x, eps) for points (N, ...) and radii (R,), from `count` samples of each point.

    The same generator state gives the same samples, whatever the classifier.
    """
    f, kept, empty = labeller(f), [], []
    values = radii.tolist()
    for part in x.split(batch_size):
        samples = sampler(part, count, generator)
        kept.append(sample_measure(f, part, samples, values))
        nearest = (samples - part).flatten(2).double().norm(dim=2).amin(0)
        empty.append(nearest >= radii[:, None])
    return Measured(radii, torch.cat(kept, 1), torch.cat(empty, 1))


def measure_in(f: Any, x: Tensor, pool: Pool, radii: Tensor) -> Measured:
    """The same with P known by samples: of those of the pool closer than eps, the share labelled as x."""
    f = labeller(f)
    same = pool.labels_by(f) == f(x)[:, None]
    distance, kept, empty = pool.distances(x), [], []
    for eps in radii.tolist():
        near = distance < eps
        count = near.sum(1)
        share = (near & same).sum(1).double() / count.clamp_min(1)
        kept.append(share.where(count > 0, 1.0))
        empty.append(count == 0)
    return Measured(radii, torch.stack(kept), torch.stack(empty))


def score_of(found: Measured, link: Link, factor: Callable[[Tensor], Tensor] = torch.ones_like) -> Bounded:
    """R~ of equation (9) with link H and G = p(x) factor(eps).

    The floor is what a classifier would get that keeps no label in any S_eps(x) that is not empty.
    """
    weights = factor(found.radii).double()[:, None]
    value, error = mean_and_error((link(found.kept) * weights).mean(0))
    full = float(link(torch.ones(1, dtype=torch.float64)))
    ceiling = full * float(weights.mean())
    floor = full * float((found.empty.double() * weights).mean())
    return Bounded(value, error, ceiling, floor, float(found.empty.double().mean()))


def inverse(radii: Tensor) -> Tensor:
    """q(eps) = 1/eps of Example 4."""
    return 1 / radii


class Nearest(NamedTuple):
    """The closest points of a manifold with another label, for points that have one.

    `points` (N, ...), `distance` (N,) from x, `moved` (N,) from the reconstruction of x, `latent` (N,) in
    codes, and `kind` (N,): 0 found, 1 where the reconstruction itself has another label, 2 nothing found.
    """

    points: Tensor
    distance: Tensor
    moved: Tensor
    latent: Tensor
    kind: Tensor


def manifold_margins(
    model: Any, autoencoder: Autoencoder, x: Tensor, *, d: float, batch_size: int = 250
) -> Nearest:
    """How far from x the nearest point of the manifold with another label lies: Example 3 (2020), from above.

    The search is PGD for the smallest l2 budget in codes, through the decoder. Where the reconstruction of x
    has another label already, it is the point. Where nothing is found the distance is d.
    """
    codes = codes_of(autoencoder, x)
    with torch.no_grad():
        plain = autoencoder.decode(codes)
    if isinstance(model, Constant):
        none = torch.full((len(x),), d, dtype=torch.float64)
        return Nearest(plain, none, none, none * torch.inf, torch.full((len(x),), 2))
    own, there = (predict(model, part).argmax(1) for part in (x, plain))
    seen = OnCodes(model, autoencoder).eval()
    found = minimum("pgd", seen, codes, own, norm="l2", box=None, batch_size=batch_size)
    with torch.no_grad():
        points = autoencoder.decode(found)
    fooled = predict(model, points).argmax(1) != own
    kind = torch.where(there != own, 1, torch.where(fooled, 0, 2))
    far = (points - x).flatten(1).double().norm(dim=1).where(fooled, d)
    moved = (points - plain).flatten(1).double().norm(dim=1).where(fooled, d)
    latent = (found - codes).double().norm(dim=1).where(fooled, torch.inf)
    return Nearest(points, far, moved, latent, kind)
