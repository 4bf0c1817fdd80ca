"""PRIME: mixtures of maximum-entropy primitives (thesis, section 5.3; Modas et al., 2022).

Three primitives, spectral, spatial and colour, are composed and mixed by Algorithm 3. The published code
draws strength and smoothness once for all images of a batch; here every image has its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..errors import BookError, unknown
from .catalogue import AUGMENTATIONS
from .checks import check_numbers
from .colour import RandomColour, colour
from .mixing import Mixture
from .spatial import RandomDiffeo, spatial
from .spectral import RandomFilter, spectral

PRIMITIVES: dict[str, Callable[..., Tensor]] = {"spectral": spectral, "spatial": spatial, "colour": colour}
"""The primitives at a given `strength` and `smoothness`, both numbers or one an image."""


@dataclass(frozen=True)
class Prime:
    """PRIME as an augmentation: `prime(x, generator=...)` for images (N, C, H, W) in [0, 1].

    `primitives` names those in use (Table 5.5); `scale` is alpha of section 5.4.3, which multiplies the
    standard deviation of all coefficients.
    """

    spectral: RandomFilter = field(default_factory=RandomFilter)
    spatial: RandomDiffeo = field(default_factory=RandomDiffeo)
    colour: RandomColour = field(default_factory=RandomColour)
    mixture: Mixture = field(default_factory=Mixture)
    primitives: Sequence[str] = tuple(PRIMITIVES)
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(scale=self.scale)
        if isinstance(self.primitives, str):
            raise BookError(f"primitives={self.primitives!r}; give a tuple of names, ({self.primitives!r},)")
        for name in self.primitives:
            if name not in PRIMITIVES:
                raise unknown("primitive", str(name), PRIMITIVES)
        if len(set(self.primitives)) < len(self.primitives):
            raise BookError(f"primitives={self.primitives!r}; name each of them once")

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """The augmented images, laid out in memory as `x`."""
        return self.mixture(x, self._apply, len(self.primitives), generator)

    def _apply(self, images: Tensor, kinds: Tensor, generator: torch.Generator) -> None:
        """One primitive for each image: those with the same one go together."""
        for kind, name in enumerate(self.primitives):
            rows = (kinds == kind).nonzero()[:, 0]
            if len(rows):
                primitive: RandomFilter | RandomDiffeo | RandomColour = getattr(self, name)
                changed = primitive(images.index_select(0, rows), generator=generator, scale=self.scale)
                images.index_copy_(0, rows, changed)


def _prime(
    spatial_cut: int,
    colour_law: RandomColour,
    *,
    sigma: float = 4.0,
    depth: int = 3,
    mixing: str = "dirichlet",
    beta: tuple[float, float] = (1.0, 1.0),
    primitives: Sequence[str] = tuple(PRIMITIVES),
    scale: float = 1.0,
) -> Prime:
    mixture = Mixture(depth=depth, mixing=mixing, beta=beta)
    diffeo = RandomDiffeo(cut_max=spatial_cut)
    return Prime(RandomFilter(sigma), diffeo, colour_law, mixture, primitives, scale)


@AUGMENTATIONS.add("prime-cifar")
def prime_cifar(
    *,
    primitives: Sequence[str] = tuple(PRIMITIVES),
    scale: float = 1.0,
    mixing: str = "dirichlet",
    colour_cut: int = 10,
) -> Prime:
    """PRIME for CIFAR-10 and CIFAR-100; K_gamma is 10 in the thesis, 100 in the published code (gap U38)."""
    return _prime(100, RandomColour(colour_cut, 0.01), primitives=primitives, scale=scale, mixing=mixing)


@AUGMENTATIONS.add("prime-imagenet")
def prime_imagenet(
    *, primitives: Sequence[str] = tuple(PRIMITIVES), scale: float = 1.0, mixing: str = "dirichlet"
) -> Prime:
    """PRIME for ImageNet and ImageNet-100."""
    return _prime(500, RandomColour(500, 0.05, 20), primitives=primitives, scale=scale, mixing=mixing)


@AUGMENTATIONS.add("prime-filling")
def prime_filling(*, depth: int = 3, beta: tuple[float, float] = (1.0, 1.0)) -> Prime:
    """PRIME for filling levels (section 5.5.2): smoother, weaker, mixed by equation (5.9)."""
    return _prime(10, RandomColour(500, 0.001, 20), sigma=0.1, depth=depth, mixing="beta", beta=beta)
