"""From robustness to accuracy after a shift (framework 2021, Definition 5 and Proposition 6)."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import BookError
from .classifiers import Classifier, labeller
from .kernels import Kernel
from .scores import MEMORY, Score, basic, mean_and_error, portions


def label_preservation(
    kernel: Kernel, truth: Classifier, x: Tensor, *, draws: int, generator: torch.Generator
) -> Score:
    """The expected probability that the true label survives: Q is (P, eps)-label preserving with 1 minus it.

    Definition 5 is Definition 3 with the true labelling Y in place of a classifier.
    """
    found = basic(truth, kernel, x, draws=draws, generator=generator)
    return Score(*mean_and_error(found.rho), 1.0, found.empty)


class Transfer(NamedTuple):
    """The four numbers of Proposition 6, each estimated by draws of its own.

    Accuracy alpha, label change eps, lack of robustness delta, and accuracy on Q o P. `slack` is the
    last minus (alpha - eps - delta), with its standard error over points: the proposition says it is not
    negative. `same_draws` is the same from one set of draws for all, where it cannot be negative.
    """

    accuracy: float
    label_change: float
    lack: float
    shifted: float
    slack: float
    error: float
    same_draws: float

    @property
    def bound(self) -> float:
        """alpha - eps - delta."""
        return self.accuracy - self.label_change - self.lack

    def holds(self, errors: float = 3.0) -> bool:
        """Is the slack not negative, but for sampling error?"""
        return self.slack >= -errors * self.error - 1e-12


def proposition_6(
    f: Any,
    kernel: Kernel,
    x: Tensor,
    *,
    y: Tensor | None = None,
    truth: Classifier | None = None,
    draws: int,
    generator: torch.Generator,
) -> Transfer:
    """Check accuracy(Q o P) >= alpha - eps - delta on points x drawn from P.

    Parameters
    ----------
    truth
        The true labelling Y, also of shifted points. Where it is not known, give the labels `y` (N,) of the
        points: then a shifted point is taken to have the label of its origin, eps = 0 by assumption, as
        work on corruptions does.

    Per point, with draws of its own for each of the three terms that need them: were they shared, the
    inequality would hold draw by draw and nothing would be checked.
    """
    f = labeller(f)
    labels = truth(x) if truth is not None else y
    if labels is None:
        raise BookError("neither truth= nor y= is given; accuracy needs one of them")
    right = (f(x) == labels).double()
    change = torch.zeros_like(right)
    if truth is not None:
        change = 1 - basic(truth, kernel, x, draws=draws, generator=generator).rho
    lack = 1 - basic(f, kernel, x, draws=draws, generator=generator).rho
    shifted, together = _shifted(f, kernel, x, labels, truth, draws, generator)
    slack, error = mean_and_error(shifted - (right - change - lack))
    alpha, eps, delta, after = (float(term.mean()) for term in (right, change, lack, shifted))
    return Transfer(alpha, eps, delta, after, slack, error, float((together - right).mean()))


def _shifted(
    f: Classifier,
    kernel: Kernel,
    x: Tensor,
    labels: Tensor,
    truth: Classifier | None,
    draws: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Share of the draws of each point (N,) that f labels right, and that plus label changes plus lack."""
    own = f(x)
    right, together, seen = (torch.zeros(len(x), dtype=torch.float64) for _ in range(3))
    for count in portions(draws, max(1, MEMORY // x.numel())):
        drawn = kernel.draw(x, count, generator)
        found = drawn.labels(f)
        true = labels.expand(count, -1) if truth is None else drawn.labels(truth)
        hit, moved, lost = found == true, true != labels, found != own
        right += (hit & drawn.inside).sum(0)
        together += ((hit.int() + moved.int() + lost.int()) * drawn.inside).sum(0)
        seen += drawn.inside.sum(0)
    alone = (own == labels).double()  # where no draw counts the point stays where it is
    empty, seen = seen == 0, seen.clamp_min(1)
    return torch.where(empty, alone, right / seen), torch.where(empty, alone, together / seen)
