"""The DCT against scipy's, blocks and views by what they must do to single cosines."""

import pytest
import scipy.fft
import torch
from robustbook import spectral
from robustbook.errors import BookError
from torch import Tensor

SHAPES = [(8, 8), (3, 8, 8), (5, 3, 8, 8), (2, 5, 3, 8, 6), (2, 1, 28, 28)]


def images(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_transform_is_that_of_scipy(shape: tuple[int, ...]) -> None:
    x = images(*shape)
    oracle = torch.from_numpy(scipy.fft.dctn(x.numpy(), axes=(-2, -1), norm="ortho"))
    assert torch.allclose(spectral.dct2(x), oracle, atol=1e-12)
    assert torch.allclose(spectral.idct2(oracle), x, atol=1e-12)


def test_it_keeps_lengths() -> None:
    x = images(4, 3, 32, 32).float()
    assert torch.allclose(spectral.dct2(x).flatten(1).norm(dim=1), x.flatten(1).norm(dim=1), rtol=1e-5)


@pytest.mark.parametrize("name", ["flip", "low", "high"])
@pytest.mark.parametrize("shape", [(32, 32), (3, 32, 32), (5, 3, 32, 32), (2, 5, 3, 32, 32)])
def test_views_see_rows_and_columns_only(name: str, shape: tuple[int, ...]) -> None:
    """The published filter took axes 1 and 2: on a batch these are channel and row (facts of the code).

    Each plane must come out as if it had come alone, and exactly a quarter of the coefficients survives.
    """
    x = images(*shape)
    seen = spectral.view(x, name)
    alone = torch.stack([spectral.view(plane, name) for plane in x.reshape(-1, 32, 32)]).reshape(shape)
    assert torch.allclose(seen, alone, atol=1e-12)
    kept = (spectral.dct2(seen).abs() > 1e-9).reshape(-1, 32, 32).sum((1, 2))
    assert (kept == (1024 if name == "flip" else 256)).all()


def test_low_and_high_keep_their_corner() -> None:
    x = images(2, 3, 32, 32)
    before = spectral.dct2(x)
    low, high = (spectral.dct2(spectral.view(x, name)) for name in ("low", "high"))
    assert torch.allclose(low[..., :16, :16], before[..., :16, :16])
    assert torch.allclose(high[..., 16:, 16:], before[..., 16:, 16:])
    assert low[..., 16:].abs().max() < 1e-9 > high[..., :16].abs().max()
    assert torch.allclose(spectral.low_pass(low := spectral.low_pass(x, 5), 5), low)


def test_flip_turns_the_lowest_into_the_highest() -> None:
    x = torch.ones(1, 1, 28, 28, dtype=torch.float64)
    flipped = spectral.dct2(spectral.flip(x))[0, 0]
    assert flipped[-1, -1] == pytest.approx(28.0) and flipped.abs().sum() == pytest.approx(28.0)
    y = images(2, 3, 28, 28)
    assert torch.allclose(spectral.flip(spectral.flip(y)), y)


@pytest.mark.parametrize(
    ("size", "block", "step", "channels", "count", "dimension"),
    [(28, 8, 1, 1, 21, 64), (32, 8, 2, 3, 13, 192), (224, 16, 16, 3, 14, 768)],
)
def test_the_three_data_sets_have_the_published_subspaces(
    size: int, block: int, step: int, channels: int, count: int, dimension: int
) -> None:
    blocks = spectral.dct_blocks(size, block, step, channels)
    assert len(blocks) == count == len(spectral.starts(size, block, step))
    assert blocks.channels * blocks.block**2 == dimension
    if size < 100:
        assert blocks[0].shape == (channels * size**2, dimension)


@pytest.mark.parametrize("kind", ["dct", "random"])
def test_bases_are_orthonormal_and_those_of_the_blocks(kind: str) -> None:
    if kind == "dct":
        blocks = spectral.dct_blocks(12, 4, 2, 3)
    else:
        blocks = spectral.random_blocks(12, 4, 2, 3, generator=torch.Generator().manual_seed(1))
    for basis in blocks:
        assert torch.allclose(basis.mT @ basis, torch.eye(48), atol=1e-5)
    # Blocks that do not overlap are orthogonal to one another.
    assert (blocks[0].mT @ blocks[2]).abs().max() < 1e-5


def test_a_dct_basis_spans_its_frequencies() -> None:
    x = images(3, 12, 12).float()
    basis = spectral.dct_blocks(12, 4, 2, 3, chosen=[3])[0]
    inside = (basis @ (basis.mT @ x.flatten())).reshape(3, 12, 12)
    coefficients, expected = spectral.dct2(inside), torch.zeros(3, 12, 12)
    expected[:, 6:10, 6:10] = spectral.dct2(x)[:, 6:10, 6:10]
    assert torch.allclose(coefficients, expected, atol=1e-5)
    energy = spectral.block_energy(x[None], 4, 2)[0]
    assert energy[3] == pytest.approx(float(inside.square().sum()), rel=1e-4) and len(energy) == 5


def test_a_random_basis_is_the_same_for_a_seed_and_orthonormal() -> None:
    a, b = (spectral.random_basis(20, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a, b) and torch.allclose(a.mT @ a, torch.eye(20, dtype=torch.float64))
    other = spectral.random_basis(20, generator=torch.Generator().manual_seed(4))
    assert not torch.allclose(a, other)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: spectral.dct2(torch.zeros(5)),
        lambda: spectral.dct2(torch.zeros(5, 5, dtype=torch.int64)),
        lambda: spectral.low_pass(torch.zeros(5, 5), 6),
        lambda: spectral.high_pass(torch.zeros(5, 5), 0),
        lambda: spectral.view(torch.zeros(5, 5), "flipped"),
        lambda: spectral.starts(8, 9, 1),
        lambda: spectral.starts(8, 4, 0),
        lambda: spectral.dct_blocks(8, 4, 1, 1, chosen=[9]),
        lambda: spectral.dct_matrix(0),
    ],
)
def test_mistakes(wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BookError) as error:
        wrong()
    assert "\n" not in str(error.value)
