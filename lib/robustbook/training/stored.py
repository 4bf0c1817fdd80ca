"""`trained(name, seed)`: load a network of the book, or train it by its recipe and keep it."""

import json
import time
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import nn

from ..datasets import Data, load
from ..errors import BookError, unknown
from ..networks import describe, make
from ..provenance import environment, today
from ..rehearsal import rehearsing
from ..storage import cache_folder, locked, replacing, results_folder, sha256, write_json
from ..threads import one_thread
from ..usage import note_data
from .evaluation import correct, predict
from .history import History
from .loop import fit
from .recipes import RECIPES, Recipe

Setting = str | int | float
COMMITTED = 2 * 1024**2
"""Bytes up to which weights go into the repository; larger ones go to the cache."""


def trained(name: str, seed: int, *, progress: bool = True, **settings: Setting) -> nn.Module:
    """The network of recipe `name` trained from `seed`, in evaluation mode.

    `settings` are those the recipe asks for, if any, such as the strength of a regulariser. A stored network
    is loaded if nothing it depends on has changed since, and needs no data to load. Otherwise it is trained
    and stored: in `results/networks/`, or in the cache folder if it is larger than 2 MB. In a rehearsal
    nothing is stored.
    """
    from ..fingerprint import definition_fingerprint

    recipe_of(name, settings)  # an unknown name or setting is answered before anything is read
    mark = definition_fingerprint(train_recipe, strings=[name])
    label = "-".join([name, *(f"{key}={value}" for key, value in sorted(settings.items()))])
    model = _stored(label, seed, mark)
    if model is not None:
        return model
    if rehearsing():
        return train_recipe(name, seed, settings, progress=progress)[0]
    with locked(_file(results_folder(), label, seed)):
        model = _stored(label, seed, mark)  # another process may have trained it while this one waited
        if model is None:
            model = _train_and_store(name, label, seed, settings, mark, progress)
        return model


def recipe_of(name: str, settings: Mapping[str, Setting]) -> Recipe:
    """The recipe with these settings."""
    recipe = RECIPES[name]
    known = signature(recipe).parameters
    for setting in settings:
        if setting not in known:
            raise unknown(f"setting of recipe {name}", setting, known)
    return recipe(**settings)


def train_recipe(
    name: str, seed: int, settings: Mapping[str, Setting] | None = None, *, progress: bool = True
) -> tuple[nn.Module, History, Data]:
    """Train a network by its recipe, whatever is stored; return it, its history and its training data."""
    recipe = recipe_of(name, settings or {})
    data = load(recipe.dataset, "train")
    model = make(recipe.network, seed=seed, **_sizes(data), **recipe.options)
    with one_thread():
        history = fit(model, data, seed=seed, progress=progress, **recipe.fit)
    return model, history, data


def _sizes(data: Data) -> dict[str, int]:
    """What `make` must know about the data."""
    return {"classes": len(data.classes), "channels": data.x.shape[1], "size": data.x.shape[2]}


def _file(folder: Path, name: str, seed: int) -> Path:
    return folder / "networks" / f"{name}-{seed}.safetensors"


def _stored(name: str, seed: int, mark: str) -> nn.Module | None:
    """The stored network, unless there is none or something it depends on has changed."""
    for folder in (results_folder(), cache_folder()):
        file = _file(folder, name, seed)
        card_file = file.with_suffix(".json")
        if file.is_file() and card_file.is_file():
            try:
                card = json.loads(card_file.read_text(encoding="utf8"))
                if card["fingerprint"] == mark:
                    return _load(file, card, seed)
            except (BookError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
                raise BookError(
                    f"{file} or its .json is damaged ({_short(error)}); delete both, and the network is "
                    "trained again when it is next needed"
                ) from error
    return None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def _load(file: Path, card: Mapping[str, Any], seed: int) -> nn.Module:
    content = file.read_bytes()
    if sha256(content) != card["sha256"]:
        raise ValueError("its checksum is wrong")
    recipe = card["recipe"]
    model = make(recipe["network"], seed=seed, **card["sizes"], **recipe["options"])
    model.load_state_dict(safetensors.torch.load(content))
    for key, checksum in card["data"].items():  # what the network was made from belongs to what uses it
        note_data(key, checksum)
    return model.eval()


def _train_and_store(
    name: str, label: str, seed: int, settings: Mapping[str, Setting], mark: str, progress: bool
) -> nn.Module:
    start = time.perf_counter()
    model, history, train = train_recipe(name, seed, settings, progress=progress)
    seconds = time.perf_counter() - start
    recipe = recipe_of(name, settings)
    test = load(recipe.dataset, "test")
    with one_thread():
        right = correct(predict(model, test.x), test.y)
    weights = {key: value.cpu().contiguous() for key, value in model.state_dict().items()}
    content = safetensors.torch.save(weights)
    card = {
        "recipe": _plain(vars(recipe)),
        "seed": seed,
        "sizes": _sizes(test),
        "fingerprint": mark,
        "sha256": sha256(content),
        "test_accuracy": right / len(test.y),
        "history": history.summary(),
        "network": describe(model),
        "data": {f"{recipe.dataset}/{part.split}": part.checksum for part in (train, test)},
        "seconds": round(seconds, 1),
        "date": today(),
        **environment(),
    }
    file = _file(results_folder() if len(content) <= COMMITTED else cache_folder(), label, seed)
    _store(file, content, card)
    return _load(file, card, seed)  # as next time: the memory layout of weights changes last bits of outputs


def _store(file: Path, content: bytes, card: Mapping[str, Any]) -> None:
    """The card goes first and comes last: a process killed in between leaves weights that nobody reads."""
    file.with_suffix(".json").unlink(missing_ok=True)
    with replacing(file) as part:
        part.write_bytes(content)
    write_json(file.with_suffix(".json"), card)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; losses and other callables by their name."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return getattr(value, "__qualname__", None) or repr(value)
