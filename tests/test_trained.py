"""`trained`: what is stored is loaded, what is stale is trained again, what is damaged is named."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from robustbook.datasets import load
from robustbook.defenses.moments import moment_loss
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from robustbook.measures import accuracy
from robustbook.rehearsal import rehearsal
from robustbook.training import RECIPES, Recipe, stored, train_recipe, trained
from robustbook.usage import recording
from torch import Tensor, nn

NAME = "tiny-for-tests"


@pytest.fixture
def folder(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store with a recipe that takes a moment, and a cache folder of its own."""
    settings: dict[str, Any] = {
        "epochs": 1,
        "batch_size": 20,
        "lr": 1e-3,
        "max_steps": 2,
        "channels_last": True,
    }
    recipe = Recipe(
        "moment-lenet", "mnist-small", {**settings, "loss": moment_loss(0.25, 1.0)}, {"width": 0.1}
    )
    monkeypatch.setitem(RECIPES._entries, NAME, lambda: recipe)
    monkeypatch.setenv("XDG_CACHE_HOME", str(store.parent / "cache"))
    return store / "networks"


def weights(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.state_dict())


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, weights(second)[key]) for key, a in weights(first).items())


def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("trained although it is stored")

    monkeypatch.setattr(stored, "_train_and_store", refuse)


def test_trained_once_then_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = trained(NAME, 3)
    assert sorted(f.name for f in folder.iterdir() if not f.name.startswith(".")) == [
        f"{NAME}-3.json",
        f"{NAME}-3.safetensors",
    ]
    no_training(monkeypatch)
    monkeypatch.setattr(stored, "load", None)  # a stored network needs no data
    second = trained(NAME, 3)
    assert same(first, second) and not first.training and not second.training
    x = torch.rand(5, 1, 28, 28)
    assert torch.equal(first(x), second(x))
    with pytest.raises(AssertionError):
        trained(NAME, 4)


def test_card(folder: Path) -> None:
    model = trained(NAME, 0)
    card = json.loads((folder / f"{NAME}-0.json").read_text())
    assert card["recipe"]["network"] == "moment-lenet"
    assert card["recipe"]["fit"]["loss"] == "MomentLoss(sigma=0.25, alpha=1.0)"
    assert card["sizes"] == {"classes": 10, "channels": 1, "size": 28}
    assert card["test_accuracy"] == accuracy(model, load("mnist-small", "test"))
    assert card["history"]["steps"] == 2
    assert set(card["data"]) == {"mnist-small/train", "mnist-small/test"}
    assert {"cpu", "date", "fingerprint", "seconds", "seed", "sha256", "versions"} <= set(card)


def test_data_behind_a_network_is_noted(folder: Path) -> None:
    """Whether it was just trained or only loaded."""
    for _ in range(2):
        with recording() as noted:
            trained(NAME, 0)
        assert set(noted) == {"mnist-small/train", "mnist-small/test"}


def test_same_weights_whatever_the_threads(folder: Path) -> None:
    first = trained(NAME, 0)
    torch.set_num_threads(2)
    try:
        assert same(train_recipe(NAME, 0)[0], first)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_stale_is_trained_again(folder: Path) -> None:
    first = trained(NAME, 0)
    card_file = folder / f"{NAME}-0.json"
    card = json.loads(card_file.read_text())
    card_file.write_text(json.dumps({**card, "fingerprint": "of yesterday", "sha256": "?"}))
    assert same(trained(NAME, 0), first)
    assert json.loads(card_file.read_text())["fingerprint"] == card["fingerprint"]


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_half_a_pair_is_trained_again(folder: Path, suffix: str) -> None:
    """What a process killed between the two files leaves behind."""
    first = trained(NAME, 0)
    (folder / f"{NAME}-0.{suffix}").unlink()
    assert same(trained(NAME, 0), first)


def flip(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("safetensors", flip),
        ("safetensors", lambda content: content[: len(content) // 2]),
        ("safetensors", lambda content: b""),
        ("json", lambda content: content[: len(content) // 2]),
        ("json", lambda content: b"[]"),
        ("json", lambda content: content.replace(b'"size": 28', b'"size": 30')),
        ("json", lambda content: content.replace(b'"width": 0.1', b'"width": 0.2')),
        ("json", lambda content: content.replace(b'"sizes"', b'"seizes"')),
        ("json", lambda content: b"\xff\xfe"),
    ],
)
def test_damage_is_named(folder: Path, suffix: str, damage: Any) -> None:
    trained(NAME, 0)
    file = folder / f"{NAME}-0.{suffix}"
    changed = damage(file.read_bytes())
    assert changed != file.read_bytes()
    file.write_bytes(changed)
    with pytest.raises(BookError) as error:
        trained(NAME, 0)
    assert str(folder / NAME) in str(error.value) and "delete both" in str(error.value)
    assert "\n" not in str(error.value)


def test_large_ones_go_to_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "COMMITTED", 1000)
    first = trained(NAME, 0)
    assert not list(folder.glob("*.safetensors"))
    assert list(folder.parent.parent.glob(f"cache/**/{NAME}-0.safetensors"))
    no_training(monkeypatch)
    assert same(trained(NAME, 0), first)


def test_rehearsal_stores_nothing(folder: Path) -> None:
    with rehearsal():
        assert trained("moment-lenet-mnist", 0)(torch.rand(1, 1, 28, 28)).shape == (1, 10)
    assert not folder.exists() or not list(folder.glob("*.json"))


def test_unknown_name(folder: Path) -> None:
    with pytest.raises(BookError, match=r"unknown recipe 'lenet-mnist'; did you mean .*lenet5-mnist"):
        trained("lenet-mnist", 0)


def test_settings_of_a_recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = {"epochs": 1, "batch_size": 20, "max_steps": 1}
    monkeypatch.setitem(
        RECIPES._entries,
        NAME,
        lambda lr=1e-3: Recipe("moment-lenet", "mnist-small", {**fit, "lr": lr}, {"width": 0.1}),
    )
    plain, fast = trained(NAME, 0), trained(NAME, 0, lr=0.1)
    assert not same(plain, fast)
    assert (folder / f"{NAME}-0.json").is_file() and (folder / f"{NAME}-lr=0.1-0.json").is_file()
    no_training(monkeypatch)
    assert same(trained(NAME, 0, lr=0.1), fast)
    with pytest.raises(BookError, match="unknown setting of recipe tiny-for-tests 'rl'; did you mean lr"):
        trained(NAME, 0, rl=0.1)


def test_fingerprint_reaches_what_matters() -> None:
    reached = set(definitions(train_recipe, strings=["lenet5-mnist"]))
    assert {"lenet5_mnist", "lenet5", "Normalise", "fit", "_Step", "sgd", "triangular", "Streams"} <= reached
    assert not {"moment_lenet", "moment_lenet_mnist", "one_cycle", "Bar", "trained"} & reached


@pytest.mark.parametrize("name", [name for name in RECIPES if name != NAME])
def test_every_recipe_can_be_followed(name: str) -> None:
    recipe = RECIPES[name]()
    with rehearsal():
        _, history, data = train_recipe(name, 0, progress=False)
    assert history.steps == 1 and data.name == recipe.dataset


def test_small_recipe_learns_the_digits(folder: Path) -> None:
    """The smallest one, in full: about 95 % on images it has not seen."""
    model = trained("lenet5-mnist-small", 0, progress=False)
    assert accuracy(model, load("mnist-small", "test")) > 0.9
