"""Kernels on the data manifold: Q_{eps, P}(. | x) = P | B_eps(x), with P known by samples or by a sampler.

Either P is a pool of samples, then the kernel draws among those near x. Or a sampler makes points of the
manifold near x, such as an auto-encoder that decodes noisy codes (framework 2020, equation 13); `within`
conditions it on a ball.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..defenses.robust_loss import Sampler, copies
from ..errors import BookError
from .classifiers import Classifier
from .estimators import squared_distances
from .kernels import Draws, Radius

Sample = Callable[[int, torch.Generator], Tensor]
"""sample(count, generator): so many points from a distribution."""


class Pool:
    """Samples `x` (P, ...) of the data distribution, with their labels `y` (P,) where these are known.

    What a classifier says of the samples is asked once and remembered, and so are distances.
    """

    def __init__(self, x: Tensor, y: Tensor | None = None) -> None:
        if len(x) == 0 or (y is not None and len(y) != len(x)):
            raise BookError(f"a pool of {len(x)} samples; give one or more, and one label a sample if any")
        self.x, self.y = x, y
        self._labels: tuple[Classifier, Tensor] | None = None
        self._distances: tuple[Tensor, Tensor] | None = None

    def labels_by(self, f: Classifier) -> Tensor:
        """What `f` says of the samples, (P,)."""
        if isinstance(f, KnownLabels) and f.pool is self:
            return f.labels
        if self._labels is None or self._labels[0] is not f:
            self._labels = (f, f(self.x))
        return self._labels[1]

    def distances(self, x: Tensor) -> Tensor:
        """l2 distances (N, P) of points from the samples."""
        if self._distances is None or self._distances[0] is not x:
            rows, samples = x.flatten(1).double(), self.x.flatten(1).double()
            parts = [squared_distances(part, samples).sqrt().float() for part in rows.split(500)]
            self._distances = (x, torch.cat(parts))
        return self._distances[1]

    def known(self) -> KnownLabels:
        """The true labelling Y, known on the samples."""
        return KnownLabels(self)


@dataclass(frozen=True)
class KnownLabels:
    """Y as a classifier on the samples of a pool; it has nothing to say of other points."""

    pool: Pool

    @property
    def labels(self) -> Tensor:
        """Labels (P,) of the samples."""
        if self.pool.y is None:
            raise BookError("the labels of this pool are not known; make it with Pool(x, y)")
        return self.pool.y

    def __call__(self, x: Tensor) -> Tensor:
        """Labels (N,) of points that are samples of the pool."""
        distance, nearest = Pool(self.pool.x).distances(x).min(1)
        if not (distance < 1e-3).all():
            raise BookError("the true label is known on the samples of the pool only, not of these points")
        return self.labels[nearest]


class PoolDraws(Draws):
    """Draws that are samples of a pool: their points are looked up only if someone asks."""

    def __init__(self, pool: Pool, index: Tensor, inside: Tensor) -> None:
        self.pool, self.index, self.inside = pool, index, inside

    @property
    def points(self) -> Tensor:  # type: ignore[override]
        """The samples themselves, (M, N, ...)."""
        return self.pool.x[self.index]

    def labels(self, f: Classifier) -> Tensor:
        """What `f` says of every draw, (M, N)."""
        return self.pool.labels_by(f)[self.index]

    def where(self, event: Tensor) -> PoolDraws:
        """The draws for which `event` (M, N) holds as well."""
        return PoolDraws(self.pool, self.index, self.inside & event)


@dataclass(frozen=True)
class Near:
    """P | B_eps(x) for the empirical distribution P of a pool: uniform among the samples closer than eps.

    Where there is none, no draw counts. `y` (N,) keeps the choice to samples of that label: then it is
    P conditioned on Y(X) = Y(x) as well, and label-aware without rejection.
    """

    pool: Pool
    eps: Radius
    y: Tensor | None = None

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        distance = self.pool.distances(x)
        close = distance < torch.as_tensor(self.eps, dtype=distance.dtype).reshape(-1, 1)
        if self.y is not None:
            close &= self.pool.known().labels == self.y[:, None]
        some = close.any(1)
        shares = close.where(some[:, None], torch.ones_like(close)).double()
        index = torch.multinomial(shares, count, replacement=True, generator=generator).T
        return PoolDraws(self.pool, index, some.expand(count, -1))


@dataclass(frozen=True)
class Independent:
    """The kernel that forgets x and draws from a distribution; `within` makes it Q(X | B_eps(x)) of 2020."""

    sample: Sample

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        return Draws(self.sample(count * len(x), generator).view(copies(x, count).shape))


def uniform_cube(*shape: int) -> Sample:
    """The uniform distribution on the unit hypercube, for points of that shape."""
    return lambda count, generator: torch.rand(count, *shape, generator=generator)


@dataclass(frozen=True)
class Sampled:
    """A kernel from any sampler of points near x, such as `decoded(...)`."""

    sampler: Sampler

    def draw(self, x: Tensor, count: int, generator: torch.Generator) -> Draws:
        """Draws for points (N, ...)."""
        points = self.sampler(x, count, generator)
        if points.shape != copies(x, count).shape:
            raise BookError(
                f"the sampler gives {tuple(points.shape)} for {count} draws of {tuple(x.shape)}; "
                "it must give (count, N, ...)"
            )
        return Draws(points)


class Plane:
    """The linear manifold through samples (P, ...): principal components, scaled to variance 1.

    `encode` and `decode` are what `decoded` takes; decoded points are clipped to [0, 1].
    """

    def __init__(self, x: Tensor, components: int) -> None:
        rows = x.flatten(1).double()
        if not 1 <= components <= min(rows.shape):
            raise BookError(f"components={components}; with {tuple(rows.shape)} give 1 to {min(rows.shape)}")
        self.mean = rows.mean(0)
        values, vectors = torch.linalg.eigh((rows - self.mean).T @ (rows - self.mean) / len(rows))
        top = values.argsort(descending=True)[:components]
        self.scale, self.axes = values[top].clamp_min(1e-12).sqrt(), vectors[:, top]
        self.shape = x.shape[1:]

    def encode(self, x: Tensor) -> Tensor:
        """Codes (N, k) of points (N, ...)."""
        return (((x.flatten(1).double() - self.mean) @ self.axes) / self.scale).to(x.dtype)

    def decode(self, codes: Tensor) -> Tensor:
        """Points (N, ...) of codes (N, k)."""
        rows = (codes.double() * self.scale) @ self.axes.T + self.mean
        return rows.clamp(0, 1).to(codes.dtype).view(-1, *self.shape)
