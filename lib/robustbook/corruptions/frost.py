"""Ice on a window, drawn by rule: the textures of frost."""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

SIDE = 640
"""Side of a texture in pixels; a multiple of 5, so that every fifth pixel is a texture as well."""


class Crystals(NamedTuple):
    """Feathers of ice: a stem, and branches on both sides that become shorter towards its tip."""

    number: int
    length: float  # of the longest stem, pixels
    angle: float  # between stem and branches, degrees
    spacing: float  # of the branches, pixels
    branch: float  # longest branch as a part of the stem


class Recipe(NamedTuple):
    """A texture: what is mixed, and the colour and contrast that it gets in the end."""

    crystals: Crystals
    ice: float  # share of the crystals
    relief: float  # share of their relief, lit from one side
    cloud: float  # share of slow changes
    grain: float  # share of fast changes
    drift: float  # how far the red channel leaves the others, slowly
    colour: tuple[float, float, float]
    contrast: float


RECIPES = (
    Recipe(Crystals(600, 90, 25, 14, 0.3), 0.25, 0.4, 1.0, 0.3, 0.07, (0.305, 0.585, 0.650), 0.070),
    Recipe(Crystals(1300, 120, 12, 9, 0.7), 0.9, 0.2, 0.6, 0.15, 0.0, (0.787, 0.805, 0.841), 0.086),
    Recipe(Crystals(1300, 120, 12, 9, 0.7), 0.9, 0.2, 0.6, 0.15, 0.0, (0.787, 0.805, 0.841), 0.086),
    Recipe(Crystals(2500, 32, 40, 7, 0.7), 0.6, 0.3, 0.5, 0.3, 0.0, (0.540, 0.599, 0.648), 0.112),
    Recipe(Crystals(800, 70, 55, 5, 0.55), 1.0, 0.3, 0.7, 0.1, 0.0, (0.441, 0.484, 0.528), 0.170),
)


@lru_cache(maxsize=1)
def textures() -> Tensor:
    """Five pictures of ice in [0, 1], (5, 3, SIDE, SIDE), always the same, on a torus.

    The published corruptions lay photographs over the images. These are no copies of them but drawn: feathers
    of crystals with a relief, over clouds. Mean colour and contrast are those of the five photographs that
    the published code reaches (two of which are equal; a sixth is never drawn): frost is about as strong as
    there, though not the same.
    """
    return torch.stack([texture(recipe, seed) for seed, recipe in enumerate(RECIPES)])


def texture(recipe: Recipe, seed: int) -> Tensor:
    """Draw one picture, (3, SIDE, SIDE)."""
    generator = torch.Generator().manual_seed(seed)
    ice = crystals(recipe.crystals, generator)
    light = ice - ice.roll((1, 2), (0, 1))
    mixed = recipe.ice * unit(ice) + recipe.relief * unit(light)
    mixed = mixed + recipe.cloud * cloud(3.0, generator) + recipe.grain * cloud(0.5, generator)
    red = recipe.drift * cloud(3.0, generator)
    base = torch.tensor(recipe.colour)[:, None, None]
    return (base + recipe.contrast * unit(mixed) + torch.stack([red, 0 * red, 0 * red])).clamp(0, 1)


def unit(field: Tensor) -> Tensor:
    """The field with mean 0 and deviation 1."""
    return (field - field.mean()) / field.std()


def cloud(slope: float, generator: torch.Generator) -> Tensor:
    """Random field on a torus whose power falls with frequency^-slope, mean 0 and deviation 1."""
    frequency = torch.fft.fftfreq(SIDE)
    distance = (frequency[:, None] ** 2 + frequency**2).sqrt()
    noise = torch.fft.fft2(torch.randn(SIDE, SIDE, generator=generator))
    return unit(torch.fft.ifft2(noise * distance.clamp(min=2 / SIDE) ** (-slope / 2)).real)


def crystals(shape: Crystals, generator: torch.Generator) -> Tensor:
    """Heights of the ice on a torus, (SIDE, SIDE): where feathers overlap the higher one shows."""
    top, left, heading, size, height = torch.rand(5, shape.number, generator=generator)
    stem = shape.length * (0.3 + 0.7 * size)
    start = torch.arange(0, shape.length, shape.spacing)  # of a branch, along the stem
    along = torch.arange(0, shape.length * shape.branch)  # a branch
    tip = (stem[:, None] - start) * shape.branch
    crystal, branch, step = (along < tip[:, :, None]).nonzero(as_tuple=True)
    level = (0.4 + 0.6 * height[crystal]) * (1 - 0.6 * along[step] / tip[crystal, branch].clamp(min=1))
    heights = torch.zeros(SIDE * SIDE)
    for turn in (0.0, math.radians(shape.angle), -math.radians(shape.angle)):
        forward, aside = heading[crystal] * math.tau, heading[crystal] * math.tau + turn
        rows = top[crystal] * SIDE + start[branch] * forward.sin() + along[step] * aside.sin()
        columns = left[crystal] * SIDE + start[branch] * forward.cos() + along[step] * aside.cos()
        place = rows.round().long() % SIDE * SIDE + columns.round().long() % SIDE
        heights.scatter_reduce_(0, place, level, "amax")
    return softened(heights.reshape(SIDE, SIDE))


def softened(field: Tensor) -> Tensor:
    """The field on a torus under the kernel 1/4 1/2 1/4 in both directions."""
    for axis in (0, 1):
        field = (field.roll(1, axis) + 2 * field + field.roll(-1, axis)) / 4
    return field
