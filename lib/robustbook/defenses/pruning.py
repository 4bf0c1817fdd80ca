"""Shrinking one dense layer of a trained network: methods M1, M2 and M3 of the idiosyncrasy paper.

`prune(model, "fc2", m2(10))` gives a new network; nothing is trained. M1 removes units that are seldom active
on training data, M2 small singular values, M3 both. Beside them stand controls that the paper lacks: random
units, the same change at random, one factor for the whole layer, a temperature.
"""

import copy
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..errors import BookError, unknown
from .dense import dense_layer, inputs_of

READINGS = ("threshold", "rank")
SIDES = ("outputs", "inputs")


class Dense(NamedTuple):
    """A fully connected layer: `weight` (units, inputs), one row a unit, and `bias` (units,), if any."""

    weight: Tensor
    bias: Tensor | None


Change = Callable[[Dense], Dense]
"""What a method does to a layer; it leaves its argument alone."""


def prune(model: nn.Module, layer: str, change: Change) -> nn.Module:
    """A copy of the network in which the fully connected layer of this name is changed."""
    new = copy.deepcopy(model)
    linear = dense_layer(new, layer)
    changed = change(weights(model, layer))
    with torch.no_grad():
        linear.weight.copy_(changed.weight)
        if linear.bias is not None and changed.bias is not None:
            linear.bias.copy_(changed.bias)
    return new


def weights(model: nn.Module, layer: str) -> Dense:
    """The weights of the fully connected layer of this name, as copies."""
    linear = dense_layer(model, layer)
    bias = None if linear.bias is None else linear.bias.detach().clone()
    return Dense(linear.weight.detach().clone(), bias)


def frequencies(
    model: nn.Module,
    layer: str,
    x: Tensor,
    *,
    side: str = "outputs",
    above: float = 0.0,
    batch_size: int = 1000,
) -> Tensor:
    """For each unit of a layer the share of the images `x` on which it is active, float64.

    Parameters
    ----------
    side
        "outputs": units of the layer, active where they are positive, so that a ReLU behind lets them pass.
        "inputs": the features that enter the layer (gap U18: what a last layer puts out is never zero).
    above
        Part of a unit's largest value on `x` that counts as zero: 0.01 for averaged features, which are
        hardly ever zero themselves.
    """
    _among("side", side, SIDES)
    if not 0 <= above < 1:
        raise BookError(f"above={above!r}; give a part of the largest value, 0 or more and below 1")
    values = inputs_of(model, layer, x, batch_size=batch_size)
    if side == "outputs":
        with torch.no_grad():
            values = dense_layer(model, layer)(values)
    level = above * values.amax(0).clamp_min(0)
    return (values > level).double().mean(0)


def rare(frequency: Tensor, p: float, reading: str = "threshold") -> Tensor:
    """Which units M1 removes at p (gap U18), bool.

    "threshold": those active on less than p % of the images, as the set-up of the experiments says; "rank":
    the p % least active ones, as the header of Table 1 says, equally active ones in their order.
    """
    _among("reading", reading, READINGS)
    _check_level(p)
    if reading == "threshold":
        return frequency < p / 100
    chosen = torch.zeros_like(frequency, dtype=torch.bool)
    chosen[frequency.argsort(stable=True)[: share(p, len(frequency))]] = True
    return chosen


def share(p: float, count: int) -> int:
    """p % of `count` things, rounded down (gap U19)."""
    return math.floor(p * count / 100 + 1e-9)


def without(removed: Tensor, side: str = "outputs") -> Change:
    """Take these units away: their row and bias, or as inputs their column, become zero."""
    _among("side", side, SIDES)

    def change(dense: Dense) -> Dense:
        units = dense.weight.shape[0 if side == "outputs" else 1]
        if removed.shape != (units,):
            raise BookError(
                f"{tuple(removed.shape)} marks for the {units} {side} of the layer; give one each"
            )
        if side == "inputs":
            return Dense(dense.weight.masked_fill(removed, 0.0), dense.bias)
        bias = None if dense.bias is None else dense.bias.masked_fill(removed, 0.0)
        return Dense(dense.weight.masked_fill(removed[:, None], 0.0), bias)

    return change


def m1(frequency: Tensor, p: float, *, reading: str = "threshold", side: str = "outputs") -> Change:
    """M1: remove the units that are `rare` on training data."""
    return without(rare(frequency, p, reading), side)


def m2(p: float) -> Change:
    """M2: zero the p % smallest singular values, which gives the nearest matrix of that rank."""
    _check_level(p)
    return lambda dense: _without_smallest(dense, p, min(dense.weight.shape))


def m3(frequency: Tensor, p: float, *, reading: str = "threshold", side: str = "outputs") -> Change:
    """M3: M1, then M2 on the matrix that is left (gap U19).

    The p % are counted on the smaller matrix. The zeros of removed units are singular values of the whole
    one, the smallest there are, and would otherwise be all that M2 finds to remove.
    """
    removed = rare(frequency, p, reading)

    def change(dense: Dense) -> Dense:
        take = without(removed, side)
        sizes = list(dense.weight.shape)
        sizes[0 if side == "outputs" else 1] -= int(removed.sum())
        return take(_without_smallest(take(dense), p, min(sizes)))  # again: rounding is not zero

    return change


def _without_smallest(dense: Dense, p: float, count: int) -> Dense:
    """Drop p % of the `count` largest singular values, the smallest of them, and all behind those."""
    dropped = share(p, count)
    if dropped == 0:
        return dense
    left, sizes, right = torch.linalg.svd(dense.weight.double(), full_matrices=False)
    kept = count - dropped
    weight = (left[:, :kept] * sizes[:kept]) @ right[:kept]
    return Dense(weight.to(dense.weight.dtype), dense.bias)


def random_units(p: float, *, generator: torch.Generator, side: str = "outputs") -> Change:
    """Control of M1: p % of the units, drawn at random."""
    _check_level(p)

    def change(dense: Dense) -> Dense:
        units = dense.weight.shape[0 if side == "outputs" else 1]
        removed = torch.zeros(units, dtype=torch.bool)
        removed[torch.randperm(units, generator=generator)[: share(p, units)]] = True
        return without(removed, side)(dense)

    return change


def random_change(like: Change, *, generator: torch.Generator) -> Change:
    """Control of any method: Gaussian noise on the weights, as long (Frobenius) as that method's change."""

    def change(dense: Dense) -> Dense:
        length = (like(dense).weight.double() - dense.weight.double()).norm()
        noise = torch.randn(dense.weight.shape, generator=generator, dtype=torch.float64)
        weight = dense.weight.double() + noise * (length / noise.norm())
        return dense if length == 0 else Dense(weight.to(dense.weight.dtype), dense.bias)

    return change


def rescaled(like: Change) -> Change:
    """Control of any method: all weights times one factor, so that the Frobenius norm is that method's."""

    def change(dense: Dense) -> Dense:
        before, after = dense.weight.double().norm(), like(dense).weight.double().norm()
        if before == after:
            return dense
        return Dense((dense.weight.double() * (after / before)).to(dense.weight.dtype), dense.bias)

    return change


def tempered(model: nn.Module, temperature: float) -> nn.Sequential:
    """Control: a copy of the network whose outputs are divided by `temperature`; no prediction changes."""
    if not 0 < temperature < math.inf:
        raise BookError(f"temperature={temperature!r}; give a positive number")
    divide = Divide(temperature)
    return nn.Sequential(OrderedDict(network=copy.deepcopy(model), divide=divide))


class Divide(nn.Module):
    """x / by."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        return x / self.by

    def extra_repr(self) -> str:
        """By what."""
        return f"{self.by:g}"


def norms(dense: Dense) -> dict[str, float]:
    """The norms that the lemmas and the methods speak of, of the weight matrix with one row a unit.

    `frobenius`; `l1_norm`, the sum over all elements; `largest_row` and `largest_column`, the matrix norms
    induced by l_inf and l1; `rank`, singular values above rounding; `units`, rows that are not zero.
    """
    weight = dense.weight.double()
    size = weight.abs()
    return {
        "frobenius": weight.norm().item(),
        "l1_norm": size.sum().item(),
        "largest_row": size.sum(1).max().item(),
        "largest_column": size.sum(0).max().item(),
        "rank": int(torch.linalg.matrix_rank(weight, rtol=1e-6)),
        "units": int((size.sum(1) > 0).sum()),
    }


def _check_level(p: float) -> None:
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 100:
        raise BookError(f"p={p!r}; give a percentage from 0 to 100")


def _among(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise unknown(name, str(value), known)
