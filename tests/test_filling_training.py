"""What transfer to few images needs: fixed block groups, balanced batches, sources within a radius."""

import pytest
import torch
from robustbook.errors import BookError
from robustbook.networks import make, retasked
from robustbook.networks.retasking import block_groups
from robustbook.networks.robust import RADII, resnet18_of_imagenet, untrained_resnet18
from robustbook.rehearsal import rehearsal
from robustbook.training import Balanced, fit, recipe_of
from torch import nn

SIZES = {"channels": 3, "size": 32}


def source(name="resnet9"):
    return make(name, seed=0, classes=10, width=4, **SIZES)


@pytest.mark.parametrize("fixed", [0, 1, 4])
def test_fixed_groups_keep_weights_and_statistics_and_the_rest_learns(fixed):
    origin = source()
    model = retasked(origin, classes=4, fixed=fixed, seed=1)
    x, y = torch.rand(16, 3, 32, 32), torch.arange(16) % 4
    fit(
        model,
        (x, y),
        epochs=1,
        batch_size=8,
        lr=0.1,
        seed=0,
        optimizer="sgd",
        validation=None,
        progress=False,
    )
    state = {name.replace(".part.", "."): value for name, value in model.state_dict().items()}
    groups, before = block_groups(origin), origin.state_dict()
    still = {name for group in groups[: fixed + 1] for name in group} if fixed else set()
    for name, value in before.items():
        part = name.partition(".")[0]
        if not part.startswith(("conv", "block")) or not value.is_floating_point():
            continue
        assert torch.equal(state[name], value) == (part in still), name
    assert model(x).shape == (16, 4)


def test_a_retasked_network_computes_what_its_source_computes_up_to_the_last_layer():
    origin, x = source().eval(), torch.rand(3, 3, 32, 32)
    model = retasked(origin, classes=4, fixed=2, seed=1).eval()
    assert torch.equal(model[:-1](x), origin[:-1](x))
    assert origin.fc.out_features == 10 and all(p.requires_grad for p in origin.parameters())
    other = retasked(origin, classes=4, fixed=0, seed=2)
    assert not torch.equal(other.fc.weight, model.fc.weight)


def test_groups_of_the_networks_in_use():
    assert [len(group) for group in block_groups(source())] == [1, 2, 1, 1, 1]
    assert block_groups(source("resnet18"))[1] == ("block1_1", "block1_2")
    assert block_groups(untrained_resnet18(4, seed=0))[:2] == [
        ("network.conv1", "network.bn1"),
        ("network.layer1",),
    ]
    with pytest.raises(BookError, match="no block groups"):
        retasked(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), classes=2, fixed=1, seed=0)
    with pytest.raises(BookError, match="4 block groups"):
        retasked(source(), classes=2, fixed=5, seed=0)
    with pytest.raises(BookError, match="no dense last layer"):
        retasked(nn.Flatten(), classes=2, fixed=0, seed=0)


def test_robust_networks_are_the_readers(data_dir):
    with rehearsal():
        assert not resnet18_of_imagenet(RADII[0]).training
    with pytest.raises(BookError, match=r"resnet18_l2_eps0\.05\.pth"):
        resnet18_of_imagenet(0.05)
    state = untrained_resnet18(1000, seed=3).get_submodule("network").state_dict()
    torch.save(state, data_dir / "resnet18_l2_eps0.05.pth")
    loaded = resnet18_of_imagenet(0.05).get_submodule("network").state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in state.items())


def test_balanced_batches_have_all_classes_alike():
    y = torch.tensor([0] * 90 + [1] * 9 + [3])
    x = torch.arange(100.0)[:, None]
    batches = Balanced(x, y, batch_size=100, seed=0)
    first, second = (torch.cat([labels for _, labels in batches]) for _ in range(2))
    assert len(first) == 100 and not torch.equal(first, second)
    many = torch.cat([labels for _ in range(30) for _, labels in batches])
    assert many.bincount() / len(many) == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3], abs=0.03)
    again = Balanced(x, y, batch_size=100, seed=0)
    assert torch.equal(next(iter(again))[1], first)
    images, labels = next(iter(Balanced(x, y, batch_size=7, seed=1)))
    assert torch.equal(y[images[:, 0].long()], labels) and len(Balanced(x, y, batch_size=7, seed=1)) == 15
    with pytest.raises(BookError, match="one label an image"):
        Balanced(x, y[:3], batch_size=7, seed=0)


def test_sources_differ_in_the_attack_alone():
    plain = recipe_of("resnet9-cifar10-20000-l2", {})
    robust = recipe_of("resnet9-cifar10-20000-l2", {"eps": 1.0})
    assert plain.fit["keep_best"] is robust.fit["keep_best"] is False
    differ = {key for key in robust.fit if robust.fit[key] != plain.fit[key]}
    assert differ == {"transform"} and plain.options == robust.options
    model = make("resnet9", seed=0, classes=10, width=4, **SIZES)
    x, y = torch.rand(4, 3, 32, 32), torch.arange(4)
    chance = torch.Generator().manual_seed(0)
    moved = recipe_of("resnet9-cifar10-small-l2", {"eps": 0.5}).fit["transform"]
    with torch.no_grad():
        cropped = plain.fit["transform"](model, x, y, torch.Generator().manual_seed(0))[0]
    apart = (moved(model, x, y, chance)[0] - cropped).flatten(1).norm(dim=1)
    assert (apart > 0.05).all() and (apart <= 0.5 + 1e-5).all()
