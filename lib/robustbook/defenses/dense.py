"""One fully connected layer of a network, by name: what enters it, and what stands behind it.

Whoever tries many versions of a layer computes what enters it once; `Behind` does the rest.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ..errors import BookError
from ..training.evaluation import evaluating, predict

CHECKED = 8
"""Images on which `Behind` is compared with the whole network before it is trusted."""


def dense_layer(model: nn.Module, name: str) -> nn.Linear:
    """The fully connected layer of this name; BookError with the names there are."""
    layer = dict(model.named_modules()).get(name)
    if isinstance(layer, nn.Linear):
        return layer
    there = [key for key, part in model.named_modules() if isinstance(part, nn.Linear)]
    raise BookError(f"no fully connected layer '{name}'; there is {', '.join(there) or 'none'}")


def inputs_of(model: nn.Module, name: str, x: Tensor, *, batch_size: int = 1000) -> Tensor:
    """What enters the layer, (N, inputs), for images `x`, in evaluation mode and without gradients."""
    layer, seen = dense_layer(model, name), []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0].detach().to(x.device))

    handle = layer.register_forward_pre_hook(note)
    try:
        predict(model, x, batch_size=batch_size)
    finally:
        handle.remove()
    found = torch.cat(seen) if seen else x[:0]
    if found.shape[:-1] != (len(x),):
        raise BookError(
            f"layer '{name}' sees {tuple(found.shape)} for {len(x)} images; it must run once each"
        )
    return found


class Behind:
    """The network from a fully connected layer on, with any weights in that layer.

    `Behind(model, "fc1", x)(features, weight, bias)` are the outputs of the network with those weights, for
    `features = inputs_of(model, "fc1", x)`. A few images `x` show that they are: in a chain of layers the
    later ones stand behind; a layer of any other kind of network must be its last step.
    """

    def __init__(self, model: nn.Module, name: str, x: Tensor) -> None:
        layer = dense_layer(model, name)
        self.rest = later(model, name)
        few = x[:CHECKED]
        whole, short = predict(model, few), self(inputs_of(model, name, few), layer.weight, layer.bias)
        if whole.shape != short.shape or not torch.allclose(whole, short, rtol=1e-4, atol=1e-4):
            raise BookError(f"what stands behind layer '{name}' is not a chain of layers: prune and predict")

    @torch.no_grad()
    def __call__(self, features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Outputs (N, classes) for what enters the layer, (N, inputs)."""
        with evaluating(self.rest):
            found: Tensor = self.rest(linear(features, weight, bias))
        return found


def later(model: nn.Module, name: str) -> nn.Sequential:
    """The layers that stand behind the one of this name in the chains it is part of, innermost first."""
    parts = name.split(".")
    found: list[nn.Module] = []
    for depth in range(len(parts) - 1, -1, -1):
        parent = model.get_submodule(".".join(parts[:depth]))
        if isinstance(parent, nn.Sequential):
            names = list(parent._modules)
            found += list(parent)[names.index(parts[depth]) + 1 :]
    return nn.Sequential(*found)
