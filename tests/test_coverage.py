"""Distances between embeddings (thesis, equation 5.8) against loops, and accuracy on corrupted images."""

import math

import numpy as np
import pytest
import torch
from robustbook.corruptions.stored import corrupted
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.measures import (
    accuracy,
    corruption_accuracies,
    cosine_distances,
    embed,
    nearest,
    principal_plane,
    total_variance,
)
from robustbook.measures.corruption import CORRUPTIONS
from robustbook.networks import make
from torch import nn


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_nearest_is_the_loop() -> None:
    worse, near = torch.randn(3, 5, 7, generator=rng()), torch.randn(3, 4, 7, generator=rng(1))
    for n in range(3):
        for c in range(5):
            distances = []
            for t in range(4):
                a, b = worse[n, c].tolist(), near[n, t].tolist()
                dot = sum(p * q for p, q in zip(a, b))
                lengths = math.sqrt(sum(p * p for p in a)) * math.sqrt(sum(q * q for q in b))
                distances.append(1 - dot / lengths)
            assert nearest(worse, near)[n, c].item() == pytest.approx(min(distances), abs=1e-12)


def test_distances_of_known_angles() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [1.0, 1.0]])
    found = cosine_distances(a, a[:1])[:, 0]
    assert found.tolist() == pytest.approx([0, 1, 2, 1 - math.sqrt(0.5)], abs=1e-12)


def test_a_copy_among_the_augmented_is_at_distance_zero() -> None:
    worse = torch.randn(2, 3, 6, generator=rng())
    others = torch.randn(2, 4, 6, generator=rng(1))
    assert nearest(worse, torch.cat([others, worse[:, 1:2]], 1))[:, 1].abs().max() < 1e-12
    more = torch.cat([others, torch.randn(2, 9, 6, generator=rng(2))], 1)
    assert (nearest(worse, more) <= nearest(worse, others)).all()


def test_embedding_is_what_the_last_layer_is_given() -> None:
    model = make("resnet9", seed=0, classes=10, channels=3, size=16, width=4).eval()
    x = torch.rand(7, 3, 16, 16, generator=rng())
    features = embed(model, x, batch_size=3)
    with torch.no_grad():
        assert torch.equal(features, torch.cat([model[:-1](part) for part in x.split(3)]))
        assert torch.allclose(model.fc(features), model(x), atol=1e-6)
    assert not model.fc._forward_pre_hooks


def test_variance_and_plane_are_numpys() -> None:
    features = torch.randn(50, 6, generator=rng()) * torch.tensor([5.0, 3.0, 1.0, 0.5, 0.2, 0.1])
    covariance = np.cov(features.double().numpy().T)
    assert total_variance(features) == pytest.approx(np.trace(covariance))
    values = np.linalg.eigvalsh(covariance)[::-1]
    plane = principal_plane(features)
    assert plane.points.var(0).tolist() == pytest.approx(values[:2].tolist())
    assert plane.share == pytest.approx(values[:2].sum() / values.sum())
    assert torch.equal(plane.points, principal_plane(features).points)


def test_corruption_accuracies_are_accuracies() -> None:
    model = make("resnet9", seed=0, classes=10, channels=3, size=32, width=4).eval()
    lines = list(corruption_accuracies(model, "cifar10-small", images=30, severities=(1, 4)))
    assert len(lines) == 1 + 2 * len(CORRUPTIONS)
    assert lines[0] == {
        "corruption": "clean",
        "severity": 0,
        "accuracy": 100 * accuracy(model, load("cifar10-small", "test", limit=30)),
    }
    fog = next(line for line in lines if line["corruption"] == "fog" and line["severity"] == 4)
    assert fog["accuracy"] == 100 * accuracy(model, corrupted("cifar10-small", "fog", 4, limit=30))
    again = corruption_accuracies(model, "cifar10-small", images=30, severities=(1, 4), batch_size=7)
    assert list(again) == lines


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: embed(nn.Sequential(nn.Flatten()), torch.rand(2, 3)), "no linear layer"),
        (lambda: nearest(torch.rand(2, 3), torch.rand(2, 3)), "(N, C, D)"),
        (lambda: nearest(torch.rand(2, 3, 4), torch.rand(3, 3, 4)), "(N, T, D)"),
        (lambda: nearest(torch.rand(2, 3, 4), torch.rand(2, 3, 5)), "one network"),
        (lambda: total_variance(torch.rand(1, 4)), "two or more"),
    ],
)
def test_mistakes_are_one_line(call, says) -> None:
    with pytest.raises(BookError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
