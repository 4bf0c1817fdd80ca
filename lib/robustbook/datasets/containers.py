"""Eight cups and glasses as solids of revolution, and the three splits of the thesis (section 4.5.1, gap D1).

A container is a radius as a function of height. Its filling level is a part of its capacity, so where the
surface stands follows from the volume: half of a cocktail glass reaches four fifths of its cone.
"""

import functools
from dataclasses import dataclass

import numpy as np

from ..errors import BookError, unknown

LEVELS = ("0 %", "50 %", "90 %", "unknown")
"""The classes, by label; "unknown" is what no camera can see: the level in an opaque container."""
UNKNOWN = 3
FILLINGS = ("empty", "water", "rice", "pasta")
POURINGS = ((0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2))
"""(filling, level) of what is poured: nothing, or one of three fillings to one of two levels."""
NODES = 256
"""Heights at which radii are tabulated."""
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Container:
    """A container of height 1.

    `outline` holds (height, radius) from the bottom up; between them the radius follows straight lines that
    are then smoothed over `smooth` of the height. The bowl begins at height `floor`, above a stem if any.
    `passes` is the part of red, green and blue light that a wall lets through.
    """

    name: str
    outline: tuple[tuple[float, float], ...]
    floor: float
    passes: Colour = (0.93, 0.95, 0.95)
    body: Colour = (0.8, 0.83, 0.85)
    """Colour of the wall in reflected light."""
    opaque: bool = False
    stem: bool = False
    smooth: float = 0.0

    @functools.cached_property
    def radii(self) -> np.ndarray:
        """Outer radius at NODES heights from 0 to 1."""
        heights = np.linspace(0, 1, NODES)
        points = np.array(self.outline)
        radii = np.interp(heights, points[:, 0], points[:, 1])
        reach = round(self.smooth * NODES)
        if reach:
            bowl = heights >= self.floor - self.smooth
            kernel = np.hanning(2 * reach + 3)[1:-1]
            padded = np.pad(radii, reach, mode="edge")
            radii = np.where(bowl, np.convolve(padded, kernel / kernel.sum(), "valid"), radii)
        return np.asarray(radii, dtype=np.float32)

    def radius(self, height: np.ndarray) -> np.ndarray:
        """Outer radius at these heights; that of the ends beyond them."""
        place = np.clip(height, 0, 1) * np.float32(NODES - 1)
        low = np.minimum(place.astype(np.int32), NODES - 2)
        part = place - low.astype(np.float32)
        return (1 - part) * self.radii[low] + part * self.radii[low + 1]

    def radius_at(self, height: float) -> float:
        """Outer radius at one height."""
        return float(np.interp(height, np.linspace(0, 1, NODES), self.radii))

    def surface(self, level: float) -> float:
        """Height to which `level` (0 to 1) of the capacity fills the bowl."""
        if not 0 <= level <= 1:
            raise BookError(f"level={level!r}; give a part of the capacity, 0 to 1")
        heights = np.linspace(self.floor, 1, 1_000)
        area = np.interp(heights, np.linspace(0, 1, NODES), self.radii) ** 2
        volume = np.concatenate([[0.0], np.cumsum((area[1:] + area[:-1]) / 2)])
        return float(np.interp(level * volume[-1], volume, heights))


CONTAINERS = {
    c.name: c
    for c in (
        Container("cup", ((0, 0.26), (1, 0.36)), 0.03, (0, 0, 0), (0.93, 0.92, 0.89), opaque=True),
        Container("beer cup", ((0, 0.2), (1, 0.3)), 0.03),
        Container(
            "red cup",
            ((0, 0.24), (0.3, 0.27), (0.31, 0.285), (1, 0.36)),
            0.03,
            (0, 0, 0),
            (0.78, 0.08, 0.09),
            True,
        ),
        Container(
            "green glass", ((0, 0.25), (0.1, 0.27), (1, 0.29)), 0.07, (0.42, 0.82, 0.5), (0.25, 0.6, 0.32)
        ),
        Container(
            "wine glass",
            (
                (0, 0.21),
                (0.02, 0.19),
                (0.05, 0.03),
                (0.38, 0.024),
                (0.42, 0.1),
                (0.52, 0.2),
                (0.66, 0.235),
                (1, 0.175),
            ),
            0.41,
            stem=True,
            smooth=0.03,
        ),
        Container(
            "cocktail glass",
            ((0, 0.23), (0.02, 0.21), (0.05, 0.026), (0.47, 0.022), (1, 0.37)),
            0.47,
            stem=True,
        ),
        Container(
            "champagne flute",
            (
                (0, 0.15),
                (0.02, 0.135),
                (0.05, 0.02),
                (0.3, 0.016),
                (0.36, 0.05),
                (0.55, 0.095),
                (0.8, 0.105),
                (1, 0.085),
            ),
            0.33,
            stem=True,
            smooth=0.03,
        ),
        Container("small transparent cup", ((0, 0.29), (1, 0.4)), 0.04),
    )
}
SPLITS = {
    "S1": ("champagne flute", "beer cup", "cocktail glass"),
    "S2": ("champagne flute", "wine glass", "cocktail glass"),
    "S3": ("red cup", "green glass", "beer cup"),
}
"""The containers that are tested; all others train."""


def unseen(split: str) -> tuple[str, ...]:
    """The containers of a split's test part."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    return SPLITS[split]


def label_of(container: str, level: int) -> int:
    """The class of an image: the level, unless nobody can see it."""
    return UNKNOWN if CONTAINERS[container].opaque else level
