"""The framework on the data manifold, in the worst case, with scikit-learn, and as of 2020."""

import math

import numpy as np
import pytest
import torch
from robustbook import networks
from robustbook.attacks import minimum
from robustbook.datasets import load
from robustbook.datasets.arcs import Arcs
from robustbook.defenses.robust_loss import agreement, minus_cross_entropy, neighbours, robust_loss
from robustbook.errors import BookError
from robustbook.framework import (
    Ball,
    Concentric,
    Constant,
    Family,
    Gaussian,
    HalfSpace,
    Independent,
    Mixed,
    Near,
    Plane,
    Pool,
    Sampled,
    Still,
    Weight,
    area,
    area_in_steps,
    basic,
    decoded,
    family_2020,
    grid_margins,
    identity,
    indicator,
    inverse_radius,
    label_aware,
    labeller,
    lebesgue,
    margin_curve,
    on_data,
    pool_margins,
    proposition_6,
    sample_measure,
    sample_score,
    sampler_of,
    score,
    score_of_margins,
    scores_of,
    segment_margins,
    uniform,
    uniform_cube,
    within,
)
from robustbook.measures import accuracy
from robustbook.training import cross_entropy_loss, fit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import nn
from torch.nn.functional import cross_entropy


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def cube(m, count=200, seed=1):
    return torch.rand(count, m, generator=gen(seed))


CUT = HalfSpace(torch.tensor([1.0, 0.5]), 0.7)


# --------------------------------------------------------------------------------------- samples near x


def test_near_is_uniform_among_the_samples_in_the_ball():
    """Brute force: the share of the samples within eps that keep the label, for each point."""
    pool, x = Pool(cube(2, 300), CUT(cube(2, 300))), cube(2, 40, 2)
    f = Concentric(torch.tensor([0.5, 0.5]), 0.3)
    found = basic(f, Near(pool, 0.25), x, draws=4_000, generator=gen())
    for i, point in enumerate(x):
        close = (pool.x - point).norm(dim=1) < 0.25
        share = float((f(pool.x[close]) == f(point[None])).double().mean())
        assert float(found.rho[i]) == pytest.approx(share, abs=0.04)
    aware = basic(f, Near(pool, 0.25, CUT(x)), x, draws=4_000, generator=gen())
    other = basic(f, label_aware(Near(pool, 0.25), pool.known(), CUT(x)), x, draws=4_000, generator=gen(1))
    assert torch.allclose(aware.rho, other.rho, atol=0.06) and not torch.allclose(
        aware.rho, found.rho, atol=0.06
    )


def test_near_is_the_data_distribution_conditioned():
    """P | B_eps(x) from a large pool and by rejection from P itself agree."""
    data = Arcs()
    pool, (x, _) = Pool(data.sample(20_000, gen(1))[0]), data.sample(30, gen(2))
    rejected = within(Independent(lambda n, g: data.sample(n, g)[0]), 0.1)
    f = CUT
    one = basic(f, Near(pool, 0.1), x, draws=2_000, generator=gen())
    two = basic(f, rejected, x, draws=8_000, generator=gen(3))
    assert torch.allclose(one.rho, two.rho, atol=0.06)


def test_far_from_all_samples_nothing_counts():
    pool = Pool(cube(2, 50))
    found = basic(CUT, Near(pool, 0.1), torch.full((2, 2), 5.0), draws=10, generator=gen())
    assert (found.seen == 0).all() and found.empty == 1 and (found.rho == 1).all()


def test_a_pool_asks_a_classifier_once():
    calls = []

    def f(x):
        calls.append(len(x))
        return CUT(x)

    asked, pool, x = labeller(f), Pool(cube(2, 70)), cube(2, 10, 3)
    for eps in (0.1, 0.2, 0.4):
        basic(asked, Near(pool, eps), x, draws=100, generator=gen())
    assert calls.count(70) == 1 and max(calls) == 70


def test_known_labels_are_known_on_the_pool_alone():
    pool = Pool(cube(2, 60), torch.arange(60))
    assert pool.known()(pool.x[[5, 9]]).tolist() == [5, 9]
    with pytest.raises(BookError, match="samples of the pool only"):
        pool.known()(pool.x[:2] + 0.3)
    with pytest.raises(BookError, match="not known"):
        Pool(cube(2, 60)).known()(cube(2, 60))
    with pytest.raises(BookError, match="one label a sample"):
        Pool(cube(2, 60), torch.arange(3))


def test_proposition_6_with_labels_that_travel_along():
    """A shift that swaps points: its true labels are known, and a third of 1 - 1/2 of them change."""
    x = cube(2, 400)
    pool = Pool(x, CUT(x))
    swap = Mixed(Still(), Independent(lambda n, g: x[torch.randint(len(x), (n,), generator=g)]), 1 / 3)
    f = HalfSpace(CUT.normal, CUT.offset + 0.1)
    found = proposition_6(f, swap, x, truth=pool.known(), draws=20, generator=gen())
    p = float(CUT(x).double().mean())
    assert found.label_change == pytest.approx(2 * p * (1 - p) / 3, abs=0.01)
    assert found.shifted == pytest.approx(found.accuracy, abs=0.01) and found.holds()


# ------------------------------------------------------------------------------ samplers: auto-encoders


def test_a_plane_of_all_components_is_the_identity():
    x = 0.2 + 0.6 * cube(5, 300)
    plane = Plane(x, 5)
    assert torch.allclose(plane.decode(plane.encode(x)), x, atol=1e-5)
    codes = plane.encode(x)
    assert torch.allclose(codes.mean(0), torch.zeros(5), atol=1e-4)
    assert torch.allclose(codes.T @ codes / 300, torch.eye(5), atol=1e-3)


def test_decoded_points_lie_on_the_plane():
    flat = torch.cat([cube(2, 300), torch.full((300, 1), 0.4)], 1)
    plane = Plane(flat, 2)
    kernel = Sampled(decoded(plane.encode, plane.decode, 0.2))
    drawn = kernel.draw(flat[:10], 50, gen())
    assert drawn.points.shape == (50, 10, 3) and torch.allclose(
        drawn.points[..., 2], torch.tensor(0.4), atol=1e-4
    )
    near = within(kernel, 0.1).draw(flat[:10], 50, gen())
    distance = (near.points - flat[:10]).norm(dim=2)
    assert torch.equal(near.inside, distance < 0.1) and 0 < near.inside.double().mean() < 1
    with pytest.raises(BookError, match=r"\(count, N, ...\)"):
        Sampled(lambda x, count, g: x).draw(flat, 2, gen())
    with pytest.raises(BookError, match="components=9"):
        Plane(flat, 9)


# ------------------------------------------------------------------------------------------ worst cases


@pytest.mark.parametrize(
    "f", [CUT, Concentric(torch.tensor([0.4, 0.5]), 0.3)], ids=["half-space", "concentric"]
)
def test_brute_force_margins(f):
    x = cube(2, 300)
    found = grid_margins(f, x, 400)
    inside = f.margin(x) < torch.minimum(x, 1 - x).amin(
        1
    )  # the nearest point of the boundary is in the square
    assert inside.sum() > 50
    assert (found - f.margin(x))[inside].abs().max() < 1.5 / 400 and (found >= f.margin(x) - 1e-6).all()
    assert grid_margins(Constant(), x, 50).isinf().all()


def test_label_aware_margins_ignore_where_the_truth_changes():
    x = cube(2, 200)
    assert grid_margins(CUT, x, 100, CUT).isinf().all()
    other = HalfSpace(CUT.normal, CUT.offset + 0.2)
    aware = grid_margins(other, x, 200, CUT)
    low = CUT(x) == 0
    assert aware[low].isinf().all()  # there other = CUT
    between = (CUT(x) == 1) & (other(x) == 0)
    assert torch.allclose(aware[between], grid_margins(other, x, 200)[between])


def test_pool_margins_by_brute_force():
    pool, x = Pool(cube(2, 80), CUT(cube(2, 80))), cube(2, 20, 5)
    f = Concentric(torch.tensor([0.5, 0.5]), 0.3)
    found, index = pool_margins(f, x, pool)
    aware, _ = pool_margins(f, x, pool, CUT(x))
    for i, point in enumerate(x):
        distance = (pool.x - point).norm(dim=1)
        other = f(pool.x) != f(point[None])
        assert float(found[i]) == pytest.approx(float(distance[other].min()), abs=1e-5)
        assert index[i] == distance.where(other, torch.inf).argmin()
        kept = other & (CUT(pool.x) == CUT(point[None]))
        assert float(aware[i]) == pytest.approx(float(distance[kept].min()), abs=1e-5)
    nobody, which = pool_margins(Constant(), x, pool)
    assert nobody.isinf().all() and (which == -1).all()


def test_segments_end_on_the_boundary_and_bound_the_margin():
    pool, x = Pool(cube(2, 80)), cube(2, 50, 5)
    _, index = pool_margins(CUT, x, pool)
    found = segment_margins(CUT, x, pool.x[index])
    way = pool.x[index] - x
    exact = (CUT.margin(x) / (CUT.margin(x) + CUT.margin(pool.x[index]))) * way.norm(dim=1)
    assert torch.allclose(found, exact, atol=1e-5) and (found >= CUT.margin(x) - 1e-6).all()
    with pytest.raises(BookError, match="another one"):
        segment_margins(CUT, x, x)


def test_scores_and_areas_from_margins():
    margins = torch.tensor([0.1, 0.4, 2.0, 0.0])
    found = score_of_margins(margins, uniform(0, 1))
    assert found.value == pytest.approx((0.1 + 0.4 + 1 + 0) / 4) and found.ceiling == 1
    assert score_of_margins(margins, lebesgue(0, 2)).value == pytest.approx(float(margins.mean()))
    assert area_in_steps(margins) == pytest.approx(float(margins.double().mean()), rel=1e-12)
    radii = torch.linspace(0, 2, 2_001)
    curve = margin_curve(margins, radii)
    assert area(radii, curve) == pytest.approx(float(margins.mean()), rel=1e-3)
    assert curve[0] == 1 and curve[50] == 0.75 and curve[-1] == 0.25
    for wrong in (torch.tensor([-1.0]), torch.zeros(2, 2), torch.tensor([math.nan])):
        with pytest.raises(BookError, match="0 or more"):
            margin_curve(wrong, radii)


def test_the_margin_score_is_the_indicator_score():
    """R with H = 1 from draws, dense in the plane, and from margins."""
    x, family = cube(2, 300), Family(Ball, uniform(0, 0.5))
    drawn = score(CUT, family, link=indicator, weight=on_data(x), draws=4_000, nodes=8, generator=gen())
    known = score_of_margins(CUT.margin(x), uniform(0, 0.5))
    assert drawn.value == pytest.approx(known.value, abs=0.01)
    assert drawn.value >= known.value - 0.002


# ------------------------------------------------------------------------------ scikit-learn's classifiers


@pytest.fixture(scope="module")
def digits():
    train, test = load("mnist-small", "train", limit=300), load("mnist-small", "test", limit=100)
    rows = train.x.flatten(1).numpy()
    nearest = KNeighborsClassifier(1).fit(rows, train.y.numpy())
    machines = OneVsRestClassifier(SVC(gamma=0.05, C=5)).fit(rows, train.y.numpy())
    return train, test, nearest, machines


def test_scores_have_the_estimators_labels(digits):
    _, test, nearest, machines = digits
    noisy = torch.cat([test.x, (test.x + 0.3 * torch.randn(test.x.shape, generator=gen())).clamp(0, 1)])
    for estimator in (nearest, machines):
        scores = scores_of(estimator)
        assert labeller(scores)(noisy).tolist() == estimator.predict(noisy.flatten(1).numpy()).tolist()
        assert accuracy(scores, test) > 0.7
    values = machines.decision_function(test.x.flatten(1).numpy())
    assert np.abs(scores_of(machines)(test.x).numpy() - values).max() < 1e-4


def test_two_classes_need_one_machine():
    x, y = cube(2, 100), CUT(cube(2, 100))
    machine = SVC(gamma=20.0, C=10).fit(x.numpy(), y.numpy())
    points = cube(2, 500, 3)
    assert labeller(scores_of(machine))(points).tolist() == machine.predict(points.numpy()).tolist()


def test_attacks_take_the_scores(digits):
    """The nearest neighbour's boundary is made of planes: no attack can end before the nearest."""
    train, test, nearest, machines = digits
    x = test.x[:8]
    for estimator in (nearest, machines):
        model = scores_of(estimator)
        found = minimum("deepfool", model, x, labeller(model)(x))
        assert (labeller(estimator)(found) != labeller(estimator)(x)).all()
    model = scores_of(nearest)
    own = labeller(model)(x)
    distance = (minimum("deepfool", model, x, own) - x).flatten(1).norm(dim=1)
    pool = Pool(train.x, train.y)
    far = pool.distances(x)
    best = far.amin(1)
    rival = far.where(train.y != own[:, None], torch.inf).amin(1)
    least = (rival**2 - best**2) / (2 * torch.cdist(train.x.flatten(1), train.x.flatten(1)).max())
    assert (distance > least).all() and (distance < rival).all()


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (lambda x, y: KNeighborsClassifier(3).fit(x, y % 2), "one neighbour"),
        (lambda x, y: SVC(gamma=1.0).fit(x, y % 3), "one-against-one"),
        (lambda x, y: SVC(gamma="scale").fit(x, y % 2), "gamma"),
        (lambda x, y: SVC(kernel="linear").fit(x, y % 2), "no scores known"),
        (lambda x, y: KNeighborsClassifier(1).fit(x, y % 2 + 1), "without a gap"),
        (lambda x, y: "a string", "no scores known"),
    ],
)
def test_estimators_without_continuous_scores(estimator, words):
    with pytest.raises(BookError, match=words):
        scores_of(estimator(cube(2, 30).numpy(), np.arange(30)))


# --------------------------------------------------------------------------------------- the version of 2020


def test_scores_of_2020_are_those_of_2021_times_d():
    """Definition 3 of 2020 with Q uniform on the square, against balls with a uniform density."""
    d, x = math.sqrt(2), cube(2, 300)
    old = score(CUT, family_2020(uniform_cube(2), d), weight=on_data(x), draws=800, nodes=6, generator=gen())
    balls = Family(lambda eps: Ball(eps, box=(0, 1)), uniform(0, d))
    new = score(CUT, balls, weight=on_data(x), draws=800, nodes=6, generator=gen(1))
    assert old.value == pytest.approx(d * new.value, abs=3 * math.hypot(old.error, d * new.error))
    assert old.ceiling == pytest.approx(d) and new.ceiling == pytest.approx(1)


def test_the_inverse_radius_has_no_integral():
    """G = p/eps of Example 4: the score of every classifier grows without bound as eps starts nearer to 0."""
    x = cube(2, 100)
    found = [
        score(
            Constant(),
            family_2020(uniform_cube(2), 1.0, least=least),
            weight=Weight(x, inverse_radius),
            draws=2,
            nodes=400,
            generator=gen(),
        ).value
        for least in (1e-1, 1e-2, 1e-3)
    ]
    assert found == pytest.approx([math.log(10), math.log(100), math.log(1000)], rel=0.1)


def test_sample_measure_by_hand():
    x = torch.tensor([[0.2, 0.0], [0.9, 0.0]])
    f = HalfSpace(torch.tensor([1.0, 0.0]), 0.5)
    samples = torch.tensor([[[0.3, 0.0], [0.8, 0.0]], [[0.6, 0.0], [0.4, 0.0]], [[0.1, 0.0], [5.0, 0.0]]])
    found = sample_measure(f, x, samples, (0.05, 0.15, 0.45, 9.0))
    assert torch.allclose(found, torch.tensor([[1, 1], [1, 1], [2 / 3, 1], [2 / 3, 2 / 3]]).double())
    mean = sample_score(f, x, samples, (0.05, 0.45, 9.0), link=identity, factor=lambda eps: 1 / eps)
    by_hand = (1 / 0.05 + (5 / 6) / 0.45 + (2 / 3) / 9.0) / 3
    assert mean.value == pytest.approx(by_hand) and mean.ceiling == pytest.approx((20 + 1 / 0.45 + 1 / 9) / 3)
    strict = sample_score(f, x, samples, (0.05, 0.45, 9.0), link=indicator)
    assert strict.value == pytest.approx((1 + 0.5 + 0) / 3) and strict.empty == pytest.approx(1 / 3)
    with pytest.raises(BookError, match=r"\(M, N, ...\)"):
        sample_measure(f, x, samples[:, :1], (1.0,))


# ----------------------------------------------------------------------------------- the generic robust loss


def outputs(count=3, points=4, classes=5, scale=1.0):
    logits = scale * torch.randn(1 + count, points, classes, generator=gen())
    return logits, torch.rand(count, points, generator=gen(1))


def test_soft_indicators_by_hand():
    own, others = torch.tensor([[0.0, math.log(3.0)]]), torch.tensor([[[0.0, 0.0]], [[0.0, math.log(3.0)]]])
    assert torch.allclose(agreement(own, others), torch.tensor([[0.5], [1 / 16 + 9 / 16]]))
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert torch.allclose(minus_cross_entropy(own, others), torch.tensor([[-math.log(2)], [-entropy]]))


@pytest.mark.parametrize("link", ["identity", "indicator"])
def test_the_soft_score_hardens_to_the_sample_score(link):
    """With certain outputs the soft agreement is the indicator, and R~ that of equation (9)."""
    logits, distance = outputs(scale=1e4)
    radii = (0.3, 0.6, 2.0)
    soft = robust_loss(1.0, radii, link=link, soft="agreement", inverse=True).score(logits, distance)
    same, total = (logits[1:].argmax(2) == logits[0].argmax(1)).double(), 0.0
    for eps in radii:
        for n in range(4):
            near = distance[:, n] < eps
            share = float(same[near, n].mean()) if near.any() else 1.0
            total += (share if link == "identity" else float(share == 1)) / eps
    assert float(soft) == pytest.approx(total / 12, abs=1e-5)


def test_the_loss_is_log_loss_minus_the_score():
    x, y = cube(3, 40), torch.randint(2, (40,), generator=gen())
    model = networks.make("mlp", seed=0, classes=2, channels=3, size=1, depth=1, width=8)
    batch, labels = neighbours(sampler_of(Ball(0.4)), 5)(model, x, y, gen())
    assert batch.shape == (240, 3) and torch.equal(batch[:40], x) and labels is y
    plain, _ = cross_entropy_loss(model, x, y)
    for weight in (0.0, 2.0):
        loss = robust_loss(weight, (9.0,))
        value, logits = loss(model, batch, y)
        own, others = model(x).softmax(1), model(batch[40:]).view(5, 40, 2)
        disagreement = torch.stack([cross_entropy(part, own) for part in others]).mean()
        assert torch.allclose(value, plain + weight * disagreement, atol=1e-5) and torch.allclose(
            logits, model(x)
        )
    value.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_training_with_the_loss_raises_the_score():
    """Gaussian noise around the arcs: with lambda the labels survive it more often than without."""
    data = Arcs()
    train, (x, _) = data.sample(200, gen()), data.sample(300, gen(1))
    scores = []
    for weight in (0.0, 3.0):
        model = networks.make("mlp", seed=0, classes=2, channels=2, size=1, depth=2, width=32)
        fit(
            model,
            train,
            epochs=40,
            batch_size=50,
            lr=0.01,
            seed=0,
            validation=None,
            transform=neighbours(sampler_of(Family(Ball, uniform(0, 0.3))), 4),
            loss=robust_loss(weight, (0.1, 0.2, 0.3)),
            progress=False,
        )
        scores.append(score(model, Ball(0.3), weight=on_data(x), draws=100, generator=gen()))
    assert scores[1].value - scores[0].value > 3 * math.hypot(scores[0].error, scores[1].error)


def test_draws_that_do_not_count_stay_where_they_are():
    x = cube(2, 30)
    points = sampler_of(within(Gaussian(1.0), 0.5))(x, 50, gen())
    distance = (points - x).norm(dim=2)
    assert (distance < 0.5).all() and (distance == 0).any() and (distance > 0).any()
    radii = sampler_of(Family(Ball, uniform(0, 1)))(x, 4, gen()) - x
    assert radii.shape == (4, 30, 2) and (radii.norm(dim=2)[0] < 0.25).all()


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: robust_loss(-1.0, (1.0,)), "weight"),
        (lambda: robust_loss(1.0, ()), "radii"),
        (lambda: robust_loss(1.0, (0.0,)), "radii"),
        (lambda: robust_loss(1.0, (1.0,), link="square"), "link"),
        (lambda: robust_loss(1.0, (1.0,), soft="hard"), "soft"),
        (lambda: neighbours(sampler_of(Still()), 0), "count"),
        (lambda: robust_loss(1.0, (1.0,))(nn.Identity(), cube(2, 10), torch.zeros(10).long()), "neighbours"),
    ],
)
def test_mistakes_are_named(mistake, words):
    with pytest.raises(BookError, match=words):
        mistake()
