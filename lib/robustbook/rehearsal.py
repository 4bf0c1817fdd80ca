"""Rehearsing a paper-scale run on a small machine: every row, one step, at most eight samples.

Code that has a size asks `shrink` for it. Outside a rehearsal the answer is the size itself. A sum of shrunk
sizes is small already: who asks for eight samples and eight more gets sixteen, not twice the same eight.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

SAMPLES = 8
_active: ContextVar[bool] = ContextVar("rehearsal", default=False)


class _Small(int):
    """A size that has been shrunk, or a sum of such sizes."""

    def __add__(self, other: int) -> int:
        total = int(self) + int(other)
        return _Small(total) if isinstance(other, _Small) else total


def rehearsing() -> bool:
    """Is this a rehearsal?"""
    return _active.get()


@contextlib.contextmanager
def rehearsal(active: bool = True) -> Iterator[None]:
    """Everything inside runs at rehearsal size."""
    token = _active.set(active)
    try:
        yield
    finally:
        _active.reset(token)


def shrink(size: int, at_most: int = SAMPLES) -> int:
    """`size`, or in a rehearsal no more than `at_most`."""
    if not rehearsing() or isinstance(size, _Small):
        return size
    return _Small(min(size, at_most))
