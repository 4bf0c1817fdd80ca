"""The fifteen common corruptions of Hendrycks and Dietterich (2019), five severities each, by name.

Constants are those of CIFAR-10-C or of ImageNet-C. Where the published code does something else than it says,
we do what it does, so that our images are like the public ones: the docstrings of the corruptions and
tests/test_corruptions.py name each case.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import BookError, unknown
from . import blur, digital, noise, weather  # noqa: F401 - each enters its corruptions into the registry
from .catalogue import COMMON, SETS, Level
from .draws import Draws

GROUPS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
NAMES = tuple(name for group in GROUPS.values() for name in group)
"""The fifteen names in the order of the papers' tables."""
SMALLEST = 28
"""Least height and width of an image: the kernels are larger than smaller ones."""
PART = 2**20
"""How many numbers are corrupted at once: what an image becomes does not depend on it."""


def corrupt(
    x: Tensor,
    name: str,
    severity: int,
    *,
    constants: str = "cifar10",
    seeds: Sequence[int] | Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Corrupt images as CIFAR-10-C or ImageNet-C.

    Parameters
    ----------
    x
        (N, C, H, W) in [0, 1], C = 1 or 3, at least 28 px high and wide.
    name
        One of `COMMON`, such as "fog".
    severity
        1 to 5.
    constants
        "cifar10" or "imagenet": those of the public sets of 32 px and of 224 px. Lengths are in pixels
        whatever the size of the images; only elastic transforms grow with it.
    seeds
        One whole number an image, on which alone its corruption depends. The same seed means the same chance
        at every severity; take others where severities have to be independent.
    generator
        Where the seeds come from if they are not given; by default one with seed 0.

    Returns
    -------
    Tensor
        Like `x`, in [0, 1], not rounded; `as_uint8` makes bytes of it as in the public files.
    """
    corruption = COMMON[name]
    level = _level(constants, severity)
    _check_images(x)
    chosen = _seeds(len(x), seeds, generator)
    step = max(1, PART // x[0].numel())
    result = torch.empty_like(x)
    for start in range(0, len(x), step):
        part = x[start : start + step].detach().float()
        changed = corruption(part, Draws(chosen[start : start + step]), level)
        result[start : start + step] = changed.clamp_(0, 1)
    return result


def _level(constants: str, severity: int) -> Level:
    if constants not in SETS:
        raise unknown("set of constants", str(constants), SETS)
    if isinstance(severity, bool) or severity not in range(1, 6):
        raise BookError(f"severity={severity!r}; give a whole number from 1 to 5")
    return Level("cifar10" if constants == "cifar10" else "imagenet", int(severity))


def _check_images(x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise BookError(f"images of type {kind}; give a tensor of floats in [0, 1], such as x.float() / 255")
    if x.dim() != 4 or x.shape[1] not in (1, 3) or len(x) == 0:
        raise BookError(f"images of shape {tuple(x.shape)}; give (N, C, H, W) with one or three channels")
    if min(x.shape[2:]) < SMALLEST:
        raise BookError(
            f"images of {x.shape[2]} x {x.shape[3]} px; at least {SMALLEST} px are needed each way"
        )
    least, most = x.detach().amin().item(), x.detach().amax().item()
    if not (least >= 0 and most <= 1):
        raise BookError(f"images from {least:g} to {most:g}; give values in [0, 1], such as x.clamp(0, 1)")


def _seeds(count: int, seeds: Sequence[int] | Tensor | None, generator: torch.Generator | None) -> list[int]:
    if seeds is None:
        if not isinstance(generator, torch.Generator | None):
            raise BookError(f"generator={generator!r}; give torch.Generator().manual_seed(0), for example")
        return [g.initial_seed() for g in Draws.of(count, generator).generators]
    if generator is not None:
        raise BookError(
            "both seeds= and generator= are given; the generator only chooses seeds: leave one out"
        )
    try:
        chosen = [int(seed) for seed in seeds]
    except (TypeError, ValueError):
        raise BookError(f"seeds={seeds!r}; give whole numbers, one an image: range({count})") from None
    if len(chosen) != count:
        raise BookError(f"{len(chosen)} seeds for {count} images; give one an image")
    return chosen
