"""Adapted batch-norm statistics (thesis, equation 5.7) against the mixture written out by hand."""

import copy

import pytest
import torch
from robustbook.errors import BookError
from robustbook.networks import adapted, adapting, make
from torch import Tensor, nn

X = torch.rand(24, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def one_layer() -> nn.Sequential:
    """A batch normalisation alone, with statistics and weights of its own."""
    norm = nn.BatchNorm2d(3)
    norm.running_mean, norm.running_var = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.5, 1.0, 4.0])
    norm.weight.data, norm.bias.data = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([0.0, 1.0, 0.5])
    return nn.Sequential(norm).eval()


def network() -> nn.Module:
    return make("resnet9", seed=0, classes=10, channels=3, size=16, width=4).eval()


def by_hand(x: Tensor, source: float) -> Tensor:
    """The layer of `one_layer` with (N z_s + n z_t) / (N + n) in place of z_s."""
    norm, n = one_layer()[0], len(x)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
    mean = (source * norm.running_mean + n * mean) / (source + n)
    var = (source * norm.running_var + n * var) / (source + n)
    scale = norm.weight / (var + norm.eps).sqrt()
    return (x - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]


@pytest.mark.parametrize("source", [0, 8, 16, 24, 1000])
def test_the_mixture_is_the_one_by_hand(source: int) -> None:
    expected = by_hand(X, source)
    assert torch.allclose(adapted(one_layer(), X, source=source)(X), expected, atol=1e-5)
    assert torch.allclose(adapting(one_layer(), source=source)(X), expected, atol=1e-5)


def test_as_many_samples_as_the_source_counts_for_is_the_mean_of_both() -> None:
    new = adapted(one_layer(), X, source=len(X))[0]
    assert torch.allclose(new.running_mean, (one_layer()[0].running_mean + X.mean((0, 2, 3))) / 2)
    here = X.var((0, 2, 3), unbiased=False)
    assert torch.allclose(new.running_var, (one_layer()[0].running_var + here) / 2)


def test_no_source_is_training_mode_and_a_large_one_changes_nothing() -> None:
    model = network()
    training = copy.deepcopy(model).train()
    with torch.no_grad():
        assert torch.allclose(adapting(model, source=0)(X), training(X), atol=1e-4)
        assert torch.allclose(adapting(model, source=1e9)(X), model(X), atol=1e-4)
        assert not torch.allclose(adapting(model, source=16)(X), model(X), atol=1e-3)


def test_adapted_on_images_is_adapting_to_them() -> None:
    """Layers behind the first see what the mixed statistics before them give."""
    model = network()
    with torch.no_grad():
        assert torch.allclose(adapted(model, X, source=16)(X), adapting(model, source=16)(X), atol=1e-4)


@pytest.mark.parametrize("group", [1, 8])
def test_groups_are_batches_of_their_own(group: int) -> None:
    model = network()
    with torch.no_grad():
        together = adapting(model, source=16, group=group)(X)
        apart = torch.cat([adapting(model, source=16)(part) for part in X.split(group)])
    assert torch.allclose(together, apart, atol=1e-4)
    assert not torch.allclose(together, adapting(model, source=16)(X), atol=1e-3)


def test_the_network_given_stays_as_it_was() -> None:
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for new in (adapted(model, X, source=0), adapting(model, source=0)):
        new(X)
        assert new is not model and not new.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: adapting(network(), source=-1), "source"),
        (lambda: adapting(network(), source=16, group=0), "group"),
        (lambda: adapting(network(), source=16, group=7)(X), "multiple"),
        (lambda: adapted(nn.Sequential(nn.Conv2d(3, 4, 3)), X, source=16), "no batch normalisation"),
    ],
)
def test_mistakes_are_one_line(call, says) -> None:
    with pytest.raises(BookError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
