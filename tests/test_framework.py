"""The framework against closed forms: half-spaces, concentric and constant classifiers, any dimension."""

import math

import numpy as np
import pytest
import torch
from robustbook.corruptions.mnist_c import corrupt_mnist
from robustbook.datasets.arcs import Arcs, arc_distance, arc_point, square_grid
from robustbook.errors import BookError
from robustbook.framework import (
    Ball,
    Changed,
    Concentric,
    Constant,
    Family,
    Gaussian,
    HalfSpace,
    Independent,
    Listed,
    Mixed,
    Still,
    Weight,
    basic,
    corruption,
    everywhere,
    function,
    identity,
    indicator,
    inverse_radius,
    label_aware,
    label_preservation,
    labeller,
    lebesgue,
    on_data,
    proposition_6,
    score,
    uniform,
    uniform_cube,
    within,
)
from robustbook.framework.closed_form import cap, shared
from scipy import stats
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

DIMENSIONS = (1, 2, 5, 30)
NORMALS = {m: torch.linspace(1, 2, m) for m in DIMENSIONS}


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def cut(m):
    """A half-space through the middle of the unit cube."""
    return HalfSpace(NORMALS[m], float(NORMALS[m].sum() / 2))


def sphere(m):
    return Concentric(torch.full((m,), 0.5), math.sqrt(m / 12))  # about half of the cube


def cube(m, count=200, seed=1):
    return torch.rand(count, m, generator=gen(seed))


def off(found, exact, draws):
    """Misses in standard errors of a binomial share, with a floor for shares near 0 and 1."""
    exact = exact.double()
    return ((found - exact).abs() / ((exact * (1 - exact)).clamp_min(1 / draws) / draws).sqrt()).max()


# --------------------------------------------------------------------------- closed forms, on their own


@pytest.mark.parametrize("m", DIMENSIONS)
def test_cap_and_lens_are_volumes(m):
    """Against points of the ball itself, drawn without the library."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200_000, m))
    z *= (rng.random(len(z)) ** (1 / m) / np.linalg.norm(z, axis=1))[:, None]
    for h in (-0.5, 0.0, 0.2, 0.7):
        assert (z[:, 0] > h).mean() == pytest.approx(cap(h, m), abs=0.005)
    for away, radius in ((0.0, 0.8), (0.5, 0.7), (1.2, 1.0), (0.3, 2.0), (3.0, 1.0), (0.1, 0.9)):
        inside = np.linalg.norm(z - away * np.eye(m)[0], axis=1) < radius
        assert inside.mean() == pytest.approx(float(shared(np.array(away), 1.0, radius, m)), abs=0.005)


def test_cap_in_three_dimensions_is_archimedes():
    h = np.linspace(-1, 1, 9)
    assert np.allclose(cap(h, 3), (1 - h) ** 2 * (2 + h) / 4)
    assert cap(0.0, 7) == 0.5 and cap(2.0, 7) == 0 and cap(-2.0, 7) == 1


# --------------------------------------------------------------- Definition 1: kernels against closed forms


@pytest.mark.parametrize("make", [cut, sphere], ids=["half-space", "concentric"])
@pytest.mark.parametrize("m", DIMENSIONS)
def test_ball_and_noise_have_the_closed_form(make, m):
    f, x, draws = make(m), cube(m), 4_000
    for eps in (0.2, 0.6):
        found = basic(f, Ball(eps), x, draws=draws, generator=gen())
        assert (found.seen == draws).all() and found.empty == 0
        assert off(found.rho, f.kept_in_ball(x, eps), draws) < 4.5
        assert (
            off(
                basic(f, Gaussian(eps), x, draws=draws, generator=gen()).rho,
                f.kept_under_noise(x, eps),
                draws,
            )
            < 4.5
        )


def test_a_wrong_closed_form_would_be_noticed():
    f, x = cut(5), cube(5)
    found = basic(f, Ball(0.5), x, draws=4_000, generator=gen())
    assert off(found.rho, f.kept_in_ball(x, 0.45), 4_000) > 6
    assert off(found.rho, HalfSpace(NORMALS[2], 0.0).kept_in_ball(x[:, :2], 0.5), 4_000) > 6


@pytest.mark.parametrize("m", DIMENSIONS)
def test_points_of_a_ball_are_uniform(m):
    x = cube(m, 50)
    for norm, size in (("l2", lambda d: d.norm(dim=2)), ("linf", lambda d: d.abs().amax(2))):
        drawn = Ball(0.5, norm).draw(x, 400, gen())
        share = size(drawn.points - x).flatten().double().numpy() / 0.5
        assert share.max() <= 1 + 1e-5
        assert stats.kstest(share**m, "uniform").pvalue > 1e-3  # the m-th power of the radius is uniform


def test_linf_ball_of_a_half_space():
    """Along an axis: a uniform number; across: the sum of two, a triangle."""
    x = cube(2, 100)
    axis, diagonal = HalfSpace(torch.tensor([1.0, 0.0]), 0.5), HalfSpace(torch.ones(2), 1.0)
    margin = axis.margin(x)
    exact = ((margin / 0.4 + 1) / 2).clamp_max(1)
    assert off(basic(axis, Ball(0.4, "linf"), x, draws=4_000, generator=gen()).rho, exact, 4_000) < 4.5
    corner = (2 - diagonal.margin(x) * math.sqrt(2) / 0.4).clamp_min(0).square() / 8
    assert (
        off(basic(diagonal, Ball(0.4, "linf"), x, draws=4_000, generator=gen()).rho, 1 - corner, 4_000) < 4.5
    )


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_ball_in_a_box_is_the_uniform_distribution_conditioned(norm):
    """Definition 1 of 2020, Q(X | B_eps(x)) with Q uniform on the square, by another way of sampling."""
    f, x = sphere(2), torch.tensor([[0.02, 0.5], [0.05, 0.98], [0.5, 0.5], [0.66, 0.4]])
    direct = basic(f, Ball(0.3, norm, box=(0, 1)), x, draws=40_000, generator=gen())
    other = basic(f, within(Independent(uniform_cube(2)), 0.3, norm), x, draws=200_000, generator=gen(1))
    if norm == "l2":
        assert (direct.seen[:2] < 0.7 * 40_000).all() and (direct.seen[2:] == 40_000).all()
    assert torch.allclose(direct.rho, other.rho, atol=0.012)
    free = basic(f, Ball(0.3, norm), x, draws=40_000, generator=gen())
    assert (free.rho - direct.rho).abs().max() > 0.03  # the box matters at the border


def test_constant_classifiers_are_kept_everywhere():
    x = cube(5)
    for kernel in (Ball(3.0), Ball(3.0, "linf"), Gaussian(9.0), Changed(lambda x, g: 1 - x)):
        assert (basic(Constant(3), kernel, x, draws=20, generator=gen()).rho == 1).all()
    assert Constant(3)(x).tolist() == [3] * 200 and Constant().margin(x).isinf().all()


def test_each_point_may_have_its_own_radius():
    f, x = cut(5), cube(5)
    eps = torch.linspace(0.05, 1, len(x))
    found = basic(f, Ball(eps), x, draws=4_000, generator=gen()).rho
    exact = torch.cat([f.kept_in_ball(x[i : i + 1], float(eps[i])) for i in range(len(x))])
    assert off(found, exact, 4_000) < 4.5
    with pytest.raises(BookError, match="one a point"):
        basic(f, Ball(eps[:3]), x, draws=2, generator=gen())


def test_mixed_and_still():
    f, x = cut(2), cube(2)
    assert (basic(f, Still(), x, draws=3, generator=gen()).rho == 1).all()
    flipped = Changed(lambda x, g: 1 - x)  # to the other side of the middle
    assert (basic(f, flipped, x, draws=3, generator=gen()).rho == 0).all()
    found = basic(f, Mixed(Still(), flipped, 0.3), x, draws=2_000, generator=gen()).rho
    assert off(found, torch.full((200,), 0.7), 2_000) < 4.5


def test_a_corruption_is_a_kernel():
    x = torch.rand(3, 1, 28, 28, generator=gen())
    drawn = corruption("brightness", 2).draw(x, 2, gen())
    assert torch.equal(drawn.points[1], corrupt_mnist(x, "brightness", 2))
    noisy = corruption("impulse_noise").draw(x, 2, gen()).points
    assert not torch.equal(noisy[0], noisy[1])


# ----------------------------------------------------------------------------- conditioning on events


def test_conditioning_on_the_label_removes_what_changes_it():
    """Example 4: with f = Y nothing is left that changes f; with another f a ratio of areas is left."""
    truth, x = cut(2), cube(2)
    aware = label_aware(Ball(0.5), truth)
    found = basic(truth, aware, x, draws=500, generator=gen())
    assert (found.rho == 1).all() and (found.seen < 500).any()
    other = HalfSpace(NORMALS[2], truth.offset + 0.3)
    plain = Ball(0.5).draw(x, 20_000, gen())
    alive = plain.labels(truth) == truth(x)
    ratio = ((plain.labels(other) == other(x)) & alive).sum(0) / alive.sum(0)
    assert torch.allclose(
        basic(other, aware, x, draws=20_000, generator=gen(1)).rho, ratio.double(), atol=0.03
    )


def test_an_event_that_never_happens_leaves_nothing_changed():
    never = within(Ball(1.0), 0.0)
    found = basic(cut(2), never, cube(2), draws=10, generator=gen())
    assert (found.rho == 1).all() and found.empty == 1


# --------------------------------------------------------------------- Definitions 2 to 4: function and score


@pytest.mark.parametrize("make", [cut, sphere], ids=["half-space", "concentric"])
@pytest.mark.parametrize("m", (2, 5, 30))
def test_score_is_the_mean_of_the_closed_form(make, m):
    """Definition 3 with H = id, G = 1; the closed form is averaged over other points."""
    f = make(m)
    weight = everywhere(m, count=2_000, generator=gen())
    found = score(f, Ball(0.5), weight=weight, draws=100, generator=gen(1))
    known = f.kept_in_ball(cube(m, 100_000, 2), 0.5)
    assert abs(found.value - known.mean()) < 3.5 * found.error
    variance = known.var() + (known * (1 - known)).mean() / 100  # between points, and of their own draws
    assert found.error == pytest.approx(math.sqrt(float(variance) / 2_000), rel=0.1)
    assert found.ceiling == 1 and found.empty == 0


def test_standard_errors_are_honest():
    """Over many repetitions the scores scatter as much as their errors say."""
    f = cut(2)
    found = [
        score(
            f,
            Family(Ball, uniform(0, 1)),
            weight=everywhere(2, count=100, generator=gen(k)),
            draws=5,
            nodes=3,
            generator=gen(100 + k),
        )
        for k in range(200)
    ]
    scatter, said = np.std([s.value for s in found]), np.mean([s.error for s in found])
    assert said == pytest.approx(scatter, rel=0.15)


@pytest.mark.parametrize("m", (1, 2, 5))
def test_a_family_averages_over_its_radius(m):
    """Definition 4 with the uniform density: quadrature of the closed form over eps."""
    f = cut(m)
    found = score(
        f,
        Family(Ball, uniform(0.1, 0.9)),
        weight=everywhere(m, count=3_000, generator=gen()),
        draws=20,
        nodes=5,
        generator=gen(1),
    )
    radii, x = np.linspace(0.1, 0.9, 81), cube(m, 4_000, 2)
    exact = np.trapezoid([float(f.kept_in_ball(x, r).mean()) for r in radii], radii) / 0.8
    assert abs(found.value - exact) < 3.5 * found.error + 0.004


def test_listed_parameters_are_weighted():
    f, x = cut(2), cube(2)
    listed = Family(Ball, Listed([0.2, 0.6], [0.75, 0.25]))
    found = score(f, listed, weight=on_data(x), draws=2_000, generator=gen())
    exact = 0.75 * f.kept_in_ball(x, 0.2) + 0.25 * f.kept_in_ball(x, 0.6)
    assert found.value == pytest.approx(float(exact.mean()), abs=0.005)
    for wrong in ([0.5], [0.7, 0.7], [1.5, -0.5]):
        with pytest.raises(BookError, match="add up to 1"):
            Listed([0.2, 0.6], wrong)


@pytest.mark.parametrize("m", (1, 2, 5, 30))
def test_average_margin_of_a_half_space(m):
    """Example 2: R times d is the mean margin; along an axis (a^2 + (1-a)^2)/2, whatever the dimension.

    The exact rho is 1 up to the margin, so here the indicator gets its probabilities from the closed form.
    """
    a, d = 0.3, math.sqrt(m)
    f = HalfSpace(torch.eye(m)[0], a)
    x, total = cube(m, 5_000), torch.zeros(5_000, dtype=torch.float64)
    for eps, share in uniform(0, d).nodes(20, len(x), gen()):
        rho = torch.tensor([float(e <= t) for e, t in zip(eps, f.margin(x))], dtype=torch.float64)
        total += share * indicator(rho)
    error = float(total.std()) * d / math.sqrt(5_000)
    assert abs(d * float(total.mean()) - (a**2 + (1 - a) ** 2) / 2) < 3.5 * error


def test_dense_sampling_finds_the_average_margin_in_the_plane():
    f, d = sphere(2), math.sqrt(2)
    weight = everywhere(2, count=400, generator=gen())
    found = score(
        f, Family(Ball, uniform(0, d)), link=indicator, weight=weight, draws=3_000, nodes=6, generator=gen(1)
    )
    margins = f.margin(weight.points)
    assert d * found.value == pytest.approx(float(margins.mean()), abs=3 * d * found.error)
    few = score(
        f, Family(Ball, uniform(0, d)), link=indicator, weight=weight, draws=3, nodes=6, generator=gen(1)
    )
    assert few.value > 2 * found.value  # too kind, as the docstring says


def test_weights_and_ceilings():
    f, x = cut(2), cube(2)
    family = Family(Ball, lebesgue(0.1, 0.5))
    plain = score(f, family, weight=on_data(x), draws=50, nodes=10, generator=gen())
    heavy = score(f, family, weight=Weight(x, inverse_radius), draws=50, nodes=10, generator=gen())
    assert plain.ceiling == pytest.approx(0.4) and heavy.ceiling == pytest.approx(math.log(5), rel=0.02)
    assert plain.value < plain.ceiling and heavy.value < heavy.ceiling
    constant = score(Constant(), family, weight=Weight(x, inverse_radius), draws=5, nodes=10, generator=gen())
    assert constant.value == pytest.approx(constant.ceiling)
    values, most, _ = function(
        f, Ball(0.3), link=identity, weight=Weight(x, lambda x, _: x[:, 0]), draws=400, generator=gen()
    )
    assert off(values / x[:, 0], f.kept_in_ball(x, 0.3), 400) < 5 and torch.allclose(most, x[:, 0].double())


def test_links():
    p = torch.tensor([0.0, 0.5, 1 - 1e-9, 1.0], dtype=torch.float64)
    assert identity(p) is p and indicator(p).tolist() == [0, 0, 0, 1]


# ------------------------------------------------------------------------------- any classifier x -> label


def test_networks_estimators_and_functions_are_classifiers():
    torch.manual_seed(0)
    x, network = cube(2), nn.Sequential(nn.Flatten(), nn.Linear(2, 3))
    nearest = KNeighborsClassifier(3).fit(x.numpy(), cut(2)(x).numpy())
    points = cube(2, 50, 3)
    assert torch.equal(labeller(network)(points), network(points).argmax(1))
    assert labeller(nearest)(points).tolist() == nearest.predict(points.numpy()).tolist()
    assert torch.equal(labeller(cut(2))(points), cut(2)(points))
    for f in (network, nearest, cut(2)):
        found = score(f, Ball(0.2), weight=on_data(points), draws=10, generator=gen())
        assert 0 < found.value <= 1
    images = torch.rand(4, 1, 3, 3, generator=gen())
    rows = KNeighborsClassifier(1).fit(images.flatten(1).numpy(), [3, 1, 4, 1])
    assert labeller(rows)(images).tolist() == [3, 1, 4, 1]


def test_large_batches_come_in_portions():
    sizes = []

    def spy(x):
        sizes.append(len(x))
        return torch.zeros(len(x), dtype=torch.long)

    assert len(labeller(spy)(torch.zeros(3_000, 1, 28, 28))) == 3_000
    assert max(sizes) <= 1_337 and sum(sizes) == 3_000


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: labeller("lenet5"), "no classifier"),
        (lambda: labeller(lambda x: x)(cube(2)), "one a point"),
        (lambda: labeller(lambda x: x[:, 0])(cube(2)), "whole numbers"),
        (lambda: labeller(cut(2))(torch.zeros(0, 2)), "no points"),
        (lambda: basic(cut(2), Ball(0.1), cube(2), draws=0, generator=gen()), "draws=0"),
        (lambda: Ball(-1.0), "eps=-1.0"),
        (lambda: Ball(1.0, "l3"), "norm"),
        (lambda: Gaussian(float("nan")), "sigma"),
        (lambda: Mixed(Still(), Still(), 2), "probability"),
        (lambda: uniform(1, 1), "lower end"),
        (lambda: cut(2).kept_in_ball(cube(2), 0.0), "positive"),
        (lambda: proposition_6(cut(2), Still(), cube(2), draws=1, generator=gen()), "truth= nor y="),
        (lambda: Arcs(0.0), "sigma"),
    ],
)
def test_mistakes_are_named(mistake, words):
    with pytest.raises(BookError, match=words):
        mistake()


# --------------------------------------------------------------------- Definition 5 and Proposition 6


def test_label_preservation_is_the_closed_form():
    truth, x = cut(5), cube(5, 3_000)
    found = label_preservation(Ball(0.4), truth, x, draws=50, generator=gen())
    assert abs(found.value - float(truth.kept_in_ball(x, 0.4).mean())) < 3.5 * found.error
    aware = label_preservation(label_aware(Ball(0.4), truth), truth, x, draws=50, generator=gen())
    assert aware.value == 1


def test_proposition_6_in_closed_form():
    """Parallel planes: all four numbers are known integrals."""
    truth, f, x = HalfSpace(torch.eye(3)[0], 0.5), HalfSpace(torch.eye(3)[0], 0.6), cube(3, 20_000)
    found = proposition_6(f, Gaussian(0.2), x, truth=truth, draws=4, generator=gen())
    assert found.accuracy == pytest.approx(0.9, abs=0.01)
    assert found.label_change == pytest.approx(1 - float(truth.kept_under_noise(x, 0.2).mean()), abs=0.01)
    assert found.lack == pytest.approx(1 - float(f.kept_under_noise(x, 0.2).mean()), abs=0.01)
    t = x[:, 0].double()
    between = torch.special.ndtr((0.6 - t) / 0.2) - torch.special.ndtr((0.5 - t) / 0.2)
    assert found.shifted == pytest.approx(1 - float(between.mean()), abs=0.01)
    assert (
        found.slack == pytest.approx(found.shifted - found.bound) and found.holds() and found.same_draws >= 0
    )


@pytest.mark.parametrize("m", (2, 5, 30))
def test_proposition_6_holds_for_what_it_is_about(m):
    truth, x = cut(m), cube(m, 500)
    swap = Mixed(Still(), Independent(uniform_cube(m)), 0.3)
    for f in (sphere(m), Constant(0), truth):
        for kernel in (
            Ball(0.3),
            Gaussian(0.3),
            swap,
            Changed(lambda x, g: 1 - x),
            label_aware(Ball(0.3), truth),
        ):
            found = proposition_6(f, kernel, x, truth=truth, draws=5, generator=gen())
            assert found.holds() and found.same_draws >= -1e-12


def test_proposition_6_needs_all_of_its_terms():
    """The check can fail: without eps the bound is wrong where labels change, for a perfect f."""
    truth, x = cut(2), cube(2, 500)
    flip = Changed(lambda x, g: 1 - x)
    found = proposition_6(Constant(0), flip, x, truth=truth, draws=2, generator=gen())
    assert found.label_change == 1 and found.lack == 0 and found.holds()
    wrong = found._replace(slack=found.slack - found.label_change)
    assert found.shifted == pytest.approx(1 - found.accuracy)
    assert wrong.holds() == (1 - 2 * found.accuracy >= -3 * found.error)
    better = proposition_6(truth, Mixed(Still(), flip, 0.5), x, y=1 - truth(1 - x), draws=50, generator=gen())
    assert better.label_change == 0  # by assumption only


def test_independent_draws_make_proposition_6_a_check():
    """Where the bound is tight a single slack may be negative; its error says by how much that is chance.

    All points have label 0 for ever, f sees them as 0, and every loss of f's label is a loss of accuracy.
    """
    f, x = cut(2), cube(2, 400)
    x = x[f(x) == 0]
    found = [proposition_6(f, Ball(0.5), x, truth=Constant(0), draws=2, generator=gen(k)) for k in range(30)]
    assert {t.accuracy for t in found} == {1} and {t.label_change for t in found} == {0}
    slacks = np.array([t.slack for t in found])
    assert (slacks < 0).any() and (slacks > 0).any() and all(t.holds(4) for t in found)
    assert slacks.std() == pytest.approx(np.mean([t.error for t in found]), rel=0.35)
    assert max(abs(t.same_draws) for t in found) < 1e-12  # shared draws: equality, not a check


# ------------------------------------------------------------------------------------- the data of the plane


def test_arcs_are_what_they_say():
    data = Arcs()
    x, y = data.sample(20_000, gen())
    assert ((x >= 0) & (x <= 1)).all() and torch.equal(y, data.label(x))
    assert abs(y.double().mean() - 0.5) < 0.02
    angle = torch.linspace(0, math.pi, 50)
    for side in (0, 1):
        ring = arc_point(torch.full((50,), side), angle + math.pi * side)
        assert arc_distance(ring, side).max() < 1e-6 and (data.label(ring) == side).all()
    nodes = arc_point(torch.zeros(5_000).long(), torch.linspace(0, math.pi, 5_000))
    brute = torch.cdist(cube(2, 300), nodes).amin(1)
    assert torch.allclose(arc_distance(cube(2, 300), 0), brute, atol=1e-4)


def test_density_of_the_arcs():
    """It integrates to 1, and cells of a coarse grid hold as many samples as it says."""
    data = Arcs()
    grid = square_grid(200)
    p = data.density(grid)
    assert float(p.mean()) == pytest.approx(1, abs=1e-3)
    x, _ = data.sample(50_000, gen())
    cell = lambda z: (z * 10).long().clamp_max(9)  # noqa: E731
    count = torch.bincount(cell(x)[:, 1] * 10 + cell(x)[:, 0], minlength=100) / len(x)
    mass = torch.zeros(100, dtype=torch.float64).index_add(
        0, cell(grid)[:, 1] * 10 + cell(grid)[:, 0], p / len(p)
    )
    assert (count - mass).abs().max() < 0.004
