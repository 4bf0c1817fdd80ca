"""The framework papers' rule for the weight of a regulariser, and the images it may look at."""

import pandas as pd
import torch
from robustbook.datasets import load
from robustbook.measures import at_closest_weights, closest_weights
from robustbook.training import fit, set_aside
from robustbook.training.loop import cross_entropy_loss

ROWS = pd.DataFrame(
    [
        ("a", "none", 0.0, 0, 90.0),
        ("a", "none", 0.0, 1, 92.0),
        ("a", "hein", 0.1, 0, 91.0),  # closest for seed 0, not on average
        ("a", "hein", 0.1, 1, 88.0),
        ("a", "hein", 1.0, 0, 89.0),
        ("a", "hein", 1.0, 1, 92.0),
        ("b", "none", 0.0, 0, 50.0),
        ("b", "hein", 2.0, 0, 49.0),  # as close as the next, and larger
        ("b", "hein", 1.0, 0, 51.0),
    ],
    columns=["data", "method", "weight", "seed", "validation"],
)


def test_the_weight_with_the_closest_mean_accuracy_is_chosen():
    picked = closest_weights(ROWS, "validation")
    assert picked["a", "hein"] == 1.0 and picked["b", "hein"] == 1.0
    assert picked["a", "none"] == 0.0


def test_its_rows_are_kept_with_all_seeds():
    kept = at_closest_weights(ROWS)
    assert len(kept) == 6
    assert set(kept[kept["method"] == "hein"]["weight"]) == {1.0}
    assert list(kept[kept["data"] == "a"]["seed"]) == [0, 1, 0, 1]


def test_what_is_set_aside_was_held_out_by_the_training():
    """The images that `fit` shows its loss during training, and those set aside, are all there are."""
    seen, train = [], load("mnist-small", "train")

    def noted(model, x, y):
        if model.training:
            seen.append(x.detach().clone())
        return cross_entropy_loss(model, x, y)

    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    fit(model, train, epochs=1, batch_size=100, lr=1e-3, seed=3, validation=0.1, loss=noted, progress=False)
    x, y = set_aside("mnist-small", 3)
    assert len(x) == len(y) == 200
    every = torch.cat([*seen, x]).flatten(1).sum(1).sort().values
    assert torch.equal(every, train.x.flatten(1).sum(1).sort().values)
    other, _ = set_aside("mnist-small", 4)
    assert not torch.equal(x, other)
