"""The images that a training did not see, for whoever chooses between trained networks."""

from torch import Tensor

from ..datasets import load
from .batches import split
from .chance import Streams


def set_aside(dataset: str, seed: int, fraction: float = 0.1) -> tuple[Tensor, Tensor]:
    """The part of the training images that `fit` held out for validation with this seed, (images, labels)."""
    train = load(dataset, "train")
    return split((train.x, train.y), fraction, Streams(seed).split().initial_seed())[1]
