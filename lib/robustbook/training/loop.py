"""`fit`: the one training loop of the book. Every defence is a loss or a transform for it."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from ..errors import BookError
from ..rehearsal import rehearsing, shrink
from .batches import Source, as_source, hold_out, small
from .chance import Streams, isolated
from .checks import check_network, check_numbers
from .evaluation import correct
from .history import Best, History, Mean, Record
from .progress import Bar
from .schedules import Schedule, make_optimizer, make_schedule

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor | tuple[Tensor, Tensor]]
Transform = Callable[[nn.Module, Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]
OnEpoch = Callable[[int, nn.Module, Record], None]


def cross_entropy_loss(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy, and the outputs it was computed from."""
    logits = model(x)
    return cross_entropy(logits, y), logits


def fit(
    model: nn.Module,
    data: Any,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
    seed: int,
    loss: Loss = cross_entropy_loss,
    transform: Transform | None = None,
    optimizer: str = "adam",
    momentum: float = 0.9,
    nesterov: bool = False,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    schedule: str = "constant",
    schedule_options: Mapping[str, Any] | None = None,
    clip_norm: float | None = None,
    validation: Any = 0.1,
    validation_loss: Loss = cross_entropy_loss,
    keep_best: bool = True,
    patience: int | None = None,
    max_steps: int | None = None,
    device: torch.device | str = "cpu",
    channels_last: bool = False,
    progress: bool = True,
    on_epoch: OnEpoch | None = None,
) -> History:
    """Train `model` in place and leave it in evaluation mode.

    The same seed on the same machine, with the same number of torch threads, gives the same weights to
    the last bit. The global random state is neither read nor changed.

    Parameters
    ----------
    data
        `(images, labels)`, a `Data`, `Samples` taken by index, or an iterable of batches that can be
        read again, such as a DataLoader (then `batch_size` is not used).
    loss
        `loss(model, x, y)` gives a scalar, or `(scalar, outputs)` so that accuracy costs no second pass.
    transform
        `transform(model, x, y, generator)` gives the batch to train on: noise, attacks, several views.
    optimizer, schedule
        Names in `OPTIMIZERS` and `SCHEDULES`; `schedule_options` such as `{"peak": 0.4}`.
    clip_norm
        Largest norm of the gradient, over all parameters together.
    validation
        A fraction to hold out, or data, or None. `validation_loss` (plain cross-entropy by default, so
        that runs with different losses can be compared) decides about `keep_best`, `patience` (stop
        after that many epochs without improvement) and the plateau schedule.
    max_steps
        Stop after so many steps, also within an epoch.
    on_epoch
        Called as `on_epoch(epoch, model, record)` after every epoch, with the network in evaluation mode.
    """
    check_numbers(epochs=epochs, batch_size=batch_size, lr=lr, patience=patience, max_steps=max_steps)
    streams, device = Streams(seed), torch.device(device)
    if rehearsing():
        epochs, max_steps, batch_size = 1, 1, shrink(batch_size)
    with isolated(streams.layers, device):
        model.to(device)
        if channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        train, held = _sources(data, validation, streams)
        check_network(model, train, device)
        if held is not None:
            check_network(model, held, device)
    per_epoch = train.steps(batch_size)
    total = min((n for n in (per_epoch and per_epoch * epochs, max_steps) if n is not None), default=None)
    algorithm = make_optimizer(
        optimizer,
        model,
        lr=lr,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        betas=betas,
        eps=eps,
    )
    plan = make_schedule(schedule, algorithm, total, schedule_options)
    if held is None and (patience is not None or plan.needs_validation):
        raise BookError(f"patience and schedule '{schedule}' need validation data; pass validation=0.1")
    generator = streams.transform(device)
    step = _Step(model, loss, transform, algorithm, plan, clip_norm, generator, device, channels_last)
    run = _Run(step, train, held, batch_size, epochs, total, validation_loss, streams.order(), on_epoch)
    with isolated(streams.layers, device), Bar(total, epochs, progress) as bar:
        return run.all(Best(keep_best, patience), bar)


def _sources(data: Any, validation: Any, streams: Streams) -> tuple[Source, Source | None]:
    """What to train on and what to validate on, both small in a rehearsal."""
    train = small(as_source(data)) if rehearsing() else as_source(data)
    if validation is None:
        return train, None
    if isinstance(validation, float):
        return hold_out(train, validation, streams.split())
    held = as_source(validation)
    return train, small(held) if rehearsing() else held


@dataclass
class _Step:
    """One step: transform, loss, gradient, clip, update, learning rate."""

    model: nn.Module
    loss: Loss
    transform: Transform | None
    optimizer: Optimizer
    schedule: Schedule
    clip_norm: float | None
    generator: torch.Generator
    device: torch.device
    channels_last: bool

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def placed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """A copy of the batch where, and in the memory layout in which, the network expects it.

        Strides must not depend on where the images came from: with one channel they are ambiguous, and
        another layout means another convolution kernel with other last bits.
        """
        layout = torch.channels_last if self.channels_last and x.dim() == 4 else torch.contiguous_format
        return x.to(self.device).clone(memory_format=layout), y.to(self.device)

    def __call__(self, x: Tensor, y: Tensor) -> tuple[float, int | None]:
        """Loss of the batch, and how many predictions were right if the loss tells."""
        x, y = self.placed(x, y)
        if self.transform is not None:
            x, y = self.transform(self.model, x, y, self.generator)
        self.optimizer.zero_grad()  # here: an attack inside the transform may have left gradients
        value, logits = _parts(self.loss, self.model, x, y)
        loss = float(value.detach())
        if math.isfinite(loss):
            value.backward()
            if self.clip_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
            self.optimizer.step()
            self.schedule.after_step()
        return loss, None if logits is None or len(logits) != len(y) else correct(logits.detach(), y)


def _parts(loss: Loss, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
    """Call a loss and take apart what it returns."""
    try:
        result = loss(model, x, y)
    except IndexError as error:
        if not str(error).startswith("Target"):  # what cross-entropy says about a label of a later batch
            raise
        raise BookError(f"labels do not fit the network's outputs: {error}") from error
    value, logits = result if isinstance(result, tuple) else (result, None)
    if not isinstance(value, Tensor) or value.dim() != 0:
        raise BookError("the loss must return a scalar tensor, or (scalar tensor, outputs)")
    return value, logits


@dataclass
class _Run:
    """All epochs of one call of `fit`."""

    step: _Step
    train: Source
    held: Source | None
    batch_size: int
    epochs: int
    total: int | None
    validation_loss: Loss
    order: torch.Generator
    on_epoch: OnEpoch | None
    done: int = 0

    def all(self, best: Best, bar: Bar) -> History:
        """Epoch after epoch until the end, the last step or the end of patience."""
        history, model = History(), self.step.model
        for epoch in range(1, self.epochs + 1):
            record = self.one(epoch, bar)
            history.records.append(record)
            if record.val_loss is not None:
                self.step.schedule.after_epoch(record.val_loss)
                history.stopped_early = best.see(epoch, record.val_loss, model) and epoch < self.epochs
            if self.on_epoch is not None:
                self.on_epoch(epoch, model, record)
            if history.stopped_early or self.done == self.total:
                break
        history.best_epoch = best.restore(model, len(history.records))
        model.eval()
        return history

    def one(self, epoch: int, bar: Bar) -> Record:
        """One pass over the data, then one over the validation data."""
        start, before, mean, lr = time.perf_counter(), self.done, Mean(), self.step.lr
        self.step.model.train()
        for x, y in self.train.batches(self.batch_size, self.order):
            lr = self.step.lr
            loss, right = self.step(x, y)
            if not math.isfinite(loss):
                raise _diverged("training", loss, epoch, self.done + 1, lr)
            mean.add(loss, len(y), right)
            self.done += 1
            bar.step(epoch, mean.loss, mean.accuracy)
            if self.done == self.total:
                break
        self.step.model.eval()
        held = self.validate(epoch, lr) if self.held is not None else None
        val_loss, val_accuracy = (held.loss, held.accuracy) if held else (None, None)
        steps, seconds = self.done - before, time.perf_counter() - start
        return Record(epoch, mean.loss, mean.accuracy, val_loss, val_accuracy, lr, steps, seconds)

    def validate(self, epoch: int, lr: float) -> Mean:
        """Loss and accuracy on the validation data."""
        mean, model = Mean(), self.step.model
        plain = self.validation_loss is cross_entropy_loss
        assert self.held is not None
        with torch.set_grad_enabled(not plain):  # other losses may attack, and need gradients for it
            for x, y in self.held.batches(self.batch_size, None):
                x, y = self.step.placed(x, y)
                value, logits = _parts(self.validation_loss, model, x, y)
                right = None if logits is None or len(logits) != len(y) else correct(logits.detach(), y)
                mean.add(float(value.detach()), len(y), right)
        if not math.isfinite(mean.loss):
            raise _diverged("validation", mean.loss, epoch, self.done, lr)
        return mean


def _diverged(kind: str, loss: float, epoch: int, step: int, lr: float) -> BookError:
    return BookError(
        f"the {kind} loss became {loss} in epoch {epoch}, step {step} (lr {lr:g}); "
        "try a lower lr or clip_norm=0.5, and look for nan in the images"
    )
