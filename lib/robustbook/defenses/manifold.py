"""Training on the data manifold: the Wasserstein auto-encoder, R4 training and on-manifold adversaries.

The auto-encoder (Tolstikhin et al. 2018, MMD version) learns first and then stays fixed. R4 training
(framework 2020, sections 3.2, 4.2 and 7) is the generic robust loss with samples decoded from noisy codes.
On-manifold adversarial training (Stutz, Hein and Schiele 2019) looks for the worst code in a small cube.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..attacks.checks import check_counts, check_positive
from ..attacks.frame import loss_slope
from ..errors import BookError
from ..networks.wae import Autoencoder, OnCodes
from ..training.evaluation import evaluating
from .adversarial import Transform
from .robust_loss import RobustLoss, Sampler, copies

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
Load = Callable[[], Autoencoder]
"""load(): the trained auto-encoder; asked for when the first batch comes, not when a recipe is written."""


def imq_kernel(a: Tensor, b: Tensor) -> Tensor:
    """Inverse multiquadratics sum_s C_s / (C_s + |a - b|^2) of rows (N, k) and (M, k), as (N, M).

    C_s = 2 k s: the squared distance of two standard normal codes is 2 k on average, and s goes from a
    tenth to ten times that, as in the authors' implementation.
    """
    square = torch.cdist(a, b).square()
    base = 2.0 * a.shape[1]
    return torch.stack([base * scale / (base * scale + square) for scale in SCALES]).sum(0)


def mmd(codes: Tensor, prior: Tensor) -> Tensor:
    """Unbiased estimate of the squared maximum mean discrepancy of two samples (N, k) of equal size.

    sum_{i != j} k(z_i, z_j) / N(N-1) + the same of the prior - 2 sum_{ij} k(z_i, p_j) / N^2; it may be
    below zero where the two are alike.
    """
    count = len(codes)
    if count < 2 or prior.shape != codes.shape:
        raise BookError(f"codes {tuple(codes.shape)} and prior {tuple(prior.shape)}; give two alike, N >= 2")
    within = torch.stack(
        [
            kernel.sum() - kernel.diagonal().sum()
            for kernel in (imq_kernel(codes, codes), imq_kernel(prior, prior))
        ]
    ).sum()
    return within / (count * (count - 1)) - 2 * imq_kernel(codes, prior).mean()


@dataclass(frozen=True)
class WaeLoss:
    """mean |x - dec(enc(x))|^2 + weight MMD(codes, N(0, 1)) (Tolstikhin et al. 2018, equation 4, MMD).

    The prior's draws come from torch's global state, to which `fit` gives its own seed, as for dropout.
    """

    weight: float = 10.0

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        """The loss of images (N, C, S, S); labels are not looked at."""
        if not isinstance(model, Autoencoder):
            raise BookError(
                f"the network is a {type(model).__name__}; make an auto-encoder, make('wae', ...)"
            )
        codes = model.encode(x)
        missed = (model.decode(codes) - x).flatten(1).square().sum(1).mean()
        if len(x) < 2:  # the rest of an epoch may be one image
            return missed
        return missed + self.weight * mmd(codes, torch.randn_like(codes))


def decoded(encode: Callable[[Tensor], Tensor], decode: Callable[[Tensor], Tensor], sigma: float) -> Sampler:
    """Points of the manifold of an auto-encoder: decode(encode(x) + sigma n), n standard normal.

    `encode` takes points (N, ...) to codes (N, k), `decode` takes codes to points like x.
    """

    @torch.no_grad()
    def sampler(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
        codes = copies(encode(x), count)
        noise = torch.randn(codes.shape, dtype=codes.dtype, generator=generator, device=codes.device)
        points = decode((codes + sigma * noise).flatten(0, 1))
        return points.view(count, *x.shape)

    return sampler


@dataclass
class Manifold:
    """Samples of equation (13) from an auto-encoder that is loaded when the first points come."""

    load: Load
    sigma: float
    _loaded: list[Autoencoder] = field(default_factory=list, repr=False)

    @property
    def autoencoder(self) -> Autoencoder:
        """The auto-encoder, loaded once."""
        if not self._loaded:
            self._loaded.append(self.load().eval().requires_grad_(False))
        return self._loaded[0]

    def __call__(self, x: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Points (count, N, ...) near each x (N, ...)."""
        net = self.autoencoder.to(x.device)
        return decoded(net.encode, net.decode, self.sigma)(x, count, generator)


@dataclass(frozen=True)
class ManifoldLoss:
    """Log loss minus `weight` times the soft score R4, with a fresh Sigma of `radii` values each step.

    Equations 7 to 9 of 2020 with H = id and G = p/eps; each eps is uniform on (0, d]. To be used with
    `neighbours(Manifold(...), count)`. The radii come from torch's global state, see `WaeLoss`.
    """

    weight: float
    radii: int
    d: float

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs for the N points themselves; `x` holds (1 + M) N points."""
        drawn = (self.d * (1 - torch.rand(self.radii))).tolist()
        return RobustLoss(self.weight, tuple(drawn), inverse=True)(model, x, y)


def manifold_loss(weight: float, *, radii: int = 10, d: float = 28.0) -> ManifoldLoss:
    """R4 as a loss for `fit`: `weight` is lambda, `radii` is |Sigma| (gap U9), `d` the diameter (gap U11)."""
    if not weight >= 0:
        raise BookError(f"weight={weight!r}; give a number, 0 or more")
    check_counts(radii=radii)
    check_positive(d=d)
    return ManifoldLoss(weight, radii, d)


def worst_codes(
    model: nn.Module, codes: Tensor, y: Tensor, *, eps: float, steps: int, generator: torch.Generator
) -> Tensor:
    """Codes (N, k) within `eps` of the given ones in every number that raise the loss of `model` on codes.

    Projected gradient ascent with signs from a random start, steps of 2.5 eps / steps; the last point.
    """
    shift = eps * (
        2 * torch.rand(codes.shape, dtype=codes.dtype, generator=generator, device=codes.device) - 1
    )
    for _ in range(steps):
        _, slope = loss_slope(model, codes + shift, y)
        shift = (shift + 2.5 * eps / steps * slope.sign()).clamp(-eps, eps)
    return codes + shift


def on_manifold_adversarial(load: Load, *, eps: float = 0.3, steps: int = 40) -> Transform:
    """A transform for `fit`: half of every batch becomes its worst image on the manifold, with its label.

    Stutz et al. (2019), equation 4: max over |zeta|_inf <= eps of the loss at dec(enc(x) + zeta), decoder
    fixed. There the generators are one a class; here it is the auto-encoder of all classes (gap U8). The
    other half stays as it is. The network is in evaluation mode during the search.
    """
    check_positive(eps=eps)
    check_counts(steps=steps)
    manifold = Manifold(load, 0.0)

    def transform(
        model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        half = len(x) // 2
        if half == 0:
            return x, y
        net = manifold.autoencoder.to(x.device)
        with torch.no_grad():
            codes = net.encode(x[:half])
        seen = OnCodes(model, net)
        with evaluating(seen):
            worst = worst_codes(seen, codes, y[:half], eps=eps, steps=steps, generator=generator)
        with torch.no_grad():
            return torch.cat([net.decode(worst), x[half:]]), y

    return transform


def manifold_sampler(load: Load, sigma: float = 0.06) -> Sampler:
    """Equation (13) for `neighbours` and for scores; sigma = 0.06 as in section 7."""
    check_positive(sigma=sigma)
    return Manifold(load, sigma)
