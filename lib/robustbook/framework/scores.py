"""Robustness measure, function and score (framework 2021, Definitions 1 to 4; 2020, Definitions 1 to 3)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import BookError
from .classifiers import labeller
from .families import Family, single
from .kernels import Kernel

Link = Callable[[Tensor], Tensor]
"""H: from probabilities in [0, 1] to numbers, 0 or more; monotone."""
MEMORY = 2**23
"""Numbers drawn at once."""


def identity(p: Tensor) -> Tensor:
    """H(p) = p: how probable it is that the label survives."""
    return p


def indicator(p: Tensor) -> Tensor:
    """H(p) = 1 where p = 1, else 0: does the label survive for sure?

    Of an estimate from draws it says that no draw changed the label. That is too kind: what no draw meets
    may still be there, and in high dimension mostly is.
    """
    return (p == 1).to(p.dtype)


class Basic(NamedTuple):
    """Definition 1, estimated: of `seen` (N,) draws that count, `kept` (N,) have the label of x."""

    kept: Tensor
    seen: Tensor

    @property
    def rho(self) -> Tensor:
        """The basic robustness measure (N,); 1 where no draw counts, since nothing changed (gap U10)."""
        return torch.where(self.seen > 0, self.kept / self.seen.clamp_min(1), 1.0)

    @property
    def empty(self) -> float:
        """The share of points for which no draw counts."""
        return float((self.seen == 0).double().mean())


def basic(f: Any, kernel: Kernel, x: Tensor, *, draws: int, generator: torch.Generator) -> Basic:
    """rho_Q^f(x) by Monte Carlo (Definition 1, equation 2), for any classifier and points (N, ...)."""
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise BookError(f"draws={draws!r}; give a whole number, 1 or more")
    f = labeller(f)
    own = f(x)
    kept, seen = (torch.zeros(len(x), dtype=torch.float64) for _ in range(2))
    for count in portions(draws, max(1, MEMORY // x.numel())):
        drawn = kernel.draw(x, count, generator)
        kept += ((drawn.labels(f) == own) & drawn.inside).sum(0).cpu()
        seen += drawn.inside.sum(0).cpu()
    return Basic(kept, seen)


def portions(total: int, most: int) -> Iterator[int]:
    """`total` in parts of `most` and a rest."""
    for start in range(0, total, most):
        yield min(most, total - start)


@dataclass(frozen=True)
class Weight:
    """G, as points (N, ...) drawn with its density and, where that is not all of it, a `factor`.

    `factor(x, parameter)` gives one number a point: G(x, eps) = p(x)/eps are data points with 1/eps.
    """

    points: Tensor
    factor: Callable[[Tensor, Any], Tensor] | None = None

    def at(self, parameter: Any) -> Tensor:
        """The factors (N,) at a parameter of the family."""
        if self.factor is None:
            return torch.ones(len(self.points), dtype=torch.float64)
        return torch.as_tensor(self.factor(self.points, parameter)).double().expand(len(self.points))


def everywhere(*shape: int, count: int, generator: torch.Generator) -> Weight:
    """G = 1 on the unit hypercube: points of that shape, uniform (type 1)."""
    return Weight(torch.rand(count, *shape, generator=generator))


def on_data(x: Tensor) -> Weight:
    """G = p: the points of a sample of the data (types 2 and 3)."""
    return Weight(x)


def inverse_radius(x: Tensor, eps: Any) -> Tensor:
    """The factor 1/eps of Example 4 of 2020. Its integral from 0 is infinite: keep eps away from 0."""
    return 1 / torch.as_tensor(eps).double()


class Score(NamedTuple):
    """A robustness score: value, Monte-Carlo standard error, and what rho = 1 everywhere would give.

    `empty` is the share of points and parameters for which a conditioned kernel had no draw.
    """

    value: float
    error: float
    ceiling: float
    empty: float


def function(
    f: Any,
    kernel: Kernel | Family,
    *,
    link: Link,
    weight: Weight,
    draws: int,
    generator: torch.Generator,
    nodes: int = 1,
) -> tuple[Tensor, Tensor, float]:
    """rho_{Q,H,G}^f (Definition 2) at the points of the weight, averaged over the family if there is one.

    Returns the function (N,), what it would be with rho = 1, and the share of empty events.
    """
    family = kernel if isinstance(kernel, Family) else single(kernel)
    f, x = labeller(f), weight.points
    values, most = (torch.zeros(len(x), dtype=torch.float64) for _ in range(2))
    shares = []
    for parameter, share in family.density.nodes(nodes, len(x), generator):
        found = basic(f, family.make(parameter), x, draws=draws, generator=generator)
        factor = share * weight.at(parameter)
        values += link(found.rho) * factor
        most += link(torch.ones_like(found.rho)) * factor
        shares.append(found.empty)
    return values, most, sum(shares) / len(shares)


def score(
    f: Any,
    kernel: Kernel | Family,
    *,
    link: Link = identity,
    weight: Weight,
    draws: int,
    generator: torch.Generator,
    nodes: int = 1,
) -> Score:
    """R_{Q,H,G}^f: of one kernel (Definition 3) or of a family (Definition 4), for any classifier.

    Parameters
    ----------
    f
        A network, a scikit-learn estimator, or a function from points to labels.
    link, weight
        H and G. The integral over x is the mean over the points of the weight.
    draws, nodes
        Draws from a kernel for a point, and parameters of the family for a point.

    The standard error is that of the mean over points, each with draws of its own. The identity's estimate
    is unbiased; the indicator's is too high unless the draws are dense.
    """
    values, most, empty = function(
        f, kernel, link=link, weight=weight, draws=draws, generator=generator, nodes=nodes
    )
    return Score(*mean_and_error(values), float(most.mean()), empty)


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """The mean of independent numbers (N,) and its standard error."""
    error = values.std() / len(values) ** 0.5 if len(values) > 1 else torch.tensor(torch.nan)
    return float(values.mean()), float(error)
