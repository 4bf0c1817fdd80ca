"""Classifiers whose robustness is known in closed form, in any dimension: the oracles of the framework."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import special, stats
from torch import Tensor

from ..errors import BookError


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Label 1 where `normal` (m,) times x exceeds `offset`, else 0."""

    normal: Tensor
    offset: float

    def __call__(self, x: Tensor) -> Tensor:
        """Labels (N,) of points (N, m)."""
        return (self._side(x) > 0).long()

    def _side(self, x: Tensor) -> Tensor:
        normal = self.normal.double()
        return (x.double() @ normal - self.offset) / normal.norm()

    def margin(self, x: Tensor) -> Tensor:
        """Distance (N,) from the plane."""
        return self._side(x).abs()

    def kept_in_ball(self, x: Tensor, eps: float) -> Tensor:
        """rho (N,) under the uniform distribution on the l2 ball: all but a cap of it."""
        share = self.margin(x).numpy() / _positive(eps=eps)
        return torch.from_numpy(1 - cap(share, x.shape[1]))

    def kept_under_noise(self, x: Tensor, sigma: float) -> Tensor:
        """rho (N,) under Gaussian noise: along the normal it is a normal variable."""
        return torch.special.ndtr(self.margin(x) / _positive(sigma=sigma))


@dataclass(frozen=True, eq=False)
class Concentric:
    """Label 1 inside the ball of `radius` around `centre` (m,), else 0."""

    centre: Tensor
    radius: float

    def __call__(self, x: Tensor) -> Tensor:
        """Labels (N,) of points (N, m)."""
        return (self._away(x) < self.radius).long()

    def _away(self, x: Tensor) -> Tensor:
        return (x.double() - self.centre.double()).norm(dim=1)

    def margin(self, x: Tensor) -> Tensor:
        """Distance (N,) from the sphere."""
        return (self._away(x) - self.radius).abs()

    def kept_in_ball(self, x: Tensor, eps: float) -> Tensor:
        """rho (N,) under the uniform distribution on the l2 ball: what two balls share, or the rest."""
        away = self._away(x).numpy()
        inner = shared(away, _positive(eps=eps), self.radius, x.shape[1])
        return torch.from_numpy(np.where(away < self.radius, inner, 1 - inner))

    def kept_under_noise(self, x: Tensor, sigma: float) -> Tensor:
        """rho (N,) under Gaussian noise: the squared distance from the centre is noncentral chi-squared."""
        away, scale = self._away(x).numpy(), _positive(sigma=sigma)
        inner = stats.ncx2.cdf((self.radius / scale) ** 2, x.shape[1], (away / scale) ** 2)
        return torch.from_numpy(np.where(away < self.radius, inner, 1 - inner))


def cap(height: np.ndarray, dimension: int) -> np.ndarray:
    """Share of the unit ball that lies beyond a plane at distance `height` from its centre (-1 to 1).

    With I the regularised incomplete beta function, it is I_{1 - h^2}((m + 1)/2, 1/2) / 2 for h >= 0.
    """
    h = np.clip(np.asarray(height, dtype=float), -1, 1)
    beyond = special.betainc((dimension + 1) / 2, 0.5, 1 - h**2) / 2
    return np.where(h >= 0, beyond, 1 - beyond)


def shared(away: np.ndarray, eps: float, radius: float, dimension: int) -> np.ndarray:
    """Share of a ball of radius `eps` that lies in another of `radius`, their centres `away` apart."""
    apart, within = away >= eps + radius, away <= abs(radius - eps)
    gap = np.where(away > 0, away, 1.0)
    plane = (gap**2 + eps**2 - radius**2) / (2 * gap)  # where the spheres meet, seen from the first centre
    ratio = math.exp(min(700.0, dimension * math.log(radius / eps)))
    lens = cap(plane / eps, dimension) + ratio * cap((gap - plane) / radius, dimension)
    return np.where(apart, 0.0, np.where(within, min(1.0, ratio), lens))


def _positive(**named: float) -> float:
    ((name, value),) = named.items()
    if not 0 < value < math.inf:
        raise BookError(f"{name}={value!r}; give a positive number")
    return float(value)
