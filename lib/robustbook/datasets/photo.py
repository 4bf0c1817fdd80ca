"""A photograph for pictures of transforms, where the images of the papers cannot be shown."""

from pathlib import Path

import matplotlib
import numpy as np
import torch
from PIL import Image


def photograph(side: int) -> torch.Tensor:
    """Grace Hopper, by the U.S. Navy, public domain: a photograph that comes with matplotlib."""
    folder = Path(matplotlib.get_data_path()) / "sample_data"
    image = Image.open(folder / "grace_hopper.jpg").convert("RGB").crop((0, 0, 512, 512))
    pixels = np.asarray(image.resize((side, side), Image.Resampling.LANCZOS))
    return torch.tensor(pixels).permute(2, 0, 1)[None].float() / 255
