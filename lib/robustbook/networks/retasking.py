"""A trained network for a new task: a new last layer, and the first block groups kept as they are.

"L fixed layers" of the thesis (section 4.5.1) are the stem and the block groups 1 to L (gap U36). What is
fixed keeps its weights and its batch-norm statistics.
"""

import copy

from torch import Tensor, nn

from ..errors import BookError
from .catalogue import initialised

OURS = (("conv1",), ("conv2", "block2"), ("conv3",), ("conv4",), ("block4",))
TORCHVISION = (("conv1", "bn1"), ("layer1",), ("layer2",), ("layer3",), ("layer4",))


class Fixed(nn.Module):
    """A part of a network that does not learn: always in evaluation mode, its weights without gradient."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> "Fixed":
        """Only this shell changes its mode, not what is in it."""
        self.training = mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        """What the part makes of its input."""
        out: Tensor = self.part(x)
        return out


def block_groups(model: nn.Module) -> list[tuple[str, ...]]:
    """Names of the modules of the stem and of each block group, in order."""
    names = dict(model.named_modules())
    for prefix in ("", "network."):
        for groups in (OURS, TORCHVISION):
            full = [tuple(prefix + name for name in group) for group in groups]
            if all(name in names for group in full for name in group):
                return full
    staged = [name for name in names if name.startswith("block") and name.count("_") == 1 and "." not in name]
    if "conv1" in names and staged:
        stages = sorted({name.partition("_")[0] for name in staged})
        return [("conv1",), *(tuple(n for n in staged if n.startswith(f"{stage}_")) for stage in stages)]
    raise BookError("this network has no block groups to fix; take a 'resnet9' or 'resnet18', or fixed=0")


def retasked(source: nn.Module, *, classes: int, fixed: int, seed: int) -> nn.Module:
    """A copy of `source` with a new last layer for `classes` and its first `fixed` block groups fixed.

    Parameters
    ----------
    fixed
        L: 0 leaves everything to learn; k fixes the stem and block groups 1 to k.
    seed
        Of the new layer's weights.
    """
    model = copy.deepcopy(source)
    last = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    if not last:
        raise BookError("this network has no dense last layer to replace")
    old = model.get_submodule(last[-1])
    assert isinstance(old, nn.Linear)
    new = initialised(lambda: nn.Linear(old.in_features, classes, bias=old.bias is not None), seed)
    _put(model, last[-1], new)
    if fixed:
        groups = block_groups(model)
        if not 0 < fixed < len(groups):
            raise BookError(f"fixed={fixed}; this network has {len(groups) - 1} block groups, give 0 to that")
        for name in [name for group in groups[: fixed + 1] for name in group]:
            _put(model, name, Fixed(model.get_submodule(name)))
    return model


def _put(model: nn.Module, name: str, part: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, part)
