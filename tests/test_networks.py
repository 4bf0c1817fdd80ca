"""Networks: the published sizes, initial weights by seed alone, and one clear line for every mistake."""

import pytest
import torch
from robustbook.errors import BookError
from robustbook.networks import NETWORKS, Normalise, describe, make
from torch import nn

MNIST = {"channels": 1, "size": 28}
CIFAR = {"channels": 3, "size": 32}


@pytest.mark.parametrize(
    ("name", "shape", "parameters"),
    [
        ("lenet5", MNIST, 61_706),
        ("moment-lenet", MNIST, 832 + 51_264 + 3136 * 1024 + 1024 + 10_250),
        ("moment-lenet", CIFAR, 2432 + 51_264 + 4096 * 1024 + 1024 + 10_250),
        ("moment-alexnet", CIFAR, 20_344_650),
        ("resnet9", CIFAR, 6_573_120),
        ("resnet20", CIFAR, 269_722 + 32 * 18 + 64 * 34),  # shortcuts of He et al. have no weights
        ("resnet18", CIFAR, 11_173_962),
        ("vgg19", CIFAR, 20_040_522 - 5504),  # no biases before batch normalisation
    ],
)
def test_published_sizes(name: str, shape: dict[str, int], parameters: int) -> None:
    """The input sizes 3136, 4096 and 256 of the fully connected layers identify the networks (U46, U47)."""
    model = make(name, seed=0, **shape).eval()
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert f"{parameters:,} parameters" in describe(model)
    assert model(torch.rand(2, shape["channels"], shape["size"], shape["size"])).shape == (2, 10)


def test_flattened_sizes() -> None:
    assert make("moment-lenet", seed=0).fc1.in_features == 3136
    assert make("moment-lenet", seed=0, **CIFAR).fc1.in_features == 4096
    assert make("moment-alexnet", seed=0, width=0.1, **CIFAR).fc1.in_features == round(256 * 0.1)
    assert make("moment-alexnet", seed=0, classes=100, **CIFAR).fc1.in_features == 256


@pytest.mark.parametrize(("name", "shape"), [("moment-lenet", MNIST), ("moment-alexnet", CIFAR)])
def test_pooling_stands_before_relu_except_in_the_first_block(name: str, shape: dict[str, int]) -> None:
    kinds = [type(layer) for layer in make(name, seed=0, width=0.1, **shape)]
    assert kinds[:4] == [Normalise, nn.Conv2d, nn.ReLU, nn.MaxPool2d]
    for index, kind in enumerate(kinds):
        if index > 3 and kind is nn.MaxPool2d:
            assert (kinds[index - 1], kinds[index + 1]) == (nn.Conv2d, nn.ReLU)


def test_describe() -> None:
    assert describe(make("lenet5", seed=0)) == ("61,706 parameters; layers with weights: 2 Conv2d, 3 Linear")


def test_weights_depend_on_the_seed_alone() -> None:
    def weights(seed: int) -> list[torch.Tensor]:
        return list(make("lenet5", seed=seed).state_dict().values())

    first = weights(3)
    torch.rand(17)
    assert all(torch.equal(a, b) for a, b in zip(first, weights(3)))
    assert not torch.equal(first[2], weights(4)[2])


def test_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    make("moment-lenet", seed=5)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("width", [0.1, 0.5, 2])
def test_width(width: float) -> None:
    model = make("moment-lenet", seed=0, width=width)
    assert (model.conv1.out_channels, model.conv2.out_channels, model.fc1.out_features) == (
        round(32 * width),
        round(64 * width),
        round(1024 * width),
    )
    assert model(torch.rand(1, 1, 28, 28)).shape == (1, 10)


def test_normalisation_is_inside() -> None:
    model = make("lenet5", seed=0)
    x = torch.rand(2, 1, 28, 28)
    assert torch.allclose(model[0](x), (x - 0.1307) / 0.3081)
    assert {"normalise.mean", "normalise.std"} <= set(model.state_dict())
    assert "normalise.mean" not in dict(model.named_parameters())
    colour = make("lenet5", seed=0, mean=(0.1, 0.2, 0.3), std=0.5, **CIFAR)
    x = torch.rand(2, 3, 32, 32)
    assert torch.allclose(colour[0](x)[:, 2], (x[:, 2] - 0.3) / 0.5)


def test_normalise_takes_a_mean_image() -> None:
    mean = torch.rand(1, 4, 4)
    x = torch.rand(3, 1, 4, 4)
    expected = (x - mean) / 0.25
    layer = Normalise(mean, 0.25)
    mean += 1  # the layer keeps its own copy
    assert torch.equal(layer(x), expected)
    assert "per pixel" in repr(layer)
    assert "mean=0.5, std=1" in repr(Normalise(0.5, 1.0))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lenet", {}, "unknown network 'lenet'; did you mean lenet5"),
        (
            "moment-lenet",
            {"widht": 2},
            "unknown option of network 'moment-lenet' 'widht'; did you mean width",
        ),
        ("moment-lenet", {"width": 0}, "width=0"),
        ("moment-lenet", {"size": 30}, "28 or 32 pixels"),
        ("moment-alexnet", {"size": 28}, "32 pixels"),
        ("lenet5", {"size": 8}, "at least 12 pixels"),
        ("resnet9", {"size": 8}, "at least 16 pixels"),
        ("resnet18", {"size": 8}, "at least 16 pixels"),
        ("vgg19", {}, "at least 32 pixels"),
        ("resnet20", {"width": 0}, "width=0"),
        ("lenet5", {"classes": 0}, "classes=0"),
        ("lenet5", {"channels": 1.5}, "channels=1.5"),
        ("lenet5", {"std": 0}, "must be positive"),
    ],
)
def test_mistakes(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(BookError) as error:
        make(name, seed=0, **options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_network_is_made() -> None:
    """Classifiers give a score a class, the auto-encoder a value a pixel."""
    for name in NETWORKS:
        size = 32 if "alexnet" in name or name == "vgg19" else 28
        outputs = make(name, seed=0, classes=7, size=size).eval()(torch.rand(1, 1, size, size))
        assert outputs.shape == (1, size * size if name == "wae" else 7), name


def test_residual_blocks_start_near_the_shortcut() -> None:
    """With its last weights at zero a block of ResNet-20 passes on what is positive."""
    model = make("resnet20", seed=0, **CIFAR).eval()
    block = model.block1_1
    torch.nn.init.zeros_(block.body[-1].weight)
    x = torch.randn(2, 16, 8, 8)
    assert torch.equal(block(x), x.relu())
