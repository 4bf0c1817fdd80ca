"""Co-training of a classifier f with a generator g of adversarial examples (general framework, 2021, 2020).

Algorithm 1 alternates: an update of f on the batch x with x' = g(x) beside it (equation 10), then one of g on
a batch of another shuffle of the same data (equation 9). For `fit`, g is a batch transform with a state: it
gives f the augmented batch, and makes its own update at the start of the next step, when f has made its one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from ..errors import BookError, unknown
from ..networks import generator as make_generator

Transform = Callable[[nn.Module, Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]

FORMS = ("2021", "2020", "2020-printed")
FLOOR = 0.1
"""The least CE of equation (12) of 2020: as printed, eps/CE has no bound where the outputs agree."""


def generator_loss(model: nn.Module, x: Tensor, found: Tensor) -> Tensor:
    """Equation (9): 1/2 ||g(x) - x||^2 + max(f_i - f_j, 0) at g(x), one value an image (N,).

    f are probabilities, i the label of `x` and j the best label at `found` = g(x) other than i (gap C3).
    """
    with torch.no_grad():
        label = model(x).argmax(1, keepdim=True)
    scores = model(found).softmax(1)
    rival = scores.scatter(1, label, -torch.inf).amax(1)
    gap = scores.gather(1, label)[:, 0] - rival
    return (found - x).flatten(1).square().sum(1) / 2 + gap.clamp_min(0)


def disagreement(own: Tensor, other: Tensor) -> Tensor:
    """CE(f(x), f(x')) between softmax outputs, from logits (N, K), one value an image (gap U7)."""
    return -(own.softmax(1) * other.log_softmax(1)).sum(1)


def robustness_term(own: Tensor, other: Tensor, square: Tensor, form: str = "2021") -> Tensor:
    """What lambda multiplies in the loss of f, one value an image, from logits and ||x - g(x)||^2.

    "2021" is CE/(1 + ||x - g||^2) of equation (10). "2020" is -||x - g||/CE, equation (12) of 2020 with the
    sign of its equation (7) (gap C4), and "2020-printed" the same with the plus sign that is printed. In
    both CE is no less than `FLOOR`.
    """
    found = disagreement(own, other)
    if form == "2021":
        return found / (1 + square)
    ratio = square.sqrt() / found.clamp_min(FLOOR)
    return ratio if form == "2020-printed" else -ratio


@dataclass(frozen=True)
class CotrainingLoss:
    """Log loss + weight * the robustness term; for batches that `Cotraining` has doubled."""

    weight: float
    form: str = "2021"

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs for the images themselves; `x` holds them and then g of each."""
        if len(x) != 2 * len(y):
            raise BookError(
                f"{len(x)} images for {len(y)} labels; use transform=cotraining(...) with this loss"
            )
        own, other = model(x).chunk(2)
        images, found = x.flatten(1).chunk(2)
        term = robustness_term(own, other, (images - found).square().sum(1), self.form)
        return cross_entropy(own, y) + self.weight * term.mean(), own


@dataclass
class SecondShuffle:
    """Another order of the images that pass by, without all of them in memory.

    Images wait in a store of `size` places. Each batch takes random places and leaves the images that waited
    there, so that every image comes out once a pass. Until the store is full it draws from what has come.
    """

    size: int
    store: Tensor | None = None
    filled: int = 0

    def swap(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Images of the other order, as many as `x`, for which `x` waits."""
        if self.store is None:
            self.store = x.new_empty((max(self.size, len(x)), *x.shape[1:]))
        count, room = len(x), len(self.store) - self.filled
        if room >= count:
            self.store[self.filled : self.filled + count] = x
            self.filled += count
            return self.store[self._places(count, generator)].clone()
        places = self._places(count, generator)
        found = self.store[places].clone()
        self.store[places] = x
        return found

    def _places(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randperm(self.filled, generator=generator, device=generator.device)[:count]


@dataclass
class Cotraining:
    """A transform for `fit`: the batch and g of it; g learns on the way. A new network gets a new g."""

    width: int
    layers: int
    rates: tuple[tuple[int, float], ...]
    waiting: int
    first: Transform | None = None
    g: nn.Module | None = field(default=None, repr=False)
    steps: int = field(default=0, repr=False)
    _model: nn.Module | None = field(default=None, repr=False)
    _optimizer: Adam | None = field(default=None, repr=False)
    _shuffle: SecondShuffle | None = field(default=None, repr=False)
    _turn: Tensor | None = field(default=None, repr=False)

    def __call__(
        self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """2 N images, those of the batch and g of each, and N labels."""
        if self.first is not None:
            x, y = self.first(model, x, y, generator)
        if self._model is not model:
            self._start(model, x, generator)
        elif self._turn is not None:
            self._learn(model, self._turn)
        assert self.g is not None and self._shuffle is not None
        self._turn = self._shuffle.swap(x, generator)
        with torch.no_grad():
            return torch.cat([x, self.g(x)]), y

    def _start(self, model: nn.Module, x: Tensor, generator: torch.Generator) -> None:
        """A fresh generator, with weights by the chance of this run."""
        seed = int(torch.randint(2**31, (1,), generator=generator, device=generator.device))
        self.g = make_generator(x.shape[1], seed=seed, width=self.width, layers=self.layers).to(x.device)
        if _last(model):
            self.g.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimizer = Adam(self.g.parameters(), lr=self.rates[0][1], fused=True)
        self._model, self._shuffle, self._turn, self.steps = model, SecondShuffle(self.waiting), None, 0

    def _learn(self, model: nn.Module, x: Tensor) -> None:
        """One step of g against f as it predicts: in evaluation mode, and without a gradient for f."""
        assert self.g is not None and self._optimizer is not None
        rate = next(rate for start, rate in reversed(self.rates) if self.steps >= start)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        weights, mode = list(self.g.parameters()), model.training
        model.eval()
        loss = generator_loss(model, x, self.g(x)).mean()
        model.train(mode)
        for weight, slope in zip(weights, torch.autograd.grad(loss, weights)):
            weight.grad = slope
        self._optimizer.step()
        self.steps += 1


def _last(model: nn.Module) -> bool:
    """Does the network keep its channels last?"""
    kernels = (weight for weight in model.parameters() if weight.dim() == 4 and weight.shape[1] > 1)
    return any(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


def cotraining(
    *,
    width: int = 128,
    layers: int = 3,
    rates: tuple[tuple[int, float], ...] = ((0, 1e-3),),
    waiting: int = 2048,
    first: Transform | None = None,
) -> Cotraining:
    """`fit(..., transform=cotraining(width=16), loss=cotraining_loss(0.5))`: Algorithm 1.

    Parameters
    ----------
    width, layers
        Size of the generator.
    rates
        (step, rate) pairs: the learning rate of g's Adam from that step on.
    waiting
        Images that wait for g's own order (see `SecondShuffle`).
    first
        A transform that comes before, such as `augmented(crop_and_flip())`.
    """
    for name, count in {"width": width, "layers": layers, "waiting": waiting}.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BookError(f"{name}={count!r}; give a whole number, 1 or more")
    if not rates or rates[0][0] != 0 or any(not rate > 0 for _, rate in rates):
        raise BookError(f"rates={rates!r}; give (step, rate) pairs, the first from step 0")
    return Cotraining(width, layers, tuple(sorted(rates)), waiting, first)


def cotraining_loss(weight: float, *, form: str = "2021") -> CotrainingLoss:
    """The loss of f for `fit`, to be used with `cotraining`; `weight` is lambda, `form` one of `FORMS`."""
    if not weight >= 0:
        raise BookError(f"weight={weight!r}; give a number, 0 or more")
    if form not in FORMS:
        raise unknown("form of the robustness term", form, FORMS)
    return CotrainingLoss(weight, form)
