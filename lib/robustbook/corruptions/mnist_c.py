"""The 15 corruptions of MNIST-C (Mu & Gilmer 2019), batched, without ImageMagick and scikit-image.

Each works on (N, 1, 28, 28) in [0, 1]. The default severity of a function is that of the published set; what
has no severity takes none. Where the published code does something else than its names say, so does this: the
set is what networks are compared on. Said at each place, and pinned in the tests.
"""

import inspect
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from ..errors import BookError
from ..registry import Registry
from .canny import canny
from .catalogue import cut_off
from .draws import Draws
from .fields import gaussian_blur, glass_shuffle, motion_blur, plasma
from .mnist_lines import FALLS, ROWS, SIDE, dotted_lines, zigzags

Effect = Callable[..., Tensor]
MNIST_C: Registry[Effect] = Registry("corruption of MNIST-C")
"""By public name, in the public order; `identity` is the 16th entry of the published set."""
SEVERITIES = (1, 2, 3, 4, 5)
PART = 500
"""Images worked on at once: more would not stay in the processor's cache."""


def corrupt_mnist(
    x: Tensor,
    name: str,
    severity: int | None = None,
    *,
    seeds: Iterable[int] | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Corrupt grey images as MNIST-C does.

    Parameters
    ----------
    x
        (N, 1, 28, 28) in [0, 1].
    name
        A public name, see `MNIST_C`.
    severity
        1 to 5; None for that of the published set, and for corruptions that have no severities.
    seeds
        One an image: what happens to an image depends on its own seed, not on its batch.
    generator
        Where seeds come from if none are given (by default a generator with seed 0).

    Returns
    -------
    Tensor
        As `x`, in [0, 1]; not rounded to the 256 grey levels of the published files.
    """
    effect, severity = MNIST_C[name], check_severity(name, severity)
    check_digits(x)
    chosen = _seeds(len(x), seeds, generator)
    options = {} if severity is None else {"severity": severity}
    result = torch.empty(x.shape)
    with torch.no_grad():
        for start in range(0, len(x), PART):
            part = slice(start, start + PART)
            result[part] = effect(x[part].float().cpu(), Draws(chosen[part]), **options)
    return result.clamp_(0, 1).to(x)


def default_severity(name: str) -> int | None:
    """The severity of the published set; None for a corruption without severities."""
    found = inspect.signature(MNIST_C[name]).parameters.get("severity")
    return found.default if found else None


def check_severity(name: str, severity: int | None) -> int | None:
    """The severity to use; BookError for one that does not exist."""
    default = default_severity(name)
    if severity is None:
        return default
    if default is None:
        raise BookError(f"severity={severity!r}: {name} of MNIST-C has no severities; leave it out")
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise BookError(f"severity={severity!r} of {name}: give 1, 2, 3, 4 or 5, or None for MNIST-C's own")
    return severity


def check_digits(x: Tensor) -> None:
    """BookError for what is not a batch of 28 x 28 grey images in [0, 1]."""
    if x.dim() != 4 or x.shape[1:] != (1, SIDE, SIDE):
        raise BookError(f"images of shape {tuple(x.shape)}; MNIST-C is made for (N, 1, 28, 28)")
    if not x.is_floating_point() or not ((x >= 0) & (x <= 1)).all():
        raise BookError("images for MNIST-C must be floats in [0, 1]: divide grey levels by 255")


def _seeds(count: int, seeds: Iterable[int] | None, generator: torch.Generator | None) -> list[int]:
    if seeds is None:
        return [stream.initial_seed() for stream in Draws.of(count, generator).generators]
    if generator is not None:
        raise BookError(
            "both seeds= and generator= are given; the generator only chooses seeds: leave one out"
        )
    chosen = [int(seed) for seed in seeds]
    if len(chosen) != count:
        raise BookError(f"{len(chosen)} seeds for {count} images; give one an image")
    return chosen


# ---------------------------------------------------------------------------------- noise, blur, weather


@MNIST_C.add("identity")
def identity(x: Tensor, draws: Draws) -> Tensor:
    """The images as they are."""
    return x


@MNIST_C.add("shot_noise")
def shot_noise(x: Tensor, draws: Draws, severity: int = 5) -> Tensor:
    """Counts of a Poisson process whose rate is `rate` at white."""
    rate = (60, 25, 12, 5, 3)[severity - 1]
    return draws.poisson(x * rate) / rate


@MNIST_C.add("impulse_noise")
def impulse_noise(x: Tensor, draws: Draws, severity: int = 4) -> Tensor:
    """Salt and pepper, half and half, on the share `amount` of the pixels."""
    amount = (0.03, 0.06, 0.09, 0.17, 0.27)[severity - 1]
    hit, salt = draws.uniform(2, 1, SIDE, SIDE).unbind(1)
    return (salt > 0.5).to(x.dtype).where(hit < amount, x)


@MNIST_C.add("glass_blur")
def glass_blur(x: Tensor, draws: Draws, severity: int = 1) -> Tensor:
    """Blur, let near pixels trade places, each with probability 1/2 a pass, and blur again.

    The published code takes the columns of a digit for colours: its blur runs up and down only. The blurred
    digit is cut to grey levels before the trade.
    """
    sigma, shift, passes = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[severity - 1]
    blurred = cut_off(gaussian_blur(x, (sigma, 0)))
    return gaussian_blur(glass_shuffle(blurred, draws, shift, passes, swap=True, chance=0.5), (sigma, 0))


@MNIST_C.add("motion_blur")
def motion_blurred(x: Tensor, draws: Draws, severity: int = 1) -> Tensor:
    """Motion within 45 degrees of the horizontal."""
    radius, sigma = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))[severity - 1]
    return motion_blur(x, radius, sigma, draws.uniform(low=-45, high=45))


# ------------------------------------------------------------------------------------------ shapes


@MNIST_C.add("shear")
def shear(x: Tensor, draws: Draws, severity: int = 2) -> Tensor:
    """Shear by an angle, to the left or to the right.

    With the matrix of scikit-image before 0.21, which made the published set: its second column is
    (-sin a, cos a), so that the digit also grows taller. Newer ones have (-tan a, 1).
    """
    angle = torch.tensor((0.2, 0.4, 0.6, 0.8, 1.0)[severity - 1], dtype=torch.float64)
    sides = [[[1, -s * angle.sin()], [0, angle.cos()]] for s in (1, -1)]
    return _either(x, draws, torch.tensor(sides, dtype=torch.float64))


@MNIST_C.add("scale")
def scale(x: Tensor, draws: Draws, severity: int = 3) -> Tensor:
    """Shrink about the centre to this part of the side."""
    part = (0.9, 0.8, 0.7, 0.6, 0.5)[severity - 1]
    return warp(x, torch.eye(2, dtype=torch.float64) / part)


@MNIST_C.add("rotate")
def rotate(x: Tensor, draws: Draws, severity: int = 2) -> Tensor:
    """Turn by an angle, to the left or to the right."""
    angle = torch.tensor((0.2, 0.4, 0.6, 0.8, 1.0)[severity - 1], dtype=torch.float64)
    sides = [[[angle.cos(), -s * angle.sin()], [s * angle.sin(), angle.cos()]] for s in (1, -1)]
    return _either(x, draws, torch.tensor(sides, dtype=torch.float64))


def _either(x: Tensor, draws: Draws, matrices: Tensor) -> Tensor:
    """Warp every image by one of two matrices, (2, 2, 2), by chance."""
    first = (draws.integers(0, 2) == 0)[:, None, None, None]
    return warp(x, matrices[0]).where(first, warp(x, matrices[1]))


def warp(x: Tensor, matrix: Tensor) -> Tensor:
    """Take the pixel at (column, row) from `matrix` times (column, row), seen from the centre.

    Linear interpolation; beyond the border all is black.
    """
    steps = torch.linspace(-1, 1, SIDE, dtype=torch.float64)
    rows, columns = torch.meshgrid(steps, steps, indexing="ij")
    grid = torch.stack([columns, rows], -1) @ matrix.T
    many = grid.expand(len(x), *grid.shape)
    return grid_sample(x.double(), many, mode="bilinear", padding_mode="zeros", align_corners=True).to(
        x.dtype
    )


# --------------------------------------------------------------------------------- light, place, cover


@MNIST_C.add("brightness")
def brightness(x: Tensor, draws: Draws, severity: int = 5) -> Tensor:
    """Add to the value of HSV, which of a grey pixel is the pixel."""
    return x + (0.1, 0.2, 0.3, 0.4, 0.5)[severity - 1]


@MNIST_C.add("translate")
def translate(x: Tensor, draws: Draws, severity: int = 3) -> Tensor:
    """Move by as many pixels as the severity, left or right and up or down."""
    far = 2 * severity
    wide, (down, along) = pad(x, (severity,) * 4), draws.integers(0, 2, 2).bool().T[..., None, None, None]
    above = wide[:, :, :SIDE].where(down, wide[:, :, far : far + SIDE])
    return above[..., :SIDE].where(along, above[..., far : far + SIDE])


@MNIST_C.add("stripe")
def stripe(x: Tensor, draws: Draws) -> Tensor:
    """Black for white in the left and the right quarter."""
    columns = torch.arange(SIDE)
    return (1 - x).where((columns < 7) | (columns >= 21), x)


@MNIST_C.add("fog")
def fog(x: Tensor, draws: Draws, severity: int = 5) -> Tensor:
    """Add the top left corner of a plasma, then scale so that no pixel can outshine the brightest."""
    amount, decay = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))[severity - 1]
    brightest = x.amax((1, 2, 3), keepdim=True)
    mist = plasma(draws, 256, decay, crop=(SIDE, SIDE))[:, None]
    return (x + amount * mist) * (brightest / (brightest + amount))


@MNIST_C.add("spatter")
def spatter(x: Tensor, draws: Draws, severity: int = 4) -> Tensor:
    """Grey drops: blurred noise above a threshold, blurred again, and what is left of it above 0.8."""
    mean, sd, blur, threshold, soft = (
        (0.65, 0.3, 4, 0.69, 0.6),
        (0.65, 0.3, 3, 0.68, 0.6),
        (0.65, 0.3, 2, 0.68, 0.5),
        (0.65, 0.3, 1, 0.65, 1.5),
        (0.67, 0.4, 1, 0.65, 1.5),
    )[severity - 1]
    liquid = gaussian_blur(mean + sd * draws.normal(1, SIDE, SIDE), blur)
    cover = gaussian_blur((liquid > threshold).to(x.dtype), soft)
    cover = cover.where(cover >= 0.8, 0)
    return x * (1 - cover) + 63 / 255 * cover


# ------------------------------------------------------------------------------------ lines and edges


@MNIST_C.add("dotted_line")
def dotted_line(x: Tensor, draws: Draws) -> Tensor:
    """A dashed line from the left border to the right one."""
    first, last = draws.integers(0, ROWS, 2).T
    return x + dotted_lines()[first, last, None].to(x.dtype)


@MNIST_C.add("zigzag")
def zigzagged(x: Tensor, draws: Draws) -> Tensor:
    """A zigzag that falls by at most five rows."""
    row, fall = draws.integers(0, ROWS), draws.integers(0, len(FALLS))
    return x + zigzags()[row, fall, None].to(x.dtype)


@MNIST_C.add("canny_edges")
def canny_edges(x: Tensor, draws: Draws) -> Tensor:
    """The edges of the digit in place of the digit."""
    return canny(x)
