"""Drawing a scene: a container in front of a background, by arithmetic on grids of points.

Not ray tracing. A container is its silhouette with the ellipses of base, rim and surface; its walls let the
background through, displaced; water displaces it more, and left to right; grains have a texture. Pictures are
float32 (3, H, W) until the end: one plane a colour is much faster than one triple a point.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .scenes import Scene, scene

SIZE = 64
SAMPLES = 2
"""Points a pixel and side."""
INNER = 0.92
"""Radius of what is inside, as a part of the container's."""
RICE, PASTA = 2, 3
GRAINS = {RICE: ((0.93, 0.9, 0.8), 46, 0.35), PASTA: ((0.87, 0.66, 0.3), 15, 0.55)}
"""Colour of the grains, how many there are along a side of the image, and their contrast."""
WATER = (0.56, 0.72, 0.82)


def planes(colour: Iterable[float]) -> np.ndarray:
    """A colour in the shape that paints a picture: (3, 1, 1)."""
    return np.fromiter(colour, dtype=np.float32)[:, None, None]


def smooth_noise(chance: np.random.Generator, rows: int, columns: int, side: int) -> np.ndarray:
    """Random values in [0, 1] on a coarse grid, and straight lines between them: (side, side)."""
    coarse = chance.random((rows + 1, columns + 1), dtype=np.float32)

    def weights(cells: int) -> np.ndarray:
        place = (np.arange(side, dtype=np.float32) + 0.5) * np.float32(cells / side)
        away = np.abs(place[:, None] - np.arange(cells + 1, dtype=np.float32))
        return np.clip(1 - away, 0, 1)

    return np.asarray(weights(rows) @ coarse @ weights(columns).T)


def ramp(value: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below `low`, 1 above `high`, a straight line between."""
    return np.clip((value - low) / (high - low), 0, 1)


def ring(disc: np.ndarray, width: float) -> np.ndarray:
    """1 on the edge of an ellipse, 0 a little off it."""
    return np.clip(1 - np.abs(disc - 1) / width, 0, 1)


def over(picture: np.ndarray, mask: np.ndarray, colour: np.ndarray) -> None:
    """Lay a colour over a picture in place, as thickly as the mask (H, W) says."""
    picture += mask * (colour - picture)


@dataclass(frozen=True)
class Grid:
    """The points of an image: `across` and `down` in [0, 1]; `x` and `height` as the container sees them.

    `radius` is that of the container at the height of the point, and `u` is x in units of it, from -1 to 1.
    """

    across: np.ndarray
    down: np.ndarray
    x: np.ndarray
    height: np.ndarray
    radius: np.ndarray
    u: np.ndarray

    @property
    def side(self) -> int:
        return len(self.across)

    def ellipse(self, height: float, radius: float, view: float) -> np.ndarray:
        """1 on the edge of a horizontal disc seen from above, less inside."""
        return (self.x * (1 / radius)) ** 2 + ((self.height - height) * (1 / (view * radius))) ** 2

    def from_segment(self, start: tuple[float, float], end: tuple[float, float]) -> np.ndarray:
        """Squared distance from a line segment."""
        (a, b), (c, d) = start, end
        right, up = self.x - a, self.height - b
        t = np.clip((right * (c - a) + up * (d - b)) * (1 / ((c - a) ** 2 + (d - b) ** 2)), 0, 1)
        return (right - t * (c - a)) ** 2 + (up - t * (d - b)) ** 2


def grid_of(s: Scene, side: int) -> Grid:
    """Points, and the same points in the frame of the container: x = 0 its axis, heights from 0 to 1."""
    line = (np.arange(side, dtype=np.float32) + 0.5) / np.float32(side)
    down, across = np.repeat(line[:, None], side, 1), np.repeat(line[None], side, 0)
    right, below = across - s.centre[0], down - s.centre[1]
    cos, sin = float(np.cos(s.tilt) / s.height), float(np.sin(s.tilt) / s.height)
    x, height = right * cos + below * sin, 0.5 - (below * cos - right * sin)
    radius = s.container.radius(height)
    return Grid(across, down, x, height, radius, np.clip(x / radius, -1, 1))


def background(s: Scene, grid: Grid) -> np.ndarray:
    """A wall with some pattern, a table, and the shadow of the container on it: (3, side, side)."""
    side, chance = grid.side, s.chance
    light = 1 + 0.15 * (smooth_noise(chance, 4, 4, side) - 0.5)
    if s.ground == "stripes":
        turn, waves = chance.uniform(0, np.pi), chance.uniform(4, 12)
        phase = float(waves * np.cos(turn)) * grid.across + float(waves * np.sin(turn)) * grid.down
        light += np.where(phase % 1 > 0.5, np.float32(0.2), np.float32(-0.2))
    elif s.ground == "wood":
        light += 0.5 * smooth_noise(chance, 30, 3, side) - 0.25
    elif s.ground == "cloth":
        waves = chance.uniform(5, 10)
        odd = (np.floor(waves * grid.across) + np.floor(waves * grid.down)) % 2
        light += 0.32 * odd - 0.16
    elif s.ground == "blobs":
        light += 0.9 * smooth_noise(chance, 5, 5, side) - 0.45
    if s.hand < 0:
        wide = 1.5 * float(s.container.radii[0]) + 0.1
        shadow = ((grid.x + 0.25 * s.light) * (1 / wide)) ** 2 + (grid.height * (1 / 0.09)) ** 2
        light *= 1 - 0.35 * (shadow < 1).astype(np.float32)
    on_table = ramp(grid.down, s.horizon - 0.01, s.horizon + 0.01)
    wall, table = planes(s.wall), planes(s.table)
    return np.clip((wall + on_table * (table - wall)) * light, 0, 1)


def displaced(picture: np.ndarray, grid: Grid, shift: np.ndarray) -> np.ndarray:
    """The picture as seen through something that moves it sideways."""
    side = grid.side
    columns = np.clip((grid.across + shift) * side, 0, side - 1).astype(np.int32)
    columns += np.arange(0, side * side, side, dtype=np.int32)[:, None]
    return picture.reshape(3, -1)[:, columns]


def contents(s: Scene, grid: Grid, behind: np.ndarray, picture: np.ndarray) -> None:
    """Water or grains, up to the height at which the volume is right, and their surface."""
    c = s.container
    top = c.surface(s.fullness)
    u = grid.u * (1 / INNER)
    disc = grid.ellipse(top, INNER * c.radius_at(top), s.view)
    base = grid.ellipse(c.floor, INNER * c.radius_at(c.floor), s.view) < 1
    body = (((np.abs(u) < 1) & (grid.height > c.floor)) | base) & (grid.height < top)
    shade = 0.82 + 0.25 * s.light * u - 0.25 * u * u
    if s.filling in GRAINS:
        tone, cells, contrast = GRAINS[s.filling]
        grains = smooth_noise(s.chance, cells, cells, grid.side) - 0.5
        coat, thick, edge = planes(tone) * (shade + contrast * grains), 1.0, 0.75
        face = planes(tone) * (1.08 + 0.5 * grains)
    else:
        seen = displaced(behind, grid, -1.7 * s.height * grid.x)
        coat, thick, edge = planes(WATER) * (0.1 + seen * (0.72 + 0.28 * shade)), 0.7, 0.3
        face = 0.5 * behind + 0.5
    over(picture, body.astype(np.float32), coat)
    over(picture, thick * (disc < 1), np.clip(face, 0, 1))
    front = (grid.height < top + 0.004).astype(np.float32)
    over(picture, 0.65 * ring(disc, 0.24) * front, edge * picture)


def glass(s: Scene, grid: Grid, behind: np.ndarray) -> np.ndarray:
    """A transparent container and what it holds: light passes the far wall and the near one."""
    c, passes = s.container, planes(s.container.passes)
    picture = displaced(behind, grid, 0.1 * s.height * grid.u**3) * passes
    if s.filling:
        contents(s, grid, behind, picture)
    picture *= passes
    body = planes(c.body) * s.exposure
    over(picture, 0.08 + 0.5 * ramp(np.abs(grid.u), 0.78, 1.0), 0.72 * body)
    if c.stem:
        over(picture, 0.4 * (grid.height < c.floor).astype(np.float32), 0.85 * body)
    return picture


def solid(s: Scene, grid: Grid) -> np.ndarray:
    """An opaque container: its wall by the light, and a dark opening; what it holds is not to be seen."""
    c, body = s.container, planes(s.container.body)
    shade = 0.85 + 0.3 * s.light * grid.u - 0.3 * grid.u * grid.u
    picture = body * shade
    opening = grid.ellipse(1.0, c.radius_at(1.0), s.view) < 1
    over(picture, opening.astype(np.float32), 0.45 * body + 0.1)
    return picture


def shine(s: Scene, grid: Grid, picture: np.ndarray) -> None:
    """Rim, base and a highlight."""
    c = s.container
    strength = 0.35 if c.opaque else 0.6
    rim = ring(grid.ellipse(1.0, c.radius_at(1.0), s.view), 0.16)
    base = ring(grid.ellipse(0.0, c.radius_at(0.0), s.view), 0.16)
    over(picture, strength * np.maximum(rim, 0.6 * base), planes([0.95] * 3))
    away = np.abs(grid.u - 0.55 * float(np.sign(s.light)))
    streak = np.clip(1 - away * (1 / 0.15), 0, 1) * ramp(grid.height, c.floor, c.floor + 0.1)
    over(picture, strength * 0.8 * streak * (grid.height < 0.97), planes([1.0] * 3))


def fingers(s: Scene, grid: Grid, picture: np.ndarray) -> None:
    """A hand from one side: a palm behind the edge of the container and four fingers across it."""
    radius, skin = s.container.radius_at(s.hand), planes(s.skin)
    ends = [(-s.side * (0.35 * radius + 0.03 * k), s.hand + 0.075 * (k - 1.5)) for k in range(4)]
    outer = s.side * (radius + 0.06)
    parts = [((s.side * (radius + 0.6), s.hand - 0.2), (outer + 0.1 * s.side, s.hand), 0.13)]
    parts += [((outer, 0.9 * b + 0.1 * s.hand), (a, b), 0.042) for a, b in ends]
    colour, cover = np.zeros_like(grid.x), np.zeros_like(grid.x)
    for start, end, thick in parts:
        depth = 1 - grid.from_segment(start, end) * (1 / thick**2)
        on = depth > 0
        colour = np.where(on, 0.6 + 0.45 * np.sqrt(np.maximum(depth, 0)), colour)
        cover = np.maximum(cover, on)
    over(picture, cover, skin * colour)


def averaged(picture: np.ndarray) -> np.ndarray:
    """The mean over the points of each pixel: (3, H, W) from SAMPLES times as many a side."""
    parts = [picture[:, a::SAMPLES, b::SAMPLES] for a in range(SAMPLES) for b in range(SAMPLES)]
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total / np.float32(len(parts))


def render(s: Scene, size: int = SIZE) -> np.ndarray:
    """The image of a scene, uint8 (size, size, 3)."""
    grid = grid_of(s, SAMPLES * size)
    behind, c = background(s, grid), s.container
    wall = (np.abs(grid.x) < grid.radius) & (grid.height > 0) & (grid.height < 1)
    for height in (0.0, 1.0):
        wall |= grid.ellipse(height, c.radius_at(height), s.view) < 1
    inside = solid(s, grid) if c.opaque else glass(s, grid, behind)
    shine(s, grid, inside)
    picture = np.where(wall, inside, behind)
    if s.hand >= 0:
        fingers(s, grid, picture)
    small = averaged(picture)
    across = (np.arange(size, dtype=np.float32) + 0.5) / np.float32(size) - 0.5
    lit = s.exposure * (1 + 0.4 * s.light * across)
    small = small * lit * planes((1 + s.warmth, 1.0, 1 - s.warmth))
    small += 0.012 * s.chance.standard_normal(small.shape, dtype=np.float32)
    return np.ascontiguousarray(np.clip(small * 255, 0, 255).round().astype(np.uint8).transpose(1, 2, 0))


def rendered(count: int, *, seed: int = 0, size: int = SIZE) -> tuple[np.ndarray, list[Scene]]:
    """The first `count` images (N, size, size, 3) of the set that belongs to a seed, and their scenes."""
    scenes = [scene(seed, index) for index in range(count)]
    return np.stack([render(s, size) for s in scenes]), scenes
