"""AugMix against Pillow, the Jensen-Shannon loss against scipy, and augmentations inside `fit`."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from PIL import Image, ImageOps
from robustbook.augmentations import (
    AUGMENTATIONS,
    OPERATIONS,
    AugMix,
    Mixture,
    augmentation,
    augmented,
    augmix_cifar,
    augmix_imagenet,
    crop_and_flip,
    jensen_shannon,
    jsd_loss,
    prime_cifar,
    views,
)
from robustbook.augmentations.augmix import GEOMETRIC, POINT
from robustbook.augmentations.operations import (
    autocontrast,
    equalize,
    posterize,
    rotations,
    shears,
    solarize,
    translations,
    warp,
)
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from robustbook.networks import make
from robustbook.training import fit
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

F64 = torch.float64
LEVEL = 1e-3


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pixels(count: int = 6, channels: int = 3, height: int = 32, width: int = 32) -> np.ndarray:
    """8-bit images of different contrast, (N, H, W, C): noise, ramps, one of a single colour."""
    chance = np.random.default_rng(0)
    shape = (count, height, width, channels)
    images = chance.integers(40, 200, shape).astype(np.uint8)
    images[1] = np.linspace(10, 240, height)[:, None, None].astype(np.uint8)
    images[2] = 77
    images[3] = chance.integers(0, 256, shape[1:])
    images[4, ..., 0] = chance.integers(100, 103, shape[1:3])
    return images


def tensor(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def pillow(images: np.ndarray, change: Callable[[Image.Image], Image.Image]) -> Tensor:
    """What Pillow makes of each image, as levels (N, C, H, W)."""
    grey = images.shape[-1] == 1
    changed = [np.asarray(change(Image.fromarray(image[..., 0] if grey else image))) for image in images]
    return torch.from_numpy(np.stack(changed).reshape(images.shape)).permute(0, 3, 1, 2)


def levels(x: Tensor) -> Tensor:
    return (255 * x).round().byte()


# -------------------------------------------------------------------------------- point operations


@pytest.mark.parametrize("shape", [(6, 3, 32, 32), (6, 1, 28, 28), (6, 3, 17, 9)])
def test_point_operations_are_pillows(shape: tuple[int, int, int, int]) -> None:
    raw = pixels(*shape)
    x, count = tensor(raw), len(raw)
    assert torch.equal(levels(autocontrast(x)), pillow(raw, ImageOps.autocontrast))
    assert torch.equal(levels(equalize(x)), pillow(raw, ImageOps.equalize))
    for bits in range(1, 9):
        ours = posterize(x, torch.full((count,), bits))
        assert torch.equal(levels(ours), pillow(raw, lambda image, b=bits: ImageOps.posterize(image, b)))
    for threshold in (0, 1, 100, 180, 255, 256):
        ours = solarize(x, torch.full((count,), threshold))
        assert torch.equal(levels(ours), pillow(raw, lambda image, t=threshold: ImageOps.solarize(image, t)))


def test_a_level_for_each_image() -> None:
    x, bits = tensor(pixels())[:4], torch.tensor([1, 2, 4, 8])
    together = posterize(x, bits)
    alone = torch.cat([posterize(x[n : n + 1], bits[n : n + 1]) for n in range(4)])
    assert torch.equal(together, alone)
    angles = torch.tensor([0.0, 5.0, -20.0, 30.0])
    together = warp(x, rotations(angles, 32, 32))
    alone = torch.cat([warp(x[n : n + 1], rotations(angles[n : n + 1], 32, 32)) for n in range(4)])
    assert torch.allclose(together, alone, atol=1e-6)


# ---------------------------------------------------------------------------- geometric operations


def affine(*numbers: float) -> Callable[[Image.Image], Image.Image]:
    def change(image: Image.Image) -> Image.Image:
        method, resample = Image.Transform.AFFINE, Image.Resampling.BILINEAR
        return image.transform(image.size, method, numbers, resample=resample)

    return change


def turned(degrees: float) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.rotate(degrees, resample=Image.Resampling.BILINEAR)


def ones(value: float) -> Tensor:
    return torch.full((6,), float(value))


MOVES = [
    *((rotations(ones(a), 24, 20), turned(a)) for a in (0, 3, -9, 30, 90)),
    *((shears(ones(s), 0), affine(1, s, 0, 0, 1, 0)) for s in (0.003, -0.09, 0.3)),
    *((shears(ones(s), 1), affine(1, 0, 0, s, 1, 0)) for s in (0.003, -0.09, 0.3)),
    *((translations(ones(p), 0), affine(1, 0, p, 0, 1, 0)) for p in (0, 1, -7)),
    *((translations(ones(p), 1), affine(1, 0, 0, 0, 1, p)) for p in (0, 2, -3)),
]


@pytest.mark.parametrize(("matrices", "change"), MOVES)
def test_moves_are_pillows(matrices: Tensor, change: Callable[[Image.Image], Image.Image]) -> None:
    """Less than one level apart: Pillow cuts fractions off. Black outside, the last pixel up to the edge."""
    raw = pixels(6, 3, 24, 20)
    ours, theirs = 255 * warp(tensor(raw), matrices), pillow(raw, change)
    gap = ours - theirs
    assert gap.min() >= -0.001 and gap.max() <= 1.001


# ------------------------------------------------------------------------------------------ AugMix


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_in_chains(name: str) -> None:
    """A chain of one operation is that operation, at one of the levels of severity 3."""
    raw = pixels()
    x = tensor(raw)
    result = AugMix(3.0, (name,), Mixture(depth=1, mixing="none"))(x, generator=rng())
    bits = [lambda image, b=b: ImageOps.posterize(image, b) for b in (3, 4)]
    cuts = [lambda image, t=t: ImageOps.solarize(image, t) for t in range(256 - 77, 256)]
    shifts = [0, 1, 2, 3, -1, -2, -3]
    candidates: dict[str, list[Any]] = {
        "autocontrast": [ImageOps.autocontrast],
        "equalize": [ImageOps.equalize],
        "posterize": bits,
        "solarize": cuts,
        "rotate": [turned(a) for a in range(-8, 9)],
        "translate-x": [affine(1, 0, p, 0, 1, 0) for p in shifts],
        "translate-y": [affine(1, 0, 0, 0, 1, p) for p in shifts],
    }
    if name in candidates:
        allowed = 0 if name in POINT else 1.001
        gaps = torch.stack(
            [(255 * result - pillow(raw, change)).abs().amax((1, 2, 3)) for change in candidates[name]]
        )
        assert (gaps.amin(0) <= allowed + 1e-3).all()
    else:  # a sheared image keeps its first row or column, and moves the last one by at most 0.09 * 31.5
        still = result[:, :, 0] if name == "shear-x" else result[..., 0]
        first = x[:, :, 0] if name == "shear-x" else x[..., 0]
        assert (still - first)[..., 4:-4].abs().max() <= 0.045 + 1e-3
        assert not torch.allclose(result, x, atol=1e-2)


def test_levels_and_signs() -> None:
    """U(0.1, severity) / 10, and as many moves to the left as to the right."""
    level = AugMix(3.0).draw(4000, rng(), torch.zeros(1, dtype=F64))
    assert scipy.stats.kstest(level.numpy(), scipy.stats.uniform(0.01, 0.29).cdf).pvalue > LEVEL
    x = torch.zeros(2000, 1, 9, 9)
    x[..., 4] = 1
    moved = AugMix(10.0, ("translate-x",), Mixture(depth=1, mixing="none"))(x, generator=rng())
    column = moved[:, 0, 4].argmax(1)
    left, right = int((column < 4).sum()), int((column > 4).sum())
    assert scipy.stats.binomtest(left, left + right).pvalue > LEVEL and left + right > 500
    assert column.unique().tolist() == [2, 3, 4, 5, 6]  # a third of 9 pixels, below the highest level


@pytest.mark.parametrize("mixing", ["beta", "dirichlet", "none"])
@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (1, 1, 28, 28), (5, 3, 9, 13)])
def test_augmix_takes_any_images(mixing: str, shape: tuple[int, ...]) -> None:
    augmix, x = augmix_cifar(mixing=mixing), torch.rand(shape, generator=rng(1))
    before, state = x.clone(), torch.random.get_rng_state()
    result = augmix(x, generator=rng())
    assert result.shape == x.shape and bool(((result >= 0) & (result <= 1)).all())
    assert torch.equal(result, augmix(x, generator=rng())) and not torch.equal(result, x)
    assert torch.equal(x, before) and torch.equal(torch.random.get_rng_state(), state)
    again = augmix(x.contiguous(memory_format=torch.channels_last), generator=rng())
    assert torch.equal(result, again) and again.is_contiguous(memory_format=torch.channels_last)


def test_every_image_has_its_own_operations() -> None:
    x = torch.rand(1, 3, 16, 16, generator=rng(1)).repeat(40, 1, 1, 1)
    results = augmix_cifar()(x, generator=rng())
    assert len(results.flatten(1).unique(dim=0)) == 40


def test_severity() -> None:
    assert (augmix_cifar().severity, augmix_imagenet().severity) == (3.0, 1.0)
    x = torch.rand(60, 3, 16, 16, generator=rng(1))
    distance = [
        (AugMix(s, GEOMETRIC)(x, generator=rng()) - x).square().mean().item() for s in (0.5, 1.0, 3.0, 10.0)
    ]
    assert distance == sorted(distance) and distance[0] < distance[-1]


# ------------------------------------------------------------------------------------ crop and flip


def test_crops_are_parts_of_the_framed_image() -> None:
    x = torch.rand(40, 2, 6, 5, generator=rng(1)).clamp_min(0.01)
    found = set()
    for image, result in zip(x, crop_and_flip(padding=1)(x, generator=rng())):
        framed = nn.functional.pad(image, (1, 1, 1, 1))
        crops = {
            (top, left, flip): framed[:, top : top + 6, left : left + 5].flip(-1 if flip else ())
            for top in range(3)
            for left in range(3)
            for flip in (False, True)
        }
        found |= {key for key, crop in crops.items() if torch.equal(crop, result)}
    assert len(found) > 12  # of 18 ways, in 40 draws


# --------------------------------------------------------------------------------------------- JSD


class Fixed(nn.Module):
    """A network whose outputs are what it is fed."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)


def outputs(views: int = 3, count: int = 5, classes: int = 4) -> Tensor:
    return 3 * torch.randn(views, count, classes, generator=rng(), dtype=F64)


def test_divergence_is_scipys() -> None:
    logits = outputs()
    p = scipy.special.softmax(logits.numpy(), axis=2)
    mixed = scipy.stats.entropy(p.mean(0), axis=1) - scipy.stats.entropy(p, axis=2).mean(0)
    assert jensen_shannon(logits).item() == pytest.approx(mixed.mean())
    y = torch.arange(5) % 4
    loss, clean = jsd_loss()(Fixed(), logits.view(15, 4, 1, 1), y)
    expected = -np.log(p[0][range(5), y]).mean() + 12 * mixed.mean()
    assert loss.item() == pytest.approx(expected) and torch.equal(clean, logits[0])


def test_equal_views_leave_the_cross_entropy() -> None:
    logits, y = outputs(1).expand(3, -1, -1), torch.arange(5) % 4
    loss, clean = jsd_loss(7.0)(Fixed(), logits.reshape(15, 4), y)
    assert loss.item() == pytest.approx(cross_entropy(clean, y).item(), abs=1e-12)


def test_divergence_of_certain_views() -> None:
    """Three views, each sure of another class: log 3; finite also where probabilities vanish."""
    logits = 500 * torch.eye(3)[:, None]
    assert jensen_shannon(logits).item() == pytest.approx(math.log(3))
    logits = logits.requires_grad_()
    jensen_shannon(logits).backward()
    assert logits.grad is not None and logits.grad.isfinite().all()


def test_gradients_of_the_loss() -> None:
    y = torch.arange(5) % 4
    logits = outputs().reshape(15, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: jsd_loss()(Fixed(), x, y)[0], logits)


def test_mixture_is_held_above_its_floor() -> None:
    """KL to a mixture of at least 1e-7: the published clamp, visible only below it."""
    logits = torch.tensor([[[0.0, -20.0]], [[0.0, -20.0]]], dtype=F64)
    p = 1 / (1 + math.exp(20))
    expected = p * (math.log(p) - math.log(1e-7))
    assert jensen_shannon(logits).item() == pytest.approx(expected, rel=1e-6, abs=0)


# --------------------------------------------------------------------------------------- inside fit


def data() -> tuple[Tensor, Tensor]:
    x = torch.rand(12, 1, 28, 28, generator=rng(3))
    return x, torch.arange(12) % 10


def trained(**options: Any) -> tuple[nn.Module, Any]:
    model = make("lenet5", seed=0)
    history = fit(
        model, data(), epochs=1, batch_size=6, lr=0.01, seed=0, validation=None, progress=False, **options
    )
    return model, history


def weights(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_augmentations_in_fit(name: str) -> None:
    """As a transform, and as views for the consistency loss; the same seed gives the same weights."""
    augment = augmentation(name)
    consistent = {"transform": views(augment, before=crop_and_flip()), "loss": jsd_loss()}
    runs = [trained(**options) for options in ({"transform": augmented(augment)}, consistent, consistent)]
    assert all(0 <= history.records[0].train_accuracy <= 1 for _, history in runs)
    plain, augments, first, second = (weights(model) for model in (trained()[0], *(run[0] for run in runs)))
    assert torch.equal(first, second)
    assert not any(torch.equal(one, other) for one, other in [(plain, augments), (plain, first)])
    assert all(part.isfinite().all() for part in (augments, first))


def test_views_come_one_after_another() -> None:
    x, y = data()
    model = make("lenet5", seed=0)
    batch, labels = views(prime_cifar(), copies=3)(model, x, y, rng())
    parts = batch.view(4, *x.shape)
    assert torch.equal(labels, y) and torch.equal(parts[0], x)
    assert not any(torch.equal(parts[i], parts[j]) for i in range(4) for j in range(i))
    cropped = views(prime_cifar(scale=0.0), before=crop_and_flip())(model, x, y, rng())[0].view(3, *x.shape)
    assert torch.equal(cropped[0], cropped[1]) and not torch.equal(cropped[0], x)


def test_one_after_another() -> None:
    x, y = data()
    both, _ = augmented(crop_and_flip(), prime_cifar())(make("lenet5", seed=0), x, y, rng())
    stream = rng()
    assert torch.equal(both, prime_cifar()(crop_and_flip()(x, generator=stream), generator=stream))


def test_settings_travel() -> None:
    """Rows run in other processes, and recipes are written down by their repr."""
    for name in AUGMENTATIONS:
        augment = augmentation(name)
        assert pickle.loads(pickle.dumps(augment)) == augment == copy.deepcopy(augment)
        assert repr(augment) in repr(views(augment))


def test_a_row_depends_on_the_augmentation_it_names() -> None:
    named = definitions(augmentation, strings=["prime-cifar"])
    assert {"Prime", "recoloured", "draw_fields", "filtered", "Mixture"} <= set(named)
    assert "AugMix" not in named
    assert {"AugMix", "equalize_tables"} <= set(definitions(augmentation, strings=["augmix-cifar"]))


X = torch.rand(2, 3, 8, 8, generator=rng())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: augmix_cifar()(255 * X, generator=rng()), "[0, 1]"),
        (lambda: augmix_cifar()(X, generator=None), "manual_seed"),
        (lambda: AugMix(0.0), "severity"),
        (lambda: AugMix(11.0), "from 0.1 to 10"),
        (lambda: AugMix(operations=("rotation",)), "did you mean rotate"),
        (lambda: AugMix(operations=()), "one name or more"),
        (lambda: AugMix(operations="rotate"), "tuple"),
        (lambda: crop_and_flip(padding=0), "padding"),
        (lambda: augmented(), "nothing to augment with"),
        (lambda: views(prime_cifar(), copies=0), "copies"),
        (lambda: jsd_loss(-1.0), "weight"),
        (lambda: jsd_loss()(Fixed(), outputs(1)[0], torch.zeros(5).long()), "views"),
        (lambda: jsd_loss()(Fixed(), torch.rand(7, 4), torch.zeros(3).long()), "views"),
        (lambda: augmentation("augmix-cifar", severity=2), "option"),
    ],
)
def test_mistakes_are_one_line(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(BookError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
