"""`fit`: the same bits for the same seed, the numbers of torch's own optimisers, and clear refusals."""

import io
import math
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from robustbook.errors import BookError
from robustbook.networks import make
from robustbook.rehearsal import rehearsal
from robustbook.training import Record, cross_entropy_loss, evaluating, fit, predict, split
from robustbook.training.progress import Bar
from robustbook.training.schedules import make_schedule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 8, "lr": 0.05, "seed": 0}


def toy(count: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Three classes in four dimensions, told apart by a line each."""
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 4, generator=g)
    return x, (x[:, :3] * torch.tensor([1.0, 1.2, 0.9])).argmax(1)


def network(seed: int = 0, *, dropout: float = 0.0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 3))


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def equal(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second))


def jitter(model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    return x + 0.1 * torch.randn(x.shape, generator=generator), y


# ---------------- determinism

WAYS: dict[str, dict[str, Any]] = {
    "adam": {},
    "sgd one-cycle": {"optimizer": "sgd", "schedule": "one-cycle", "nesterov": True},
    "transform": {"transform": jitter},
    "no validation": {"validation": None},
    "clipped": {"clip_norm": 0.1, "weight_decay": 0.01},
}


@pytest.mark.parametrize("way", WAYS)
def test_same_seed_same_bits(way: str) -> None:
    def run(seed: int = 0) -> list[Tensor]:
        model = network(dropout=0.5)
        fit(model, toy(), **{**QUICK, "seed": seed, **WAYS[way]})
        return weights(model)

    first = run()
    torch.rand(101)  # other uses of chance in between must not matter
    assert equal(first, run())
    assert equal(first, run())
    assert not equal(first, run(seed=1))


def test_same_bits_for_a_real_network() -> None:
    x, y = torch.rand(64, 1, 28, 28), torch.arange(64) % 10

    def run() -> list[Tensor]:
        model = make("lenet5", seed=3)
        fit(model, (x, y), epochs=2, batch_size=16, lr=1e-2, seed=3)
        return weights(model)

    first = run()
    torch.manual_seed(99)
    assert equal(first, run())


def test_same_bits_whatever_the_strides() -> None:
    """One channel can be stored as if channels came last; torch then takes other convolution kernels."""
    x, y = torch.rand(64, 1, 28, 28), torch.arange(64) % 10
    odd = torch.as_strided(x.clone(), x.shape, (784, 1, 28, 1))
    assert torch.equal(x, odd) and x.stride() != odd.stride()

    def run(images: Tensor) -> list[Tensor]:
        model = make("lenet5", seed=3)
        fit(model, (images, y), epochs=2, batch_size=16, lr=1e-2, seed=3)
        return weights(model)

    assert equal(run(x), run(odd))


def test_same_bits_from_a_shuffling_loader() -> None:
    """A DataLoader draws its order from the global state, which `fit` sets for the time it runs."""

    def run() -> list[Tensor]:
        model = network()
        loader = DataLoader(TensorDataset(*toy()), batch_size=8, shuffle=True)
        fit(model, loader, **QUICK, validation=None)
        return weights(model)

    first = run()
    torch.rand(5)
    assert equal(first, run())


def test_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    fit(network(dropout=0.5), toy(), **QUICK)
    assert torch.equal(torch.get_rng_state(), before)


def test_global_random_state_is_left_alone_after_a_failure() -> None:
    before = torch.get_rng_state()
    with pytest.raises(BookError):
        fit(network(dropout=0.5), toy(), **QUICK, loss=lambda model, x, y: model(x))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_transform_that_draws_more_keeps_the_order_of_images() -> None:
    def order(draws: int) -> list[Tensor]:
        seen = []

        def watch(
            model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
        ) -> tuple[Tensor, Tensor]:
            torch.rand(draws, generator=generator)
            seen.append(x)
            return x, y

        fit(network(), toy(), **QUICK, transform=watch)
        return seen

    assert equal(order(1), order(1000))


# ---------------- the loop's arithmetic


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_steps_are_torchs(name: str) -> None:
    """One batch an epoch, so the order does not matter: the plain loop of torch gives the same weights."""
    x, y = toy()
    model, twin = network(), network()
    settings: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.02}
    if name == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam(twin.parameters(), betas=(0.8, 0.9), **settings)
        settings["betas"] = (0.8, 0.9)
    else:
        optimizer = torch.optim.SGD(twin.parameters(), momentum=0.7, nesterov=True, **settings)
        settings |= {"momentum": 0.7, "nesterov": True}
    fit(
        model,
        (x, y),
        epochs=6,
        batch_size=40,
        seed=0,
        optimizer=name,
        validation=None,
        clip_norm=0.5,
        **settings,
    )
    for _ in range(6):
        optimizer.zero_grad()
        cross_entropy(twin(x), y).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        optimizer.step()
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(model), weights(twin)))


def test_clip_bounds_the_step() -> None:
    model = network()
    before = torch.cat([p.detach().clone().flatten() for p in model.parameters()])
    fit(
        model,
        toy(),
        epochs=1,
        batch_size=40,
        lr=1.0,
        momentum=0.0,
        seed=0,
        optimizer="sgd",
        clip_norm=1e-3,
        validation=None,
    )
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert (after - before).norm().item() == pytest.approx(1e-3, rel=1e-2)


def test_it_learns_and_says_so() -> None:
    model = network()
    history = fit(model, toy(400), epochs=20, batch_size=20, lr=0.02, seed=0)
    first, best = history.records[0], history.best
    assert best.val_loss is not None and first.val_loss is not None and best.val_loss < first.val_loss
    assert best.val_accuracy is not None and best.val_accuracy > 0.85
    assert history.steps == 20 * 18
    assert not model.training
    summary = history.summary()
    assert summary["val_accuracy"] == best.val_accuracy and summary["epochs"] == 20


def test_records_are_means_over_samples() -> None:
    """Also with a last batch that is smaller."""
    model, (x, y) = network(), toy(10)
    rate = 1e-30  # nothing moves
    history = fit(model, (x, y), epochs=1, batch_size=4, lr=rate, seed=0, optimizer="sgd", validation=(x, y))
    record = history.records[0]
    with torch.no_grad():
        logits = model(x)
    assert record.train_loss == pytest.approx(cross_entropy(logits, y).item(), rel=1e-5)
    assert record.val_loss == pytest.approx(record.train_loss, rel=1e-5)
    assert record.train_accuracy == record.val_accuracy == (logits.argmax(1) == y).double().mean().item()
    assert (record.epoch, record.steps, record.lr) == (1, 3, rate)


def test_frozen_parameters_stay() -> None:
    model = network()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    before = weights(model)
    fit(model, toy(), **QUICK)
    after = weights(model)
    assert equal(before[:2], after[:2]) and not equal(before[2:], after[2:])


def test_channels_last_changes_only_the_memory() -> None:
    x, y = torch.rand(32, 1, 28, 28), torch.arange(32) % 10

    def run(channels_last: bool) -> list[Tensor]:
        model = make("lenet5", seed=0)
        fit(model, (x, y), epochs=1, batch_size=8, lr=1e-3, seed=0, channels_last=channels_last)
        return weights(model)

    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(run(False), run(True)))


# ---------------- losses, transforms


def test_loss_without_outputs_has_no_accuracy() -> None:
    history = fit(network(), toy(), **QUICK, loss=lambda model, x, y: cross_entropy(model(x), y))
    assert history.best.train_accuracy is None
    assert history.best.val_accuracy is not None


def test_several_views_and_a_second_network() -> None:
    """A transform may return more images than labels, a loss may train somebody else."""
    other = network(seed=9)
    optimizer, before = torch.optim.SGD(other.parameters(), lr=0.1), weights(other)

    def views(model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.cat([x, jitter(model, x, y, generator)[0], jitter(model, x, y, generator)[0]]), y

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        cross_entropy(other(x.chunk(3)[0]), y).backward()
        optimizer.step()
        clean, first, second = model(x).chunk(3)
        return cross_entropy(clean, y) + (first - second).square().mean(), clean

    history = fit(network(), toy(), **QUICK, loss=loss, transform=views)
    assert history.best.train_accuracy is not None
    assert not equal(before, weights(other))


def test_attack_in_a_transform_leaves_no_gradient_behind() -> None:
    """What an attack accumulates in the parameters must not reach the step."""

    def attack(model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        (1e6 * model(x).sum()).backward()
        return x, y

    plain, attacked = network(), network()
    fit(plain, toy(), **QUICK)
    fit(attacked, toy(), **QUICK, transform=attack)
    assert equal(weights(plain), weights(attacked))


def test_class_probabilities_as_labels() -> None:
    x, y = toy()
    soft = nn.functional.one_hot(y, 3).float()
    hard, mixed = network(), network()
    one = fit(hard, (x, y), **QUICK)
    two = fit(mixed, (x, soft), **QUICK)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(hard), weights(mixed)))
    assert one.best.train_accuracy == two.best.train_accuracy


def test_validation_loss_decides() -> None:
    """A custom one may need gradients, as an attack does; the model is in evaluation mode."""
    asked = []

    def robust(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = x.clone().requires_grad_()
        torch.autograd.grad(model(x).sum(), x)
        asked.append(model.training)
        return torch.tensor(float(len(asked))), model(x)

    history = fit(network(), toy(), epochs=3, batch_size=40, lr=0.1, seed=0, validation_loss=robust)
    assert asked == [False] * 3
    assert [r.val_loss for r in history.records] == [1, 2, 3]
    assert history.best_epoch == 1


# ---------------- best model, early stop, callbacks


def worsening(calls: list[int]) -> Any:
    """A validation loss that improves twice and then rises."""
    values = [3.0, 2.0, 1.0, 1.5, 1.4, 1.3, 1.2, 1.1]

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        calls.append(1)
        return torch.tensor(values[len(calls) - 1])

    return loss


@pytest.mark.parametrize(("keep", "kept"), [(True, 3), (False, 6)])
def test_best_weights_come_back(keep: bool, kept: int) -> None:
    seen: dict[int, list[Tensor]] = {}

    def remember(epoch: int, model: nn.Module, record: Record) -> None:
        assert record.epoch == epoch and not model.training
        seen[epoch] = weights(model)

    model = network()
    history = fit(
        model,
        toy(),
        epochs=6,
        batch_size=20,
        lr=0.1,
        seed=0,
        validation_loss=worsening([]),
        keep_best=keep,
        on_epoch=remember,
    )
    assert history.best_epoch == kept and not history.stopped_early
    assert equal(weights(model), seen[kept]) and not equal(seen[3], seen[6])


def test_early_stop() -> None:
    history = fit(
        network(), toy(), epochs=8, batch_size=20, lr=0.1, seed=0, patience=2, validation_loss=worsening([])
    )
    assert history.stopped_early and history.best_epoch == 3 and len(history.records) == 5


def test_plateau_lowers_the_rate() -> None:
    """Losses 3 2 1 1.5 1.4 1.3 ...: with patience 1 the rate falls after the 2nd epoch without gain."""
    history = fit(
        network(),
        toy(),
        epochs=8,
        batch_size=20,
        lr=0.1,
        seed=0,
        schedule="plateau",
        schedule_options={"factor": 0.5, "patience": 1},
        validation_loss=worsening([]),
    )
    rates = [round(r.lr, 6) for r in history.records]
    assert rates == [0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.025]


def test_without_validation_the_last_epoch_is_kept() -> None:
    history = fit(network(), toy(), **QUICK, validation=None)
    assert history.best_epoch == 2
    assert history.best.val_loss is None and history.best.val_accuracy is None


# ---------------- schedules


def rates(name: str, total: int | None, **options: Any) -> list[tuple[float, float]]:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.2, momentum=0.9)
    schedule = make_schedule(name, optimizer, total, options)
    seen = []
    for _ in range(total or 5):
        group = optimizer.param_groups[0]
        seen.append((group["lr"], group["momentum"]))
        optimizer.step()
        schedule.after_step()
    return seen


@given(st.integers(1, 60), st.floats(0.05, 0.95))
def test_triangular(total: int, peak: float) -> None:
    """As published for "Hold me tight": piecewise linear through (0, 0), (peak, lr), (1, 0)."""
    for step, (lr, _) in enumerate(rates("triangular", total, peak=peak)):
        done = (step + 1) / total
        expected = 0.2 * done / peak if done <= peak else 0.2 * (1 - done) / (1 - peak)
        assert lr == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 60), st.floats(0, 1))
def test_linear_and_cosine(total: int, end: float) -> None:
    straight, curved = rates("linear", total, end=end), rates("cosine", total, end=end)
    for step in range(total):
        done = step / total
        assert straight[step][0] == pytest.approx(0.2 * (1 - done + end * done))
        assert curved[step][0] == pytest.approx(0.2 * (end + (1 - end) * math.cos(math.pi * done / 2) ** 2))


@pytest.mark.parametrize("total", [10, 37])
def test_one_cycle_is_torchs(total: int) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.2, momentum=0.9)
    scheduler, expected = OneCycleLR(optimizer, 0.2, total_steps=total, pct_start=0.25), []
    for _ in range(total):
        expected.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        optimizer.step()
        scheduler.step()
    assert rates("one-cycle", total, pct=0.25) == expected


@pytest.mark.parametrize("total", range(1, 9))
def test_one_cycle_of_any_length(total: int) -> None:
    """torch divides by 0 where the rise is exactly one step, as with 4 steps and pct 0.25."""
    assert all(math.isfinite(lr) and lr > 0 for lr, _ in rates("one-cycle", total, pct=0.25))


def test_constant() -> None:
    assert rates("constant", None) == [(0.2, 0.9)] * 5


def test_schedules_inside_fit() -> None:
    history = fit(
        network(), toy(), epochs=4, batch_size=9, lr=0.1, seed=0, optimizer="sgd", schedule="linear"
    )
    assert [r.lr for r in history.records] == pytest.approx([0.1 * (1 - s / 16) for s in (3, 7, 11, 15)])


# ---------------- sources of batches


class Counted:
    """Batches that can be read again, but are not counted."""

    def __init__(self) -> None:
        self.passes = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        self.passes += 1
        x, y = toy()
        yield from zip(x.split(8), y.split(8))


def test_a_list_of_batches_is_what_the_tensors_are() -> None:
    x, y = toy()
    whole, parts = network(), network()
    fit(whole, (x, y), epochs=3, batch_size=40, lr=0.1, seed=0, validation=None)
    fit(parts, [(x, y)], epochs=3, batch_size=1, lr=0.1, seed=0, validation=None)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(whole), weights(parts)))


def test_uncounted_batches() -> None:
    data = Counted()
    history = fit(network(), data, **QUICK, validation=toy())
    assert history.steps == 10 and data.passes == 3  # one look, two epochs
    history = fit(network(), data, **QUICK, validation=None, schedule="cosine", max_steps=7)
    assert history.steps == 7 and [r.steps for r in history.records] == [5, 2]


def test_max_steps_ends_within_an_epoch() -> None:
    history = fit(network(), toy(), **QUICK, max_steps=3)
    assert history.steps == 3 and len(history.records) == 1 and not history.stopped_early


def test_every_training_image_is_seen_once_an_epoch_and_no_other() -> None:
    x, y = toy(30)
    seen: list[Tensor] = []

    def watch(model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        seen.append(x)
        return x, y

    fit(network(), (x, y), epochs=2, batch_size=7, lr=0.1, seed=5, validation=0.2, transform=watch)
    first, second = torch.cat(seen[:4]), torch.cat(seen[4:])
    assert len(first) == len(second) == 24 == len(first.unique(dim=0))
    assert torch.equal(first.unique(dim=0), second.unique(dim=0)) and not torch.equal(first, second)


@given(st.integers(2, 50), st.floats(0.01, 0.99), st.integers(0, 5))
def test_split(count: int, fraction: float, seed: int) -> None:
    x, y = torch.arange(count).float(), torch.arange(count)
    (train_x, train_y), (held_x, held_y) = split((x, y), fraction, seed)
    assert sorted([*train_y.tolist(), *held_y.tolist()]) == y.tolist()
    assert torch.equal(train_x.long(), train_y) and torch.equal(held_x.long(), held_y)
    assert len(held_y) == min(max(1, round(fraction * count)), count - 1)


# ---------------- mistakes

X, Y = toy()
NAN = X.clone()
NAN[17] = math.nan
MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    ((X, Y), {"optimizer": "adma"}, "unknown optimizer 'adma'; did you mean adam"),
    ((X, Y), {"schedule": "onecycle"}, "unknown schedule 'onecycle'; did you mean one-cycle"),
    ((X, Y), {"schedule": "cosine", "schedule_options": {"ends": 0}}, "unknown option of schedule 'cosine'"),
    ((X, Y), {"schedule": "triangular", "schedule_options": {"peak": 1}}, "schedule 'triangular': peak=1"),
    ((X, Y), {"schedule": "one-cycle", "schedule_options": {"pct": 2.0}}, "schedule 'one-cycle'"),
    ((X, Y), {"optimizer": "sgd", "momentum": -1.0}, "optimizer 'sgd'"),
    ((X, Y), {"epochs": 0}, "epochs=0"),
    ((X, Y), {"batch_size": 2.5}, "batch_size=2.5"),
    ((X, Y), {"max_steps": 0}, "max_steps=0"),
    ((X, Y), {"lr": 0.0}, "lr=0.0"),
    ((X, Y), {"seed": -1}, "seed=-1"),
    ((X, Y), {"validation": 1.5}, "validation=1.5"),
    ((X, Y), {"validation": None, "patience": 3}, "need validation data"),
    ((X, Y), {"validation": None, "schedule": "plateau"}, "need validation data"),
    ((X, Y), {"validation": (X, Y + 5)}, "labels go from 5 to 7"),
    ((X, Y), {"loss": lambda model, x, y: model(x)}, "must return a scalar"),
    ((X[:0], Y[:0]), {}, "0 images"),
    ((X[:1], Y[:1]), {}, "one image cannot be split"),
    ((X, Y[:5]), {}, "40 images but 5 labels"),
    ((X[:, :3], Y), {}, "does not take images of shape (3,)"),
    ((X, Y + 1), {}, "labels go from 1 to 3, but the network has 3 outputs; make it with classes=4"),
    ((X, Y - 1), {}, "labels go from -1"),
    ((X, Y.float()), {}, "labels are torch.float32"),
    ((X, torch.rand(40, 5)), {}, "5 class probabilities for 3 outputs"),
    (((255 * X).to(torch.uint8), Y), {}, "images are torch.uint8"),
    ((NAN, Y), {"validation": None}, "in epoch 1, step "),
    ([], {"validation": None}, "gives no batch"),
    ([(X, Y)], {}, "cannot be split"),
    ([X], {"validation": None}, "must be a pair"),
    ([(X, Y), (X, Y + 7)], {"validation": None}, "labels do not fit"),
    (iter([(X, Y)]), {"validation": None}, "only once"),
    (X, {}, "data of type Tensor"),
    (Counted(), {"validation": None, "schedule": "linear"}, "must know how many steps"),
]


@pytest.mark.parametrize(("data", "settings", "message"), MISTAKES, ids=[m for *_, m in MISTAKES])
def test_mistakes(data: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BookError) as error:
        fit(network(), data, **{**QUICK, **settings})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_divergence_names_the_place_and_the_remedy() -> None:
    with pytest.raises(BookError, match=r"epoch 2, step 1[0-9].*lower lr or clip_norm"):
        fit(
            network(),
            toy(80),
            epochs=2,
            batch_size=8,
            lr=0.1,
            seed=0,
            loss=lambda model, x, y: cross_entropy(model(x), y) * (math.inf if poisoned() else 1),
        )


STEPS = [0]


def poisoned() -> bool:
    STEPS[0] += 1
    return STEPS[0] == 14


def test_nothing_to_train() -> None:
    with pytest.raises(BookError, match="no parameter"):
        fit(nn.Identity(), (torch.rand(4, 3), torch.arange(4) % 3), **QUICK)


# ---------------- rehearsal, progress, prediction


def test_rehearsal_is_one_small_step() -> None:
    sizes = []

    def watch(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        sizes.append(len(x))
        return cross_entropy_loss(model, x, y)

    with rehearsal():
        for data, held in [(toy(), 0.1), (Counted(), toy()), (toy(), Counted())]:
            history = fit(
                network(),
                data,
                epochs=90,
                batch_size=32,
                lr=0.1,
                seed=0,
                loss=watch,
                validation=held,
                validation_loss=watch,
                schedule="one-cycle",
            )
            assert history.steps == 1
    assert len(sizes) == 6 and max(sizes) <= 8


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("progress", "terminal"), [(True, True), (False, True), (True, False)])
def test_progress_only_where_it_is_wanted(
    progress: bool, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    fit(network(), toy(), **QUICK, progress=progress)
    assert ("step" in stream.getvalue()) == (progress and terminal)
    assert stream.getvalue() == "" or (progress and terminal)


def test_progress_bar_says_where_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar(50, epochs=3, shown=True) as bar:
        bar.step(2, 0.123456, 0.987)
        bar.bar.refresh()
        bar.step(2, 0.25, None)
    assert "epoch 2/3" in stream.getvalue() and "1/50" in stream.getvalue()
    assert "loss 0.1235, accuracy 98.7 %" in stream.getvalue()


def test_predict() -> None:
    model, (x, _) = network(dropout=0.5).train(), toy()
    model[0].eval()
    whole = predict(model, x)
    assert torch.allclose(predict(model, x, batch_size=7), whole)
    assert torch.equal(predict(model, x), whole)  # no dropout
    assert not whole.requires_grad
    assert [layer.training for layer in model] == [False, True, True, True] and model.training


def test_evaluating_restores_after_a_failure() -> None:
    model = network().train()
    with pytest.raises(ZeroDivisionError), evaluating(model):
        assert not model.training
        1 / 0  # noqa: B018
    assert all(layer.training for layer in model)
