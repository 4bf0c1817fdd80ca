"""Classifiers as the framework sees them: mappings from points to labels, whatever is inside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BookError
from ..training.evaluation import predict

Classifier = Callable[[Tensor], Tensor]
"""f: points (N, ...) -> labels (N,), int64."""
VALUES, MOST = 2**20, 65_536
"""Numbers, and points, that a classifier gets at once."""


def labeller(classifier: Any) -> Classifier:
    """Any classifier as a mapping f: x -> label.

    Parameters
    ----------
    classifier
        A network (the label is that of its largest output), a fitted scikit-learn estimator (images reach its
        `predict` as rows of numbers), or a function from points (N, ...) to N whole numbers.
    """
    if isinstance(classifier, _Labeller):
        return classifier
    if isinstance(classifier, nn.Module):
        return _Labeller(lambda x: predict(classifier, x, batch_size=len(x)).argmax(1))
    if hasattr(classifier, "predict"):
        return _Labeller(lambda x: classifier.predict(x.flatten(1).cpu().numpy()))
    if callable(classifier):
        return _Labeller(classifier)
    raise BookError(
        f"a {type(classifier).__name__} is no classifier; give a network, an estimator, or x -> label"
    )


@dataclass(frozen=True, eq=False)
class _Labeller:
    """Calls a classifier in portions, and checks what it says."""

    inner: Callable[[Tensor], Any]

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == 0:
            raise BookError("no points to classify: there are 0")
        portion = min(MOST, max(1, VALUES // x[0].numel()))
        return torch.cat([self._some(part) for part in x.split(portion)])

    def _some(self, x: Tensor) -> Tensor:
        labels = torch.as_tensor(self.inner(x))
        if labels.shape != (len(x),):
            raise BookError(
                f"the classifier gives {tuple(labels.shape)} for {len(x)} points; it must give one a point"
            )
        if labels.is_floating_point() or labels.is_complex():
            raise BookError(f"the classifier gives labels of type {labels.dtype}; whole numbers are needed")
        return labels.long().to(x.device)


@dataclass(frozen=True)
class Constant:
    """The classifier that always says the same: the most robust there is (postulate P1)."""

    label: int = 0

    def __call__(self, x: Tensor) -> Tensor:
        """The label, once a point."""
        return torch.full((len(x),), self.label, dtype=torch.long, device=x.device)

    def margin(self, x: Tensor) -> Tensor:
        """There is no boundary: infinite distances (N,)."""
        return torch.full((len(x),), torch.inf, dtype=torch.float64)

    def kept_in_ball(self, x: Tensor, eps: float) -> Tensor:
        """1 everywhere."""
        return torch.ones(len(x), dtype=torch.float64)

    def kept_under_noise(self, x: Tensor, sigma: float) -> Tensor:
        """1 everywhere."""
        return torch.ones(len(x), dtype=torch.float64)
