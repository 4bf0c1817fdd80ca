"""What a training step costs: plain, regularised, and with 21-fold noisy augmentation, side by side.

    python benchmarks/moments.py [rounds]

One run, one thread, equal batches of the moment paper's LeNet. The kinds of step take turns, so that whatever
else the machine does hits them alike; a round keeps the fastest of five steps of each kind, and the ratios to
the plain step are medians over rounds with their quartiles. Writes results/benchmarks/moments.csv and .json.
"""

import statistics
import sys
import time
from collections.abc import Callable

import pandas as pd
import torch
from robustbook.defenses.moments import moment_loss
from robustbook.memory import keep_memory
from robustbook.networks import make
from robustbook.provenance import environment, today
from robustbook.storage import results_folder, write_json, write_text
from robustbook.training import cross_entropy_loss

BATCH, STEPS, FOLDS, SIGMA = 100, 5, (2, 6, 21), 0.25


def stepper(loss: Callable, channels_last: bool = True) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """A function that takes one optimiser step on a network of its own."""
    model = make("moment-lenet", seed=0)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss(model, x, y)[0].backward()
        optimizer.step()

    return step


def main(rounds: int = 20) -> pd.DataFrame:
    """Time the kinds of step in turn; N-fold augmentation takes N augmented steps for the same images."""
    keep_memory()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(BATCH, 1, 28, 28, generator=generator), torch.arange(BATCH) % 10
    plain, regularised = stepper(cross_entropy_loss), stepper(moment_loss(SIGMA, 1.0))
    augmented = stepper(cross_entropy_loss)

    def noisy() -> None:
        augmented(x + SIGMA * torch.randn(x.shape, generator=generator), y)

    kinds = {"plain": lambda: plain(x, y), "regularised": lambda: regularised(x, y), "augmented": noisy}
    rounds_of: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, step in kinds.items():
            step()  # as in training, a step follows others of its kind: memory is warm
            rounds_of[name].append(min(timed(step) for _ in range(STEPS)))
    rounds_of |= {f"{n}-fold": [n * t for t in rounds_of["augmented"]] for n in FOLDS}
    ratios = {
        name: [t / base for t, base in zip(times, rounds_of["plain"], strict=True)]
        for name, times in rounds_of.items()
    }
    return pd.DataFrame(
        [
            {
                "step": name,
                "images": BATCH,
                "milliseconds": round(1e3 * statistics.median(times), 2),
                "ratio": round(statistics.median(ratios[name]), 3),
                "ratio_low": round(statistics.quantiles(ratios[name])[0], 3),
                "ratio_high": round(statistics.quantiles(ratios[name])[2], 3),
            }
            for name, times in rounds_of.items()
        ]
    )


def timed(step: Callable[[], None]) -> float:
    """Seconds of one step."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    table = main(*map(int, sys.argv[1:2]))
    folder = results_folder() / "benchmarks"
    write_text(folder / "moments.csv", table.to_csv(index=False, lineterminator="\n"))
    write_json(folder / "moments.json", {**environment(), "date": today(), "batch": BATCH, "threads": 1})
    print(table.to_string(index=False))
