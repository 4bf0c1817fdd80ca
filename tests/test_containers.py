"""Rendered containers: volumes in closed form, images by number alone, and the folder of real ones."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from robustbook.datasets import crops
from robustbook.datasets.containers import CONTAINERS, LEVELS, SPLITS, Container, label_of, unseen
from robustbook.datasets.crops import VARIABLE
from robustbook.datasets.rendering import GRAINS, grid_of, render, rendered
from robustbook.datasets.scenes import FULL, scene
from robustbook.errors import BookError
from robustbook.rehearsal import rehearsal
from robustbook.usage import recording


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_surface_stands_where_the_volume_is_right(level):
    """A cylinder fills in proportion; a cone as the cube root; a frustum by the formula of its volume."""
    cylinder = Container("c", ((0, 0.3), (1, 0.3)), 0.2)
    assert cylinder.surface(level) == pytest.approx(0.2 + 0.8 * level, abs=2e-3)
    cone = Container("k", ((0, 0.0), (1, 0.4)), 0.0)
    assert cone.surface(level) == pytest.approx(level ** (1 / 3), abs=2e-3)
    frustum = Container("f", ((0, 0.2), (1, 0.4)), 0.0)
    height = frustum.surface(level)
    radius = 0.2 + 0.2 * height
    filled = height * (0.2**2 + 0.2 * radius + radius**2)
    assert filled == pytest.approx(level * (0.2**2 + 0.2 * 0.4 + 0.4**2), rel=1e-2)


def test_the_radius_is_the_outline():
    glass = CONTAINERS["beer cup"]
    heights = np.array([-1.0, 0.0, 0.5, 1.0, 2.0], dtype=np.float32)
    assert glass.radius(heights) == pytest.approx([0.2, 0.2, 0.25, 0.3, 0.3], abs=1e-4)
    assert glass.radius_at(0.5) == pytest.approx(0.25, abs=1e-4)
    with pytest.raises(BookError, match="part of the capacity"):
        glass.surface(1.5)


def test_an_image_depends_on_its_number_and_seed_alone():
    few, _ = rendered(3, seed=5, size=16)
    more, scenes = rendered(9, seed=5, size=16)
    assert (few == more[:3]).all()
    assert not (more[0] == more[8]).all()  # the same container, another image
    assert not (rendered(1, seed=6, size=16)[0][0] == more[0]).all()
    assert [s.container.name for s in scenes] == [*CONTAINERS, next(iter(CONTAINERS))]


def poured(name, filling, level, index=0):
    """A scene without a hand and upright, with this in the container."""
    at = list(CONTAINERS).index(name)
    changes = {"filling": filling, "level": level, "fullness": FULL[level]}
    changes |= {"hand": -1.0, "tilt": 0.0, "height": 0.7, "view": 0.15, "centre": (0.5, 0.5)}
    return dataclasses.replace(scene(3, at + 8 * index), **changes)


@pytest.mark.parametrize("name", [name for name, c in CONTAINERS.items() if not c.opaque])
@pytest.mark.parametrize("filling", [1, 2, 3])
def test_what_is_poured_is_seen_up_to_its_level_and_not_above(name, filling):
    """Images of one scene that differ in the level differ between the two surfaces, and nowhere above."""
    empty, half, full = (
        render(poured(name, filling if level else 0, level)).astype(int) for level in range(3)
    )
    s, c = poured(name, 0, 0), CONTAINERS[name]
    grid = grid_of(s, 64)
    axis = np.abs(grid.x) < 0.5 * grid.radius
    between = axis & (grid.height > c.surface(0.5) + 0.02) & (grid.height < c.surface(0.9) - 0.02)
    assert np.abs(full - half)[between].mean() > 4
    above = grid.height > c.surface(0.9) + s.view * c.radius_at(c.surface(0.9)) + 0.05
    assert above.any() and np.abs(full - empty)[above].mean() < 4  # the sensor's noise
    low = axis & (grid.height > c.floor + 0.05) & (grid.height < c.surface(0.5) - 0.05)
    assert np.abs(half - empty)[low].mean() > 6


def test_nothing_shows_what_an_opaque_container_holds():
    for name in ("cup", "red cup"):
        shots = [render(poured(name, filling, level), 32) for filling, level in ((0, 0), (3, 1), (2, 2))]
        assert (shots[0] == shots[1]).all() and (shots[0] == shots[2]).all()
        assert {label_of(name, level) for level in range(3)} == {3}
    assert label_of("wine glass", 1) == 1


def test_grains_have_their_colour():
    """Pasta is yellower than rice."""
    mean = {
        kind: render(poured("small transparent cup", kind, 2))[30:50, 28:36].mean((0, 1)) for kind in GRAINS
    }
    assert mean[3][0] - mean[3][2] > mean[2][0] - mean[2][2] + 20


def test_crops_and_their_splits():
    found = crops("rendered", count=32, size=16)
    assert found.x.shape == (32, 3, 16, 16) and found.x.min() >= 0 and found.x.max() <= 1
    assert "stand-in" in found.note
    for split, names in SPLITS.items():
        train, test = found.parts(split)
        assert set(test.containers) == set(names) == set(unseen(split))
        assert set(train.containers) == set(CONTAINERS) - set(names)
        assert len(train) + len(test) == 32
    whole = crops("rendered", count=32, size=64).x
    assert torch.allclose(found.x[3, :, 0, 0], whole[3, :, :4, :4].mean((1, 2)), atol=1e-6)
    opaque = np.isin(found.containers, ["cup", "red cup"])
    assert (found.y.numpy()[opaque] == 3).all() and (found.y.numpy()[~opaque] < 3).all()


def test_one_in_seven_transparent_containers_is_empty():
    labels = np.array([s.label for s in (scene(0, k) for k in range(1_600)) if not s.container.opaque])
    assert np.bincount(labels) / len(labels) == pytest.approx([1 / 7, 3 / 7, 3 / 7], abs=0.04)


# ------------------------------------------------------------------------------------------- folder


@pytest.fixture
def ccm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the real layout: two images of each container and level, brightness by level."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for k, (name, c) in enumerate(CONTAINERS.items()):
        for level in ("unknown",) if c.opaque else ("0", "50", "90"):
            place = tmp_path / name.replace(" ", "-_"[k % 2]) / level
            place.mkdir(parents=True)
            for number in range(2):
                grey = 0 if level == "unknown" else int(level)
                Image.new("RGB", (20, 30), (grey, 10 * k, number)).save(place / f"{number}.png")
    return tmp_path


def test_the_folder_is_read(ccm):
    with recording() as notes:
        found = crops("ccm", count=0, size=8)
    assert len(found) == 6 * 3 * 2 + 2 * 2 and found.x.shape[1:] == (3, 8, 8) and "stand-in" not in found.note
    assert list(notes) == ["containers/ccm"]
    grey = (found.x[:, 0, 0, 0] * 255).round().int().tolist()
    assert all(LEVELS[y] in (f"{g} %", "unknown") for y, g in zip(found.y.tolist(), grey, strict=True))
    place = (found.x[:, 1, 0, 0] * 25.5).round().int().tolist()
    assert [list(CONTAINERS)[k] for k in place] == found.containers.tolist()
    few = crops("ccm", count=24, size=8)  # three of each, spread over the levels
    assert set(few.of(["wine glass"]).y.tolist()) == {0, 1, 2} and len(few.of(["cup"])) == 2


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda root: (root / "mug" / "0").mkdir(parents=True), "not named by a container"),
        (lambda root: (root / "wine-glass" / "70").mkdir(parents=True), "not named by a level"),
        (lambda root: [f.unlink() for f in (root / "cup" / "unknown").iterdir()], "no images of the cup"),
        (lambda root: (root / "cup" / "unknown" / "0.png").write_bytes(b"x"), "put an intact image"),
    ],
)
def test_a_damaged_folder_is_named(ccm, damage, words):
    damage(ccm)
    with pytest.raises(BookError, match=words) as caught:
        crops("ccm", count=0, size=8)
    assert "\n" not in str(caught.value)


def test_mistakes_in_a_call_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(BookError, match=f"set {VARIABLE}"):
        crops("ccm", count=0, size=8)
    with rehearsal():  # at paper scale, without the data: eight images, said to be none of it
        with recording() as notes:
            assert len(crops("ccm", count=0, size=8)) == 8
        assert notes == {"containers/ccm": "synthetic"}
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(BookError, match="not a folder"):
        crops("ccm", count=0, size=8)
    with pytest.raises(BookError, match="rendered"):
        crops("renderd", count=8, size=8)
    with pytest.raises(BookError, match="at least 8"):
        crops("rendered", count=7, size=8)
    with pytest.raises(BookError, match="split"):
        unseen("S4")
