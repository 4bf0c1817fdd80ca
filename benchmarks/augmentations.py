"""What augmentations cost: AugMix beside torchvision's, and PRIME within a training step.

    python benchmarks/augmentations.py [rounds]

One run, the same images for all. Contenders take turns, so that whatever else the machine does hits them
alike; a round keeps the fastest of three, ratios compare within a round, and the table has their medians with
quartiles. Processor time counts, for two threads time on the clock. torchvision draws its operations once for
all it is given, so that images with operations of their own go through it one by one; its line for a whole
batch is there to show what that costs. A training step is that of a ResNet-20 with 128 CIFAR images in the
channels-last layout.
Writes results/benchmarks/augmentations.csv and .json.
"""

import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
from robustbook.augmentations import AugMix, augmix_cifar, prime_cifar
from robustbook.datasets import load
from robustbook.memory import keep_memory
from robustbook.networks import make
from robustbook.provenance import environment, today
from robustbook.storage import results_folder, write_json, write_text
from robustbook.vision import torchvision
from torch import Tensor
from torch.nn.functional import cross_entropy

BATCH, STEPS, THREADS = 128, 3, (1, 2)
FASTER, SHARE = 5.0, 1.3

Contenders = dict[str, Callable[[], Any]]


# -------------------------------------------------------------------------------------------- AugMix


def ours(raw: Tensor, augmix: AugMix, generator: torch.Generator) -> Tensor:
    """8-bit images in, augmented images in [0, 1] out."""
    return augmix(raw.float() / 255, generator=generator)


def one_by_one(raw: Tensor, transform: Callable[[Tensor], Tensor]) -> Tensor:
    """The same through a transform that treats all it is given alike."""
    return torch.stack([transform(image) for image in raw]).float() / 255


def augmix_contenders(raw: Tensor) -> Contenders:
    """The same nine operations, severity, width and depth for all."""
    torchvision()
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode, v2

    options = {"severity": 3, "all_ops": False, "interpolation": InterpolationMode.BILINEAR}
    first, second = transforms.AugMix(**options), v2.AugMix(**options)
    return {
        "robustbook": functools.partial(ours, raw, augmix_cifar(), torch.Generator().manual_seed(0)),
        "torchvision.transforms": functools.partial(one_by_one, raw, first),
        "torchvision.transforms.v2": functools.partial(one_by_one, raw, second),
        "transforms.v2, same operations for all": lambda: second(raw).float() / 255,
    }


# ------------------------------------------------------------------------------------- training steps


def step_contenders(x: Tensor, y: Tensor) -> Contenders:
    """A step without augmentation, and the same step after each of them."""
    model = make("resnet20", seed=0, channels=3, size=32).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    generator = torch.Generator().manual_seed(0)

    def step(augment: Callable[..., Tensor] | None = None) -> None:
        images = x if augment is None else augment(x, generator=generator)
        optimizer.zero_grad()
        cross_entropy(model(images), y).backward()
        optimizer.step()

    return {
        "plain": step,
        "PRIME": functools.partial(step, prime_cifar()),
        "PRIME, published configuration": functools.partial(step, prime_cifar(colour_cut=100, mixing="beta")),
        "AugMix": functools.partial(step, augmix_cifar()),
    }


# ------------------------------------------------------------------------------------------- measuring


def seconds(run: Callable[[], Any]) -> float:
    """The fastest of a few; processor time of two threads would count their waiting for each other."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = []
    for _ in range(STEPS):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def compare(task: str, contenders: Contenders, images: int, rounds: int) -> pd.DataFrame:
    """Let the contenders take turns; ratios are to the first of them."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append(seconds(run))
    base, *_ = times.values()
    lines = []
    for name, taken in times.items():
        low, middle, high = statistics.quantiles(
            [t / b for t, b in zip(taken, base, strict=True)], method="inclusive"
        )
        cost = 1e3 * statistics.median(taken) / images
        line = {"task": task, "step": name, "images": images, "milliseconds": cost}
        lines.append({**line, "ratio": middle, "ratio_low": low, "ratio_high": high})
    return pd.DataFrame(lines)


def main(rounds: int = 7) -> pd.DataFrame:
    """All tasks, printed as they come; quartiles need two rounds."""
    keep_memory()
    rounds, data = max(2, rounds), load("cifar10", "test", limit=BATCH)
    raw = (255 * data.x).round().byte()
    torch.set_num_threads(1)
    table = compare("AugMix, 8-bit CIFAR images", augmix_contenders(raw), BATCH, rounds)
    table["wanted"] = table.step.map({name: FASTER for name in table.step[1:3]})
    print(table.round(3).to_string(index=False), flush=True)
    x = data.x.contiguous(memory_format=torch.channels_last)
    for threads in THREADS:
        torch.set_num_threads(threads)
        task = f"training step, ResNet-20, {threads} thread{'s' * (threads > 1)}"
        part = compare(task, step_contenders(x, data.y), BATCH, rounds)
        part["at_most"] = part.step.map({"PRIME": SHARE, "PRIME, published configuration": SHARE})
        table = pd.concat([table, part], ignore_index=True)
        print(part.round(3).to_string(index=False), flush=True)
    return table.round({"milliseconds": 3, "ratio": 2, "ratio_low": 2, "ratio_high": 2})


if __name__ == "__main__":
    table = main(*map(int, sys.argv[1:2]))
    folder = results_folder() / "benchmarks"
    write_text(folder / "augmentations.csv", table.to_csv(index=False, lineterminator="\n"))
    facts = {**environment(), "date": today(), "threads": max(THREADS), "batch": BATCH}
    write_json(folder / "augmentations.json", facts)
