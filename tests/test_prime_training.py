"""What chapter `prime` trains with: removed features, copies made off-line, and its recipes."""

import dataclasses

import pytest
import torch
from PIL import Image
from robustbook.augmentations import (
    Grey,
    LowPass,
    augmented,
    augmix_cifar,
    copies,
    crop_and_flip,
    prime_cifar,
)
from robustbook.augmentations.jsd import Augmented, JsdLoss, Views
from robustbook.errors import BookError
from robustbook.networks import make
from robustbook.networks.viewed import View
from robustbook.spectral import dct2
from robustbook.training import Samples, fit, recipe_of, train_recipe
from torch import Tensor


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


X = torch.rand(12, 3, 32, 32, generator=rng())
Y = torch.arange(12) % 10


# ------------------------------------------------------------------------------------ removed features


def test_low_pass_keeps_a_quarter_of_the_coefficients() -> None:
    before, after = dct2(X), dct2(LowPass(16)(X))
    assert torch.allclose(after[..., :16, :16], before[..., :16, :16], atol=1e-4)
    assert after[..., 16:, :].abs().max() < 1e-4 and after[..., 16:].abs().max() < 1e-4
    assert torch.allclose(LowPass(16)(X), View("low")(X), atol=1e-6)


def test_grey_is_pillows() -> None:
    pixels = (255 * X[0]).round().byte()
    picture = Image.fromarray(pixels.permute(1, 2, 0).numpy()).convert("L")
    grey = Grey()(pixels[None].float() / 255)
    expected = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(32, 32).float()
    assert (255 * grey[0, 0] - expected).abs().max() <= 0.51  # Pillow rounds
    assert torch.equal(grey[:, 0], grey[:, 1]) and torch.equal(grey[:, 0], grey[:, 2])


def test_they_follow_an_augmentation_and_keep_the_layout() -> None:
    x = X.contiguous(memory_format=torch.channels_last)
    transform = augmented(crop_and_flip(), augmix_cifar(), LowPass(16))
    changed, _ = transform(make("resnet9", seed=0, channels=3, size=32, width=4), x, Y, rng())
    assert changed.is_contiguous(memory_format=torch.channels_last)
    assert dct2(changed.contiguous())[..., 16:].abs().max() < 1e-4
    assert Grey()(x).is_contiguous(memory_format=torch.channels_last)


# ------------------------------------------------------------------------------------ copies off-line


def test_copies_are_the_augmentation_in_bytes() -> None:
    data = copies((X, Y), prime_cifar(), 2, seed=3)
    assert isinstance(data, Samples) and len(data) == 36
    everything, labels = data.take(torch.arange(36))
    assert torch.equal(everything[:12], X) and torch.equal(labels, Y.repeat(3))
    stream = rng(3)
    made = torch.cat([prime_cifar()(X, generator=stream) for _ in range(2)])
    assert (everything[12:] - made).abs().max() <= 0.5 / 255 + 1e-6
    assert not torch.equal(everything[12:24], everything[24:])


def test_copies_stay_the_same_and_leave_the_images_alone() -> None:
    data, before = copies((X, Y), prime_cifar(), 1, seed=0), X.clone()
    order = torch.tensor([13, 2, 13, 23])
    first, second = data.take(order)[0], data.take(order)[0]
    assert torch.equal(first, second) and torch.equal(first[0], first[2]) and torch.equal(X, before)
    again = copies((X, Y), prime_cifar(), 1, seed=0).take(order)[0]
    assert torch.equal(first, again)
    other = copies((X, Y), prime_cifar(), 1, seed=1).take(order)[0]
    assert not torch.equal(first, other) and torch.equal(first[1], other[1])


def test_what_is_held_out_is_not_copied() -> None:
    """`fit` trains on the copies of what is left, as often as it is told."""
    seen: list[Tensor] = []

    def watch(model, x, y, generator):
        seen.append(y)
        return x, y

    model = make("resnet9", seed=0, classes=12, channels=3, size=32, width=4)
    data = copies((X, torch.arange(12)), prime_cifar(), 2, seed=0)
    settings = {"epochs": 1, "batch_size": 6, "lr": 0.01, "validation": 0.25, "progress": False}
    history = fit(model, data, seed=0, transform=watch, **settings)
    counts = torch.cat(seen).bincount(minlength=12)
    assert sorted(counts.tolist()) == [0] * 3 + [3] * 9
    assert history.records[0].val_accuracy is not None


# ------------------------------------------------------------------------------------ recipes


def test_recipes_differ_in_transform_and_loss_alone() -> None:
    name = "resnet9-cifar10-augmented"
    plain, single, double = (
        recipe_of(name, settings) for settings in ({}, {"augment": "prime"}, {"augment": "prime", "jsd": 1})
    )
    assert plain == recipe_of("resnet9-cifar10", {})  # the stored network is the plain row of the tables
    assert plain.options == single.options == double.options == {"width": 16}
    own = {"transform", "loss"}
    rest = [{k: v for k, v in r.fit.items() if k not in own} for r in (plain, single, double)]
    assert rest[0] == rest[1] == rest[2]
    assert isinstance(single.fit["transform"], Augmented) and "loss" not in single.fit
    views, loss = double.fit["transform"], double.fit["loss"]
    assert isinstance(views, Views) and (views.copies, views.before) == (2, crop_and_flip())
    assert views.augment == prime_cifar() and loss == JsdLoss(12.0)


@pytest.mark.parametrize(
    ("published", "main"),
    [
        ("resnet9-cifar10-published", "resnet9-cifar10-augmented"),
        ("resnet9-cifar10-published-small", "resnet9-cifar10-augmented-small"),
        ("resnet18-cifar10-published-paper", "resnet18-cifar10-augmented-paper"),
    ],
)
def test_the_published_configuration_differs_in_mixture_and_waves_alone(published: str, main: str) -> None:
    one, other = recipe_of(published, {}), recipe_of(main, {"augment": "prime", "jsd": 1})
    assert one.fit["transform"].augment == prime_cifar(mixing="beta", colour_cut=100)
    views = dataclasses.replace(one.fit["transform"], augment=prime_cifar())
    assert dataclasses.replace(one, fit={**one.fit, "transform": views}) == other


def test_the_paper_recipe_has_the_published_settings() -> None:
    fit = recipe_of("resnet18-cifar100-augmented-paper", {"augment": "augmix", "jsd": 1}).fit
    wanted = {
        "epochs": 100,
        "lr": 0.2,
        "batch_size": 128,
        "weight_decay": 5e-4,
        "clip_norm": 0.5,
        "nesterov": True,
    }
    assert wanted.items() <= fit.items() and fit["schedule"] == "one-cycle" and fit["validation"] is None


@pytest.mark.parametrize("settings", [{}, {"augment": "augmix"}, {"augment": "prime", "jsd": 1}])
def test_small_recipes_train(settings) -> None:
    runs = [train_recipe("resnet9-cifar10-augmented-small", 0, settings, progress=False) for _ in range(2)]
    assert runs[0][1].steps == 24
    first, second = (model.state_dict() for model, *_ in runs)
    assert all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: recipe_of("resnet9-cifar10-augmented", {"jsd": 1}), "augment='prime'"),
        (lambda: recipe_of("resnet9-cifar10-augmented", {"augment": "pime"}), "did you mean prime"),
        (lambda: LowPass(0), "keep"),
        (lambda: LowPass(33)(X), "keep"),
        (lambda: Grey()(X[:, :1]), "three"),
        (lambda: copies((X, Y), prime_cifar(), 0, seed=0), "count"),
        (lambda: copies((255 * X, Y), prime_cifar(), 1, seed=0), "[0, 1]"),
    ],
)
def test_mistakes_are_one_line(call, says) -> None:
    with pytest.raises(BookError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
