"""What all tests share: folders of their own, one torch thread, and examples that do not change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from robustbook.training import trained
from torch import nn

# Sums differ in the last bits with the number of threads; the book computes every row with one.
torch.set_num_threads(1)

settings.register_profile("book", deadline=None, derandomize=True)
settings.load_profile("book")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty results store that the library, and every process it starts, takes for the real one."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("ROBUSTBOOK_RESULTS", str(folder))
    return folder


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder: no full data set of this machine is seen."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ROBUSTBOOK_DATA", str(folder))
    return folder


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nn.Module]:
    """A LeNet-5 trained on the digits that ship with the book, in a store of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROBUSTBOOK_RESULTS", str(tmp_path_factory.mktemp("results")))
        yield trained("lenet5-mnist-small", 0, progress=False)
