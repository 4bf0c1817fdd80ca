"""Robustness, Reproduced: the thin library under the book."""

__version__ = "0.1.0"
