"""What PRIME and AugMix share: chains of random operations on copies of an image, and their mixture."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError, unknown
from .chance import dirichlet, integers
from .checks import check_counts, check_generator, check_images, check_numbers, each

Apply = Callable[[Tensor, Tensor, torch.Generator], None]
"""`apply(images, kinds, generator)` changes each image in place by the operation of that number; -1: none."""

MIXINGS = ("dirichlet", "beta", "none")
IDENTITY = -1


@dataclass(frozen=True)
class Mixture:
    """How many chains there are, how long they are, and how they are weighted.

    mixing = "dirichlet" is Algorithm 3 of the thesis: every step draws from the operations and the identity,
    and Dirichlet(1) weights go to the chains and the clean image. "beta" is equation (5.9), AugMix and the
    published code: chains of random length 1 .. depth without the identity, Dirichlet weights for the chains,
    and p ~ Beta for all of them together against 1 - p for the clean image. "none" is one such chain alone.
    """

    width: int = 3
    depth: int = 3
    mixing: str = "dirichlet"
    beta: tuple[float, float] = (1.0, 1.0)
    """Of p in (5.9): with the first one larger, more weight goes to the augmented image."""
    concentration: float = 1.0
    """Of the Dirichlet distribution."""

    def __post_init__(self) -> None:
        check_counts(width=self.width, depth=self.depth)
        if self.mixing not in MIXINGS:
            raise unknown("mixing", str(self.mixing), MIXINGS)
        if not isinstance(self.beta, tuple) or len(self.beta) != 2:
            raise BookError(f"beta={self.beta!r}; give its two parameters, such as (1.0, 1.0)")
        first, second = self.beta
        check_numbers(positive=True, beta=first, concentration=self.concentration)
        check_numbers(positive=True, beta=second)

    @property
    def chains(self) -> int:
        """How many copies of an image go through a chain."""
        return 1 if self.mixing == "none" else self.width

    def kinds(self, count: int, operations: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """The operation of each step and chain, (depth, count); -1 for none."""
        if operations == 0:
            return torch.full((self.depth, count), IDENTITY, device=like.device)
        lowest = IDENTITY if self.mixing == "dirichlet" else 0
        drawn = integers(lowest, operations - 1, self.depth * count, generator, like).view(self.depth, count)
        if self.mixing == "dirichlet":
            return drawn
        length = integers(1, self.depth, count, generator, like)
        steps = torch.arange(self.depth, device=like.device)[:, None]
        return torch.where(steps < length, drawn, IDENTITY)

    def weights(self, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """Weights of the clean image and of its chains, (count, 1 + chains); they sum to 1."""
        if self.mixing == "none":
            return torch.tensor([0.0, 1.0], dtype=like.dtype, device=like.device).expand(count, 2)
        if self.mixing == "dirichlet":
            return dirichlet(count, (self.concentration,) * (1 + self.width), generator, like)
        share = dirichlet(count, self.beta, generator, like)  # (p, 1 - p)
        parts = dirichlet(count, (self.concentration,) * self.width, generator, like)
        return torch.cat([share[:, 1:], share[:, :1] * parts], 1)

    def __call__(self, x: Tensor, apply: Apply, operations: int, generator: torch.Generator) -> Tensor:
        """Chains of `apply`, an operation of its own for each image, chain and step; then the mixture."""
        check_images(x)
        check_generator(generator)
        images = x.contiguous().repeat(self.chains, 1, 1, 1)
        for kinds in self.kinds(len(images), operations, generator, x):
            apply(images, kinds, generator)
        chains = images.view(self.chains, *x.shape)
        return blend(x, chains, self.weights(len(x), generator, x)[:, 1:])


def blend(x: Tensor, chains: Tensor, weights: Tensor) -> Tensor:
    """(1 - sum_i w_i) x + sum_i w_i x_i for chains (n, N, C, H, W) and weights (N, n), laid out as `x`.

    Written as x + sum_i w_i (x_i - x): a chain that changes nothing gives x to the last bit.
    """
    clean = x.contiguous()
    mixed = clean.clone()
    for chain, weight in zip(chains, weights.T):
        mixed.addcmul_(chain - clean, each(weight))
    return torch.empty_like(x).copy_(mixed.clamp_(0, 1))
