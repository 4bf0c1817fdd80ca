"""The generated pages: scorecard, index of tables and figures, errata, status, map of chapters.

Each function reads the catalogue and what is stored under `results/` and returns an object that a
notebook shows as HTML.
"""

from .catalogue import artifact_index, choices, errata
from .scorecard import counts, scorecard
from .status import chapter_map, status

__all__ = ["artifact_index", "chapter_map", "choices", "counts", "errata", "scorecard", "status"]
