"""How many pixels a perturbation touches, and where they lie."""

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from ..errors import BookError


def perturbed(x: Tensor, x_adv: Tensor) -> Tensor:
    """Which pixels, (N, H, W), differ in any channel: the thesis counts pixels, not values (gap U25)."""
    return _changed(x, x_adv).any(1)


def perturbed_pixels(x: Tensor, x_adv: Tensor) -> Tensor:
    """How many pixels of each image, (N,), differ in any channel."""
    return perturbed(x, x_adv).flatten(1).sum(1)


def perturbed_share(x: Tensor, x_adv: Tensor) -> Tensor:
    """The same in percent of an image's pixels, float64."""
    return 100 * perturbed_pixels(x, x_adv).double() / x[0, 0].numel()


def perturbed_elements(x: Tensor, x_adv: Tensor) -> Tensor:
    """How many values of each channel of each image differ, (N, C)."""
    return _changed(x, x_adv).flatten(2).sum(2)


def _changed(x: Tensor, x_adv: Tensor) -> Tensor:
    if x.shape != x_adv.shape or x.dim() != 4 or len(x) == 0:
        raise BookError(
            f"images of shape {tuple(x.shape)} and {tuple(x_adv.shape)}; give two batches (N, C, H, W)"
        )
    return x != x_adv


def centre(mask: Tensor) -> Tensor:
    """The middle quarter of the pictures of `mask` (N, H, W): half the height, half the width."""
    height, width = mask.shape[1:]
    middle = torch.zeros(height, width, dtype=torch.bool, device=mask.device)
    top, left = height // 4, width // 4
    middle[top : top + height // 2, left : left + width // 2] = True
    return middle.expand_as(mask)


def most_salient(slopes: Tensor, share: float = 0.25) -> Tensor:
    """The `share` of the pixels, (N, H, W), with the steepest slopes (N, C, H, W), averaged over 3 x 3."""
    if not 0 < share < 1:
        raise BookError(f"share={share!r}; give a part of the pixels between 0 and 1")
    steep = avg_pool2d(slopes.abs().sum(1, keepdim=True), 3, 1, 1, count_include_pad=False).flatten(1)
    count = max(1, round(share * steep.shape[1]))
    chosen = torch.zeros_like(steep, dtype=torch.bool).scatter(1, steep.topk(count, dim=1).indices, True)
    return chosen.reshape(len(slopes), *slopes.shape[2:])
