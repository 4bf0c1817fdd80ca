"""Measures that ask a classifier for labels alone: accuracy, noise, corruptions, Proposition 6, R4."""

import math

import torch
from torch import Tensor, nn

from ..framework.manifold import Pool
from ..framework.on_manifold import inverse, measure_in, measure_on, score_of, sigma_of
from ..framework.scores import Basic, identity, mean_and_error
from .bench import Bench, Budget
from .catalogue import MEASURES, Value, labels_of, measured, shares
from .gaussian import kept_rate, noise_levels


@MEASURES.add("clean-accuracy")
@measured("clean accuracy", "%", "labels", lambda b: (b.images, 0))
def clean_accuracy(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Accuracy on test images."""
    return shares(labels_of(model, bench.x[: budget.images]) == bench.y[: budget.images])


@MEASURES.add("noise-gnr")
@measured("noise, GNR", "%", "labels", lambda b: (b.images * b.levels, 0))
def noise_gnr(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Gaussian robustness of the moment paper; the error treats levels as independent draws of images."""
    x = bench.x[: budget.images]
    rates = kept_rate(model, x, noise_levels(budget.levels), generator=generator, batch_size=250)
    error = float((rates * (1 - rates) / len(x)).sum().sqrt()) / len(rates)
    return Value(100 * float(rates.mean()), 100 * error, len(x))


def _corruption_passes(budget: Budget) -> tuple[float, float]:
    return budget.images / 5 * 15 * len(budget.severities), 0


def _corrupted_labels(model: nn.Module, bench: Bench, budget: Budget) -> tuple[Tensor, Tensor]:
    """Labels (K, N) of a fifth of the images under every corruption, and of themselves (N,)."""
    count = max(1, budget.images // 5)
    stack = bench.corrupted(count, budget.severities)
    return torch.stack([labels_of(model, part) for part in stack]), labels_of(model, bench.x[:count])


@MEASURES.add("corruption-accuracy")
@measured("corruptions", "%", "labels", _corruption_passes)
def corruption_accuracy(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Mean accuracy over the fifteen common corruptions and the severities of the budget."""
    found, _ = _corrupted_labels(model, bench, budget)
    right = (found == bench.y[: found.shape[1]]).double().mean(0)
    value, error = mean_and_error(100 * right)
    return Value(value, error, len(right))


@MEASURES.add("proposition-6")
@measured("bound of Prop. 6", "%", "labels", _corruption_passes)
def proposition_6(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Proposition 6: accuracy minus lack of robustness, with the corruptions as kernel.

    They are taken to preserve labels. What it bounds from below is the measure `corruption`.
    """
    found, own = _corrupted_labels(model, bench, budget)
    count = torch.full((len(own),), len(found), dtype=torch.float64)
    rho = Basic((found == own).double().sum(0), count).rho
    value, error = mean_and_error(100 * ((own == bench.y[: len(own)]).double() - (1 - rho)))
    return Value(value, error, len(own))


@MEASURES.add("r4-score")
@measured("on-manifold, R4", "% of range", "labels", lambda b: (b.attacked * b.samples + b.pool, 0))
def r4(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """R4 of the framework (2020), between what any classifier gets and the most there is.

    Samples come from an auto-encoder where there is one, else other images of the data stand for them. The
    radii are the same for every classifier.
    """
    x = bench.x[: budget.attacked]
    radii = sigma_of(budget.radii, bench.diameter, torch.Generator().manual_seed(0))
    if bench.manifold is not None:
        found = measure_on(model, x, bench.manifold, radii, count=budget.samples, generator=generator)
    else:
        found = measure_in(model, x, Pool(bench.pool), radii)
    score = score_of(found, identity, inverse)
    width = score.ceiling - score.floor
    if not width > 0:
        return Value(math.nan, math.nan, len(x))
    return Value(100 * score.room, 100 * score.error / width, len(x))
