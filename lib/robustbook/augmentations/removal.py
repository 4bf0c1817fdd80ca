"""Features taken out of training images (thesis, section 5.2.1): high frequencies, or colour.

They draw nothing at random; they are called like augmentations so that they can follow one in `augmented`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import BookError
from ..spectral import low_pass
from .checks import check_counts

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a grey level (ITU-R BT.601)."""


@dataclass(frozen=True)
class LowPass:
    """Only the `keep` x `keep` lowest frequencies of the cosine transform; 16 of 32 in Table 5.1.

    The result can leave [0, 1] a little, as in the published code: let it be the last one in a row.
    """

    keep: int = 16

    def __post_init__(self) -> None:
        check_counts(keep=self.keep)

    def __call__(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Filtered images, laid out in memory as `x`."""
        return torch.empty_like(x).copy_(low_pass(x, self.keep))


@dataclass(frozen=True)
class Grey:
    """Grey images that still have three channels, all equal."""

    def __call__(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Grey images, laid out in memory as `x`."""
        if x.shape[1] != len(LUMA):
            raise BookError(f"images of {x.shape[1]} channels; only those of three have a colour to remove")
        weights = torch.tensor(LUMA, dtype=x.dtype, device=x.device)[:, None, None]
        return torch.empty_like(x).copy_((x * weights).sum(1, keepdim=True).expand_as(x))
