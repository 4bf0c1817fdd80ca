"""Training: one `fit()` for everything, and `trained(name, seed)`, which loads a network or trains it."""

from . import cifar, cotraining, filling, margins, on_manifold, prime, pruning, shift, synthesis
from .aside import set_aside
from .balanced import Balanced
from .batches import Samples, split
from .evaluation import evaluating, predict
from .history import History, Record
from .loop import Loss, Transform, cross_entropy_loss, fit
from .recipes import RECIPES, Recipe
from .schedules import OPTIMIZERS, SCHEDULES
from .stored import recipe_of, train_recipe, trained

__all__ = [
    "OPTIMIZERS",
    "RECIPES",
    "SCHEDULES",
    "Balanced",
    "History",
    "Loss",
    "Recipe",
    "Record",
    "Samples",
    "Transform",
    "cifar",
    "cotraining",
    "cross_entropy_loss",
    "evaluating",
    "filling",
    "fit",
    "margins",
    "on_manifold",
    "predict",
    "prime",
    "pruning",
    "recipe_of",
    "set_aside",
    "shift",
    "split",
    "synthesis",
    "train_recipe",
    "trained",
]
