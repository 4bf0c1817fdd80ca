"""Corrupted images at chosen places of a split: few of many, without making the rest."""

import torch
from torch import Tensor

from ..datasets.core import load, to_unit
from ..errors import BookError
from ..threads import one_thread
from ..usage import note_data
from .layouts import FOLDERS, Array, official_folder, our_folder
from .mnist_c import default_severity
from .pixels import corrupt_bytes, image_seeds
from .stored import read_official, read_own


def corrupted_at(data: str, name: str, places: Tensor, *, split: str = "train") -> Tensor:
    """Images (N, 1, 28, 28) of MNIST-C: those made from the clean images at `places`, at its own severity.

    The same pixels as `corrupted` gives: from official files, else from stored ones of our own, else made.
    """
    if places.dim() != 1 or not len(places) or int(places.min()) < 0:
        raise BookError("places must be whole numbers, 0 or more, at least one")
    severity = default_severity(name)
    if data == "mnist":
        array = Array(data, name, split, (severity,))
        for root, read in ((official_folder(data), read_official), (our_folder(data), read_own)):
            found = read(array, root)
            if found:
                images, _, source, checksum = found
                note_data(f"{FOLDERS[data]}/{name}/{split}", f"{source}: {checksum}")
                return to_unit(images[places.numpy()])
    clean = load(data, split)
    seeds = image_seeds(data, split, name, severity, int(places.max()) + 1)[places.numpy()]
    images = (clean.x[places] * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    with one_thread():
        return to_unit(corrupt_bytes(images, name, severity, seeds))
