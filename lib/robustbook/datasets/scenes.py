"""What there is to see in one rendered image of a container: every random choice, from one seed an image."""

from dataclasses import dataclass

import numpy as np

from .containers import CONTAINERS, POURINGS, Container, label_of

GROUNDS = ("plain", "stripes", "wood", "cloth", "blobs")
FULL = (0.0, 0.5, 0.9)
"""Parts of the capacity, by level."""


@dataclass(frozen=True)
class Scene:
    """One image. Lengths are parts of the image side, angles radians, colours in [0, 1]."""

    container: Container
    filling: int
    level: int
    fullness: float
    """Part of the capacity that is filled: that of the level, give or take what a hand pours."""
    height: float
    """Of the container."""
    centre: tuple[float, float]
    tilt: float
    view: float
    """How round the rim looks: the ratio of the axes of its ellipse."""
    light: float
    """Where the light comes from, -1 left to 1 right."""
    exposure: float
    warmth: float
    ground: str
    wall: np.ndarray
    table: np.ndarray
    horizon: float
    hand: float
    """Height of the hand on the container; below 0: there is none."""
    side: int
    """The side the hand comes from, -1 or 1."""
    skin: np.ndarray
    chance: np.random.Generator
    """For textures and noise."""

    @property
    def label(self) -> int:
        """The class."""
        return label_of(self.container.name, self.level)


def colour(chance: np.random.Generator, saturation: float, low: float, high: float) -> np.ndarray:
    """A random colour of some brightness."""
    hue = 2 * np.pi * chance.random()
    tone = np.cos(hue + np.array([0.0, 2.1, 4.2]))
    return np.clip(chance.uniform(low, high) * (1 + saturation * tone), 0.02, 1).astype(np.float32)


def scene(seed: int, index: int) -> Scene:
    """Image `index` of a set: containers take turns, all else is drawn from (seed, index) alone."""
    chance = np.random.default_rng([seed, index])
    names = list(CONTAINERS)
    container = CONTAINERS[names[index % len(names)]]
    filling, level = POURINGS[chance.integers(len(POURINGS))]
    fullness = FULL[level] + (chance.uniform(-0.03, 0.03) if level else 0.0)
    held = chance.random() < 0.45
    height = chance.uniform(0.74, 0.9)
    skin = np.array([0.88, 0.66, 0.53]) * chance.uniform(0.4, 1.05) * chance.uniform(0.94, 1.06, 3)
    return Scene(
        container=container,
        filling=filling,
        level=level,
        fullness=fullness,
        height=height,
        centre=(0.5 + chance.uniform(-0.05, 0.05), 0.5 + chance.uniform(-0.03, 0.03)),
        tilt=chance.uniform(-0.14, 0.14) if held else chance.uniform(-0.03, 0.03),
        view=chance.uniform(0.1, 0.26),
        light=chance.uniform(-1, 1),
        exposure=chance.uniform(0.75, 1.2),
        warmth=chance.uniform(-0.08, 0.08),
        ground=GROUNDS[chance.integers(len(GROUNDS))],
        wall=colour(chance, 0.25, 0.3, 0.85),
        table=colour(chance, 0.3, 0.2, 0.75),
        horizon=chance.uniform(0.35, 0.8),
        hand=chance.uniform(0.12, 0.6) if held else -1.0,
        side=int(chance.choice([-1, 1])),
        skin=np.clip(skin, 0, 1).astype(np.float32),
        chance=chance,
    )
