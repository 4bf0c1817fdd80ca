"""Data sets: what `load` gives, and that every damaged file is one clear error."""

import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from robustbook.cli.data import data as data_commands
from robustbook.datasets import DATASETS, digest, load, names, small, subset
from robustbook.datasets.folder import spread
from robustbook.datasets.full import CIFAR100_CLASSES, DIGITS, Stored
from robustbook.errors import BookError
from robustbook.networks import PRETRAINED
from robustbook.rehearsal import rehearsal, shrink

SMALL = ("mnist-small", "fashion-mnist-small", "cifar10-small")
COUNT = 40
REPAIR = "robustbook data fetch tiny"


def tiny_arrays(count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (count, 5, 6, 1), dtype=np.uint8)
    return images, (np.arange(count) % 10).astype(np.uint8)


def save(path: Path, **arrays: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


@pytest.fixture
def tiny(data_dir: Path) -> Iterator[Path]:
    """A small stored set under the name `tiny` (constant digest) and `tiny-noted` (digest in a file)."""
    images, labels = tiny_arrays()
    counts = {"train": COUNT}
    DATASETS.add("tiny")(lambda: Stored("tiny", (5, 6, 1), DIGITS, counts, {"train": digest(images, labels)}))
    DATASETS.add("tiny-noted")(lambda: Stored("tiny-noted", (5, 6, 1), DIGITS, counts))
    for name in ("tiny", "tiny-noted"):
        save(data_dir / f"{name}-train.npz", images=images, labels=labels)
    (data_dir / "tiny-noted-train.json").write_text(json.dumps({"sha256": digest(images, labels)}))
    yield data_dir / "tiny-train.npz"
    del DATASETS._entries["tiny"], DATASETS._entries["tiny-noted"]


def fails(name: str, *parts: str, split: str = "train") -> str:
    """The text of the one-line BookError of `load`, which must contain the parts."""
    with pytest.raises(BookError) as caught:
        load(name, split)
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text
    return text


# --- what comes out ---------------------------------------------------------------------------------


def test_stored_set(tiny: Path) -> None:
    images, labels = tiny_arrays()
    data = load("tiny", "train")
    x, y = data
    assert x.shape == (COUNT, 1, 5, 6) and x.dtype == torch.float32 and y.dtype == torch.int64
    assert np.array_equal((x * 255).round().to(torch.uint8).numpy()[:, 0], images[..., 0])
    assert y.tolist() == labels.tolist() and len(data) == COUNT
    assert data.checksum == digest(images, labels) and (data.name, data.split) == ("tiny", "train")


def test_limit_keeps_the_checksum_of_the_whole(tiny: Path) -> None:
    whole, part = load("tiny"), load("tiny", limit=7)
    assert len(part) == 7 and torch.equal(part.x, whole.x[:7]) and part.checksum == whole.checksum
    assert len(load("tiny", limit=10_000)) == COUNT


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "8"])
def test_limit_that_is_no_number_of_samples(tiny: Path, limit: object) -> None:
    with pytest.raises(BookError, match="limit="):
        load("tiny", limit=limit)  # type: ignore[arg-type]


def test_int64_labels_give_the_same_checksum(tiny: Path) -> None:
    before = load("tiny").checksum
    images, labels = tiny_arrays()
    save(tiny, images=images, labels=labels.astype(np.int64))
    assert load("tiny").checksum == before


def test_unknown_names() -> None:
    with pytest.raises(BookError, match="did you mean mnist"):
        load("minst")
    with pytest.raises(BookError, match="split of mnist"):
        load("mnist", "validation")


def test_every_name_of_the_book_is_there() -> None:
    expected = {*SMALL, "mnist", "fashion-mnist", "cifar10", "cifar100", "svhn", "svhn-10000", "imagenet"}
    assert expected <= set(names())
    assert len(CIFAR100_CLASSES) == 100 and list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)


def test_data_card_states_the_checksums_of_the_library() -> None:
    page = (Path(__file__).parents[1] / "book" / "data.md").read_text(encoding="utf8")
    for name in ("mnist", "fashion-mnist", "cifar10"):
        stored = DATASETS[name]()
        assert isinstance(stored, Stored) and set(stored.digests) == {"train", "test"}
        assert all(f"`{value[:16]}…`" in page for value in stored.digests.values())


def test_loading_reaches_no_fetching_code() -> None:
    code = (
        "import sys; from robustbook.datasets import load; load('mnist-small', 'test');"
        "print([m for m in sys.modules if m.startswith('robustbook.datasets.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "robustbook.datasets.small" in done.stdout
    for module in ("fetch", "ways", "clients", "convert"):
        assert f"robustbook.datasets.{module}" not in done.stdout


# --- damaged stored files ---------------------------------------------------------------------------


def missing(path: Path) -> None:
    path.unlink()


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "gone.npz")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder_in_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def text_file(path: Path) -> None:
    path.write_text("<html>404 not found</html>")


def altered_byte(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[400] ^= 0x10
    path.write_bytes(bytes(raw))


def altered_pixel(path: Path) -> None:
    """A whole, valid archive with one pixel off: only the digest can tell."""
    images, labels = tiny_arrays()
    images[3, 2, 2, 0] ^= 1
    save(path, images=images, labels=labels)


def swapped_labels(path: Path) -> None:
    images, labels = tiny_arrays()
    labels[[0, 1]] = labels[[1, 0]]
    save(path, images=images, labels=labels)


def no_labels(path: Path) -> None:
    save(path, images=tiny_arrays()[0])


def float_images(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images / 255, labels=labels)


def text_labels(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images, labels=labels.astype("U1"))


def channels_first(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images.transpose(0, 3, 1, 2), labels=labels)


def flat_images(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images.reshape(-1), labels=labels)


def label_out_of_range(path: Path) -> None:
    images, labels = tiny_arrays()
    labels[5] = 10
    save(path, images=images, labels=labels)


def negative_label(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images, labels=labels.astype(np.int64) - 1)


def one_label_less(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images, labels=labels[:-1])


def fewer_samples(path: Path) -> None:
    images, labels = tiny_arrays(COUNT - 10)
    save(path, images=images, labels=labels)


def no_samples(path: Path) -> None:
    images, labels = tiny_arrays()
    save(path, images=images[:0], labels=labels[:0])


def bare_npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, tiny_arrays()[0])


def huge_header(path: Path) -> None:
    """A header that promises more than any memory holds."""
    raw = path.read_bytes().replace(b"(40, 5, 6, 1)", b"(40, 10**9, ")
    path.write_bytes(raw)


def huge_shape(path: Path) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 10**6)}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", stream.getvalue())
        archive.writestr("labels.npy", stream.getvalue())


def member_is_no_array(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", b"just text")
        archive.writestr("labels.npy", b"just text")


def encrypted(path: Path) -> None:
    """The flag of an encrypted member set in the local and the central header."""
    raw = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = raw.find(mark) + offset
        raw[place : place + 2] = struct.pack("<H", 1)
    path.write_bytes(bytes(raw))


DAMAGE: list[Callable[[Path], None]] = [
    *(missing, dangling_link, empty, folder_in_place, cut_in_half, text_file, altered_byte, altered_pixel),
    *(swapped_labels, no_labels, float_images, text_labels, channels_first, flat_images, label_out_of_range),
    *(negative_label, one_label_less, fewer_samples, no_samples, bare_npy, huge_header, huge_shape),
    *(member_is_no_array, encrypted),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda d: d.__name__)
@pytest.mark.parametrize("seen_before", [False, True], ids=["first-load", "after-a-good-load"])
def test_damaged_stored_file(tiny: Path, damage: Callable[[Path], None], seen_before: bool) -> None:
    if seen_before:
        load("tiny")
    damage(tiny)
    if tiny.exists():  # clocks of file systems are coarse; the book asks for another time, size or path
        os.utime(tiny, ns=(1, 1))
    fails("tiny", str(tiny), REPAIR)


class Bomb:
    """Unpickling this makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("form", ["object array", "bare pickle", "pickle in a member"])
def test_nothing_is_ever_unpickled(tiny: Path, tmp_path: Path, form: str) -> None:
    mark = tmp_path / "unpickled"
    bomb = np.array([Bomb(mark)] * COUNT, dtype=object)
    if form == "object array":
        with tiny.open("wb") as file:
            np.savez(file, allow_pickle=True, images=bomb, labels=tiny_arrays()[1])
    elif form == "bare pickle":
        tiny.write_bytes(pickle.dumps(Bomb(mark)))
    else:
        with zipfile.ZipFile(tiny, "w") as archive:
            archive.writestr("images.npy", pickle.dumps(Bomb(mark)))
            archive.writestr("labels.npy", pickle.dumps(Bomb(mark)))
    fails("tiny", str(tiny), REPAIR)
    assert not mark.exists()
    os.mkdir(mark)  # the bomb would have worked
    mark.rmdir()
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists()


RECORDS = {
    "missing": None,
    "empty": "",
    "not json": "{sha256",
    "a list": "[1, 2]",
    "no key": "{}",
    "a number": '{"sha256": 5}',
    "short": '{"sha256": "abc"}',
    "another digest": json.dumps({"sha256": "0" * 64}),
}


@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS)
def test_damaged_digest_beside_the_file(tiny: Path, text: str | None) -> None:
    record = tiny.parent / "tiny-noted-train.json"
    load("tiny-noted")
    record.unlink() if text is None else record.write_text(text)
    whose = "tiny-noted-train.npz" if text == RECORDS["another digest"] else "tiny-noted-train.json"
    fails("tiny-noted", whose, "robustbook data fetch tiny-noted")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100", "svhn", "svhn-10000"])
def test_absent_full_sets_say_what_to_run(data_dir: Path, name: str) -> None:
    fails(name, str(data_dir), "is missing", f"robustbook data fetch {name}", split="test")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 1, exclude_max=True))
def test_truncation_anywhere(tiny: Path, part: float) -> None:
    whole = tiny.read_bytes()
    try:
        tiny.write_bytes(whole[: int(part * len(whole))])
        fails("tiny", str(tiny), REPAIR)
    finally:
        tiny.write_bytes(whole)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 2_000), flip=st.integers(1, 255))
def test_any_altered_byte_is_an_error_or_changes_nothing(tiny: Path, place: int, flip: int) -> None:
    whole = tiny.read_bytes()
    expected = tiny_arrays()
    raw = bytearray(whole)
    raw[place % len(raw)] ^= flip
    try:
        tiny.write_bytes(bytes(raw))
        x, y = load("tiny")
        assert np.array_equal((x * 255).round().numpy()[:, 0], expected[0][..., 0])
        assert np.array_equal(y.numpy(), expected[1])
    except BookError as error:
        assert str(tiny) in str(error) and REPAIR in str(error) and "\n" not in str(error)
    finally:
        tiny.write_bytes(whole)


# --- the subset that ships --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("split", "count"), [("train", 2_000), ("test", 1_000)])
def test_shipped_subset(name: str, split: str, count: int) -> None:
    data = load(name, split)
    shape = (3, 32, 32) if name == "cifar10-small" else (1, 28, 28)
    assert data.x.shape == (count, *shape) and data.x.dtype == torch.float32
    assert data.x.min() == 0 and data.x.max() == 1
    assert torch.bincount(data.y).tolist() == [count // 10] * 10
    assert torch.bincount(data.y[:50]).tolist() == [5] * 10
    assert len(data.classes) == 10 and "subset" in data.note
    assert data.checksum == load(name, split, limit=5).checksum
    index = json.loads((small.FOLDER / small.INDEX).read_text())[f"{name.removesuffix('-small')}-{split}"]
    assert data.checksum == index["sha256"] and len(set(index["indices"])) == count
    assert [str(f.name) for f in DATASETS[name]().files(split)] == index["sheets"]


def test_shipped_subset_is_small() -> None:
    sizes = [file.stat().st_size for file in small.FOLDER.iterdir()]
    assert sum(sizes) <= 15e6 and max(sizes) < 4 * 2**20


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("split", ["train", "test"])
def test_shipped_pixels_equal_the_originals(name: str, split: str) -> None:
    full = name.removesuffix("-small")
    source = DATASETS[full]()
    if source.missing(split):
        pytest.skip(f"needs the full set: robustbook data fetch {full}")
    whole, part = source.read(split, None), DATASETS[name]().read(split, None)
    index = json.loads((small.FOLDER / small.INDEX).read_text())[f"{full}-{split}"]
    assert np.array_equal(whole.images[index["indices"]], part.images)
    assert np.array_equal(whole.labels[index["indices"]], part.labels)
    assert subset.choose(whole.labels, len(part.labels), 10).tolist() == index["indices"]


def test_sheets_keep_every_pixel(tmp_path: Path) -> None:
    for channels in (1, 3):
        shape = (7, 5, channels)
        images = np.random.default_rng(2).integers(0, 256, (small.PER_SHEET, *shape), dtype=np.uint8)
        subset.write_sheet(tmp_path / "sheet.png", images)
        assert np.array_equal(small.read_sheet(tmp_path / "sheet.png", shape), images)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped folder, to be damaged."""
    folder = Path(shutil.copytree(small.FOLDER, tmp_path / "shipped"))
    monkeypatch.setattr(small, "FOLDER", folder)
    load("mnist-small", "test")
    return folder


def repaint(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    with Image.open(path) as picture:
        pixels = np.array(picture)
    Image.fromarray(change(pixels)).save(path)


def one_pixel(pixels: np.ndarray) -> np.ndarray:
    pixels[100, 100] ^= 1
    return pixels


SHEET_DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": missing,
    "empty": empty,
    "folder": folder_in_place,
    "cut in half": cut_in_half,
    "text": text_file,
    "one pixel": lambda path: repaint(path, one_pixel),
    "colour": lambda path: repaint(path, lambda pixels: np.stack([pixels] * 3, axis=-1)),
    "cropped": lambda path: repaint(path, lambda pixels: pixels[:-28]),
    "resized": lambda path: repaint(path, lambda pixels: pixels[::2, ::2]),
}


@pytest.mark.parametrize("damage", SHEET_DAMAGE.values(), ids=SHEET_DAMAGE)
def test_damaged_sheet(shipped: Path, damage: Callable[[Path], object]) -> None:
    damage(shipped / "mnist-test-1.png")
    fails("mnist-small", str(shipped / "mnist-test-1.png"), "git checkout -- lib/robustbook/", split="test")
    load("fashion-mnist-small", "test")


def edit(change: Callable[[list], object]) -> Callable[[Path], None]:
    """Damage the labels of the MNIST test subset in the index."""

    def damage(path: Path) -> None:
        index = json.loads(path.read_text())
        change(index["mnist-test"]["labels"])
        path.write_text(json.dumps(index))

    return damage


INDEX_DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": missing,
    "empty": empty,
    "folder": folder_in_place,
    "cut in half": cut_in_half,
    "not json": text_file,
    "a list": lambda path: path.write_text("[]"),
    "no entry": lambda path: path.write_text("{}"),
    "not utf-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "one label changed": edit(lambda labels: labels.__setitem__(0, 9)),
    "label out of range": edit(lambda labels: labels.__setitem__(0, 10)),
    "label too large": edit(lambda labels: labels.__setitem__(0, 10**30)),
    "label not whole": edit(lambda labels: labels.__setitem__(0, 1.5)),
    "label is text": edit(lambda labels: labels.__setitem__(0, "0")),
    "one label less": edit(lambda labels: labels.pop()),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGE.values(), ids=INDEX_DAMAGE)
def test_damaged_index(shipped: Path, damage: Callable[[Path], object]) -> None:
    damage(shipped / "index.json")
    fails("mnist-small", "index.json", "git checkout -- lib/robustbook/datasets/shipped", split="test")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 0.999), file=st.sampled_from(["mnist-test-1.png", "index.json"]))
def test_truncated_shipped_file(shipped: Path, part: float, file: str) -> None:
    path = shipped / file
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: int(part * len(whole))])
        fails("mnist-small", file, "git checkout --", split="test")
    finally:
        path.write_bytes(whole)


# --- rehearsal and the SVHN stand-in ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist", "cifar100", "svhn", "svhn-10000", "imagenet"])
def test_rehearsal_without_data_is_synthetic(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("ROBUSTBOOK_IMAGENET", raising=False)
    with rehearsal():
        first, second = load(name, "test"), load(name, "test")
        assert len(load(name, "test", limit=3)) == 3
    height, width, channels = DATASETS[name]().shape
    assert first.x.shape == (8, channels, height, width) and "synthetic" in first.note
    assert torch.equal(first.x, second.x) and first.x.min() >= 0 and first.x.max() <= 1
    assert first.y.min() >= 0 and first.y.max() < len(first.classes)


def test_rehearsal_of_two_parts_of_a_set() -> None:
    """Some images to learn from and some more set aside: neither part is empty."""
    assert shrink(4000) + shrink(2000) == 6000
    with rehearsal():
        count = shrink(4000)
        assert count == len(load("mnist-small", "train", limit=count)) == 8
        assert len(load("mnist-small", "train", limit=count + shrink(2000))) == 16
        assert len(load("mnist-small", "train", limit=count + 2000)) == 8


def test_rehearsal_uses_real_data_where_it_is(tiny: Path) -> None:
    with rehearsal():
        data = load("tiny", limit=30)
    assert len(data) == 8 and data.note == "" and torch.equal(data.x, load("tiny").x[:8])
    altered_pixel(tiny)
    with rehearsal():
        fails("tiny", str(tiny), REPAIR)


def test_svhn_10000_is_cut_in_two(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(3).integers(0, 256, (10_000, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(10_000) % 10
    save(data_dir / "svhn-10000.npz", images=images, labels=labels)
    fails("svhn-10000", str(data_dir / "svhn-10000.npz"), "robustbook data fetch svhn-10000")
    monkeypatch.setattr(Stored, "expected", lambda self, split: digest(images, labels))
    train, test = load("svhn-10000", "train"), load("svhn-10000", "test")
    assert (len(train), len(test)) == (8_000, 2_000) and train.checksum != test.checksum
    assert test.checksum == digest(images[8_000:], labels[8_000:])
    assert torch.equal(test.x[0], torch.from_numpy(images[8_000]).permute(2, 0, 1) / 255)
    assert "first 8,000 of 10,000" in train.note and "last 2,000" in test.note


# --- ImageNet folders -------------------------------------------------------------------------------


def jpeg(path: Path, colour: int = 0, size: tuple[int, int] = (240, 230)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, 0, 0)).save(path, quality=95)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "imagenet"
    folder.mkdir()
    monkeypatch.setenv("ROBUSTBOOK_IMAGENET", str(folder))
    return folder


def test_flat_files(root: Path) -> None:
    for k in (3, 0, 999):
        jpeg(root / f"{k:04d}.jpg", colour=k % 256)
    (root / "README.txt").write_text("not an image")
    data = load("imagenet", "test")
    assert data.x.shape == (3, 3, 224, 224) and data.y.tolist() == [0, 3, 999]
    assert len(data.classes) == 1_000 and data.classes[0] == "tench"
    assert data.checksum == load("imagenet", "test").checksum
    assert abs(data.x[2, 0].mean().item() * 255 - 999 % 256) < 2


def test_folders_by_class_index(root: Path) -> None:
    for file in ("10/a.jpg", "10/b.JPEG", "2/c.png", "2/.hidden.jpg"):
        jpeg(root / file)
    assert load("imagenet", "test").y.tolist() == [2, 10, 10]


def test_folders_by_synset(root: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG")
    for k in range(1_000):
        folder = root / f"n{k * 7 + 1_000_000:08d}"
        folder.mkdir()
        (folder / "x.JPEG").write_bytes(stream.getvalue())
    data = load("imagenet", "test", limit=4)
    assert data.y.tolist() == [0, 250, 500, 750] and data.x.shape == (4, 3, 224, 224)
    shutil.rmtree(next(root.iterdir()))
    fails("imagenet", str(root), "999 synset folders", "set ROBUSTBOOK_IMAGENET", split="test")


def test_limit_spreads_over_classes() -> None:
    found = [(Path(f"{label}-{k}"), label) for label, count in ((0, 3), (4, 1), (7, 2)) for k in range(count)]
    assert [str(path) for path, _ in spread(found, 2)] == ["0-0", "4-0"]
    assert [str(path) for path, _ in spread(found, 5)] == ["0-0", "4-0", "7-0", "0-1", "7-1"]
    assert len(spread(found, 100)) == len(found)


def test_resize_and_crop(root: Path) -> None:
    """The left half red, the right half blue: the centre crop of any size keeps the border in the middle."""
    for k, size in enumerate([(224, 224), (256, 300), (1_000, 600), (100, 160)]):
        width, height = size
        pixels = np.zeros((height, width, 3), dtype=np.uint8)
        pixels[:, : width // 2, 0] = pixels[:, width // 2 :, 2] = 255
        Image.fromarray(pixels).save(root / f"{k}.png")
    x, _ = load("imagenet", "test")
    assert torch.allclose(x[:, 0, :, :105], torch.ones(())) and torch.allclose(
        x[:, 2, :, 119:], torch.ones(())
    )
    assert x[:, 2, :, :105].max() == 0
    assert x[1, 0, 0, 111] == 1 and x[1, 0, 0, 112] == 0  # not resized: the border stays sharp


def test_grey_and_transparent_pictures_become_rgb(root: Path) -> None:
    Image.new("L", (230, 230), 51).save(root / "0.png")
    Image.new("RGBA", (230, 230), (51, 51, 51, 0)).save(root / "1.png")
    x, _ = load("imagenet", "test")
    assert torch.allclose(x, torch.full_like(x, 0.2))


def wrong_name(root: Path) -> Path:
    jpeg(root / "ILSVRC2012_val_00000001.JPEG")
    return root / "ILSVRC2012_val_00000001.JPEG"


def wrong_class(root: Path) -> Path:
    jpeg(root / "1000.jpg")
    return root / "1000.jpg"


def wrong_folder(root: Path) -> Path:
    jpeg(root / "val" / "0.jpg")
    return root / "val"


def cut_jpeg(root: Path) -> Path:
    jpeg(root / "0001.jpg")
    cut_in_half(root / "0001.jpg")
    return root / "0001.jpg"


def no_jpeg(root: Path) -> Path:
    text_file(root / "0001.jpg")
    return root / "0001.jpg"


def folder_named_jpeg(root: Path) -> Path:
    jpeg(root / "3" / "1.jpg")
    (root / "3" / "2.jpg").mkdir()
    return root / "3" / "2.jpg"


def mixed(root: Path) -> Path:
    jpeg(root / "0.jpg")
    jpeg(root / "1" / "a.jpg")
    return root


def gone(root: Path) -> Path:
    root.rmdir()
    return root


@pytest.mark.parametrize(
    "damage",
    [
        wrong_name,
        wrong_class,
        wrong_folder,
        cut_jpeg,
        no_jpeg,
        folder_named_jpeg,
        mixed,
        gone,
        lambda root: root,
    ],
    ids=lambda d: d.__name__.replace("<lambda>", "no_images"),
)
def test_damaged_imagenet_folder(root: Path, damage: Callable[[Path], Path]) -> None:
    fails("imagenet", str(damage(root)), "set ROBUSTBOOK_IMAGENET", split="test")


def test_no_imagenet_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBUSTBOOK_IMAGENET", raising=False)
    fails("imagenet", "set ROBUSTBOOK_IMAGENET to a folder", split="test")
    fails("imagenet", "split of imagenet 'train'")


def test_more_images_than_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jpeg(root / "0.jpg")
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    fails("imagenet", "of memory: give limit=", split="test")


# --- robustbook data list ---------------------------------------------------------------------------


def test_list_tells_ok_missing_and_damaged(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBUSTBOOK_IMAGENET", raising=False)
    altered_pixel(tiny)
    result = CliRunner().invoke(data_commands, ["list"], catch_exceptions=False)
    rows = {tuple(line.split()[:2]): line for line in result.output.splitlines()}
    assert "damaged" in rows["tiny", "train"] and REPAIR in rows["tiny", "train"]
    assert " ok " in rows["tiny-noted", "train"] and " ok " in rows["cifar10-small", "test"]
    assert "missing" in rows["mnist", "train"] and "robustbook data fetch mnist" in rows["mnist", "train"]
    assert "set ROBUSTBOOK_IMAGENET" in rows["imagenet", "test"]
    assert {name for name, _ in rows} == {"name", *names(), *PRETRAINED}
