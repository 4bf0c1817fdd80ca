"""What several corruptions are made of: plasma, Gaussian blur, motion blur, frosted glass.

All work on a whole batch; what happens to an image depends on its own stream of random numbers only.
"""

import math
from functools import lru_cache

import torch
from scipy.ndimage import gaussian_filter1d
from torch import Tensor
from torch.nn.functional import pad

from ..errors import BookError
from .draws import Draws

PART = 2**20
"""Numbers of a plasma that are worked on at once: more would not stay in the processor's cache."""


# ---------------------------------------------------------------------------------------------- plasma


def plasma(draws: Draws, size: int, decay: float, crop: tuple[int, int] | None = None) -> Tensor:
    """Plasma fractals in [0, 1], one an image, by the diamond-square algorithm on a torus.

    Each level halves the distance of the known points: a new one is the mean of four and a uniform number
    from +-wibble^2, where wibble starts at 100 and is divided by `decay` from level to level. (The square is
    in the published code: a plasma is smoother than its decay says.) The extremes of the map go to 0 and 1.

    Parameters
    ----------
    size
        Side of the map, a power of two: 32 for CIFAR-10-C, 256 for ImageNet-C and MNIST-C.
    crop
        Height and width of the top left corner that is returned; the whole map if not given.

    Returns
    -------
    (N, size, size), or (N, *crop)
    """
    if size < 2 or size & (size - 1):
        raise BookError(f"a plasma of side {size}; the side has to be a power of two")
    height, width = crop or (size, size)
    result, step = torch.empty(len(draws), height, width), max(1, PART // size**2)
    for start in range(0, len(draws), step):
        part = draws.generators[start : start + step]
        chance = torch.stack([torch.rand(size, size, generator=g) for g in part])
        result[start : start + step] = _heights(chance.mul_(2).sub_(1), decay)[:, :height, :width]
    return result


def _heights(chance: Tensor, decay: float) -> Tensor:
    """Turn numbers from +-1, (N, size, size), into plasmas; each is the wibble of its own point."""
    heights = torch.zeros_like(chance)
    step, wibble = chance.shape[-1], 100.0
    while step >= 2:
        old, new = slice(None, None, step), slice(step // 2, None, step)
        known, centres = heights[:, old, old], heights[:, new, new]

        def settle(rows: slice, columns: slice, total: Tensor, reach: float = wibble**2) -> None:
            heights[:, rows, columns] = (total / 4).add_(chance[:, rows, columns], alpha=reach)

        pairs = known + known.roll(-1, 1)
        settle(new, new, pairs + pairs.roll(-1, 2))
        settle(old, new, centres + centres.roll(1, 1) + known + known.roll(-1, 2))
        settle(new, old, centres + centres.roll(1, 2) + known + known.roll(-1, 1))
        step, wibble = step // 2, wibble / decay
    low, high = heights.amin((1, 2), keepdim=True), heights.amax((1, 2), keepdim=True)
    return heights.sub_(low).div_(high - low)


# ------------------------------------------------------------------------------------------------ blur


def gaussian_blur(
    x: Tensor, sigma: float | tuple[float, float], truncate: float = 4.0, mode: str = "nearest"
) -> Tensor:
    """Gaussian blur of the last two dimensions as scipy's and, by default, scikit-image's.

    Parameters
    ----------
    sigma
        Standard deviation in pixels, or two: up and down the columns, and along the rows. 0 leaves as it is.
    truncate
        The kernel ends int(truncate * sigma + 0.5) pixels from its centre.
    mode
        What lies beyond the border, in scipy's words: "nearest", "reflect" and so on.
    """
    down, along = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    # In double precision the sums do not depend on the size of the batch, which chooses their order.
    result = x.double()
    if down > 0:
        result = blur_matrix(x.shape[-2], down, truncate, mode).to(x.device) @ result
    if along > 0:
        result = result @ blur_matrix(x.shape[-1], along, truncate, mode).to(x.device).T
    return result.to(x.dtype)


@lru_cache(maxsize=64)
def blur_matrix(size: int, sigma: float, truncate: float, mode: str) -> Tensor:
    """The blur of a line of `size` pixels as a matrix (size, size); its rows sum to 1."""
    identity = torch.eye(size, dtype=torch.float64).numpy()
    return torch.from_numpy(gaussian_filter1d(identity, sigma, axis=0, mode=mode, truncate=truncate))


def motion_blur(x: Tensor, radius: float, sigma: float, angles: Tensor) -> Tensor:
    """Motion blur in ImageMagick's convention, with an angle for each image.

    A pixel becomes the mean of those on a ray from it, weighted by half a Gaussian; the ray has
    2 ceil(radius) + 1 pixels, and beyond the border each continues the nearest one.

    Parameters
    ----------
    x
        (N, C, H, W)
    angles
        (N,), in degrees: 0 points to the right, 90 down.
    """
    weights = motion_kernel(radius, sigma).tolist()
    reach = motion_offsets(len(weights), angles)
    top, left = (max(0, -int(low)) for low in reach.amin((0, 1)))
    bottom, right = (max(0, int(high)) for high in reach.amax((0, 1)))
    padded = pad(x, (left, right, top, bottom), mode="replicate")
    result, (height, width) = torch.zeros_like(x), x.shape[2:]
    starts = (reach + torch.tensor([top, left])).tolist()
    for image, blurred, ray in zip(padded, result, starts):
        for (row, column), weight in zip(ray, weights):
            blurred.add_(image[:, row : row + height, column : column + width], alpha=weight)
    return result


def motion_kernel(radius: float, sigma: float) -> Tensor:
    """Half a Gaussian over 2 ceil(radius) + 1 pixels, from its peak on; it sums to 1."""
    distance = torch.arange(2 * math.ceil(radius) + 1, dtype=torch.float64)
    return torch.softmax(-(distance**2) / (2 * sigma**2), 0)


def motion_offsets(taps: int, angles: Tensor) -> Tensor:
    """How far down and to the right the taps of a ray lie, whole pixels: (N, taps, 2)."""
    angles = angles.double().cpu().deg2rad()
    direction = torch.stack([angles.sin(), angles.cos()], 1)
    return (torch.arange(taps)[:, None] * direction[:, None, :] - 0.5).ceil().long()


# ----------------------------------------------------------------------------------------------- glass


def glass_shuffle(
    x: Tensor, draws: Draws, shift: int, passes: int, *, swap: bool = False, chance: float = 1.0
) -> Tensor:
    """Let every pixel but those near the border trade places with a near one, from the last to the first.

    The other lies in -shift .. shift - 1 rows and columns away: more often above and to the left. The
    published code means to swap. For colour images it does not: the first assignment changes what the second
    reads, so that one pixel is lost and the other is there twice. That is what `swap=False` does, and
    CIFAR-10-C and ImageNet-C are made of; on a grey array the published code does swap (MNIST-C).

    Parameters
    ----------
    x
        (N, C, H, W)
    chance
        Probability that a pixel takes part in a pass.
    """
    height, width = x.shape[-2:]
    inner = (height - 2 * shift, width - 2 * shift)
    source = torch.arange(height * width).expand(len(x), -1)
    here = torch.arange(height * width).reshape(height, width)[shift + 1 : height - shift + 1, shift + 1 :]
    here = here[:, : width - 2 * shift]
    for _ in range(passes):
        step = draws.integers(-shift, shift, 2, *inner)
        there = here + step[:, 0] * width + step[:, 1]
        if chance < 1:
            there = there.where(draws.uniform(*inner) < chance, here)
        move = _swapped if swap else _copied
        source = move(source, here.flatten(), there.flatten(1))
    order = source.to(x.device)[:, None].expand(-1, x.shape[1], -1)
    return x.flatten(2).gather(2, order).reshape(x.shape)


def _copied(source: Tensor, here: Tensor, there: Tensor) -> Tensor:
    """One pass of copies: where each pixel of a row of `source` (N, pixels) comes from afterwards.

    A pixel takes what is in the other place *by then*: a later place has had its turn already and passes on
    what it took itself. Following all such references at once, in jumps that double, ends the recursion.
    """
    final = torch.arange(source.shape[1]).repeat(len(source), 1)
    final[:, here] = there
    turn = torch.zeros(source.shape[1], dtype=torch.bool)
    turn[here] = True
    waits = turn[final] & (final > torch.arange(source.shape[1]))
    while waits.any():
        final, waits = final.where(~waits, final.gather(1, final)), waits & waits.gather(1, final)
    return source.gather(1, final)


def _swapped(source: Tensor, here: Tensor, there: Tensor) -> Tensor:
    """One pass of swaps, which have to be made one after another."""
    columns, images = source.T.clone(memory_format=torch.contiguous_format), torch.arange(len(source))
    for place, others in zip(here.flip(0).tolist(), there.T.flip(0)):
        kept = columns[place].clone()
        columns[place] = columns[others, images]
        columns[others, images] = kept
    return columns.T.contiguous()
