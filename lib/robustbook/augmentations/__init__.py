"""Changes of training images that keep their label."""

from .standard import crop_and_flip

__all__ = ["crop_and_flip"]
