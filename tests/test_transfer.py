"""Paired auto-encoders, their data, and what stands beside them in chapter `shift`."""

import math

import numpy as np
import pytest
import torch
from robustbook.augmentations.digits import FIFTEEN, HALVES, Corrupting
from robustbook.augmentations.noise import SomeNoise
from robustbook.corruptions.mnist_c import corrupt_mnist
from robustbook.corruptions.places import corrupted_at
from robustbook.corruptions.stored import corrupted
from robustbook.datasets import load
from robustbook.defenses.noise_averaging import NoiseAveraged
from robustbook.defenses.transfer import Alternating, Transferred, reconstruction_loss, split_sources
from robustbook.errors import BookError
from robustbook.framework import digit_machine, fit_machine
from robustbook.networks import PairedAutoEncoder, make, paired_autoencoder
from robustbook.networks.autoencoder import decoder, encoder
from robustbook.networks.catalogue import initialised
from robustbook.training import fit, recipe_of
from sklearn.svm import SVC
from torch import nn


def parameters(model):
    return sum(p.numel() for p in model.parameters())


# ---------------------------------------------------------------------------------------- networks


def test_the_networks_have_the_sizes_of_appendix_b():
    """Counted by hand from the printed layers with the paddings of gap U15."""
    encode = (9 * 32 + 32) + (9 * 32 * 64 + 64) + (9 * 64 * 128 + 128) + (16 * 128 * 128 + 128)
    decode = (128 * 2048 + 2048) + (2048 * 3136 + 3136)
    decode += (9 * 64 * 64 + 64) + (9 * 64 * 32 + 32) + (9 * 32 + 1)
    assert parameters(encoder()) == encode and parameters(decoder()) == decode
    pair = paired_autoencoder(seed=0)
    assert parameters(pair) == encode + 2 * decode
    x = torch.rand(3, 1, 28, 28)
    assert pair(x).shape == (3, 128) and pair.transfer(x).shape == x.shape
    assert pair.transfer(x).min() >= 0 and pair.transfer(x).max() <= 1
    classifier = (9 * 32 + 32) + (9 * 32 * 64 + 64) + (9216 * 128 + 128) + (128 * 10 + 10)
    assert parameters(make("keras-cnn", seed=0)) == classifier


def test_a_seed_gives_the_weights_and_leaves_chance_alone():
    state = torch.get_rng_state()
    first, again, other = (paired_autoencoder(seed=seed, width=0.1) for seed in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    for p, q, r in zip(first.parameters(), again.parameters(), other.parameters()):
        assert torch.equal(p, q) and not torch.equal(p, r)


def test_batch_norm_is_an_option_of_the_network():
    names = [type(m).__name__ for m in make("keras-cnn", seed=0, batch_norm=True).modules()]
    assert names.count("BatchNorm2d") == 2
    assert not any(isinstance(m, nn.BatchNorm2d) for m in make("keras-cnn", seed=0).modules())


class Plus(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = nn.Parameter(torch.tensor(float(value)))

    def forward(self, x):
        return x + self.value


def test_every_point_goes_through_the_decoder_of_its_domain():
    pair = PairedAutoEncoder(Plus(1), Plus(10), Plus(100))
    x = torch.tensor([[1.0], [2.0], [3.0]])
    assert pair.reconstruct(x, torch.tensor([1, 0, 1])).flatten().tolist() == [102, 13, 104]
    assert pair.transfer(x).flatten().tolist() == [12, 13, 14]
    loss = reconstruction_loss(pair, x, torch.tensor([0, 0, 1]))
    assert loss.item() == pytest.approx((11**2 + 11**2 + 101**2) / 3)
    loss = reconstruction_loss(pair, x, torch.tensor([0, 0, 0]))
    loss.backward()
    assert pair.corrupted.value.grad is None and pair.clean.value.grad.item() == pytest.approx(22)
    with pytest.raises(BookError, match="0 for clean, 1 for corrupted"):
        pair.reconstruct(x, torch.tensor([0, 1, 2]))
    with pytest.raises(BookError, match="PairedAutoEncoder"):
        reconstruction_loss(nn.Identity(), x, torch.zeros(3))


# -------------------------------------------------------------------------------------------- data


@pytest.mark.parametrize("names", [("fog",), FIFTEEN])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_no_image_is_the_source_of_two(names, count):
    sources = split_sources(600, names, count)
    assert sources.shared() == 0
    assert len(sources.clean) == 600 - count * len(names)
    assert set(sources.corrupted) == (set(names) if count else set())
    assert all(len(places) == count for places in sources.corrupted.values())
    together = torch.cat([sources.clean, *sources.corrupted.values()])
    assert together.sort().values.tolist() == list(range(600))


def test_a_shared_source_would_be_counted():
    sources = split_sources(10, ("fog",), 3)
    sources.corrupted["rain"] = sources.clean[:2]
    assert sources.shared() == 2


@pytest.mark.parametrize("count", [40, 41])
def test_somebody_must_stay_clean(count):
    with pytest.raises(BookError, match="none would stay clean"):
        split_sources(600, FIFTEEN, count)


def test_batches_alternate_and_the_smaller_domain_comes_again():
    clean, dirty = torch.arange(10.0)[:, None], 100 + torch.arange(3.0)[:, None]
    batches = Alternating(clean, dirty, batch_size=4, seed=0)
    seen = list(batches)
    assert len(seen) == len(batches) == 6
    assert [set(y.tolist()) for _, y in seen] == [{0}, {1}] * 3
    assert all(len(x) == 4 for x, _ in seen)
    of_clean = torch.cat([x for x, y in seen if y[0] == 0]).flatten()
    of_dirty = torch.cat([x for x, y in seen if y[0] == 1]).flatten()
    assert set(of_clean.tolist()) == set(range(10)) and sorted(of_clean[:10].tolist()) == list(range(10))
    assert [of_dirty.tolist().count(v) for v in (100, 101, 102)] == [4, 4, 4]
    assert not any((x >= 100).any() != (y == 1).any() for x, y in seen)


def test_every_pass_has_its_own_order_and_a_seed_fixes_all():
    clean = torch.arange(50.0)[:, None]
    one, same, other = (Alternating(clean, None, batch_size=10, seed=s) for s in (0, 0, 1))
    passes = [[torch.cat([x for x, _ in b]).flatten().tolist() for b in (one, same, other)] for _ in range(2)]
    assert passes[0][0] == passes[0][1] != passes[0][2]
    assert passes[1][0] == passes[1][1] != passes[0][0]
    assert len(one) == 5


def test_corrupted_images_at_places_are_those_of_the_whole(data_dir):
    whole = corrupted("mnist-small", "fog", split="train", limit=9).x
    places = torch.tensor([7, 2, 8])
    assert torch.equal(corrupted_at("mnist-small", "fog", places), whole[places])
    with pytest.raises(BookError, match="places"):
        corrupted_at("mnist-small", "fog", torch.tensor([], dtype=torch.long))


def test_stored_files_are_read_where_they_exist(data_dir, monkeypatch):
    from robustbook.corruptions import places as module

    images = np.arange(5, dtype=np.uint8)[:, None, None, None].repeat(28, 1).repeat(28, 2)
    found = (images, np.zeros(5, dtype=np.int64), "official mnist_c", "abc")
    monkeypatch.setattr(module, "read_official", lambda array, root: found)
    x = corrupted_at("mnist", "fog", torch.tensor([3, 1]))
    assert (x[:, 0, 0, 0] * 255).round().tolist() == [3, 1] and x.shape == (2, 1, 28, 28)


# ---------------------------------------------------------------------------------------- training


def plane_pair(seed):
    def part(a, b):
        return nn.Sequential(nn.Linear(a, 32), nn.Tanh(), nn.Linear(32, b))

    return initialised(lambda: PairedAutoEncoder(part(2, 2), part(2, 2), part(2, 2)), seed)


def arcs(count, seed):
    """Two classes on opposite arcs of the unit circle."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (count,), generator=generator)
    angle = torch.rand(count, generator=generator) - 0.5 + math.pi * y
    return torch.stack([angle.cos(), angle.sin()], 1), y


def test_a_shift_that_leaves_the_distribution_as_it_is_cannot_be_undone():
    """Under x -> -x the arcs stay the arcs: T must be close to the identity, not to the inverse."""
    pair = plane_pair(0)
    batches = Alternating(arcs(400, 0)[0], -arcs(400, 1)[0], batch_size=32, seed=0)
    fit(
        pair,
        batches,
        loss=reconstruction_loss,
        epochs=40,
        batch_size=32,
        lr=3e-3,
        seed=0,
        validation=None,
        progress=False,
    )
    x, _ = arcs(200, 2)
    with torch.no_grad():
        moved = pair.transfer(-x)
    assert (moved + x).norm(dim=1).mean() < 0.1
    assert (moved - x).norm(dim=1).mean() > 1.8


def test_fit_trains_both_decoders():
    data = load("mnist-small", "train", limit=64).x
    pair = paired_autoencoder(seed=0, width=0.1)
    before = [p.clone() for p in pair.parameters()]
    plan = dict(epochs=3, batch_size=16, lr=1e-3, seed=0, validation=None, progress=False)
    history = fit(
        pair,
        Alternating(data, 1 - data, batch_size=16, seed=0),
        loss=reconstruction_loss,
        channels_last=True,
        **plan,
    )
    assert not any(torch.equal(p, q) for p, q in zip(before, pair.parameters()))
    assert history.records[-1].train_loss < history.records[0].train_loss


# ------------------------------------------------------------------------------- classifiers beside


class Bright(nn.Module):
    """Class 1 if the mean pixel is above a half, surely or softly."""

    def __init__(self, steep=1e6):
        super().__init__()
        self.steep = steep

    def forward(self, x):
        value = self.steep * (x.flatten(1).mean(1) - 0.5)
        return torch.stack([-value, value], 1)


def test_any_classifier_can_stand_behind_a_map():
    flip = PairedAutoEncoder(nn.Identity(), Plus(0.4), nn.Identity())
    model = Transferred(Bright(), flip)
    x = torch.tensor([0.05, 0.2, 0.7])[:, None, None, None].expand(3, 1, 2, 2)
    assert model(x).argmax(1).tolist() == [0, 1, 1]
    assert Bright()(x).argmax(1).tolist() == [0, 0, 1]


def test_noise_averaging_against_the_normal_distribution():
    """A threshold on one pixel: the mean probability is the normal distribution of the distance."""
    x = torch.full((1, 1, 1, 1), 0.6)
    model = NoiseAveraged(Bright(), sigma=0.2, draws=20_000, seed=0)
    exact = 0.5 * (1 + math.erf(0.5 / math.sqrt(2)))
    assert model(x).exp()[0, 1].item() == pytest.approx(exact, abs=0.01)
    assert torch.equal(model(x), model(x))
    plain = NoiseAveraged(Bright(3.0), sigma=0.0, draws=2, seed=0)
    assert torch.allclose(plain(x), Bright(3.0)(x).log_softmax(1))


@pytest.mark.parametrize("options", [{"sigma": -1.0, "draws": 1}, {"sigma": 0.1, "draws": 0}])
def test_noise_averaging_refuses(options):
    with pytest.raises(BookError):
        NoiseAveraged(Bright(), seed=0, **options)


def test_the_machine_says_what_scikit_learn_says():
    x, y = load("mnist-small", "train", limit=300)
    test = load("mnist-small", "test", limit=200).x
    machine = fit_machine(x, y)
    theirs = SVC(gamma=0.05, C=5).fit(x.flatten(1).numpy(), y.numpy())
    noisy = (test + 0.3 * torch.randn(test.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    for images in (test, noisy):
        assert machine(images).argmax(1).tolist() == theirs.predict(images.flatten(1).numpy()).tolist()


def test_the_machine_breaks_ties_as_libsvm_does_and_knows_absent_classes():
    generator = torch.Generator().manual_seed(3)
    x, y = torch.rand(60, 1, 2, 2, generator=generator), torch.arange(60) % 4 * 2
    test = torch.rand(500, 1, 2, 2, generator=generator)
    machine = fit_machine(x, y, gamma=5.0)
    theirs = SVC(gamma=5.0, C=5).fit(x.flatten(1).numpy(), y.numpy())
    votes = machine(test) + machine.order
    assert (votes.sort(1).values[:, -1] == votes.sort(1).values[:, -2]).any()
    assert machine(test).argmax(1).tolist() == theirs.predict(test.flatten(1).numpy()).tolist()
    assert machine(test).shape == (500, 10)
    with pytest.raises(BookError, match="three"):
        fit_machine(x, y % 4, gamma=5.0)


def test_the_digit_machine_learns_noisy_copies():
    plain, noisy = digit_machine("mnist-small", 60), digit_machine("mnist-small", 60, 0.1)
    assert len(noisy.points) > len(plain.points)
    assert digit_machine("mnist-small", 60) is plain


# ------------------------------------------------------------------------------ ways of training


def test_some_noise_is_on_some_images():
    x = torch.full((400, 1, 4, 4), 0.5)
    noisy = SomeNoise(0.1)(x, generator=torch.Generator().manual_seed(0))
    touched = (noisy != x).flatten(1).all(1)
    assert torch.equal(touched, (noisy != x).flatten(1).any(1))
    assert 150 < touched.sum() < 250
    assert noisy[touched].std().item() == pytest.approx(0.1, rel=0.05)
    with pytest.raises(BookError):
        SomeNoise(0.1, share=2.0)


def test_corrupting_gives_clean_and_corrupted_images():
    x = load("mnist-small", "train", limit=60).x
    mixed = Corrupting(("stripe", "brightness"))(x, generator=torch.Generator().manual_seed(0))
    kinds = [x, corrupt_mnist(x, "stripe"), corrupt_mnist(x, "brightness")]
    same = torch.stack([(mixed == kind).flatten(1).all(1) for kind in kinds])
    assert (same.sum(0) == 1).all() and (same.sum(1) > 8).all()
    with pytest.raises(BookError):
        Corrupting(())
    with pytest.raises(BookError, match="rain"):
        Corrupting(("rain",))


def test_the_halves_share_nothing_and_leave_nothing_out():
    first, second = HALVES["first"], HALVES["second"]
    assert len(FIFTEEN) == 15 and "identity" not in FIFTEEN
    assert set(first).isdisjoint(second) and set(first) | set(second) == set(FIFTEEN)


def test_recipes_know_their_ways():
    assert "transform" not in recipe_of("keras-cnn-mnist", {}).fit
    assert (
        recipe_of("keras-cnn-mnist", {"way": "first"}).fit["transform"].augmentations[0].names
        == HALVES["first"]
    )
    paper = recipe_of("keras-cnn-mnist-paper", {"way": "gauss"}).fit
    assert (
        paper["epochs"] == 50
        and paper["batch_size"] == 32
        and paper["transform"].augmentations[0].sigma == 0.1
    )
    with pytest.raises(BookError, match="gauss"):
        recipe_of("keras-cnn-mnist", {"way": "gaus"})
