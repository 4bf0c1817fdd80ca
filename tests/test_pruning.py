"""Pruning a dense layer: M1, M2, M3 against what defines them, and the shortcut against the whole network."""

import itertools
import math

import pytest
import torch
from robustbook.datasets import load
from robustbook.defenses.dense import Behind, dense_layer, inputs_of
from robustbook.defenses.pruning import (
    Dense,
    frequencies,
    m1,
    m2,
    m3,
    norms,
    prune,
    random_change,
    random_units,
    rare,
    rescaled,
    share,
    tempered,
    weights,
    without,
)
from robustbook.errors import BookError
from robustbook.networks import make
from robustbook.training import predict
from torch import Tensor, nn

LEVELS = range(100)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def layer(rows: int = 12, columns: int = 20, seed: int = 0) -> Dense:
    g = generator(seed)
    return Dense(torch.randn(rows, columns, generator=g), torch.randn(rows, generator=g))


def digits(count: int = 60) -> Tensor:
    return load("mnist-small", "test", limit=count).x


# ------------------------------------------------------------------------------------------------ M1


def test_frequencies_count_positive_units() -> None:
    """Units of a known matrix: always, on half of the images, never."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    model[1].weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    model[1].bias.data.zero_()
    x = torch.tensor([[1.0, 1.0], [1.0, -0.5], [2.0, 1.0], [3.0, -1.0]])
    assert frequencies(model, "1", x, batch_size=3).tolist() == [1.0, 0.5, 0.0]
    assert frequencies(model, "1", x, side="inputs").tolist() == [1.0, 0.5]
    # Half of the largest value, 3, counts as zero: two of four are above 1.5.
    assert frequencies(model, "1", x, side="inputs", above=0.5).tolist() == [0.5, 0.5]


def test_frequencies_are_those_behind_the_relu(network: nn.Module) -> None:
    x = digits()
    seen: list[Tensor] = []
    handle = network.relu4.register_forward_hook(lambda _, __, output: seen.append(output))
    predict(network, x)
    handle.remove()
    assert torch.equal(frequencies(network, "fc2", x), (seen[0] > 0).double().mean(0))


@pytest.mark.parametrize("reading", ["threshold", "rank"])
def test_m1_removes_exactly_the_counted_units(reading: str) -> None:
    dense, frequency = layer(), torch.linspace(0, 1, 12).double()[torch.randperm(12, generator=generator())]
    for p in LEVELS:
        pruned = m1(frequency, p, reading=reading)(dense)
        if reading == "threshold":
            expected = {k for k, f in enumerate(frequency.tolist()) if 100 * f < p - 1e-9}
        else:
            expected = set(sorted(range(12), key=lambda k: frequency[k])[: p * 12 // 100])
        gone = {k for k in range(12) if not pruned.weight[k].any() and pruned.bias[k] == 0}
        assert gone == expected
        kept = sorted(set(range(12)) - gone)
        assert torch.equal(pruned.weight[kept], dense.weight[kept])
        assert torch.equal(pruned.bias[kept], dense.bias[kept])


def test_a_removed_unit_is_a_removed_column_of_the_next_layer(network: nn.Module) -> None:
    """Row and bias of a unit before a ReLU, or the unit as an input of the layer behind: the same network."""
    x = digits()
    removed = rare(frequencies(network, "fc2", x), 40)
    assert 0 < removed.sum() < 84
    as_output = prune(network, "fc2", without(removed))
    as_input = prune(network, "fc3", without(removed, "inputs"))
    assert torch.allclose(predict(as_output, x), predict(as_input, x), atol=1e-5)
    assert not torch.allclose(predict(as_output, x), predict(network, x), atol=1e-2)


def test_equally_rare_units_go_in_their_order() -> None:
    assert rare(torch.tensor([0.5, 0.1, 0.1, 0.1]), 50, "rank").tolist() == [False, True, True, False]


# ------------------------------------------------------------------------------------------------ M2, M3


@pytest.mark.parametrize("shape", [(12, 20), (20, 12), (10, 10)])
def test_m2_is_the_nearest_matrix_of_its_rank(shape: tuple[int, int]) -> None:
    """Eckart and Young: the error is the root of the sum of the dropped squares, and no rival is nearer."""
    dense = layer(*shape)
    sizes = torch.linalg.svdvals(dense.weight.double())
    for p in (10, 35, 50, 99):
        pruned, dropped = m2(p)(dense), p * min(shape) // 100
        assert norms(pruned)["rank"] == min(shape) - dropped
        error = (pruned.weight - dense.weight).double().norm().item()
        assert error == pytest.approx(sizes[len(sizes) - dropped :].norm().item(), rel=1e-5)
        assert torch.equal(pruned.bias, dense.bias)
        for seed in range(5):  # the best matrix with another row space of that rank
            basis = torch.linalg.qr(torch.randn(shape[1], min(shape) - dropped, generator=generator(seed)))[0]
            assert (dense.weight @ basis @ basis.mT - dense.weight).norm().item() > error


def test_m2_on_a_matrix_whose_singular_values_are_known() -> None:
    """diag(3, 2, 1) between two rotations."""
    q = [torch.linalg.qr(torch.randn(3, 3, generator=generator(seed)))[0] for seed in (1, 2)]
    dense = Dense(q[0] @ torch.diag(torch.tensor([3.0, 2.0, 1.0])) @ q[1], None)
    assert torch.allclose(
        m2(34)(dense).weight, q[0] @ torch.diag(torch.tensor([3.0, 2.0, 0.0])) @ q[1], atol=1e-5
    )
    assert torch.equal(m2(33)(dense).weight, dense.weight)  # 0.99 of a value, rounded down: none


@pytest.mark.parametrize(("side", "units"), [("outputs", 12), ("inputs", 20)])
def test_m3_is_m2_on_the_matrix_that_m1_leaves(side: str, units: int) -> None:
    """Take the removed rows or columns out, prune the smaller matrix, put zeros back."""
    dense, frequency = layer(), torch.linspace(0, 1, units).double()
    for p in (5, 30, 50, 90):
        kept = ~rare(frequency, p)
        rows = kept if side == "outputs" else torch.ones(12, dtype=torch.bool)
        columns = kept if side == "inputs" else torch.ones(20, dtype=torch.bool)
        expected = torch.zeros_like(dense.weight)
        expected[rows.nonzero(), columns.nonzero()[:, 0]] = m2(p)(
            Dense(dense.weight[rows][:, columns], None)
        ).weight
        found = m3(frequency, p, side=side)(dense)
        assert torch.allclose(found.weight, expected, atol=1e-6)
        assert torch.equal(found.bias, m1(frequency, p, side=side)(dense).bias)
        assert (found.weight[~rows] == 0).all() and (found.weight[:, ~columns] == 0).all()
    assert norms(m3(frequency, 50, side=side)(dense))["rank"] == (3 if side == "outputs" else 5)
    assert norms(m3(torch.zeros(12).double(), 50)(dense))["units"] == 0


def test_norms_shrink_as_the_lemmas_need() -> None:
    """M2: the Frobenius norm; M1: every norm; M3: Frobenius below that of M1."""
    dense, frequency = layer(30, 40), torch.rand(30, generator=generator(1)).double()
    for reading in ("threshold", "rank"):
        one = [norms(m1(frequency, p, reading=reading)(dense)) for p in LEVELS]
        for name in one[0]:
            assert all(b[name] <= a[name] for a, b in itertools.pairwise(one)), name
        three = [norms(m3(frequency, p, reading=reading)(dense)) for p in LEVELS]
        assert all(c["frobenius"] <= a["frobenius"] * (1 + 1e-6) for a, c in zip(one, three))
    two = [norms(m2(p)(dense)) for p in LEVELS]
    assert all(b["frobenius"] <= a["frobenius"] for a, b in itertools.pairwise(two))
    assert two[99]["frobenius"] < 0.5 * two[0]["frobenius"]


def test_norms_by_hand() -> None:
    found = norms(Dense(torch.tensor([[1.0, -2.0], [0.0, 0.0], [3.0, 4.0]]), None))
    assert found["frobenius"] == pytest.approx(math.sqrt(30))
    assert (found["l1_norm"], found["largest_row"], found["largest_column"]) == (10, 7, 6)
    assert (found["rank"], found["units"]) == (2, 2)


# -------------------------------------------------------------------------------------------- controls


def test_nothing_happens_at_zero() -> None:
    dense, frequency, g = layer(), torch.zeros(12).double(), generator()
    changes = [m1(frequency, 0), m1(frequency, 0, reading="rank"), m2(0), m3(frequency, 0)]
    changes += [random_units(0, generator=g), random_change(m2(0), generator=g), rescaled(m2(0))]
    for change in changes:
        assert torch.equal(change(dense).weight, dense.weight) and torch.equal(change(dense).bias, dense.bias)


def test_controls_match_what_they_control() -> None:
    dense, change = layer(), m2(50)
    pruned = change(dense)
    assert norms(random_units(30, generator=generator())(dense))["units"] == 12 - share(30, 12)
    by_column = random_units(30, side="inputs", generator=generator())(dense)
    assert (by_column.weight.abs().sum(0) == 0).sum() == 6 and torch.equal(by_column.bias, dense.bias)
    noisy = random_change(change, generator=generator())(dense).weight
    assert (noisy - dense.weight).norm().item() == pytest.approx((pruned.weight - dense.weight).norm().item())
    one = rescaled(change)(dense).weight
    assert one.norm().item() == pytest.approx(pruned.weight.norm().item())
    assert torch.allclose(one / dense.weight, (one / dense.weight)[0, 0])


def test_a_temperature_changes_no_prediction(network: nn.Module) -> None:
    x = digits()
    warm = tempered(network, 3.0)
    assert torch.allclose(predict(warm, x) * 3, predict(network, x), atol=1e-5)
    assert torch.equal(predict(warm, x).argmax(1), predict(network, x).argmax(1))


# ------------------------------------------------------------------------------- on networks, by name


def test_prune_gives_a_new_network(network: nn.Module) -> None:
    before = {key: value.clone() for key, value in network.state_dict().items()}
    pruned = prune(network, "fc2", m2(80))
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    changed = [key for key, value in pruned.state_dict().items() if not torch.equal(before[key], value)]
    assert changed == ["fc2.weight"]


@pytest.mark.parametrize(
    ("name", "shape", "layer_name", "parameters"),
    [
        ("dense-cnn", {"channels": 1, "size": 28}, "fc1", 131_050),
        ("dense-vgg8", {"channels": 3, "size": 32}, "body.fc", 292_954 - 1_290 + 129 * 256 + 2_570),
    ],
)
def test_networks_with_a_hidden_layer(
    name: str, shape: dict[str, int], layer_name: str, parameters: int
) -> None:
    """Small enough for the repository (2 MB), and what is pruned stands second to last."""
    model = make(name, seed=0, **shape).eval()
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert 4 * sum(v.numel() for v in model.state_dict().values()) < 2 * 1024**2
    dense = [key for key, part in model.named_modules() if isinstance(part, nn.Linear)]
    assert dense[-2] == layer_name
    assert model(torch.rand(2, shape["channels"], shape["size"], shape["size"])).shape == (2, 10)
    with pytest.raises(BookError, match="8 pixels"):
        make("dense-cnn", seed=0, size=4)


def nested() -> nn.Module:
    return make("dense-vgg8", seed=0, channels=3, size=32, width=2, hidden=16).eval()


class Branched(nn.Module):
    """A network that is no chain: something happens behind its layer that no list of layers shows."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(784, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x.flatten(1)).relu()) * 2


@pytest.mark.parametrize("name", ["fc1", "fc2", "fc3"])
def test_the_shortcut_equals_the_whole_network(name: str, network: nn.Module) -> None:
    """For every dense layer, several changes: features once, then the rest, as prune and predict do it."""
    x = digits()
    features, behind = inputs_of(network, name, x, batch_size=25), Behind(network, name, x)
    frequency = frequencies(network, name, x)
    for change in (
        m2(0),
        m1(frequency, 30),
        m2(60),
        m3(frequency, 30),
        random_units(50, generator=generator()),
    ):
        dense = change(weights(network, name))
        whole = predict(prune(network, name, lambda _, found=dense: found), x)
        short = behind(features, dense.weight, dense.bias)
        assert torch.allclose(whole, short, atol=1e-5)
        assert torch.equal(whole.argmax(1), short.argmax(1))


def test_the_shortcut_goes_through_nested_chains() -> None:
    model, x = nested(), torch.rand(20, 3, 32, 32, generator=generator())
    features, behind = inputs_of(model, "body.fc", x), Behind(model, "body.fc", x)
    half = without(torch.arange(16) % 2 == 0)
    dense, whole = half(weights(model, "body.fc")), predict(prune(model, "body.fc", half), x)
    assert torch.allclose(whole, behind(features, dense.weight, dense.bias), atol=1e-5)
    assert not torch.allclose(whole, predict(model, x), atol=1e-2)


def test_the_shortcut_refuses_what_it_cannot_follow() -> None:
    with pytest.raises(BookError, match="not a chain"):
        Behind(Branched().eval(), "first", torch.rand(4, 1, 28, 28))


def test_layers_in_training_mode_are_left_as_they_were() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    x = torch.rand(6, 4)
    behind = Behind(model, "1", x)
    dense = weights(model, "1")
    assert torch.equal(behind(x, *dense), behind(x, *dense)) and model[3].training


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dense_layer(nested(), "body.conv1_1"), "body.fc"),
        (lambda: dense_layer(nn.Sequential(nn.ReLU()), "fc"), "there is none"),
        (lambda: m2(101), "percentage"),
        (lambda: m2(True), "percentage"),
        (lambda: rare(torch.zeros(3), 5, "quantile"), "reading"),
        (lambda: without(torch.zeros(3, dtype=torch.bool))(layer()), "12 outputs"),
        (lambda: without(torch.zeros(3, dtype=torch.bool), "rows"), "side"),
        (lambda: frequencies(nested(), "fc", torch.rand(2, 3, 32, 32), above=1.0), "above"),
        (lambda: tempered(nested(), 0.0), "temperature"),
    ],
)
def test_mistakes(call: object, says: str) -> None:
    with pytest.raises(BookError, match=says) as error:
        call()  # type: ignore[operator]
    assert "\n" not in str(error.value)
