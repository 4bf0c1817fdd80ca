"""From a source in MyST Markdown to an executed notebook: jupytext, checks, papermill.

A chapter lies in `notebooks/` and has one cell tagged `parameters` that assigns plain scalars, `profile`
among them. A page lies in `book/` and may have such a cell. Both run in this interpreter's own kernel,
whatever kernels are installed on the machine, with the repository as working folder.
"""

from .notebook import CellFailed
from .running import Execution, execute, execute_all
from .sources import PROFILES, chapter_source, chapters, has_code, parameters_of, read

__all__ = [
    "PROFILES",
    "CellFailed",
    "Execution",
    "chapter_source",
    "chapters",
    "execute",
    "execute_all",
    "has_code",
    "parameters_of",
    "read",
]
