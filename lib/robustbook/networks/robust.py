"""ResNet-18s of ImageNet, standard and adversarially trained in l2, for transfer at paper scale.

The robust ones are those of Salman et al. (2020), whose radii are `RADII` (gap U35). They come from the
reader: `resnet18_l2_eps<radius>.pth` in the data folder, a plain state dict with the names of torchvision.
"""

import torch
from torch import nn

from ..datasets.checks import repairable
from ..rehearsal import rehearsing
from ..usage import note_data
from .catalogue import initialised
from .imagenet import MEAN, STD, of_torchvision, pretrained
from .weights import Pretrained, digest

RADII = (0.01, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 5.0)


def resnet18_of_imagenet(eps: float) -> nn.Module:
    """ResNet-18 for images in [0, 1], trained on ImageNet within `eps` in l2; 0: without an attack."""
    if not eps:
        return pretrained("resnet18-imagenet")
    name = f"resnet18_l2_eps{eps:g}.pth"
    source = Pretrained(name, lambda: of_torchvision("resnet18"), MEAN, STD, file=name)
    model = initialised(source.network, 0)
    if rehearsing() and source.missing():
        note_data(name, "synthetic")
        return model.eval()
    with repairable(source.path, source.repair):
        state = torch.load(source.path, map_location="cpu", weights_only=True)
        model.get_submodule("network").load_state_dict(state)
    note_data(name, digest(state))
    return model.eval()


def untrained_resnet18(classes: int, seed: int) -> nn.Module:
    """The same network for images in [0, 1] with weights that depend on `seed` alone."""
    build = Pretrained("resnet18", lambda: of_torchvision("resnet18", num_classes=classes), MEAN, STD)
    return initialised(build.network, seed)
