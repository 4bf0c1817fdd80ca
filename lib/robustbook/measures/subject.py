"""Any classifier, examined: what it takes, what it gives, and what can therefore be measured on it.

A network, a scikit-learn classifier or a function becomes one module from images in [0, 1] to class scores.
What is wrong is said in one line; what only limits the measures is noted, and the rest is measured.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..attacks.checks import check_outputs
from ..errors import BookError, unknown
from ..storage import sha256
from ..training.evaluation import evaluating, home, predict

LEVELS = ("labels", "scores", "gradients")
"""What a classifier gives, each with all before it."""
INPUTS = ("0-1", "0-255", "-1-1", "standardised")
"""Ranges of pixels that a classifier may expect; images come in [0, 1]."""
FEW, TRIED, CLEAR = 8, 128, 0.15
"""Images to look at outputs, images to compare input ranges, and by how much accuracy must differ there,
beyond two standard errors of a difference."""
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Subject:
    """A classifier to be measured: `model` takes images in [0, 1] (N, C, H, W) to scores (N, classes).

    `gives` is one of `LEVELS`, `limits` says why it is not more, `notes` are remarks for the reader. The two
    tempos are measured seconds an image, for scores and for scores with a gradient. `digest` names the
    classifier by what it says.
    """

    model: nn.Module
    gives: str
    limits: str
    notes: tuple[str, ...]
    forward_seconds: float
    gradient_seconds: float
    digest: str

    def can(self, needs: str) -> bool:
        """Does it give what a measure needs?"""
        return LEVELS.index(needs) <= LEVELS.index(self.gives)


class Rows(nn.Module):
    """A classifier outside torch: images reach it as rows of numbers, scores or one-hot labels come back."""

    def __init__(self, answer: Any, classes: int) -> None:
        super().__init__()
        self.answer, self.classes = answer, classes

    def forward(self, x: Tensor) -> Tensor:
        """Scores (N, classes), without a gradient."""
        found = np.asarray(self.answer(x))
        if found.ndim == 1:
            if not np.issubdtype(found.dtype, np.integer):
                raise ValueError(f"labels of type {found.dtype}; they must be whole numbers 0, 1, ...")
            found = np.eye(self.classes)[found]
        return torch.as_tensor(found, dtype=torch.float32, device=x.device)


class Ranged(nn.Module):
    """A network that expects another range of pixels, behind the step from [0, 1] to it."""

    factor: Tensor
    shift: Tensor

    def __init__(self, network: nn.Module, factor: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("factor", factor)
        self.register_buffer("shift", shift)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (N, classes)."""
        return self.network(x * self.factor + self.shift)


class LogOf(nn.Module):
    """The logarithms of a network's probabilities: scores with the same labels and the same softmax."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Scores (N, classes)."""
        return self.network(x).clamp_min(TINY).log()


def examine(classifier: Any, x: Tensor, y: Tensor, *, classes: int, inputs: str = "0-1") -> Subject:
    """Look at a classifier with images `x` (N, C, H, W) in [0, 1] and labels `y` of `classes` classes."""
    if inputs not in INPUTS:
        raise unknown("range of inputs", str(inputs), INPUTS)
    model, gives, limits = _module(classifier, classes)
    plain, model = model, ranged(model, x, inputs)
    with evaluating(model):
        logits = check_outputs(model, x[:FEW].to(home(model)), y[:FEW])
        if logits.shape[1] != classes:
            raise BookError(
                f"the network has {logits.shape[1]} outputs, the data {classes} classes; "
                f"build it with {classes} outputs"
            )
        notes: list[str] = []
        if gives == "gradients" and _probabilities(logits):
            notes.append("its outputs are probabilities, not logits: their logarithms are attacked")
            model = LogOf(model)
        if not torch.equal(logits, model_scores(plain, x, inputs)):
            notes.append(
                "its answer to the same image changes from call to call: attacks see a moving target"
            )
        if gives == "gradients" and (reason := no_gradient(model, x[:FEW])):
            gives, limits = "scores", reason
        check_range(plain, x[:TRIED], y[:TRIED], inputs, classes, notes)
        tempo = _tempo(model, x[:TRIED], gives)
    digest = sha256(np.ascontiguousarray(predict(model, x[:TRIED]).cpu().numpy()).data)[:16]
    return Subject(model, gives, limits, tuple(notes), *tempo, digest)


def _module(classifier: Any, classes: int) -> tuple[nn.Module, str, str]:
    """The classifier as a module, what it may give, and why not more."""
    if isinstance(classifier, nn.Module):
        return classifier, "gradients", ""
    if hasattr(classifier, "predict"):
        named = type(classifier).__name__
        if list(getattr(classifier, "classes_", range(classes))) != list(range(classes)):
            raise BookError(
                f"the {named} was fitted to other labels than 0 to {classes - 1}; fit it to these"
            )
        scores = hasattr(classifier, "predict_proba")
        answer = classifier.predict_proba if scores else classifier.predict
        model = Rows(lambda x: answer(x.flatten(1).cpu().numpy()), classes)
        return model, "scores" if scores else "labels", f"a {named} has no gradient"
    if callable(classifier):
        return Rows(lambda x: classifier(x), classes), "labels", "a function has no gradient"
    raise BookError(
        f"a {type(classifier).__name__} is no classifier; give a network, an estimator or a function"
    )


def ranged(model: nn.Module, x: Tensor, inputs: str) -> nn.Module:
    """The network as one that takes images in [0, 1]."""
    one = torch.ones(1, x.shape[1], 1, 1, dtype=x.dtype)
    if inputs == "0-1":
        return model
    if inputs == "0-255":
        return Ranged(model, 255 * one, 0 * one)
    if inputs == "-1-1":
        return Ranged(model, 2 * one, -one)
    mean, std = x.mean((0, 2, 3)).reshape(one.shape), x.std((0, 2, 3)).reshape(one.shape).clamp_min(1e-6)
    return Ranged(model, 1 / std, -mean / std)


def model_scores(model: nn.Module, x: Tensor, inputs: str) -> Tensor:
    """What a network says of a few images, once more."""
    with torch.no_grad():
        found: Tensor = ranged(model, x, inputs)(x[:FEW].to(home(model)))
    return found


def _probabilities(logits: Tensor) -> bool:
    """Are these rows of probabilities? Logits add up to 1 by accident only."""
    total = logits.double().sum(1)
    return bool((logits >= 0).all() and ((total - 1).abs() < 1e-3).all())


def no_gradient(model: nn.Module, x: Tensor) -> str:
    """Why no gradient reaches the image; empty if one does."""
    x = x.detach().to(home(model)).requires_grad_()
    try:
        with torch.enable_grad():
            logits = model(x)
            if not logits.requires_grad:
                return "no gradient reaches the image: the network detaches it, or computes outside torch"
            (slope,) = torch.autograd.grad(logits.logsumexp(1).sum() + logits[:, 0].sum(), x)
    except RuntimeError as error:
        return f"no gradient reaches the image: {(str(error).splitlines() or [''])[0]}"
    if not slope.isfinite().all():
        return "its gradient is not a number"
    if not slope.any():
        return "its gradient is 0 everywhere: a step in it is flat"
    return ""


def check_range(model: nn.Module, x: Tensor, y: Tensor, inputs: str, classes: int, notes: list[str]) -> None:
    """Refuse a network that is clearly better on pixels of another range; note one that guesses."""
    right = {}
    for name in INPUTS:
        with torch.no_grad():
            found = ranged(model, x, name)(x.to(home(model)))
        right[name] = float((found.argmax(1).to(y.device) == y).double().mean())
    best = max(right, key=lambda name: right[name])
    if right[best] > right[inputs] + CLEAR + 2 * (0.5 / len(x)) ** 0.5:
        raise BookError(
            f"the network is right on {right[inputs]:.0%} of images in {inputs} and on {right[best]:.0%} of "
            f"the same images in {best}, which it seems to expect; give --inputs {best} (inputs='{best}')"
        )
    if right[inputs] < 1.5 / classes:
        notes.append(
            f"right on {right[inputs]:.0%} of clean images, no better than a guess: trained on this data?"
        )


def _tempo(model: nn.Module, x: Tensor, gives: str) -> tuple[float, float]:
    """Seconds an image for scores, and for scores with a gradient (0 where there is none)."""
    x = x[:64].to(home(model))
    start = time.perf_counter()
    with torch.no_grad():
        model(x)
    forward = (time.perf_counter() - start) / len(x)
    if gives != "gradients":
        return forward, 0.0
    leaf = x.detach().requires_grad_()
    start = time.perf_counter()
    with torch.enable_grad():
        torch.autograd.grad(model(leaf).logsumexp(1).sum(), leaf)
    return forward, (time.perf_counter() - start) / len(x)
