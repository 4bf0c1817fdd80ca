"""The general framework (Tibo, Jaeger and Larsen): kernels Q, links H, weights G, and scores R of them.

`score(f, kernel, link=..., weight=..., ...)` takes any classifier: a network, a scikit-learn estimator, a
function from points to labels. A kernel says how points are perturbed and can be conditioned (on a ball, on
the true label) or be drawn from the data; a `Family` averages over a parameter.
"""

from ..defenses.manifold import decoded
from .classifiers import Classifier, Constant, labeller
from .closed_form import Concentric, HalfSpace
from .estimators import NearestScores, RbfScores, scores_of
from .families import Family, Interval, Listed, lebesgue, uniform
from .kernels import (
    Ball,
    Changed,
    Conditioned,
    Draws,
    Gaussian,
    Kernel,
    Mixed,
    Still,
    corruption,
    label_aware,
    within,
)
from .machine import KernelMachine, digit_machine, fit_machine
from .manifold import Independent, Near, Plane, Pool, Sampled, uniform_cube
from .scores import (
    Basic,
    Score,
    Weight,
    basic,
    everywhere,
    function,
    identity,
    indicator,
    inverse_radius,
    on_data,
    score,
)
from .shift import Transfer, label_preservation, proposition_6
from .version_2020 import ball_of, family_2020, sample_measure, sample_score, sampler_of
from .worst_case import (
    area,
    area_in_steps,
    grid_margins,
    margin_curve,
    pool_margins,
    score_of_margins,
    segment_margins,
)

__all__ = [
    "Ball",
    "Basic",
    "Changed",
    "Classifier",
    "Concentric",
    "Conditioned",
    "Constant",
    "Draws",
    "Family",
    "Gaussian",
    "HalfSpace",
    "Independent",
    "Interval",
    "Kernel",
    "KernelMachine",
    "Listed",
    "Mixed",
    "Near",
    "NearestScores",
    "Plane",
    "Pool",
    "RbfScores",
    "Sampled",
    "Score",
    "Still",
    "Transfer",
    "Weight",
    "area",
    "area_in_steps",
    "ball_of",
    "basic",
    "corruption",
    "decoded",
    "digit_machine",
    "everywhere",
    "family_2020",
    "fit_machine",
    "function",
    "grid_margins",
    "identity",
    "indicator",
    "inverse_radius",
    "label_aware",
    "label_preservation",
    "labeller",
    "lebesgue",
    "margin_curve",
    "on_data",
    "pool_margins",
    "proposition_6",
    "sample_measure",
    "sample_score",
    "sampler_of",
    "score",
    "score_of_margins",
    "scores_of",
    "segment_margins",
    "uniform",
    "uniform_cube",
    "within",
]
