"""What was measured: rows, tables, provenance, verdicts, and the chapters that declare them."""

from .chapter import Chapter
from .loading import chapter_names, load_chapter, owner_of, stale
from .verdicts import read_verdicts
from .views import PROFILES, Table

__all__ = [
    "PROFILES",
    "Chapter",
    "Table",
    "chapter_names",
    "load_chapter",
    "owner_of",
    "read_verdicts",
    "stale",
]
