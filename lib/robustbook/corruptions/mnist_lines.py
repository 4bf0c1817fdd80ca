"""The lines that MNIST-C draws over a digit: every one there can be, as tables of 28 x 28 pictures."""

import math
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

SIDE = 28
ROWS = SIDE - 1
"""The published code draws rows from 0 to 26: a line never starts in the last one."""
FADE = 2.3
LEFT, RIGHT = 2, 25
"""Columns between which a zigzag runs."""
FALLS = range(-5, 5)
"""How many rows lower a zigzag may end than it starts."""
HALF = 2.0
"""Amplitude of a zigzag, and a quarter of its period."""


def line(start: tuple[float, float], end: tuple[float, float]) -> Tensor:
    """A line between two points (column, row), the first further left, as a picture (28, 28).

    It is 1 in the middle and fades as log(1 - d / 2.3) + 1, where d is the distance up or down, not the
    shortest one; the column in which it ends stays empty.
    """
    (c0, r0), (c1, r1) = start, end
    places = torch.arange(SIDE, dtype=torch.float64)
    heights = (r1 - r0) / (c1 - c0) * (places - c0) + r0
    distance = (places[:, None] - heights).abs().clamp(max=FADE - 1e-10)
    shade = (torch.log(1 - distance / FADE) + 1).clamp(0, 1)
    shade[:, : math.floor(c0)] = 0
    shade[:, math.ceil(c1) :] = 0
    return shade


@lru_cache
def dotted_lines() -> Tensor:
    """From border to border in dashes of two columns, by the rows of the ends: (27, 27, 28, 28)."""
    lines = [[line((0, first), (SIDE - 1, last)) for last in range(ROWS)] for first in range(ROWS)]
    inked = torch.arange(SIDE) // 2 % 2 == 1
    return torch.stack([torch.stack(some) for some in lines]) * inked


@lru_cache
def zigzags() -> Tensor:
    """By the row of the start and the fall, from -5 to 4, of the end: (27, 10, 28, 28)."""
    return torch.stack([torch.stack([zigzag(row, fall) for fall in FALLS]) for row in range(ROWS)])


def zigzag(row: int, fall: int) -> Tensor:
    """One zigzag, (28, 28), from column 2 and `row` to column 25, `fall` rows lower."""
    points = corners(row, fall)
    return sum((line(*ends) for ends in pairwise(points)), torch.zeros(SIDE, SIDE)).clamp(max=1)


def corners(row: int, fall: int) -> list[tuple[float, float]]:
    """The points (column, row) a zigzag goes through.

    Along the straight line of length d the corners lie at 2, 6, 10, ... pixels, by turns 2 pixels below and
    above it. The last point, at d, is as far off as in the published code: the last corner's 2, divided by
    twice the distance from the last full period, which for MNIST is about a third of a pixel.
    """
    slope = fall / (RIGHT - LEFT)
    length, angle = math.hypot(RIGHT - LEFT, fall), math.atan(slope)
    places = [HALF * (2 * k + 1) for k in range(int((length - HALF) // (2 * HALF)) + 1)]
    points = [(0.0, 0.0)] + [(place, (-1) ** k * HALF) for k, place in enumerate(places)]
    points.append((length, points[-1][1] / (2 * (length % (2 * HALF)))))
    cos, sin = math.cos(angle), math.sin(angle)
    return [(LEFT + cos * c - sin * r, row + sin * c + cos * r) for c, r in points]
