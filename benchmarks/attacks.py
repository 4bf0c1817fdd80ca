"""What attacks cost: ours beside adversarial-library's, Foolbox's and torchattacks', and beside plain loops.

    python benchmarks/attacks.py [rounds]

One run, one thread, the same networks, images and limits for all. The attacks of a task take turns, so that
whatever else the machine does hits them alike; a ratio compares processor times within a round, and the table
has the medians over rounds with their quartiles. Gradients and passes are counted at the network's input, one
for each image, in the same way for all. Writes results/benchmarks/attacks.csv and .json.

The peers are no part of the environment: `make bench` installs them.
"""

import functools
import importlib
import itertools
import math
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pandas as pd
import torch
from robustbook.attacks.deepfool import deepfool, deepfool_subspaces
from robustbook.attacks.sparsefool import sparsefool
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.provenance import environment, today
from robustbook.storage import results_folder, write_json, write_text
from robustbook.training import fit, trained
from robustbook.training.evaluation import predict
from robustbook.vision import torchvision
from torch import Tensor, nn

PEERS = ("adv-lib", "foolbox", "torchattacks")
WINDOW, SUBSPACES = 8, 21


# ------------------------------------------------------------------------------------------- counting


class _Counted(torch.autograd.Function):
    """The identity; whatever passes back is counted."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, owner: "Counting") -> Tensor:
        ctx.owner = owner
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        ctx.owner.gradients += len(slope)
        return slope, None


class Counting(nn.Module):
    """A network that counts the images that pass forward, and the gradients that pass back."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.requires_grad_(False)
        self.forwards = self.gradients = 0
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += len(x)
        return self.model(_Counted.apply(x, self) if x.requires_grad else x)


# ---------------------------------------------------------------------------------------------- peers


def peer(name: str) -> types.ModuleType:
    """A library to compare with."""
    torchvision()  # which two of them import, also where its compiled operators do not load
    sys.modules.setdefault("visdom", types.ModuleType("visdom"))  # adv-lib draws with it, but not here
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise BookError(f"this benchmark compares with {name} ({error}); run: make bench") from error


def foolbox_deepfool(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Foolbox's DeepFool with its published limits: 50 steps, 10 candidates."""
    foolbox = peer("foolbox")
    attack = foolbox.attacks.L2DeepFoolAttack(steps=50, candidates=10, overshoot=0.02)
    return attack.run(foolbox.PyTorchModel(model, bounds=(0, 1)), x, y)


def plain_loop(model: nn.Module, x: Tensor, y: Tensor, bases: Tensor) -> Tensor:
    """DeepFool subspace by subspace and image by image, with all candidates at every step."""
    deltas = [[_plain(model, x[i : i + 1], basis) for i in range(len(x))] for basis in bases]
    return torch.stack([torch.cat(row) for row in deltas])


def _plain(model: nn.Module, x: Tensor, basis: Tensor) -> Tensor:
    """The published limits of margins: 10 candidates, 100 steps, overshoot 0.02, steps of at least 1e-4."""
    total, classes = torch.zeros_like(x), None
    for _ in range(100):
        point = (x + 1.02 * total).requires_grad_()
        scores = model(point)[0]
        if classes is None:
            classes = scores.argsort(descending=True)[:10]
        if scores.argmax() != classes[0]:
            break
        least, step = math.inf, total
        for k in classes[1:]:
            gap = scores[k] - scores[classes[0]]
            (slope,) = torch.autograd.grad(gap, point, retain_graph=True)
            coordinates = slope.flatten() @ basis
            steep = float(coordinates.norm())
            if abs(gap.item()) / steep < least:
                least = abs(gap.item()) / steep
                step = max(least, 1e-4) / steep * (basis @ coordinates).reshape(x.shape)
        total = total + step
    return 1.02 * total


# ---------------------------------------------------------------------------------- networks, subspaces


class Residual(nn.Module):
    """Two convolutions and a way around them (He et al., 2016)."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        stride = 1 if inside == outside else 2
        self.body = nn.Sequential(
            *(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()),
            *(nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)),
        )
        self.around = nn.Sequential() if stride == 1 else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.around(x))


def cifar_resnet(steps: int = 150) -> nn.Module:
    """ResNet-20 for CIFAR-10, trained for a few steps: enough for boundaries that are not flat."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
        model = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(Residual(*pair) for pair in itertools.pairwise(widths)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
        )
    options: dict[str, Any] = {"optimizer": "sgd", "max_steps": steps, "validation": None, "progress": False}
    fit(model, load("cifar10", "train"), epochs=1, batch_size=64, lr=0.1, seed=0, **options)
    return model


def windows(size: int, channels: int) -> Tensor:
    """Orthonormal bases of square windows that slide along the diagonal of the discrete cosine transform."""
    k = torch.arange(size, dtype=torch.float64)
    waves = torch.cos(math.pi * (k[:, None] + 0.5) * k / size) * math.sqrt(2 / size)  # one a column
    waves[:, 0] /= math.sqrt(2)
    starts = [round((size - WINDOW) * i / (SUBSPACES - 1)) for i in range(SUBSPACES)]
    blocks = [waves[:, s : s + WINDOW].contiguous() for s in starts]
    return torch.stack([torch.block_diag(*[torch.kron(b, b)] * channels) for b in blocks]).float()


# ----------------------------------------------------------------------------------------------- tasks


@dataclass
class Task:
    """Attacks on the same images; the first is ours, the others are wanted to take so many times as long."""

    name: str
    model: Counting
    x: Tensor
    measure: str
    attacks: dict[str, tuple[Callable[..., Any], float | None]]

    def result(self, y: Tensor, found: Any) -> tuple[float, float]:
        """Per cent fooled, and the median over them of what is measured."""
        found = getattr(found, "delta", found)
        points = found if found.shape == self.x.shape else self.x + found
        delta = (points - self.x).flatten(0, -self.x.dim())  # of all subspaces, if there are several
        labels = y.repeat(len(delta) // len(y))
        hit = predict(self.model.model, points.reshape(delta.shape)).argmax(1) != labels
        if self.measure == "median % of pixels":
            size = 100 * (delta.abs().sum(1) > 1e-6).flatten(1).double().mean(1)
        else:
            size = delta.flatten(1).norm(dim=1)
        return 100 * hit.double().mean().item(), size[hit].median().item()


def tasks() -> Iterator[Task]:
    """The comparisons, one after another."""
    mnist, cifar = (next(iter(load(name, "test", limit=1000))) for name in ("mnist", "cifar10"))
    lenet = Counting(trained("lenet5-mnist", 0, progress=False))
    advlib, torchattacks = peer("adv_lib.attacks"), peer("torchattacks")
    kinds: dict[str, tuple[Callable[..., Any], float | None]] = {
        "robustbook": (deepfool, None),
        "adversarial-library": (functools.partial(advlib.df, steps=50), 2),
        "Foolbox": (foolbox_deepfool, 6),
    }
    yield Task("boxed L2 DeepFool, LeNet-5, MNIST", lenet, mnist[:1000], "median L2", kinds)
    for name, model, x, wanted in (
        ("LeNet-5, MNIST", lenet, mnist[:24], 10),
        ("ResNet-20, CIFAR-10", Counting(cifar_resnet()), cifar[:10], 3),
    ):
        bases = windows(x.shape[-1], x.shape[1])
        kinds = {
            "robustbook": (functools.partial(deepfool_subspaces, bases=bases, batch_size=500), None),
            "image by image": (functools.partial(plain_loop, bases=bases), wanted),
        }
        yield Task(f"free DeepFool in {SUBSPACES} subspaces, {name}", model, x, "median L2", kinds)
    kinds = {
        "robustbook": (sparsefool, None),
        "robustbook, lambda 1": (functools.partial(sparsefool, lam=1.0), None),
        "torchattacks": (lambda model, x, y: torchattacks.SparseFool(model)(x, y), 20),
    }
    yield Task("SparseFool, LeNet-5, MNIST", lenet, mnist[:30], "median % of pixels", kinds)


def compare(task: Task, rounds: int) -> list[dict[str, Any]]:
    """Let the attacks of a task take turns; one line each."""
    y = predict(task.model.model, task.x).argmax(1)  # the network's own label: every image is attacked
    times: dict[str, list[float]] = {name: [] for name in task.attacks}
    found: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for name, (attack, _) in task.attacks.items():
            task.model.forwards = task.model.gradients = 0
            start = time.process_time()
            points = attack(task.model, task.x, y)
            times[name].append(time.process_time() - start)
            if turn == 0:
                counts = {
                    "gradients": task.model.gradients / len(y),
                    "forwards": task.model.forwards / len(y),
                }
                fooled, result = task.result(y, points)
                found[name] = {**counts, "fooled": fooled, "measure": task.measure, "result": result}
    lines = []
    for name, (_, wanted) in task.attacks.items():
        ratios = [t / base for t, base in zip(times[name], times["robustbook"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, method="inclusive")
        cost = 1e3 * statistics.median(times[name]) / len(y)
        line = {"task": task.name, "attack": name, "images": len(y), "milliseconds": cost, "ratio": middle}
        lines.append({**line, "ratio_low": low, "ratio_high": high, "wanted": wanted, **found[name]})
    return lines


def main(rounds: int = 5) -> pd.DataFrame:
    """All tasks, printed as they come; quartiles need two rounds."""
    torch.set_num_threads(1)
    table = pd.DataFrame()
    for task in tasks():
        table = pd.concat([table, pd.DataFrame(compare(task, max(2, rounds)))], ignore_index=True)
        print(table.tail(len(task.attacks)).round(3).to_string(index=False), flush=True)
    digits = {"result": 3, "milliseconds": 2, "fooled": 1, "gradients": 1, "forwards": 1}
    return table.round({**digits, "ratio": 2, "ratio_low": 2, "ratio_high": 2})


if __name__ == "__main__":
    table = main(*map(int, sys.argv[1:2]))
    folder = results_folder() / "benchmarks"
    write_text(folder / "attacks.csv", table.to_csv(index=False, lineterminator="\n"))
    facts = {**environment(), "date": today(), "threads": 1, "peers": {name: version(name) for name in PEERS}}
    write_json(folder / "attacks.json", facts)
