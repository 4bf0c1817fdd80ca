"""Images by frequency: the orthonormal 2-D DCT, blocks of it as subspaces, views that move or drop blocks.

Everything acts on the last two axes, rows and columns, whatever stands before them: one image (H, W),
images with channels (C, H, W), batches (N, C, H, W). The published code of "Hold me tight" indexes axes 1
and 2, which on a batch are channel and row; such a mistake has no place here.
"""

import functools
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from .errors import BookError, unknown

VIEWS = ("plain", "flip", "low", "high")
"""An image as it is, with its frequencies reversed, or with only the low or the high half of both."""


@functools.lru_cache(maxsize=16)
def _dct_matrix(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    k = torch.arange(size, dtype=torch.float64)
    matrix = math.sqrt(2 / size) * torch.cos(math.pi / size * k[:, None] * (k[None, :] + 0.5))
    matrix[0] /= math.sqrt(2)
    return matrix.to(device, dtype)


def dct_matrix(size: int, like: Tensor | None = None) -> Tensor:
    """The orthonormal DCT-II (size, size), one frequency a row; of the type and device of `like`."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise BookError(f"size={size!r}; give a whole number of pixels, 1 or more")
    like = torch.empty(0) if like is None else like
    return _dct_matrix(size, like.dtype, like.device)


def _sides(x: Tensor) -> tuple[Tensor, Tensor]:
    """The two matrices that transform rows and columns."""
    if x.dim() < 2 or not x.is_floating_point():
        raise BookError(f"images of shape {tuple(x.shape)}, {x.dtype}; give floating point (..., H, W)")
    return dct_matrix(x.shape[-2], x), dct_matrix(x.shape[-1], x)


def dct2(x: Tensor) -> Tensor:
    """Coefficients (..., H, W) of images (..., H, W): entry (0, 0) is the mean, times sqrt(H W)."""
    rows, columns = _sides(x)
    return rows @ x @ columns.mT


def idct2(coefficients: Tensor) -> Tensor:
    """Images from coefficients."""
    rows, columns = _sides(coefficients)
    return rows.mT @ coefficients @ columns


def flip(x: Tensor) -> Tensor:
    """Reverse the frequencies of both axes (thesis, section 4.3.1); twice is the image again."""
    return idct2(dct2(x).flip(-2, -1))


def _check_keep(x: Tensor, keep: int) -> None:
    if isinstance(keep, bool) or not isinstance(keep, int) or not 1 <= keep <= min(x.shape[-2:]):
        raise BookError(f"keep={keep!r}; give a whole number from 1 to {min(x.shape[-2:])} frequencies")


def low_pass(x: Tensor, keep: int) -> Tensor:
    """Only the `keep` x `keep` lowest frequencies, the top left block of the coefficients."""
    rows, columns = _sides(x)
    _check_keep(x, keep)
    rows, columns = rows[:keep], columns[:keep]
    return rows.mT @ (rows @ x @ columns.mT) @ columns


def high_pass(x: Tensor, keep: int) -> Tensor:
    """Only the `keep` x `keep` highest frequencies, the bottom right block of the coefficients."""
    rows, columns = _sides(x)
    _check_keep(x, keep)
    rows, columns = rows[-keep:], columns[-keep:]
    return rows.mT @ (rows @ x @ columns.mT) @ columns


def view(x: Tensor, name: str) -> Tensor:
    """Images in one of `VIEWS`; low and high keep half of the frequencies of each axis."""
    if name not in VIEWS:
        raise unknown("view", str(name), VIEWS)
    if name == "plain":
        return x
    keep = min(x.shape[-2:]) // 2
    return flip(x) if name == "flip" else low_pass(x, keep) if name == "low" else high_pass(x, keep)


def starts(size: int, block: int, step: int) -> list[int]:
    """First frequency of each block of `block` frequencies that slides along the diagonal by `step`."""
    for name, value in (("block", block), ("step", step)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= size:
            raise BookError(f"{name}={value!r}; give a whole number from 1 to {size}, the side of the image")
    return list(range(0, size - block + 1, step))


def block_energy(x: Tensor, block: int, step: int) -> Tensor:
    """Squared norms (N, S) of images (N, C, H, W), square, in each block of the diagonal, channels summed."""
    squares = dct2(x).square().sum(dim=1)
    places = [slice(start, start + block) for start in starts(x.shape[-1], block, step)]
    return torch.stack([squares[:, place, place].sum((1, 2)) for place in places], dim=1)


class Blocks(Sequence[Tensor]):
    """Bases (C H W, C block^2) of the blocks along the diagonal (thesis, section 4.3; gap C26).

    A basis is made when it is first asked for.
    """

    def __init__(
        self, atoms: "Atoms", block: int, step: int, channels: int, chosen: Sequence[int] = ()
    ) -> None:
        places = starts(atoms.size, block, step)
        if any(not 0 <= number < len(places) for number in chosen):
            raise BookError(f"blocks {list(chosen)}; there are {len(places)}, from 0 on")
        self.atoms, self.block, self.channels = atoms, block, channels
        self.numbers = list(chosen) or list(range(len(places)))
        self.starts = [places[number] for number in self.numbers]
        self._made: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> Tensor:  # type: ignore[override]
        if number not in self._made:
            self._made[number] = self._basis(self.starts[number])
        return self._made[number]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    def _basis(self, start: int) -> Tensor:
        plane = self.atoms.block(start, self.block)
        pixels, count = plane.shape
        basis = plane.new_zeros(self.channels, pixels, self.channels, count)
        for channel in range(self.channels):
            basis[channel, :, channel] = plane
        return basis.reshape(self.channels * pixels, self.channels * count)


class Atoms:
    """An orthonormal basis of the images of one channel, one atom for each place (i, j) of a square."""

    def __init__(self, size: int, matrix: Tensor | None = None) -> None:
        self.size, self.matrix = size, matrix

    def block(self, start: int, block: int) -> Tensor:
        """The atoms of a block on the diagonal as columns (H W, block^2)."""
        if self.matrix is None:  # products of cosines: never all of them in memory
            side = dct_matrix(self.size)[start : start + block]
            atoms = torch.einsum("ia,jb->abij", side, side)
            return atoms.reshape(self.size**2, block**2)
        place = torch.arange(start, start + block)
        return self.matrix[:, (place[:, None] * self.size + place).flatten()]


def dct_blocks(size: int, block: int, step: int, channels: int, chosen: Sequence[int] = ()) -> Blocks:
    """Blocks of the DCT, from low to high frequency; `chosen` numbers of them, or all."""
    return Blocks(Atoms(size), block, step, channels, chosen)


def random_basis(size: int, *, generator: torch.Generator) -> Tensor:
    """An orthonormal matrix (size, size), uniform among all of them."""
    drawn = torch.randn(size, size, dtype=torch.float64, generator=generator)
    q, r = torch.linalg.qr(drawn)
    return q * r.diagonal().sign()  # without the signs it would depend on how QR is computed


def random_blocks(size: int, block: int, step: int, channels: int, *, generator: torch.Generator) -> Blocks:
    """The same blocks of a random orthonormal basis in the place of the DCT (Figure 4.4)."""
    matrix = random_basis(size**2, generator=generator).float()
    return Blocks(Atoms(size, matrix), block, step, channels)
