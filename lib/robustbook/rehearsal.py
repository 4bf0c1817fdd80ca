"""Rehearsing a paper-scale run on a small machine: every row, one step, at most eight samples.

Code that has a size asks `shrink` for it. Outside a rehearsal the answer is the size itself.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

SAMPLES = 8
_active: ContextVar[bool] = ContextVar("rehearsal", default=False)


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
    return min(size, at_most) if rehearsing() else size
