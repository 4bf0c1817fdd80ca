"""ImageNet networks with published weights: `pretrained("resnet50-imagenet")`.

Three kinds: those that packages bring (ResNet-50 of Keras, EfficientNet-Lite), SqueezeNet from a file of
the reader's, and those of torchvision, for runs at paper scale. None is part of the repository, and
nothing here downloads anything: that is `robustbook data fetch`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..registry import Registry
from ..rehearsal import rehearsing
from ..usage import note_data
from ..vision import torchvision
from .efficientnet import efficientnet_lite
from .weights import Pretrained

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # torchvision's, of ImageNet

# SHA-256 of the weights, see `weights.digest`.
RESNET50 = "a6aabc1cc72d93cf2e97df1c6b415edc7e51748a3a7bf72e585b62155c534e9b"
LITE0 = "ae365b508a2a5a213d9355c043a1edda7e6ce933d128d615b31e3bbf22a6bc3f"
LITE1 = "f9623aaa135b920550e9da16c94f9e864438b7f02a3f81ba9f391695d0224898"
LITE2 = "005adccb7086750db42d2faa5223f268a18b8224fb8ae4a8a15b34c2ee0807f0"
SQUEEZENET = "5079918d9ac0aedd41d6b356a314ff1b6b14ddb51bcd3334f821571be650f479"

PRETRAINED: Registry[Callable[[], Pretrained]] = Registry("pretrained network")


def pretrained(name: str) -> nn.Module:
    """The ImageNet network of this name with its published weights, in evaluation mode.

    It takes images (N, 3, 224, 224) in [0, 1] and gives 1,000 logits; the normalisation is inside. Other
    sizes work too (SqueezeNet's own is 227, that of Inception-v3 299). Weights that are not on this machine
    are a BookError, or in a rehearsal random ones, noted as synthetic.
    """
    source = PRETRAINED[name]()
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(0)
        model = source.network()
    if rehearsing() and source.missing():
        note_data(name, "synthetic")
    else:
        state, checksum = source.read()
        model.get_submodule("network").load_state_dict(state)
        note_data(name, checksum)
    return model.eval()


def of_torchvision(architecture: str, **options: Any) -> nn.Module:
    """A network of torchvision with random weights."""
    model: nn.Module = torchvision().models.get_model(architecture, weights=None, **options)
    return model


def resnet50_of_keras() -> nn.Module:
    """ResNet-50 as first published: the 1 x 1 convolution of a stage's first block has the stride.

    torchvision moves the stride to the 3 x 3 convolution ("version 1.5"), which these weights do not fit.
    """
    model = of_torchvision("resnet50")
    first_convolution_strides(model)
    return model


def first_convolution_strides(model: nn.Module) -> None:
    """Give the stride of stages 2 to 4 of a ResNet with bottlenecks to their first 1 x 1 convolution."""
    for stage in ("layer2", "layer3", "layer4"):
        for name, stride in (("conv1", 2), ("conv2", 1)):
            convolution = model.get_submodule(f"{stage}.0.{name}")
            assert isinstance(convolution, nn.Conv2d)
            convolution.stride = (stride, stride)


@PRETRAINED.add("resnet50-imagenet")
def resnet50() -> Pretrained:
    """ResNet-50 (He et al. 2016), the authors' weights as Keras has them: only the mean is subtracted."""
    mean = (123.68 / 255, 116.779 / 255, 103.939 / 255)
    return Pretrained("resnet50-imagenet", resnet50_of_keras, mean, 1 / 255, RESNET50)


@PRETRAINED.add("efficientnet-lite0-imagenet")
def lite0() -> Pretrained:
    """EfficientNet-Lite0 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6)."""
    return Pretrained("efficientnet-lite0-imagenet", efficientnet_lite, 0.5, 0.5, LITE0)


@PRETRAINED.add("efficientnet-lite1-imagenet")
def lite1() -> Pretrained:
    """EfficientNet-Lite1: deeper, trained for 240 pixels."""
    return Pretrained("efficientnet-lite1-imagenet", lambda: efficientnet_lite(depth=1.1), 0.5, 0.5, LITE1)


@PRETRAINED.add("efficientnet-lite2-imagenet")
def lite2() -> Pretrained:
    """EfficientNet-Lite2: deeper and wider, trained for 260 pixels."""
    return Pretrained(
        "efficientnet-lite2-imagenet", lambda: efficientnet_lite(width=1.1, depth=1.2), 0.5, 0.5, LITE2
    )


@PRETRAINED.add("squeezenet-imagenet")
def squeezenet() -> Pretrained:
    """SqueezeNet 1.0 (Iandola et al. 2016) with the weights of Deep Compression, from the reader's file."""
    mean = (123 / 255, 117 / 255, 104 / 255)
    return Pretrained(
        "squeezenet-imagenet",
        lambda: of_torchvision("squeezenet1_0"),
        mean,
        1 / 255,
        SQUEEZENET,
        file="squeezenet1_0.pth",
    )


def by_torchvision(name: str, architecture: str) -> Pretrained:
    """A network with the first weights that torchvision published for it."""
    return Pretrained(name, lambda: of_torchvision(architecture), MEAN, STD)


@PRETRAINED.add("alexnet-imagenet")
def alexnet() -> Pretrained:
    """AlexNet (Krizhevsky 2014) of torchvision."""
    return by_torchvision("alexnet-imagenet", "alexnet")


@PRETRAINED.add("vgg16-imagenet")
def vgg16() -> Pretrained:
    """VGG-16 (Simonyan & Zisserman 2015) of torchvision."""
    return by_torchvision("vgg16-imagenet", "vgg16")


@PRETRAINED.add("resnet18-imagenet")
def resnet18() -> Pretrained:
    """ResNet-18 (He et al. 2016) of torchvision."""
    return by_torchvision("resnet18-imagenet", "resnet18")


@PRETRAINED.add("resnet50-torchvision-imagenet")
def resnet50_torchvision() -> Pretrained:
    """ResNet-50 of torchvision, with the stride in the 3 x 3 convolutions."""
    return by_torchvision("resnet50-torchvision-imagenet", "resnet50")


@PRETRAINED.add("resnet101-imagenet")
def resnet101() -> Pretrained:
    """ResNet-101 (He et al. 2016) of torchvision."""
    return by_torchvision("resnet101-imagenet", "resnet101")


@PRETRAINED.add("densenet161-imagenet")
def densenet161() -> Pretrained:
    """DenseNet-161 (Huang et al. 2017) of torchvision."""
    return by_torchvision("densenet161-imagenet", "densenet161")


@PRETRAINED.add("inception_v3-imagenet")
def inception_v3() -> Pretrained:
    """Inception-v3 (Szegedy et al. 2016) of torchvision, whose weights come from inputs in [-1, 1]."""
    return Pretrained(
        "inception_v3-imagenet", lambda: of_torchvision("inception_v3", init_weights=False), 0.5, 0.5
    )
