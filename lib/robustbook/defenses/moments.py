"""The analytic moment regulariser ("Analytical moment regularizer for training robust networks").

A network is rest(ReLU(affine(x))). Under Gaussian noise on x the mean of the first ReLU is known in
closed form (Theorem 1, after Bibi et al. 2018); passing that mean through the rest of the network
approximates the mean output at the price of one more forward pass (equation 3).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv2d, cross_entropy, linear

from ..errors import BookError
from ..networks import Normalise

LINEAR_MAPS = (nn.Conv2d, nn.Linear)
AFFINE = (*LINEAR_MAPS, Normalise, nn.Flatten, nn.Identity)
INVERSE_ROOT = 1 / math.sqrt(2 * math.pi)


def _weights(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """2 Phi(mu/sigma) and sqrt(2 pi) phi(mu/sigma), the constants left out to save passes over memory."""
    noisy = sigma > torch.finfo(sigma.dtype).tiny
    z = mu * (-math.sqrt(0.5) / torch.where(noisy, sigma, 1.0))
    if not noisy.all():  # the limit sigma -> 0: Phi becomes a step and phi vanishes
        z = torch.where(noisy, z, torch.where(mu > 0, -torch.inf, torch.inf))
    cdf = torch.erfc(z)  # erfc keeps the small values far below 0 exact
    return cdf, z.square_().neg_().exp_()


class _ReluMean(torch.autograd.Function):
    """mu Phi(mu/sigma) + sigma phi(mu/sigma), whose derivatives are simply Phi and phi."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor) -> Tensor:
        weights = _weights(mu, sigma)
        ctx.save_for_backward(*weights)
        ctx.shapes = mu.shape, sigma.shape
        return (weights[1] * (sigma * INVERSE_ROOT)).addcmul_(mu, weights[0], value=0.5)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        cdf, pdf = ctx.saved_tensors
        mu_shape, sigma_shape = ctx.shapes
        wants_mu, wants_sigma = ctx.needs_input_grad
        return (
            (grad * cdf).mul_(0.5).sum_to_size(mu_shape) if wants_mu else None,
            (grad * pdf).sum_to_size(sigma_shape) * INVERSE_ROOT if wants_sigma else None,
        )


def relu_mean(mu: Tensor, sigma: Tensor | float) -> Tensor:
    """Mean of ReLU(z) for z ~ N(mu, sigma^2), element by element: T(mu, sigma) below Theorem 1.

    Shapes broadcast. At sigma = 0 this is ReLU(mu), and the derivative there is that of ReLU in mu
    and 0 in sigma.
    """
    sigma = torch.as_tensor(sigma, dtype=mu.dtype, device=mu.device)
    return _ReluMean.apply(mu, sigma)


def shallow_mean(a: Tensor, c1: Tensor, b: Tensor, c2: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:
    """Theorem 1: the mean of B ReLU(A x + c1) + c2 for x ~ N(mean, covariance).

    `a` (p, n), `c1` (p,), `b` (d, p), `c2` (d,), `mean` (..., n), `covariance` (n, n); gives (..., d).
    """
    variance = ((a @ covariance) * a).sum(-1)  # the diagonal of A Sigma A^T, without the rest
    return linear(relu_mean(linear(mean, a, c1), _root(variance)), b, c2)


def _root(variance: Tensor) -> Tensor:
    """Square root with derivative 0 instead of infinity at 0, where rounding may also go below 0."""
    positive = variance > 0
    return torch.where(positive, torch.where(positive, variance, 1.0).sqrt(), 0.0)


def split_first_relu(model: nn.Module) -> tuple[nn.Sequential, nn.Sequential]:
    """Cut a sequential network at its first ReLU into the affine part before and the rest after it."""
    if not isinstance(model, nn.Sequential):
        raise BookError(f"a {type(model).__name__} cannot be cut at its first ReLU; it must be nn.Sequential")
    layers = list(_flat(model))
    for index, (name, layer) in enumerate(layers):
        if isinstance(layer, nn.ReLU):
            before, after = layers[:index], layers[index + 1 :]
            return nn.Sequential(*(part for _, part in before)), nn.Sequential(*(part for _, part in after))
        if not isinstance(layer, AFFINE):
            raise BookError(f"layer '{name}' ({type(layer).__name__}) before the first ReLU is not affine")
    raise BookError("the network has no ReLU to take the mean of")


def _flat(model: nn.Sequential, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    for name, layer in model._modules.items():  # named_children() leaves out a layer used a second time
        assert layer is not None
        if isinstance(layer, nn.Sequential):
            yield from _flat(layer, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", layer


def first_layer_moments(affine: nn.Sequential, x: Tensor, variance: Tensor | float) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation, element by element, of affine(x + n) for n ~ N(0, diag(variance)).

    mu_2 = A x + c_1 and sigma_2 = sqrt((A * A) variance): one pass of the variance through squared
    weights, no sampling. `variance` is a number or a tensor that broadcasts to `x` (one value a pixel);
    where all images share it, sigma_2 has a batch dimension of 1.
    """
    spread = torch.as_tensor(variance, dtype=x.dtype, device=x.device)
    if (spread < 0).any():
        raise BookError("the variance of noise cannot be negative")
    batch = len(x) if spread.dim() == x.dim() and len(spread) > 1 else 1
    try:
        spread = spread.expand(batch, *x.shape[1:])
    except RuntimeError:
        shapes = tuple(spread.shape), tuple(x.shape)
        raise BookError("variances of shape {} do not fit images of shape {}".format(*shapes)) from None
    mixed = False  # only the diagonal of the covariance is known, which a second linear map would need whole
    for layer in affine:
        if mixed and isinstance(layer, LINEAR_MAPS):
            raise BookError("two linear layers before the first ReLU: their noise is correlated in between")
        mixed = mixed or isinstance(layer, LINEAR_MAPS)
        spread = _through(layer, spread)
    return affine(x), _root(spread)


def _through(layer: nn.Module, variance: Tensor) -> Tensor:
    """Variances after an affine layer, from independent ones before it."""
    if isinstance(layer, Normalise):
        return variance / layer.std.square()
    if isinstance(layer, nn.Linear):
        return linear(variance, layer.weight.square())
    if isinstance(layer, nn.Conv2d):
        if layer.padding_mode != "zeros":
            raise BookError(
                f"padding '{layer.padding_mode}' uses a pixel twice; only zero padding is supported"
            )
        squared = layer.weight.square()
        return conv2d(variance, squared, None, layer.stride, layer.padding, layer.dilation, layer.groups)
    return layer(variance)  # Flatten and Identity only move values


def mean_forward(model: nn.Module, x: Tensor, variance: Tensor | float) -> Tensor:
    """Approximate mean output under Gaussian noise: rest(T(mu_2, sigma_2)), equation 3."""
    affine, rest = split_first_relu(model)
    return rest(relu_mean(*first_layer_moments(affine, x, variance)))


@dataclass(frozen=True)
class MomentLoss:
    """Equation 2 with cross-entropy: l(f(x), y) + alpha l(mean of f(x + n), y), n ~ N(0, sigma^2)."""

    sigma: float | Tensor
    alpha: float

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the outputs for the clean images.

        Both terms share the first affine pass, and go through the dense layers as one batch: their large
        weights are then read once.
        """
        affine, rest = split_first_relu(model)
        mu, sigma = first_layer_moments(affine, x, self.sigma**2)
        cut = next((i for i, layer in enumerate(rest) if isinstance(layer, nn.Flatten)), len(rest))
        body, head = rest[:cut], rest[cut:]
        logits, mean = head(torch.cat([body(torch.relu(mu)), body(relu_mean(mu, sigma))])).chunk(2)
        return cross_entropy(logits, y) + self.alpha * cross_entropy(mean, y), logits


def moment_loss(sigma: float | Tensor, alpha: float) -> MomentLoss:
    """The regularised loss for `fit`: `sigma` is the noise's standard deviation in pixel units [0, 1].

    A tensor gives every pixel its own. With sigma = 0 the loss is (1 + alpha) times the plain one.
    """
    if not alpha >= 0:
        raise BookError(f"alpha={alpha!r}; give a number, 0 or more")
    if not isinstance(sigma, Tensor) and not sigma >= 0:
        raise BookError(f"sigma={sigma!r}; give a standard deviation, 0 or more")
    return MomentLoss(sigma, alpha)


class NoisyCopies:
    """A data set `folds` times as large: the clean images and fixed noisy copies of them, not clipped.

    The noise of a copy depends on the seed and the copy's index alone, so it is the same in every epoch
    without being kept in memory.
    """

    def __init__(self, clean: tuple[Tensor, Tensor], folds: int, sigma: float, seed: int) -> None:
        self.clean = clean
        self.folds, self.sigma, self.seed = folds, sigma, seed

    def __len__(self) -> int:
        return self.folds * len(self.clean[1])

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Images and labels at these indices; the first 1/`folds` of all are the clean ones."""
        x, y = self.clean
        source = indices % len(y)
        images = x[source].clone()
        for row, index in enumerate(indices.tolist()):
            if index >= len(y):
                images[row] += self.sigma * self.noise(index)
        return images, y[source]

    def noise(self, index: int) -> Tensor:
        """Standard normal noise of one copy, from a counter-based generator: any index at once."""
        shape, bits = self.clean[0].shape[1:], np.random.Philox(key=self.seed, counter=[0, 0, 0, index])
        normal = np.random.Generator(bits).standard_normal(tuple(shape), dtype=np.float32)
        return torch.from_numpy(normal).to(self.clean[0])

    def over(self, clean: tuple[Tensor, Tensor]) -> "NoisyCopies":
        """Copies of other images."""
        return NoisyCopies(clean, self.folds, self.sigma, self.seed)


def noisy_copies(data: Any, folds: int, sigma: float, seed: int) -> NoisyCopies:
    """The N~-fold augmentation that the regulariser is to replace, as data for `fit`.

    `folds` is N~, the factor by which the data grows: 1 clean and N~ - 1 noisy copies (gap U53). What
    `fit` holds out for validation is held out before copying, and stays clean.
    """
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 1:
        raise BookError(f"folds={folds!r}; give a whole number, 1 or more (1 adds no noisy copy)")
    if not sigma >= 0:
        raise BookError(f"sigma={sigma!r}; give a standard deviation, 0 or more")
    x, y = data
    return NoisyCopies((x, y), folds, sigma, seed)
