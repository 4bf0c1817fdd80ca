"""What training reports: one record an epoch, and which epoch was kept."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Record:
    """One epoch. Losses are means over samples, accuracies fractions; None where nothing was measured."""

    epoch: int
    train_loss: float
    train_accuracy: float | None
    val_loss: float | None
    val_accuracy: float | None
    lr: float
    steps: int
    seconds: float = field(compare=False)


@dataclass
class History:
    """A whole run. Epochs count from 1; `best_epoch` is the one whose weights the network has now."""

    records: list[Record] = field(default_factory=list)
    best_epoch: int = 0
    stopped_early: bool = False

    @property
    def steps(self) -> int:
        """Optimiser steps in all."""
        return sum(record.steps for record in self.records)

    @property
    def best(self) -> Record:
        """The record of the epoch that was kept."""
        return self.records[self.best_epoch - 1]

    def summary(self) -> dict[str, Any]:
        """A short dictionary of plain values, for a JSON file."""
        kept = {key: value for key, value in asdict(self.best).items() if key not in ("seconds", "steps")}
        return kept | {
            "epochs": len(self.records),
            "steps": self.steps,
            "stopped_early": self.stopped_early,
        }


class Mean:
    """Running means of loss and accuracy over samples."""

    def __init__(self) -> None:
        self.samples = self.judged = self.correct = 0
        self.total = 0.0

    def add(self, loss: float, samples: int, correct: int | None) -> None:
        """Add a batch with its mean loss; `correct` is None if nobody knows how many are right."""
        self.samples += samples
        self.total += loss * samples
        if correct is not None:
            self.judged += samples
            self.correct += correct

    @property
    def loss(self) -> float:
        """Mean loss."""
        return self.total / self.samples

    @property
    def accuracy(self) -> float | None:
        """Fraction of right predictions."""
        return self.correct / self.judged if self.judged else None


class Best:
    """Remembers the weights with the lowest validation loss, and when that was."""

    def __init__(self, keep: bool, patience: int | None) -> None:
        self.keep, self.patience = keep, patience
        self.epoch, self.loss = 0, math.inf
        self.weights: dict[str, Tensor] = {}

    def see(self, epoch: int, loss: float, model: nn.Module) -> bool:
        """Look at an epoch; True if there was no improvement for `patience` epochs."""
        if loss < self.loss:
            self.epoch, self.loss = epoch, loss
            if self.keep:
                self.weights = {name: value.clone() for name, value in model.state_dict().items()}
        return self.patience is not None and epoch - self.epoch >= self.patience

    def restore(self, model: nn.Module, last: int) -> int:
        """Give the network its best weights back, if they are kept; return the epoch it now has."""
        if not self.weights:
            return last
        with torch.no_grad():
            model.load_state_dict(self.weights)
        return self.epoch
