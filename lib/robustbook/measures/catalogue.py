"""The measures of the book under one roof: any classifier, one number each, with its standard error.

`MEASURES["r2-score"](subject.model, bench, budget, generator)` gives a `Value`. What a measure needs of a
classifier and what it will cost stand beside it. The measures themselves are in `by_labels` and `by_attacks`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..framework.scores import mean_and_error
from ..registry import Registry
from ..training.evaluation import predict
from .bench import BUDGETS, Bench, Budget, bench
from .subject import Subject


class Value(NamedTuple):
    """A measured number, its standard error over images, and on how many images."""

    value: float
    error: float
    images: int


Function = Callable[[nn.Module, Bench, Budget, torch.Generator], Value]
Passes = Callable[[Budget], tuple[float, float]]


@dataclass(frozen=True)
class Measure:
    """A measure: what it is called on a page, its unit, what it needs, and what it costs.

    `passes(budget)` are the scores and the gradients that it asks of the classifier at most.
    """

    title: str
    unit: str
    needs: str
    passes: Passes
    function: Function
    larger_is_better: bool = True

    def __call__(self, model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
        """Measure a classifier."""
        return self.function(model, bench, budget, generator)

    def seconds(self, subject: Subject, budget: Budget) -> float:
        """What it will take at most, from the tempo of the classifier."""
        scores, gradients = self.passes(budget)
        return scores * subject.forward_seconds + gradients * subject.gradient_seconds


MEASURES: Registry[Measure] = Registry("measure")


def measured(title: str, unit: str, needs: str, passes: Passes) -> Callable[[Function], Measure]:
    """Decorator: a function as a measure, to be registered under a name that nothing else has."""
    return lambda function: Measure(title, unit, needs, passes, function)


def shares(right: Tensor) -> Value:
    """Percent of True, its standard error, and of how many."""
    value, error = mean_and_error(100 * right.double())
    return Value(value, error, len(right))


def labels_of(model: nn.Module, x: Tensor) -> Tensor:
    """The labels (N,) of a module of class scores."""
    return predict(model, x, batch_size=250).argmax(1)


def value_of(name: str, model: nn.Module, data: str, budget: str, *, manifold: str = "", seed: int) -> Value:
    """The measure of this name on the test images of a data set, all by name: for rows of a chapter."""
    place, size = bench(data, budget, manifold), BUDGETS[budget]().shrunk()
    return MEASURES[name](model, place, size, torch.Generator().manual_seed(seed))
