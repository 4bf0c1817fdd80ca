"""Corruptions of MNIST-C as augmentations: training on some in order to meet others."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..corruptions.mnist_c import MNIST_C, corrupt_mnist
from ..errors import BookError
from .chance import integers

FIFTEEN = tuple(name for name in MNIST_C if name != "identity")
"""The corruptions of MNIST-C without the identity, in the public order."""
HALVES = {"first": FIFTEEN[::2], "second": FIFTEEN[1::2]}
"""Every other corruption: both halves have some noise or blur, some geometry and some cover."""


@dataclass(frozen=True)
class Corrupting:
    """Each image stays as it is or gets one of the corruptions `names`, all equally likely."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise BookError("no corruption to train on; give one name or more")
        for name in self.names:
            MNIST_C[name]

    def __call__(self, x: Tensor, *, generator: torch.Generator) -> Tensor:
        """A mix of clean and corrupted images."""
        kinds = integers(0, len(self.names), len(x), generator, x)
        result = x.clone()
        for kind, name in enumerate(self.names, start=1):
            chosen = kinds == kind
            if chosen.any():
                seed = int(torch.randint(2**62, (1,), generator=generator, device=x.device))
                own = torch.Generator().manual_seed(seed)
                result[chosen] = corrupt_mnist(x[chosen], name, generator=own)
        return result
