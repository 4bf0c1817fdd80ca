"""Sphinx extension: a page asks no other machine for anything.

Jupyter Book always loads sphinx-thebe, which puts a script of a content delivery network into every page.
Its listeners and its style sheet are taken off before they are used.
"""

from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx after the extensions of Jupyter Book."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not one.handler.__module__.startswith("sphinx_thebe")]
    styles = app.registry.css_files
    styles[:] = [one for one in styles if "thebe" not in one[0]]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
