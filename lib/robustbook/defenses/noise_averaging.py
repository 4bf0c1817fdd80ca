"""A classifier whose answer is averaged over noise on the image, drawn when it is asked."""

import torch
from torch import Tensor, nn

from ..errors import BookError


class NoiseAveraged(nn.Module):
    """Class probabilities of `classifier`, averaged over `draws` draws of noise of deviation `sigma`.

    The noise of an image depends on the seed and on its place in the batch, not on what was asked before.
    Pixels are not cut off at 0 and 1, as in the training with noise.
    """

    def __init__(self, classifier: nn.Module, *, sigma: float, draws: int, seed: int) -> None:
        super().__init__()
        if not sigma >= 0:
            raise BookError(f"sigma={sigma!r}; give a standard deviation, 0 or more")
        if draws < 1:
            raise BookError(f"draws={draws!r}; give a whole number, 1 or more")
        self.classifier, self.sigma, self.draws, self.seed = classifier, sigma, draws, seed

    def forward(self, x: Tensor) -> Tensor:
        """Logarithms of the mean probabilities, (N, K)."""
        generator = torch.Generator(x.device).manual_seed(self.seed)
        total: Tensor | float = 0.0
        for _ in range(self.draws):
            noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
            total = total + self.classifier(x + self.sigma * noise).softmax(1)
        return torch.log(torch.as_tensor(total) / self.draws)
