"""The auto-encoder of the framework papers' manifold generator: framework 2021, appendix B (gap U8)."""

import torch
from torch import Tensor, nn

from ..errors import BookError
from .autoencoder import decoder, encoder
from .catalogue import NETWORKS


class Autoencoder(nn.Module):
    """`encode` takes images (N, C, S, S) to codes (N, k), `decode` takes codes to images in [0, 1].

    Called as a network it gives the reconstructions, one flat row an image: what the book's training loop
    expects of every network. The accuracy that is noted for a stored network has no meaning here.
    """

    def __init__(self, channels: int, size: int, latent: int, width: float, hidden: int) -> None:
        super().__init__()
        shape = {"latent": latent, "channels": channels, "size": size}
        self.encoder = encoder(width=width, **shape)
        self.decoder = decoder(width=width, hidden=hidden, **shape)
        self.latent = latent

    def encode(self, x: Tensor) -> Tensor:
        """Codes (N, k) of images (N, C, S, S)."""
        return self.encoder(x)

    def decode(self, codes: Tensor) -> Tensor:
        """Images (N, C, S, S) of codes (N, k)."""
        return self.decoder(codes)

    def forward(self, x: Tensor) -> Tensor:
        """Reconstructions as rows (N, C S S)."""
        return self.decode(self.encode(x)).flatten(1)


@NETWORKS.add("wae")
def wae(
    classes: int, channels: int, size: int, *, latent: int = 16, width: float = 1.0, hidden: int = 2048
) -> Autoencoder:
    """Encoder and decoder of framework 2021, appendix B, with a code of 16 numbers (gap U8).

    `width` scales the channels, `hidden` is the decoder's first dense layer. The number of classes does not
    matter.
    """
    if latent < 1 or hidden < 1:
        raise BookError(f"network 'wae': latent={latent}, hidden={hidden}; give 1 or more")
    return Autoencoder(channels, size, latent, width, hidden)


class OnCodes(nn.Module):
    """A classifier seen from the codes: `network(decode(z))`. Attacks on it keep to the manifold.

    Codes are (N, k). The decoder is not trained through it: its weights are kept out of `parameters`.
    """

    def __init__(self, network: nn.Module, autoencoder: Autoencoder) -> None:
        super().__init__()
        self.network = network
        self._decode = (autoencoder.decode,)  # in a tuple, so that it is no part of this module

    def forward(self, codes: Tensor) -> Tensor:
        """Outputs (N, K) for codes (N, k)."""
        return self.network(self._decode[0](codes))


@torch.no_grad()
def codes_of(autoencoder: Autoencoder, x: Tensor, batch_size: int = 1000) -> Tensor:
    """Codes (N, k) of many images."""
    return torch.cat([autoencoder.encode(part) for part in x.split(batch_size)])
