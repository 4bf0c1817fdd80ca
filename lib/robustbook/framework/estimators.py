"""scikit-learn's classifiers as torch modules: the same labels by matrix products, and slopes for attacks.

Both are arg max of continuous scores, which is what equation (6) of the framework asks of a classifier.
"""

from typing import Any

import numpy as np
import torch
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor, nn

from ..errors import BookError


class RbfScores(nn.Module):
    """Decision values of machines with an RBF kernel, one a class; the support vectors are shared."""

    support: Tensor
    weights: Tensor
    intercepts: Tensor

    def __init__(self, support: Tensor, weights: Tensor, intercepts: Tensor, gamma: float) -> None:
        super().__init__()
        self.register_buffer("support", support)
        self.register_buffer("weights", weights)
        self.register_buffer("intercepts", intercepts)
        self.gamma = gamma

    def forward(self, x: Tensor) -> Tensor:
        """Scores (N, K) of points (N, ...)."""
        near = torch.exp(-self.gamma * squared_distances(x.flatten(1), self.support))
        return near @ self.weights + self.intercepts


class NearestScores(nn.Module):
    """Minus the squared distance from the nearest sample of each class: arg max is the nearest neighbour."""

    samples: Tensor

    def __init__(self, x: Tensor, y: Tensor, classes: int) -> None:
        super().__init__()
        order = y.argsort(stable=True)
        self.register_buffer("samples", x.flatten(1)[order].contiguous())
        self.counts = torch.bincount(y, minlength=classes).tolist()
        if not all(self.counts):
            raise BookError(f"no sample of class {self.counts.index(0)}; give at least one of each")

    def forward(self, x: Tensor) -> Tensor:
        """Scores (N, K) of points (N, ...)."""
        square = squared_distances(x.flatten(1), self.samples)
        return torch.stack([-part.amin(1) for part in square.split(self.counts, dim=1)], 1)


def squared_distances(x: Tensor, others: Tensor) -> Tensor:
    """Squared l2 distances (N, M) of rows (N, n) and (M, n), by one matrix product."""
    lengths = x.square().sum(1)[:, None] + others.square().sum(1)
    return (lengths - 2 * x @ others.T).clamp_min(0)


def scores_of(estimator: Any) -> nn.Module:
    """The scores behind a fitted estimator: one of a nearest neighbour, or of RBF machines.

    Several classes need `OneVsRestClassifier(SVC(kernel="rbf", gamma=...))`: the votes of one-against-one
    machines, scikit-learn's default, are not continuous. Labels must be 0, 1, ... K - 1.
    """
    if isinstance(estimator, KNeighborsClassifier):
        return _nearest(estimator)
    machines = estimator.estimators_ if isinstance(estimator, OneVsRestClassifier) else [estimator]
    if not all(isinstance(machine, SVC) and machine.kernel == "rbf" for machine in machines):
        raise BookError(
            f"no scores known for a {type(estimator).__name__}; "
            "give a nearest neighbour, or RBF machines one against rest"
        )
    if len(machines[0].classes_) > 2:
        raise BookError("one-against-one votes are not continuous; use OneVsRestClassifier(SVC(...))")
    _check_classes(estimator.classes_)
    return _machines(machines)


def _nearest(estimator: Any) -> NearestScores:
    if estimator.n_neighbors != 1:
        raise BookError(f"n_neighbors={estimator.n_neighbors}; only one neighbour has continuous scores")
    _check_classes(estimator.classes_)
    x = torch.from_numpy(np.asarray(estimator._fit_X, dtype=np.float32))
    return NearestScores(x, torch.from_numpy(np.asarray(estimator._y)), len(estimator.classes_))


def _check_classes(classes: np.ndarray) -> None:
    if list(classes) != list(range(len(classes))):
        raise BookError(f"classes {list(classes)}; labels must be 0, 1, ... without a gap")


def _machines(machines: list[Any]) -> RbfScores:
    gammas = {machine.gamma for machine in machines}
    (gamma,) = gammas if len(gammas) == 1 else (None,)
    if not isinstance(gamma, float):
        raise BookError(f"gamma={gamma!r} of the machines; fit them with one number, such as gamma=0.05")
    rows = np.unique(np.concatenate([machine.support_ for machine in machines]))
    support = np.empty((len(rows), machines[0].support_vectors_.shape[1]))
    weights = np.zeros((len(rows), len(machines)))
    for column, machine in enumerate(machines):
        place = np.searchsorted(rows, machine.support_)
        support[place], weights[place, column] = machine.support_vectors_, machine.dual_coef_[0]
    intercepts = np.concatenate([machine.intercept_ for machine in machines])
    if len(machines) == 1:  # one machine for two classes: its value speaks for class 1
        weights, intercepts = np.hstack([-weights, weights]), np.concatenate([-intercepts, intercepts])
    parts = [torch.from_numpy(part).float() for part in (support, weights, intercepts)]
    return RbfScores(parts[0], parts[1], parts[2], gamma)
