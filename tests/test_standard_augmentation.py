"""Crops and mirrors: each image its own, and nothing but shifts of it."""

import pytest
import torch
from robustbook.augmentations import crop_and_flip
from torch import Tensor
from torch.nn.functional import pad


def applied(x: Tensor, seed: int = 0, padding: int = 4) -> Tensor:
    return crop_and_flip(padding=padding)(x, generator=torch.Generator().manual_seed(seed))


def candidates(image: Tensor, padding: int) -> list[Tensor]:
    """Every crop of a padded image, and its mirror."""
    wide, side = pad(image, (padding,) * 4), image.shape[-1]
    crops = [
        wide[:, i : i + side, j : j + side] for i in range(2 * padding + 1) for j in range(2 * padding + 1)
    ]
    return crops + [crop.flip(-1) for crop in crops]


@pytest.mark.parametrize("channels", [1, 3])
def test_every_image_is_a_crop_of_itself(channels: int) -> None:
    x = torch.rand(40, channels, 9, 9, generator=torch.Generator().manual_seed(1))
    out, found = applied(x, padding=2), []
    for before, after in zip(x, out):
        equal = [torch.equal(after, crop) for crop in candidates(before, 2)]
        assert any(equal)
        found.append(equal.index(True))
    assert len(set(found)) > 20  # 50 possibilities, drawn 40 times
    assert 8 < sum(index >= 25 for index in found) < 32


def test_same_generator_same_pixels_in_any_memory_layout() -> None:
    x = torch.rand(5, 3, 8, 8)
    assert torch.equal(applied(x), applied(x.contiguous(memory_format=torch.channels_last)))
    assert not torch.equal(applied(x), applied(x, seed=1))
