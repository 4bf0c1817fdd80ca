"""Auto-encoders of the framework paper (2021, appendix B): three convolutions each way.

Chapter `shift` has a pair of them with codes of 128 numbers, chapter `on_manifold` one with 16.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from ..errors import BookError
from .catalogue import initialised, scaled

LATENT, HIDDEN = 128, 2048


def encoder(*, latent: int = LATENT, width: float = 1.0, channels: int = 1, size: int = 28) -> nn.Sequential:
    """E: images (N, C, S, S) to codes (N, latent) by strides of 2, 28 -> 14 -> 7 -> 4 (gap U15)."""
    first, second, third = (scaled(units, width) for units in (32, 64, 128))
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, first, 3, stride=2, padding=1),
            relu1=nn.ReLU(),
            conv2=nn.Conv2d(first, second, 3, stride=2, padding=1),
            relu2=nn.ReLU(),
            conv3=nn.Conv2d(second, third, 3, stride=2, padding=1),
            relu3=nn.ReLU(),
            flatten=nn.Flatten(),
            fc=nn.Linear(third * ((size // 4 + 1) // 2) ** 2, latent),
        )
    )


def decoder(
    *,
    latent: int = LATENT,
    width: float = 1.0,
    hidden: int | None = None,
    channels: int = 1,
    size: int = 28,
) -> nn.Sequential:
    """D: codes (N, latent) to images (N, C, S, S) in [0, 1], 7 -> 14 -> 28 (gap U15).

    `hidden` are the units of the first dense layer, 2048 times `width` if not given.
    """
    if size % 4:
        raise BookError(f"the auto-encoder needs a side that 4 divides, not {size}")
    first, second, side = scaled(64, width), scaled(32, width), size // 4
    units = scaled(HIDDEN, width) if hidden is None else hidden
    return nn.Sequential(
        OrderedDict(
            fc1=nn.Linear(latent, units),
            relu1=nn.ReLU(),
            fc2=nn.Linear(units, first * side**2),
            relu2=nn.ReLU(),
            reshape=nn.Unflatten(1, (first, side, side)),
            conv1=nn.ConvTranspose2d(first, first, 3, stride=2, padding=1, output_padding=1),
            relu3=nn.ReLU(),
            conv2=nn.ConvTranspose2d(first, second, 3, stride=2, padding=1, output_padding=1),
            relu4=nn.ReLU(),
            conv3=nn.ConvTranspose2d(second, channels, 3, padding=1),
            sigmoid=nn.Sigmoid(),
        )
    )


class PairedAutoEncoder(nn.Module):
    """Two auto-encoders with one encoder (Figure 4): `clean` is D1, `corrupted` is D2.

    As a network it gives codes; what it is for is `transfer`. Any three modules that fit together will do.
    """

    def __init__(self, encode: nn.Module, clean: nn.Module, corrupted: nn.Module) -> None:
        super().__init__()
        self.encode, self.clean, self.corrupted = encode, clean, corrupted

    def forward(self, x: Tensor) -> Tensor:
        """Codes E(x), one row a point."""
        codes: Tensor = self.encode(x)
        return codes

    def transfer(self, x: Tensor) -> Tensor:
        """T(x) = D1(E(x)): what the clean decoder makes of any point."""
        result: Tensor = self.clean(self.encode(x))
        return result

    def reconstruct(self, x: Tensor, domain: Tensor) -> Tensor:
        """Each point by the decoder of its domain, 0 clean or 1 corrupted (N,), in the order of `x`."""
        if domain.dim() != 1 or not ((domain == 0) | (domain == 1)).all():
            raise BookError("domains must be whole numbers, one a point: 0 for clean, 1 for corrupted")
        codes, order = self.encode(x), torch.argsort(domain, stable=True)
        count = int((domain == 0).sum())
        parts = [
            decode(codes[chosen])
            for decode, chosen in ((self.clean, order[:count]), (self.corrupted, order[count:]))
            if len(chosen)
        ]
        return torch.cat(parts)[torch.argsort(order)]


def paired_autoencoder(*, seed: int, latent: int = LATENT, width: float = 1.0) -> PairedAutoEncoder:
    """The paper's pair for digits; `width` scales channels and hidden units, the code keeps its length."""
    sizes = {"latent": latent, "width": width}
    return initialised(
        lambda: PairedAutoEncoder(encoder(**sizes), decoder(**sizes), decoder(**sizes)),  # type: ignore[arg-type]
        seed,
    )
