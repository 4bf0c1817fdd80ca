"""Measures by attacks: accuracy within a budget of linf, margins in l2, pixels, margins by frequency."""

import torch
from torch import Tensor, nn

from ..attacks import autoattack, ddn, fmn_l0, fmn_l2, pgd, pgd_minimum, sparsefool, square
from ..framework.scores import mean_and_error
from ..rehearsal import shrink
from ..spectral import dct_blocks
from .bench import Bench, Budget
from .catalogue import MEASURES, Value, labels_of, measured, shares
from .margins import margins
from .sparsity import perturbed_share


def _attacked(bench: Bench, budget: Budget) -> tuple[Tensor, Tensor]:
    """The images that are attacked, and their labels."""
    return bench.x[: budget.attacked], bench.y[: budget.attacked]


def _accuracy_under(model: nn.Module, found: Tensor, y: Tensor) -> Value:
    return shares(labels_of(model, found) == y)


@MEASURES.add("square-linf")
@measured("Square, linf", "%", "scores", lambda b: (b.attacked * b.queries, 0))
def square_linf(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Accuracy under Square alone, which asks for no gradient."""
    x, y = _attacked(bench, budget)
    found = square(model, x, y, eps=bench.eps, queries=budget.queries, generator=generator)
    return _accuracy_under(model, found, y)


@MEASURES.add("pgd-linf")
@measured("PGD, linf", "%", "gradients", lambda b: (0, b.attacked * 20))
def pgd_linf(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Accuracy under twenty steps of PGD from the image itself, the attack of most older papers."""
    x, y = _attacked(bench, budget)
    return _accuracy_under(model, pgd(model, x, y, eps=bench.eps, steps=min(20, budget.steps)), y)


@MEASURES.add("fgsm-linf")
@measured("FGSM, linf", "%", "gradients", lambda b: (0, b.attacked))
def fgsm_linf(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Accuracy under one full step of PGD."""
    x, y = _attacked(bench, budget)
    return _accuracy_under(model, pgd(model, x, y, eps=bench.eps, steps=1, step_size=bench.eps), y)


def _auto_passes(budget: Budget) -> tuple[float, float]:
    aimed = budget.steps * budget.targets
    return budget.attacked * (budget.queries + aimed), budget.attacked * (budget.steps + 2.5 * aimed)


@MEASURES.add("autoattack-linf")
@measured("AutoAttack, linf", "%", "gradients", _auto_passes)
def autoattack_linf(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Accuracy under AutoAttack: an image counts that none of the four attacks changes."""
    x, y = _attacked(bench, budget)
    size, targets, queries = bench.eps, budget.targets, budget.queries
    found = autoattack(
        model, x, y, eps=size, steps=budget.steps, targets=targets, queries=queries, generator=generator
    )
    return _accuracy_under(model, found, y)


def closest(model: nn.Module, x: Tensor, steps: int, most: float) -> Tensor:
    """l2 distances (N,) from x to another label than the model's own: the least of DDN, FMN and PGD.

    PGD looks for the smallest budget where the other two found nothing. `most` where nothing was found.
    """
    own, least = labels_of(model, x), torch.full((len(x),), torch.inf, dtype=torch.float64)

    def keep(rows: Tensor, found: Tensor) -> None:
        size = (found - x[rows]).flatten(1).double().norm(dim=1)
        fooled = labels_of(model, found) != own[rows]
        least[rows] = size.where(fooled & (size < least[rows]), least[rows])

    every = torch.arange(len(x))
    keep(every, ddn(model, x, own, steps=steps))
    keep(every, fmn_l2(model, x, own, steps=steps))
    rest = least.isinf().nonzero()[:, 0]
    if len(rest):
        keep(rest, pgd_minimum(model, x[rest], own[rest], rounds=shrink(14, at_most=1)))
    return least.clamp_max(most)


@MEASURES.add("r2-score")
@measured("margin area, R2", "l2", "gradients", lambda b: (0, 2 * b.attacked * b.steps))
def r2(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Area under the margin curve, R2: the mean distance of test images from another label."""
    x, _ = _attacked(bench, budget)
    value, error = mean_and_error(closest(model, x, budget.steps, bench.diameter))
    return Value(value, error, len(x))


@MEASURES.add("r1-score")
@measured("everywhere, R1", "l2", "gradients", lambda b: (0, 2 * b.attacked * b.steps))
def r1(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """R1: the same at points drawn uniformly from the unit cube, of which no data knows."""
    x = torch.rand(bench.x[: budget.attacked].shape, generator=generator)
    value, error = mean_and_error(closest(model, x, budget.steps, bench.diameter))
    return Value(value, error, len(x))


def _pixels(model: nn.Module, x: Tensor, found: Tensor, own: Tensor) -> Value:
    """Mean percent of pixels that had to change; all of them where the label stands."""
    share = perturbed_share(x, found).where(labels_of(model, found) != own, 100.0)
    value, error = mean_and_error(share)
    return Value(value, error, len(x))


@MEASURES.add("sparsefool-pixels")
@measured("SparseFool, l0", "% of pixels", "gradients", lambda b: (0, b.attacked * 60))
def sparsefool_l0(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Pixels that SparseFool changes, lambda = 1 for grey images and 3 for colours as in the thesis."""
    x, _ = _attacked(bench, budget)
    own = labels_of(model, x)
    lam, rounds = 1.0 if x.shape[1] == 1 else 3.0, shrink(max(5, budget.steps // 2), at_most=1)
    found = sparsefool(model, x, own, lam=lam, steps=rounds, walk_steps=shrink(50, at_most=1))
    return _pixels(model, x, found, own)


@MEASURES.add("fmn-pixels")
@measured("FMN, l0", "% of pixels", "gradients", lambda b: (0, b.attacked * b.steps))
def fmn_l0_pixels(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Pixels that FMN for l0 changes."""
    x, _ = _attacked(bench, budget)
    own = labels_of(model, x)
    return _pixels(model, x, fmn_l0(model, x, own, steps=budget.steps), own)


def _dct_margin(model: nn.Module, bench: Bench, budget: Budget, place: int) -> Value:
    """Median margin in a block of the DCT's diagonal, a quarter of its length; d where none is found."""
    x, size = bench.x[: budget.attacked], bench.x.shape[-1]
    block = size // 4
    blocks = dct_blocks(size, block, block, x.shape[1])
    basis = [blocks[place % len(blocks)]]
    sizes = margins(model, x, basis, steps=budget.steps).size[0].double().nan_to_num(bench.diameter)
    sizes = sizes.clamp_max(bench.diameter)
    again = torch.randint(len(sizes), (200, len(sizes)), generator=torch.Generator().manual_seed(0))
    return Value(float(sizes.median()), float(sizes[again].median(1).values.std()), len(sizes))


@MEASURES.add("dct-low-margin")
@measured("low frequencies", "l2", "gradients", lambda b: (0, b.attacked * 30))
def dct_low(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Median margin among the lowest quarter of the frequencies (thesis, chapter 4)."""
    return _dct_margin(model, bench, budget, 0)


@MEASURES.add("dct-high-margin")
@measured("high frequencies", "l2", "gradients", lambda b: (0, b.attacked * 60))
def dct_high(model: nn.Module, bench: Bench, budget: Budget, generator: torch.Generator) -> Value:
    """Median margin among the highest quarter of the frequencies."""
    return _dct_margin(model, bench, budget, -1)
