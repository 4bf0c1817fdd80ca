"""Canny's edges (1986) for a batch of grey images, with the steps and defaults of scikit-image."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from .fields import blur_matrix

TIE = 1e-9
"""Gradients that differ by less, relatively, are equal: which of the two pixels beside a straight step is its
edge must not be left to rounding. Both are."""


def canny(x: Tensor, sigma: float = 1.0, low: float = 0.1, high: float = 0.2) -> Tensor:
    """Edges of the images as 1, all else as 0.

    Parameters
    ----------
    x
        (N, C, H, W), every channel on its own.
    sigma
        Width of the Gaussian blur that comes first; what lies beyond the border has no weight in it.
    low, high
        An edge has a gradient (by Sobel's masks, whose weights sum to 8) of at least `low` everywhere and of
        at least `high` somewhere.
    """
    smooth = _smooth(x.double(), sigma)
    down, along = _sobel(smooth)
    size = torch.hypot(down, along)
    ridge = _is_ridge(size, down, along) & _interior(size)
    return _connected(ridge & (size >= high), ridge & (size >= low)).to(x.dtype)


def _smooth(x: Tensor, sigma: float) -> Tensor:
    """Gaussian blur whose weights sum to 1 also at the border."""
    rows, columns = (blur_matrix(size, sigma, 4.0, "constant") for size in x.shape[-2:])
    return (rows / rows.sum(1, keepdim=True)) @ x @ (columns / columns.sum(1, keepdim=True)).T


def _sobel(x: Tensor) -> tuple[Tensor, Tensor]:
    """Differences down and along the image, each averaged over three pixels across with weights 1, 2, 1."""
    x = pad(x, (1, 1, 1, 1), mode="replicate")
    down, along = x[..., 2:, :] - x[..., :-2, :], x[..., 2:] - x[..., :-2]
    return (
        down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:],
        along[..., :-2, :] + 2 * along[..., 1:-1, :] + along[..., 2:, :],
    )


def _is_ridge(size: Tensor, down: Tensor, along: Tensor) -> Tensor:
    """Where no neighbour in the direction of the gradient, or against it, has a larger one.

    The neighbour is a mix of two pixels, one straight and one diagonal, by the slope of the gradient.
    """
    height, width = size.shape[-2:]
    padded = pad(size, (1, 1, 1, 1))

    def at(row: int, column: int) -> Tensor:
        return padded[..., 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    steep, same = down.abs() >= along.abs(), down * along >= 0
    small, large = torch.minimum(down.abs(), along.abs()), torch.maximum(down.abs(), along.abs())
    slope = small / large.clamp(min=torch.finfo(size.dtype).tiny)
    ridge = size > 0
    for way in (1, -1):
        straight = at(way, 0).where(steep, at(0, way))
        across = at(way, -way).where(steep, at(-way, way))
        diagonal = at(way, way).where(same, across)
        ridge &= slope * diagonal + (1 - slope) * straight <= size * (1 + TIE)
    return ridge


def _interior(size: Tensor) -> Tensor:
    """All pixels but the outermost, whose gradients are unknown."""
    inside = torch.zeros(size.shape[-2:], dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    return inside


def _connected(strong: Tensor, weak: Tensor) -> Tensor:
    """The weak pixels that touch, also by corners and through other weak ones, a strong one."""
    while True:
        reached = (max_pool2d(strong.float(), 3, stride=1, padding=1) > 0) & weak
        if torch.equal(reached, strong):
            return strong
        strong = reached
