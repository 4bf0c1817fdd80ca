"""Where an attack may move: over all pixels, or in subspaces given by orthonormal bases."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..errors import BookError


class Space(Protocol):
    """P problems, each with its image `owner` (P,) and its coordinates: a vector of `width` numbers."""

    owner: Tensor
    width: int

    def coordinates(self, slope: Tensor, rows: Tensor) -> Tensor:
        """Slopes (M, ...) of the problems `rows`, in rising order, along their coordinates: (M, width)."""

    def images(self, coordinates: Tensor, rows: Tensor) -> Tensor:
        """The perturbations (M, ...) that coordinates (M, width) of the problems `rows` stand for."""


class Pixels:
    """One problem an image; its coordinates are the values of its pixels."""

    def __init__(self, x: Tensor) -> None:
        self.shape, self.width = x.shape[1:], x[0].numel()
        self.owner = torch.arange(len(x), device=x.device)

    def coordinates(self, slope: Tensor, rows: Tensor) -> Tensor:
        """The slopes themselves."""
        return slope.flatten(1)

    def images(self, coordinates: Tensor, rows: Tensor) -> Tensor:
        """The coordinates in the shape of images."""
        return coordinates.reshape(-1, *self.shape)


class Subspaces:
    """S subspaces of N images: problem s N + i moves image i in subspace s.

    `bases` holds S orthonormal bases (n, d) for all images, or, if `own`, S N of them, one a problem. They
    may differ in d, up to `width`, and are asked for one at a time: a sequence may compute them when asked.
    """

    def __init__(self, bases: Sequence[Tensor] | Tensor, width: int, x: Tensor, own: bool = False) -> None:
        self.bases, self.width, self.shape = bases, width, x.shape[1:]
        self.each = 1 if own else len(x)
        problems = torch.arange(len(bases) * self.each, device=x.device)
        self.owner = problems % len(x)

    def coordinates(self, slope: Tensor, rows: Tensor) -> Tensor:
        """Slopes projected on the bases; zeros beyond the dimension of a subspace."""
        parts = [part @ basis for basis, part in self._split(slope.flatten(1), rows)]
        return torch.cat([pad(part, (0, self.width - part.shape[1])) for part in parts])

    def images(self, coordinates: Tensor, rows: Tensor) -> Tensor:
        """Sums of basis vectors."""
        parts = self._split(coordinates, rows)
        return torch.cat([part[:, : basis.shape[1]] @ basis.mT for basis, part in parts]).reshape(
            -1, *self.shape
        )

    def _split(self, values: Tensor, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The basis and the values (M, ...) of each subspace that has some."""
        numbers, counts = torch.unique_consecutive(rows // self.each, return_counts=True)
        for number, part in zip(numbers.tolist(), values.split(counts.tolist())):
            yield self.bases[number], part


class Within(nn.Module):
    """A network of images and perturbations, stacked along the channels: f(x + B B' delta).

    The image has no slope and the perturbation one within the subspace alone, so any attack by gradients
    stays in it, and norms are those of the perturbation.
    """

    basis: Tensor

    def __init__(self, model: nn.Module, basis: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("basis", basis)

    def forward(self, pairs: Tensor) -> Tensor:
        """Class scores of pairs (N, 2 C, ...)."""
        x, delta = pairs.chunk(2, dim=1)
        inside = (delta.flatten(1) @ self.basis) @ self.basis.mT
        scores: Tensor = self.model(x.detach() + inside.reshape(x.shape))
        return scores


def check_bases(bases: Sequence[Tensor] | Tensor, x: Tensor) -> int:
    """Each basis is (n, d) with orthonormal columns, where and of what type the images are; the largest d."""
    size, width = x[0].numel(), 0
    if not hasattr(bases, "__len__") or not hasattr(bases, "__getitem__") or len(bases) == 0:
        raise BookError(f"bases={bases!r:.60}; give a tensor (S, n, d), or a sequence of bases (n, d)")
    for basis in bases:
        if not isinstance(basis, Tensor):
            raise BookError(f"a basis is a {type(basis).__name__}; give a tensor of {size} rows")
        if basis.dim() != 2 or len(basis) != size or not 1 <= basis.shape[1] <= size:
            raise BookError(
                f"a basis of shape {tuple(basis.shape)}; images of {size} values need ({size}, d)"
            )
        if basis.dtype != x.dtype or basis.device != x.device:
            raise BookError(
                f"a basis of {basis.dtype} on {basis.device}, images of {x.dtype} on {x.device}; use .to(x)"
            )
        error = basis.mT @ basis - torch.eye(basis.shape[1], dtype=basis.dtype, device=basis.device)
        if not error.abs().amax() <= 1e3 * torch.finfo(basis.dtype).eps:
            raise BookError("the columns of a basis are not orthonormal; use torch.linalg.qr(basis).Q")
        width = max(width, basis.shape[1])
    return width
