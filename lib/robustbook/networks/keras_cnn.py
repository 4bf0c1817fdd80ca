"""The small convolutional network of the Keras examples, as MNIST-C's authors and the framework use it."""

from collections import OrderedDict

from torch import nn

from ..errors import BookError
from .catalogue import NETWORKS, scaled


@NETWORKS.add("keras-cnn")
def keras_cnn(
    classes: int, channels: int, size: int, *, width: float = 1.0, batch_norm: bool = False
) -> nn.Sequential:
    """Framework 2021, appendix B: two 3 x 3 convolutions without padding, maxima, dropout, 128 hidden units.

    24 x 24 x 64 becomes 12 x 12 x 64 = 9216 inputs of the first dense layer on 28 pixels (gap U15). With
    `batch_norm` both convolutions are followed by one: not the paper's, for methods that need it.
    """
    if size < 6:
        raise BookError(f"network 'keras-cnn' needs images of at least 6 pixels a side, not {size}")
    first, second, hidden = scaled(32, width), scaled(64, width), scaled(128, width)
    layers: dict[str, nn.Module] = {"conv1": nn.Conv2d(channels, first, 3)}
    if batch_norm:
        layers["norm1"] = nn.BatchNorm2d(first)
    layers |= {"relu1": nn.ReLU(), "conv2": nn.Conv2d(first, second, 3)}
    if batch_norm:
        layers["norm2"] = nn.BatchNorm2d(second)
    layers |= {
        "relu2": nn.ReLU(),
        "pool": nn.MaxPool2d(2),
        "dropout1": nn.Dropout(0.25),
        "flatten": nn.Flatten(),
        "fc1": nn.Linear(second * ((size - 4) // 2) ** 2, hidden),
        "relu3": nn.ReLU(),
        "dropout2": nn.Dropout(0.5),
        "fc2": nn.Linear(hidden, classes),
    }
    return nn.Sequential(OrderedDict(layers))
