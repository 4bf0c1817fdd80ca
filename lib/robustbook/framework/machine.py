"""A support vector machine with RBF kernel as a network: fitted by scikit-learn, asked in torch.

The framework paper's second classifier (2021, appendix B: gamma 0.05, C 5 on pixels of [0, 1]). As a module
it goes wherever a network goes: behind a transfer map, into `accuracy`. It votes as scikit-learn's does, one
class against one other; `scores_of` has the continuous scores that attacks need.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.svm import SVC
from torch import Tensor, nn

from ..augmentations.noise import SomeNoise
from ..datasets import load
from ..errors import BookError
from ..rehearsal import rehearsing
from .estimators import squared_distances

GAMMA, C = 0.05, 5.0


class KernelMachine(nn.Module):
    """The decisions of a fitted `SVC(kernel="rbf")`: votes of one class against one other.

    Scores are numbers of votes; of two classes with as many the first one is ahead, as in libsvm.
    """

    points: Tensor
    weights: Tensor
    offsets: Tensor
    pairs: Tensor
    order: Tensor

    def __init__(self, fitted: Any, classes: int) -> None:
        super().__init__()
        known, counts = fitted.classes_, fitted.n_support_
        ends = np.concatenate([[0], np.cumsum(counts)])
        pairs = [(i, j) for i in range(len(known)) for j in range(i + 1, len(known))]
        weights = np.zeros((len(fitted.support_vectors_), len(pairs)))
        for column, (i, j) in enumerate(pairs):
            own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            weights[own, column] = fitted.dual_coef_[j - 1, own]
            weights[other, column] = fitted.dual_coef_[i, other]
        self.gamma, self.classes = float(fitted._gamma), classes
        self.register_buffer("points", torch.from_numpy(np.array(fitted.support_vectors_)).double())
        self.register_buffer("weights", torch.from_numpy(weights))
        self.register_buffer("offsets", torch.from_numpy(np.array(fitted.intercept_)).double())
        self.register_buffer("pairs", torch.tensor([[known[i], known[j]] for i, j in pairs]))
        self.register_buffer("order", torch.arange(classes) * 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Votes (N, classes) for images."""
        flat = x.flatten(1).double()
        kernel = torch.exp(-self.gamma * squared_distances(flat, self.points))
        ahead = kernel @ self.weights + self.offsets > 0
        winners = torch.where(ahead, self.pairs[:, 0], self.pairs[:, 1])
        votes = torch.zeros(len(x), self.classes, dtype=torch.float64, device=x.device)
        return votes.scatter_add_(1, winners, torch.ones_like(winners, dtype=votes.dtype)) - self.order


def fit_machine(
    x: Tensor, y: Tensor, *, classes: int = 10, gamma: float = GAMMA, cost: float = C
) -> KernelMachine:
    """Fit an SVM with RBF kernel to images in [0, 1]."""
    if len(y.unique()) < 3:
        raise BookError("fewer than three classes among the images; a kernel machine needs three or more")
    fitted = SVC(kernel="rbf", gamma=gamma, C=cost, cache_size=500)
    fitted.fit(x.flatten(1).double().numpy(), y.numpy())
    return KernelMachine(fitted, classes)


def digit_machine(data: str, images: int, sigma: float = 0.0, seed: int = 0) -> KernelMachine:
    """The machine for the first `images` of a data set, fitted once a process.

    With `sigma` it learns from these and from as many noisy copies (the baseline GAUSS).
    """
    return _fitted(data, images, sigma, seed, rehearsing())


@lru_cache(maxsize=2)
def _fitted(data: str, images: int, sigma: float, seed: int, small: bool) -> KernelMachine:
    """One of a rehearsal must not be taken for the real one."""
    x, y = load(data, "train", limit=images)
    if sigma > 0:
        noisy = SomeNoise(sigma, share=1.0)(x, generator=torch.Generator().manual_seed(seed))
        x, y = torch.cat([x, noisy]), torch.cat([y, y])
    return fit_machine(x, y)
