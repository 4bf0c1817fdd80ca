"""Counting pixels, and saying where they lie."""

import pytest
import torch
from robustbook import measures
from robustbook.errors import BookError


def test_a_pixel_counts_once_whatever_its_channels_do():
    x = torch.zeros(2, 3, 4, 5)
    x_adv = x.clone()
    x_adv[0, :, 1, 2] = 1.0  # all three channels of one pixel
    x_adv[0, 0, 3, 4] = 1e-6
    assert measures.perturbed_pixels(x, x_adv).tolist() == [2, 0]
    assert measures.perturbed_share(x, x_adv).tolist() == [10.0, 0.0]
    assert measures.perturbed_elements(x, x_adv).tolist() == [[2, 1, 1], [0, 0, 0]]
    assert measures.perturbed(x, x_adv)[0].nonzero().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (2, 3, 4)), ((2, 1, 4, 4), (1, 1, 4, 4)), ((0, 1, 4, 4),) * 2]
)
def test_what_is_no_pair_of_batches(shapes):
    with pytest.raises(BookError, match="two batches"):
        measures.perturbed_pixels(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("side", [28, 32, 224])
def test_the_centre_is_a_quarter_in_the_middle(side):
    middle = measures.centre(torch.zeros(1, side, side))[0]
    assert middle.double().mean() == 0.25
    assert torch.equal(middle, middle.flip(0)) and torch.equal(middle, middle.T)


def test_the_most_salient_pixels():
    """As many as asked for, and those with the steepest slopes."""
    slopes = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    chosen = measures.most_salient(slopes)
    assert chosen.flatten(1).sum(1).tolist() == [16, 16, 16]
    peak = torch.zeros(1, 1, 9, 9)
    peak[0, 0, 4, 4] = -2.0  # the sign does not matter
    assert measures.most_salient(peak, 9 / 81)[0].nonzero().tolist() == [
        [row, column] for row in (3, 4, 5) for column in (3, 4, 5)
    ]
    with pytest.raises(BookError, match="share"):
        measures.most_salient(slopes, 1.0)
