"""Which data a computation has read: `datasets.load` notes it, provenance stores it."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_notes: ContextVar[dict[str, str] | None] = ContextVar("data_notes", default=None)


def note_data(name: str, checksum: str) -> None:
    """Remember that data of this name and checksum was read, if somebody asked."""
    notes = _notes.get()
    if notes is not None:
        notes[name] = checksum


@contextlib.contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Collect name -> checksum of everything loaded inside the block."""
    notes: dict[str, str] = {}
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
