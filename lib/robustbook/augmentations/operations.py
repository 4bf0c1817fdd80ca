"""The nine operations of AugMix (Hendrycks et al., 2020), each image with its own parameters.

Point operations act on 8-bit levels, as Pillow's do: images are rounded to levels and go through a table of
256 entries a channel. Geometric ones follow Pillow's bilinear `transform`: coordinates of pixel centres,
black outside the image; their results keep fractions of a level, which Pillow cuts off.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

LEVELS = 256

# ------------------------------------------------------------------------------------ point operations


def levels_of(x: Tensor) -> Tensor:
    """Images as 8-bit levels, one row a channel: (N C, H W), int64."""
    return x.reshape(-1, x.shape[2] * x.shape[3]).mul(LEVELS - 1).round_().long()


def look_up(x: Tensor, levels: Tensor, tables: Tensor) -> Tensor:
    """Images whose levels are replaced by entries of their channel's table (N C, 256)."""
    return tables.to(x.dtype).div_(LEVELS - 1).gather(1, levels).view(x.shape)


def _ramp(like: Tensor) -> Tensor:
    return torch.arange(LEVELS, device=like.device)


def autocontrast_tables(levels: Tensor) -> Tensor:
    """Stretch each channel so that its darkest level becomes 0 and its brightest 255."""
    low, high = levels.amin(1, keepdim=True).double(), levels.amax(1, keepdim=True).double()
    scale = (LEVELS - 1) / (high - low)
    stretched = (_ramp(levels) * scale - low * scale).clamp(0, LEVELS - 1).long()
    return torch.where(high > low, stretched, _ramp(levels))


def equalize_tables(levels: Tensor) -> Tensor:
    """Make the levels of each channel about equally frequent, by Pillow's whole-number arithmetic."""
    rows = torch.arange(len(levels), device=levels.device)[:, None] * LEVELS
    counts = torch.bincount((levels + rows).flatten(), minlength=LEVELS * len(levels))
    counts = counts.view(len(levels), LEVELS)
    brightest = counts.gather(1, levels.amax(1, keepdim=True))
    step = (levels.shape[1] - brightest) // (LEVELS - 1)
    below = counts.cumsum(1) - counts
    equal = ((below + step // 2) // step.clamp_min(1)).clamp_max(LEVELS - 1)
    return torch.where(step > 0, equal, _ramp(levels))


def posterize_tables(bits: Tensor) -> Tensor:
    """Keep the highest `bits` of a level; one number a channel, (N C,)."""
    width = 2 ** (8 - bits[:, None])
    return _ramp(bits) // width * width


def solarize_tables(threshold: Tensor) -> Tensor:
    """Invert the levels from `threshold` on; one a channel, (N C,)."""
    ramp = _ramp(threshold)
    return torch.where(ramp < threshold[:, None], ramp, LEVELS - 1 - ramp)


def autocontrast(x: Tensor) -> Tensor:
    """Images (N, C, H, W) with each channel stretched to the whole range."""
    levels = levels_of(x)
    return look_up(x, levels, autocontrast_tables(levels))


def equalize(x: Tensor) -> Tensor:
    """Images with an equalised histogram in each channel."""
    levels = levels_of(x)
    return look_up(x, levels, equalize_tables(levels))


def posterize(x: Tensor, bits: Tensor) -> Tensor:
    """Images with so many bits a channel, `bits` (N,) whole numbers from 0 to 8."""
    return look_up(x, levels_of(x), posterize_tables(bits.repeat_interleave(x.shape[1])))


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """Images with the levels from `threshold` (N,) on inverted, of 256."""
    return look_up(x, levels_of(x), solarize_tables(threshold.repeat_interleave(x.shape[1])))


# -------------------------------------------------------------------------------- geometric operations


def warp(x: Tensor, matrices: Tensor) -> Tensor:
    """Images read at A (column, row, 1)^T for each pixel's centre, `matrices` A (N, 2, 3) in pixels."""
    height, width = x.shape[2:]
    columns = torch.arange(width, dtype=x.dtype, device=x.device) + 0.5
    rows = torch.arange(height, dtype=x.dtype, device=x.device) + 0.5
    a = matrices.to(x)[..., None, None]
    grid, inside = x.new_empty(len(x), height, width, 2), None
    for axis, size in enumerate((width, height)):
        place = a[:, axis, 0] * columns + (a[:, axis, 1] * rows[:, None] + a[:, axis, 2])
        within = (place >= 0) & (place < size)
        inside = within if inside is None else inside & within
        torch.add(place.mul_(2 / size), -1.0, out=grid[..., axis])
    assert inside is not None
    found = grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return found.mul_(inside[:, None])


def _matrices(count: int, like: Tensor) -> Tensor:
    return torch.eye(2, 3, dtype=torch.float64, device=like.device).repeat(count, 1, 1)


def rotations(degrees: Tensor, height: int, width: int) -> Tensor:
    """Counter-clockwise, about the centre; one an image."""
    a, angle = _matrices(len(degrees), degrees), degrees.double() * (math.pi / 180)
    a[:, 0, 0] = a[:, 1, 1] = angle.cos()
    a[:, 0, 1], a[:, 1, 0] = -angle.sin(), angle.sin()
    centre = torch.tensor([width / 2, height / 2], dtype=a.dtype, device=a.device)
    a[:, :, 2] = centre - (a[:, :, :2] @ centre)
    return a


def shears(slopes: Tensor, axis: int) -> Tensor:
    """Along columns (axis 0) or rows (1), with the upper left corner at rest."""
    a = _matrices(len(slopes), slopes)
    a[:, axis, 1 - axis] = slopes.double()
    return a


def translations(pixels: Tensor, axis: int) -> Tensor:
    """Read so many pixels further to the right (axis 0) or down (1)."""
    a = _matrices(len(pixels), pixels)
    a[:, axis, 2] = pixels.double()
    return a
