"""Accuracy on the images of a corruption benchmark: clean, and by corruption and severity."""

import functools
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from ..corruptions.stored import COMPUTED, Corrupted, corrupted
from ..datasets import load
from ..rehearsal import shrink
from ..usage import note_data
from .accuracy import accuracy
from .corruption import ALL_SEVERITIES, CORRUPTIONS

BATCH = 250
"""Images that pass a network together: a larger batch falls out of the processor's cache."""
FEW = 64
"""So many images of each kind are computed once a process, not once a network."""
CLEAN = "clean"

Line = dict[str, str | int | float]


def corruption_accuracies(
    model: nn.Module,
    data: str,
    *,
    images: int | None = None,
    severities: Sequence[int] = ALL_SEVERITIES,
    batch_size: int = BATCH,
) -> Iterator[Line]:
    """`corruption`, `severity`, `accuracy` in percent, for the clean images (severity 0) and all corruptions.

    Parameters
    ----------
    data
        A name of `datasets.load`: its first `images` test images. Corrupted ones are read from files if there
        are any, see `corrupted`, and else computed, with the same pixels.
    batch_size
        Divides into the number of images without a rest where a network looks at a batch as a whole.
    """
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    clean = load(data, "test", limit=images)
    yield _line(model, clean.x, clean.y, CLEAN, 0, batch_size)
    for name in CORRUPTIONS:
        for severity in severities[: shrink(len(severities), at_most=1)]:
            found = _images(data, name, severity, images)
            yield _line(model, found.x, found.y, name, severity, batch_size)


def _line(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, name: str, severity: int, batch_size: int
) -> Line:
    share = accuracy(model, (x, y), batch_size=batch_size)
    return {"corruption": name, "severity": severity, "accuracy": 100 * share}


def _images(data: str, name: str, severity: int, images: int | None) -> Corrupted:
    if images is None or images > FEW:
        return corrupted(data, name, severity, limit=images)
    found = _few(data, name, severity, images)
    if found.source == COMPUTED:
        note_data(f"{data}/{found.split}", found.checksum)
    return found


@functools.lru_cache(maxsize=128)
def _few(data: str, name: str, severity: int, images: int) -> Corrupted:
    return corrupted(data, name, severity, limit=images)
