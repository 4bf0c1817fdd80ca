"""The fast gradient sign method, as a search for the smallest step that changes the label."""

from torch import Tensor, nn

from .catalogue import ATTACKS
from .checks import Box
from .frame import UNIT, attack_correct, loss_slope
from .search import Grid, first_along


@ATTACKS.add("fgsm")
def fgsm(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: Box = UNIT,
    smallest: float = 1e-3,
    largest: float = 1.0,
    levels: int = 40,
    halvings: int = 10,
) -> Tensor:
    """FGSM of Goodfellow et al. (2015) with the smallest eps that works, as Foolbox 1 searched it.

    x + eps sign(gradient of the loss at x), clipped to the box. Gaps U6 and U20: eps is the first of a
    geometric grid that changes the label, then bisected.

    Parameters
    ----------
    smallest, largest
        Ends of the grid, in units of the width of the box (of 1 if there is none).
    levels, halvings
        Points of the grid, and bisections below the first that fools the network.
    """
    grid = Grid(smallest, largest, levels, halvings)

    def search(x: Tensor, y: Tensor) -> Tensor:
        return first_along(model, x, y, loss_slope(model, x, y)[1].sign(), box, grid)

    return attack_correct(model, x, y, box, search)
