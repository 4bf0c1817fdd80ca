"""All chance of a training run, from one seed."""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from ..errors import BookError


class Streams:
    """Independent streams: a transform that draws more numbers does not change the order of images."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise BookError(f"seed={seed!r}; give a whole number, 0 or more")
        state = np.random.SeedSequence(int(seed)).generate_state(4)
        self._split, self._order, self._transform, self.layers = (int(part) for part in state)

    def split(self) -> torch.Generator:
        """Which images are held out for validation."""
        return torch.Generator().manual_seed(self._split)

    def order(self) -> torch.Generator:
        """In which order images are seen."""
        return torch.Generator().manual_seed(self._order)

    def transform(self, device: torch.device) -> torch.Generator:
        """What a transform draws, on the device where the batch is."""
        return torch.Generator(device).manual_seed(self._transform)


@contextlib.contextmanager
def isolated(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout and whoever else reads the global random state gets `seed`; afterwards it is as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
