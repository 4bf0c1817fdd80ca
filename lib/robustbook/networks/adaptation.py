"""Batch-norm statistics re-estimated on the images at hand (thesis, equation 5.7; Schneider et al., 2020).

Both functions give a new network and leave the one they are given as it is.
"""

import copy

import torch
from torch import Tensor, nn

from ..errors import BookError


class MixedNorm(nn.Module):
    """A batch normalisation whose statistics are N / (N + n) those it has learned, n / (N + n) the batch's.

    The images of a batch are taken in groups of `group`, each with statistics of its own; by default all are
    one group. n is the number of images in a group.
    """

    def __init__(self, norm: nn.BatchNorm2d, source: float, group: int | None) -> None:
        super().__init__()
        self.norm, self.source, self.group = norm, source, group
        self.seen: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalised features of (N, C, H, W)."""
        count = self.group or len(x)
        if len(x) % count:
            raise BookError(f"{len(x)} images are no whole groups of {count}; give a multiple of it")
        parts = x.unflatten(0, (-1, count))
        share = count / (self.source + count)
        mean = self._mixed(self.norm.running_mean, parts.mean((1, 3, 4)), share)
        var = self._mixed(self.norm.running_var, parts.var((1, 3, 4), correction=0), share)
        self.seen = mean[-1].detach(), var[-1].detach()
        gain = (var + self.norm.eps).rsqrt() * self.norm.weight
        shift = self.norm.bias - mean * gain
        return torch.addcmul(_across(shift), parts, _across(gain)).flatten(0, 1)

    def _mixed(self, learned: Tensor | None, here: Tensor, share: float) -> Tensor:
        assert learned is not None
        return (1 - share) * learned + share * here


def _across(value: Tensor) -> Tensor:
    """Numbers (groups, C) in a shape that multiplies features (groups, n, C, H, W)."""
    return value[:, None, :, None, None]


def adapting(model: nn.Module, *, source: float, group: int | None = None) -> nn.Module:
    """A copy of the network that normalises each batch by statistics mixed with the batch's own.

    Parameters
    ----------
    source
        N of equation (5.7): how many samples the learned statistics count for; 0 forgets them.
    group
        n: the images of a batch are taken so many at a time. None takes a batch as one group.
    """
    if not source >= 0:
        raise BookError(f"source={source!r}; give a number of samples, 0 or more")
    if group is not None and (isinstance(group, bool) or not isinstance(group, int) or group < 1):
        raise BookError(f"group={group!r}; give a whole number of images, 1 or more, or None")
    result = copy.deepcopy(model).eval()
    for name in _norms(result):
        parent, _, child = name.rpartition(".")
        norm = result.get_submodule(name)
        assert isinstance(norm, nn.BatchNorm2d)
        setattr(result.get_submodule(parent), child, MixedNorm(norm, source, group))
    return result


def adapted(model: nn.Module, x: Tensor, *, source: float) -> nn.Module:
    """A copy of the network with the statistics of equation (5.7) from the n images `x`, unlabelled.

    What a layer sees has been normalised by the mixed statistics of the layers before it.
    """
    watching, result = adapting(model, source=source), copy.deepcopy(model).eval()
    with torch.no_grad():
        watching(x)
    for name in _norms(result):
        norm, mixed = result.get_submodule(name), watching.get_submodule(name)
        assert isinstance(norm, nn.BatchNorm2d) and isinstance(mixed, MixedNorm)
        assert mixed.seen is not None
        norm.running_mean, norm.running_var = mixed.seen
    return result


def _norms(model: nn.Module) -> list[str]:
    """Names of the batch normalisations with learned statistics."""
    kinds = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)]
    names = [name for name, norm in kinds if norm.track_running_stats and norm.affine]
    if not names:
        raise BookError("the network has no batch normalisation with statistics to adapt")
    return names
