"""Augmentations in `fit`: one view as a batch transform, or several with the Jensen-Shannon loss."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..errors import BookError
from .catalogue import Augmentation
from .checks import check_counts, check_numbers

FLOOR = 1e-7
"""Least probability of the mixture, so that its logarithm stays finite."""


@dataclass(frozen=True)
class Augmented:
    """A transform for `fit`: train on augmented images; several augmentations follow one another."""

    augmentations: tuple[Augmentation, ...]

    def __call__(
        self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The augmented batch and its labels."""
        for augment in self.augmentations:
            x = augment(x, generator=generator)
        return x, y


def augmented(*augmentations: Augmentation) -> Augmented:
    """`fit(..., transform=augmented(crop_and_flip(), prime_cifar()))`: plain training on augmented images."""
    if not augmentations or not all(callable(part) for part in augmentations):
        raise BookError("nothing to augment with; give augmentations, such as augmented(prime_cifar())")
    return Augmented(augmentations)


@dataclass(frozen=True)
class Views:
    """A transform for `fit` with `JsdLoss`: the images, and then so many augmented copies of the batch."""

    augment: Augmentation
    copies: int = 2
    before: Augmentation | None = None

    def __call__(
        self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """(1 + copies) N images, view after view, and N labels."""
        clean = x if self.before is None else self.before(x, generator=generator)
        return torch.cat([clean, *(self.augment(clean, generator=generator) for _ in range(self.copies))]), y


def views(augment: Augmentation, *, copies: int = 2, before: Augmentation | None = None) -> Views:
    """`fit(..., transform=views(prime_cifar(), before=crop_and_flip()), loss=jsd_loss())`.

    `before` acts on the images first: what it gives is the clean view.
    """
    check_counts(copies=copies)
    return Views(augment, copies, before)


def jensen_shannon(logits: Tensor) -> Tensor:
    """Mean over images of mean_v KL(p_v || m), m = mean_v p_v, for the outputs (V, N, K) of V views."""
    log_p = logits.log_softmax(2)
    p = log_p.exp()
    log_m = p.mean(0).clamp(FLOOR, 1).log()
    return (p * (log_p - log_m)).sum(2).mean()


@dataclass(frozen=True)
class JsdLoss:
    """Cross-entropy of the clean view plus `weight` times the Jensen-Shannon divergence of all views."""

    weight: float = 12.0

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs for the clean view; `x` holds V views of N images, one after another."""
        count, rest = divmod(len(x), len(y))
        if rest or count < 2:
            raise BookError(
                f"{len(x)} images for {len(y)} labels are no views of them; use fit(transform=views(...))"
            )
        logits = model(x)
        outputs = logits.view(count, len(y), -1)
        return cross_entropy(outputs[0], y) + self.weight * jensen_shannon(outputs), outputs[0]


def jsd_loss(weight: float = 12.0) -> JsdLoss:
    """The consistency loss of AugMix, used for PRIME as well (gap U41): to be used with `views`."""
    check_numbers(weight=weight)
    return JsdLoss(weight)
