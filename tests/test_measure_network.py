"""`robustbook measure`: measures against closed forms, mistakes in one line each, what can be measured is."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from robustbook.cli import cli
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.framework import Changed, proposition_6
from robustbook.measures import BUDGETS, MEASURES, Bench, Budget, examine
from robustbook.measures.gaussian import gnr
from robustbook.results.own import ORDER, Report, measure_network, plan_measures
from robustbook.training.synthesis import STRENGTHS, synthesis_fashion_mnist
from robustbook.vision import torchvision
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import nn

SMALL = Budget(30, 10, 30, 1, 60, 5, (3,), 6, 20, 40)


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class HalfSpace(nn.Module):
    """Two classes, cut by the mean of the pixels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        height = x.flatten(1).mean(1) - 0.5
        return torch.stack([-height, height], 1)


@pytest.fixture(scope="module")
def place() -> Bench:
    """Grey images without texture whose distance from the half-space is known."""
    x = (0.5 + 0.1 * torch.randn(30, 1, 1, 1, generator=drawn(0)).clamp(-2, 2)).expand(-1, 1, 28, 28).clone()
    y = (x.flatten(1).mean(1) > 0.5).long()
    return Bench(x, y, 2, x[:20], "made here")


def value(name: str, place: Bench, model: nn.Module | None = None) -> tuple[float, float, int]:
    return MEASURES[name](model or HalfSpace(), place, SMALL, drawn(1))


def test_margins_are_those_of_the_half_space(place: Bench) -> None:
    distance = 28 * (place.x[:10].flatten(1).mean(1) - 0.5).abs()
    assert value("r2-score", place)[0] == pytest.approx(float(distance.mean()), rel=0.1)
    low, _, count = value("dct-low-margin", place)
    assert low == pytest.approx(1.02 * float(distance.median()), rel=0.01) and count == 10
    assert value("dct-high-margin", place)[0] == pytest.approx(28.0)  # a mean has no high frequency
    assert value("r1-score", place)[0] < 1.0  # uniform noise has a mean close to 1/2


def test_accuracies_within_a_budget_are_those_of_the_half_space(place: Bench) -> None:
    kept = 100 * float(((place.x[:10].flatten(1).mean(1) - 0.5).abs() > 0.1).double().mean())
    assert 0 < kept < 100
    for name in ("autoattack-linf", "pgd-linf", "fgsm-linf"):
        found, error, _ = value(name, place)
        assert found == pytest.approx(kept)
        assert error == pytest.approx(math.sqrt(kept * (100 - kept) / 9), rel=1e-6)
    assert kept <= value("square-linf", place)[0] < 100  # sixty tries are not many
    assert value("clean-accuracy", place)[0] == 100.0


def test_few_pixels_are_as_many_as_the_half_space_needs(place: Bench) -> None:
    """To move a mean m to 1/2 the pixels that go to a bound are |m - 1/2| / (1 - m or m) of all."""
    mean = place.x[:10].flatten(1).mean(1)
    least = 100 * ((mean - 0.5).abs() / torch.where(mean > 0.5, mean, 1 - mean)).double()
    assert value("sparsefool-pixels", place)[0] == pytest.approx(float(least.mean()), rel=0.15)
    assert value("fmn-pixels", place)[0] >= 0.99 * float(least.mean())


def test_noise_corruptions_and_the_bound(place: Bench) -> None:
    chance = {"generator": drawn(1), "levels": 5, "batch_size": 250}
    assert value("noise-gnr", place)[0] == pytest.approx(gnr(HalfSpace(), place.x, **chance))
    accuracy, bound = value("corruption-accuracy", place)[0], value("proposition-6", place)[0]
    assert bound <= accuracy + 1e-9
    stack = iter(place.corrupted(6, (3,)))
    shifts = [Changed(lambda x, g, part=part: part) for part in stack]
    found = [
        proposition_6(HalfSpace(), s, place.x[:6], y=place.y[:6], draws=1, generator=drawn(0)) for s in shifts
    ]
    assert bound == pytest.approx(100 * np.mean([f.bound for f in found]))
    assert accuracy == pytest.approx(100 * np.mean([f.shifted for f in found]))


def test_r4_of_a_constant_is_the_ceiling(place: Bench) -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tensor([[1.0, 0.0]]).expand(len(x), -1) + 0 * x.flatten(1).sum(1, keepdim=True)

    assert value("r4-score", place, Constant())[0] == pytest.approx(100.0)
    assert value("r4-score", place)[0] < 100


# ------------------------------------------------------------------------------- networks that are not ours


def linear(classes: int = 10, outputs: str = "logits") -> nn.Module:
    """Template matching on the shipped part of Fashion-MNIST: far better than a guess, without training."""
    train = load("fashion-mnist-small", "train", limit=500)
    means = torch.stack([train.x[train.y == k].mean(0).flatten() for k in range(10)])
    layer = nn.Linear(784, 10)
    with torch.no_grad():
        layer.weight.copy_(means[:classes])
        layer.bias.copy_(-means[:classes].square().sum(1) / 2)
    parts = [nn.Flatten(), layer]
    return nn.Sequential(*parts, nn.Softmax(1)) if outputs == "probabilities" else nn.Sequential(*parts)


class Wrapped(nn.Module):
    def __init__(self, change) -> None:
        super().__init__()
        self.inner, self.change = linear(), change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(self.inner, x)


DATA = "fashion-mnist-small"
REFUSED = {
    "wrong shape": (lambda f, x: x, "must give"),
    "a pair": (lambda f, x: (f(x), f(x)), "tuple"),
    "a thousand": (lambda f, x: f(x).repeat(1, 100), "1000 outputs, the data 10 classes"),
    "not a number": (lambda f, x: f(x) * math.nan, "NaN"),
    "other images": (lambda f, x: f(x[:, :, :20]), "does not take images"),
    "bytes": (lambda f, x: f(x / 255), "--inputs 0-255"),
    "signed": (lambda f, x: f((x + 1) / 2 - (x.amin() >= 0) * 0.5 * torch.ones_like(x)), "--inputs -1-1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_network_that_cannot_be_measured_is_refused_in_one_line(name: str) -> None:
    change, words = REFUSED[name]
    with pytest.raises(BookError, match=words) as caught:
        plan_measures(Wrapped(change), DATA, budget="tiny")
    assert "\n" not in str(caught.value)


def test_bytes_are_measured_when_they_are_named() -> None:
    plan = plan_measures(Wrapped(REFUSED["bytes"][0]), DATA, budget="tiny", inputs="0-255")
    assert not plan.skipped and list(plan.seconds) == ORDER


def test_probabilities_are_noted_and_attacked_as_logits() -> None:
    plan = plan_measures(linear(outputs="probabilities"), DATA, budget="tiny")
    assert "probabilities, not logits" in plan.told() and not plan.skipped
    x = plan.bench.x[:5]
    torch.testing.assert_close(plan.subject.model(x).softmax(1), linear()(x).softmax(1))


FLAT = {
    "detached": lambda f, x: f(x.detach()),
    "rounded": lambda f, x: torch.round(100 * f(x)),
    "outside": lambda f, x: torch.from_numpy(f(x).detach().numpy()),
}


@pytest.mark.parametrize("name", FLAT)
def test_without_a_gradient_the_rest_is_measured(name: str) -> None:
    report = measure_network(
        Wrapped(FLAT[name]),
        DATA,
        budget="tiny",
        measures=["clean-accuracy", "square-linf", "r2-score"],
        progress=False,
    )
    table = report.table.set_index("measure")
    assert table.loc["clean-accuracy", "value"] > 50 and not math.isnan(table.loc["square-linf", "value"])
    assert math.isnan(table.loc["r2-score", "value"]) and "gradient" in table.loc["r2-score", "note"]


def test_a_network_that_guesses_or_wavers_is_noted() -> None:
    guess = plan_measures(Wrapped(lambda f, x: -f(x) * 0 + x.flatten(1)[:, :10] * 1e-3), DATA, budget="tiny")
    assert "no better than a guess" in guess.told()
    waver = plan_measures(Wrapped(lambda f, x: f(x) + 1e-3 * torch.randn(1)), DATA, budget="tiny")
    assert "changes from call to call" in waver.told()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_classifiers_get_what_applies_to_them(tmp_path: Path) -> None:
    train = load(DATA, "train", limit=300)
    rows, labels = train.x.flatten(1).numpy(), train.y.numpy()
    soft = measure_network(
        LogisticRegression(max_iter=30).fit(rows, labels), DATA, budget="tiny", progress=False
    )
    table = soft.table.set_index("measure")["value"]
    assert {name for name in table.index if math.isnan(table[name])} == {
        name for name in ORDER if MEASURES[name].needs == "gradients"
    }
    assert table["clean-accuracy"] > 50 and table["square-linf"] <= table["clean-accuracy"] + 40
    hard = plan_measures(LinearSVC(max_iter=30).fit(rows, labels), DATA, budget="tiny")
    assert "square-linf" in hard.skipped and "clean-accuracy" in hard.seconds
    with pytest.raises(BookError, match="does not take images"):
        plan_measures(LogisticRegression(max_iter=5).fit(rows[:, :50], labels), DATA, budget="tiny")
    with pytest.raises(BookError, match="other labels than 0 to 9"):
        plan_measures(LogisticRegression(max_iter=5).fit(rows, labels + 1), DATA, budget="tiny")


def test_a_network_of_torchvision_is_measured_and_a_second_call_measures_nothing(
    tmp_path: Path, monkeypatch
) -> None:
    torch.manual_seed(0)
    network = torchvision().models.squeezenet1_1(num_classes=10)
    chosen = ["clean-accuracy", "pgd-linf", "autoattack-linf", "noise-gnr"]
    how = {"measures": chosen, "budget": "tiny", "out": tmp_path, "progress": False}
    first = measure_network(network, "cifar10-small", **how)
    assert (first.table["note"] == "").all() and first.table["value"].between(0, 100).all()
    values = first.table.set_index("measure")["value"]
    assert values["autoattack-linf"] <= values["pgd-linf"] <= 100

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("robustbook.results.own._measured", never)
    again = measure_network(network, "cifar10-small", **how)
    pd.testing.assert_frame_equal(
        again.table[["measure", "value", "error"]], first.table[["measure", "value", "error"]]
    )
    with torch.no_grad():
        next(network.parameters()).mul_(1.5)
    with pytest.raises(AssertionError, match="measured again"):
        measure_network(network, "cifar10-small", **how)


def test_one_measure_that_fails_does_not_take_the_others_with_it() -> None:
    def only_clean(f, x):
        if len(x) == 6:
            raise RuntimeError("no more than five")
        return f(x)

    report = measure_network(
        Wrapped(only_clean), DATA, budget="tiny", measures=["clean-accuracy", "pgd-linf"], progress=False
    )
    notes = report.table.set_index("measure")["note"]
    assert (
        notes["clean-accuracy"] == ""
        and notes["pgd-linf"].startswith("failed")
        and "five" in notes["pgd-linf"]
    )


# ------------------------------------------------------------------------------------------------ the command


def command(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from robustbook.cli import main; main()", "measure", *arguments],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


def test_the_command_measures_keeps_and_goes_on(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "other_people.py").write_text(
        "from torch import nn\n\ndef make_network():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\n\nnothing = 3\n\n"
        "def broken():\n    raise KeyError('weights.pt')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    plain = ["measure", "other_people:make_network", "--data", DATA, "--budget", "tiny", "--quiet"]
    chosen = ["--measures", "clean-accuracy,pgd-linf", "--out", "here"]
    run = CliRunner()
    dry = run.invoke(cli, [*plain, "--dry-run"], catch_exceptions=False)
    assert "minutes on this machine" in dry.output and not (tmp_path / "measured").exists()
    torch.manual_seed(0)
    done = run.invoke(cli, [*plain, *chosen], catch_exceptions=False)
    assert done.exit_code == 0 and "clean-accuracy" in done.output
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        "figure.pdf", "figure.png", "measures.csv", "table.csv"
    }  # fmt: skip
    for target, words in {
        "other_people": "write package.module:make_network",
        "nowhere:make": "ModuleNotFoundError",
        "other_people:absent": "AttributeError",
        "other_people:nothing": "TypeError",
        "other_people:broken": "KeyError",
    }.items():
        with pytest.raises(BookError, match=words):
            run.invoke(
                cli, ["measure", target, "--data", DATA], catch_exceptions=False, standalone_mode=False
            )
    for option, value, words in (
        ("--measures", "clean-acuracy", "did you mean clean-accuracy"),
        ("--budget", "tinny", "did you mean tiny"),
        ("--inputs", "0-25", "did you mean 0-255"),
    ):
        with pytest.raises(BookError, match=words):
            run.invoke(cli, [*plain, option, value], catch_exceptions=False, standalone_mode=False)


def test_a_module_that_imports_torchvision_plainly_gives_its_network(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "from_vision.py").write_text(
        "import torchvision\n\n\ndef make_network():\n"
        "    return torchvision.models.squeezenet1_1(num_classes=10)\n"
    )
    monkeypatch.chdir(tmp_path)
    code, told = command(
        "from_vision:make_network", "--data", "cifar10-small", "--budget", "tiny", "--dry-run"
    )
    assert code == 0, told


def test_a_network_that_comes_in_training_mode_is_measured_in_evaluation_mode() -> None:
    """Batch norm refuses a single image in training mode, and learns from whatever passes through it."""
    network = nn.Sequential(linear(), nn.BatchNorm1d(10)).train()
    before = network[1].running_mean.clone()
    how = {"measures": ["autoattack-linf", "clean-accuracy"], "budget": "tiny", "progress": False}
    first = measure_network(network, DATA, **how).table
    assert network.training and torch.equal(network[1].running_mean, before)
    again = measure_network(network.eval(), DATA, **how).table
    assert (first["note"] == "").all() and list(first["value"]) == list(again["value"])


def test_what_was_not_measured_is_not_compared() -> None:
    table = pd.DataFrame(
        {
            "measure": ["pgd-linf", "clean-accuracy"],
            "unit": "%",
            "value": [math.nan, 60.0],
            "error": 1.0,
            "images": 5,
            "note": "",
        }
    )
    book = pd.DataFrame(
        {
            "network": ["a", "b"] * 2,
            "measure": ["pgd-linf"] * 2 + ["clean-accuracy"] * 2,
            "value": [1.0, 2.0, 50.0, 70.0],
        }
    )
    assert list(Report("yours", table, book, ()).beside()["book_below"]) == ["", "1 of 2"]


def test_a_mistake_is_one_line_and_exit_code_2() -> None:
    code, told = command("nothing", "--data", DATA)
    assert code == 2 and told.count("\n") == 1 and told.startswith("robustbook: ")


# --------------------------------------------------------------------------------------------------- recipes


def test_every_defence_learns_from_as_much() -> None:
    plans = {name: synthesis_fashion_mnist(name) for name in STRENGTHS}
    same = {
        (r.network, r.dataset, str(r.options), r.fit["epochs"], r.fit["batch_size"], r.fit["lr"])
        for r in plans.values()
    }
    assert len(same) == 1
    changed = [name for name, r in plans.items() if "loss" in r.fit or "transform" in r.fit]
    assert changed == [name for name in STRENGTHS if name != "none"]
    with pytest.raises(BookError, match="did you mean prime"):
        synthesis_fashion_mnist("primer")


def test_budgets_grow() -> None:
    sizes = [BUDGETS[f"budget-{name}"]() for name in ("tiny", "quick", "laptop", "full")]
    for small, large in itertools.pairwise(sizes):
        assert small.images < large.images and small.attacked < large.attacked and small.steps < large.steps


def test_the_examination_leaves_the_network_as_it_was(place: Bench) -> None:
    network = nn.Sequential(nn.Identity(), HalfSpace(), nn.Linear(2, 2), nn.Dropout(0.5)).train()
    with torch.no_grad():
        network[2].weight.copy_(torch.eye(2))
        network[2].bias.zero_()
    before = [p.clone() for p in network.parameters()]
    subject = examine(network, place.x, place.y, classes=2)
    assert network.training and all(p.grad is None for p in network.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters()))
    assert subject.gives == "gradients" and not subject.limits
