"""Corrupted sets on disk: the public layouts, resuming, official files first, and files that are damaged."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from robustbook import cli
from robustbook.cli.data import data as data_commands
from robustbook.corruptions import GROUPS, corrupt, layouts, stored, writing
from robustbook.corruptions.mnist_c import MNIST_C, corrupt_mnist
from robustbook.corruptions.pixels import image_seeds, rounded
from robustbook.corruptions.stored import COMPUTED, OWN, corrupted
from robustbook.corruptions.writing import write
from robustbook.datasets import DATASETS, digest, load
from robustbook.datasets.full import DIGITS, OBJECTS, Stored
from robustbook.datasets.small import cifar10_small, mnist_small
from robustbook.errors import BookError
from robustbook.rehearsal import rehearsal
from robustbook.usage import recording

TEST, TRAIN = 12, 5
BRIGHT = ("brightness",)


@cache
def small_part(name: str, split: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first of the shipped images."""
    raw = {"mnist": mnist_small, "cifar10": cifar10_small}[name]().read(split, None)
    return raw.images[:count], raw.labels[:count].astype(np.uint8)


@pytest.fixture
def tiny(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Twelve test images and five training images that pass for MNIST and CIFAR-10; portions of five."""
    shapes = {"mnist": ((28, 28, 1), DIGITS), "cifar10": ((32, 32, 3), OBJECTS)}
    usual = dict(DATASETS._entries)
    for name, (shape, classes) in shapes.items():
        digests = {}
        for split, count in (("test", TEST), ("train", TRAIN)):
            images, labels = small_part(name, split, count)
            np.savez(data_dir / f"{name}-{split}.npz", images=images, labels=labels)
            digests[split] = digest(images, labels)
        source = Stored(name, shape, classes, {"test": TEST, "train": TRAIN}, digests)
        DATASETS._entries[name] = lambda source=source: source
    monkeypatch.setattr(writing, "PORTION", 5)
    yield data_dir
    DATASETS._entries.clear()
    DATASETS._entries.update(usual)


def run(*arguments: str) -> str:
    return CliRunner().invoke(data_commands, ["corrupt", *arguments], catch_exceptions=False).output


def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the whole command says when it ends with code 2: one line, and nothing else."""
    monkeypatch.setattr(sys, "argv", ["robustbook", "data", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    output = capsys.readouterr()
    assert caught.value.code == 2 and output.out == "" and output.err.count("\n") == 1
    return output.err


def files(folder: Path) -> dict[str, int]:
    return {str(f.relative_to(folder)): f.stat().st_mtime_ns for f in folder.rglob("*") if f.is_file()}


# ------------------------------------------------------------------------------------------ layouts


def test_mnist_c_in_the_public_layout(tiny: Path) -> None:
    said = run("mnist", "--train", "--jobs", "1")
    assert "32 arrays written" in said and str(tiny / "corrupted" / "mnist_c") in said
    root = tiny / "corrupted" / "mnist_c"
    assert {path.name for path in root.iterdir()} == set(MNIST_C)
    for name in MNIST_C:
        for split, count in (("test", TEST), ("train", TRAIN)):
            images, labels = (np.load(root / name / f"{split}_{kind}.npy") for kind in ("images", "labels"))
            x, y = load("mnist", split)
            assert images.dtype == np.uint8 and images.shape == (count, 28, 28, 1)
            assert labels.dtype == np.int64 and labels.tolist() == y.tolist()
            if name == "identity":
                assert np.array_equal(images[..., 0], (x[:, 0] * 255).round().numpy())
            else:
                assert (images[..., 0] != (x[:, 0] * 255).round().numpy()).any((1, 2)).all()


def test_cifar_10_c_in_the_public_layout(tiny: Path) -> None:
    assert "2 arrays written" in run("cifar10", "--only", "frost,brightness", "--jobs", "1")
    root = tiny / "corrupted" / "CIFAR-10-C"
    assert {f for f in files(root) if f.endswith(".npy")} == {"brightness.npy", "frost.npy", "labels.npy"}
    x, y = load("cifar10", "test")
    labels = np.load(root / "labels.npy")
    assert labels.dtype == np.uint8 and labels.tolist() == 5 * y.tolist()
    images = np.load(root / "brightness.npy")
    assert images.dtype == np.uint8 and images.shape == (5 * TEST, 32, 32, 3)
    for severity in range(1, 6):  # one block after another, the images in their order in each
        block = images[(severity - 1) * TEST : severity * TEST]
        exact = 255 * corrupt(x, "brightness", severity).permute(0, 2, 3, 1).numpy()
        assert (block <= exact + 1e-3).all() and (block > exact - 1.001).all()  # cut off, not rounded
        assert (block < exact - 0.5).any()


def test_the_record_says_that_it_is_ours(tiny: Path) -> None:
    write("cifar10", only=("frost", "contrast"), jobs=1, progress=False)
    records = {
        name: json.loads((tiny / "corrupted" / "CIFAR-10-C" / f"{name}.json").read_text())
        for name in ("frost", "contrast")
    }
    assert "not the official files" in records["frost"]["by"] and "robustbook" in records["frost"]["by"]
    assert "in place of the published photographs" in records["frost"]["frost"]
    assert "frost" not in records["contrast"]
    for record in records.values():
        assert record["constants"] == "CIFAR-10-C" and record["seed"] == 0
        assert record["severities"] == [1, 2, 3, 4, 5]
        assert record["clean images"]["sha256"] == load("cifar10", "test").checksum
    assert records["frost"]["fingerprint"] != records["contrast"]["fingerprint"]


def test_names_of_the_public_files() -> None:
    assert layouts.names_of("cifar10") == tuple(name for names in GROUPS.values() for name in names)
    assert len(layouts.names_of("cifar10")) == 15 and len(layouts.names_of("mnist")) == 16


# ---------------------------------------------------------------------------- stored and computed are equal


@pytest.mark.parametrize(
    ("data", "name", "severity"), [("mnist", "shot_noise", None), ("mnist", "fog", 5), ("cifar10", "snow", 3)]
)
def test_stored_and_computed_images_are_equal(tiny: Path, data: str, name: str, severity: int | None) -> None:
    before = corrupted(data, name, severity)
    few = corrupted(data, name, severity, limit=3)
    write(data, only=(name,), jobs=1, progress=False)
    after, also_few = corrupted(data, name, severity), corrupted(data, name, severity, limit=3)
    assert (before.source, after.source) == (COMPUTED, OWN) == (few.source, also_few.source)
    x, y = after
    assert (
        x.dtype == torch.float32 and x.shape[:2] == (TEST, 1 if data == "mnist" else 3) and len(after) == TEST
    )
    assert torch.equal(x, before.x) and torch.equal(y, before.y) and y.dtype == torch.int64
    assert (
        torch.equal(few.x, x[:3]) and torch.equal(also_few.x, x[:3]) and len(also_few) == len(also_few.y) == 3
    )
    assert x.is_contiguous() and x.stride() == before.x.stride()
    assert torch.equal((x * 255).round() / 255, x)


def test_processes_change_nothing(tiny: Path) -> None:
    write("mnist", only=("impulse_noise", "zigzag"), jobs=2, progress=False)
    several = [corrupted("mnist", name).x for name in ("impulse_noise", "zigzag")]
    assert corrupted("mnist", "zigzag").source == OWN
    for name in ("impulse_noise", "zigzag"):
        (tiny / "corrupted" / "mnist_c" / name / "test.json").unlink()
    for name, x in zip(("impulse_noise", "zigzag"), several):
        found = corrupted("mnist", name)
        assert found.source == COMPUTED and torch.equal(found.x, x)


def test_what_the_public_set_does_not_have_is_computed(tiny: Path) -> None:
    write("mnist", only=("fog", "stripe"), jobs=1, progress=False)
    assert corrupted("mnist", "fog").source == corrupted("mnist", "stripe").source == OWN
    assert corrupted("mnist", "fog", 5).source == OWN
    assert corrupted("mnist", "fog", 4).source == corrupted("mnist", "fog", split="train").source == COMPUTED
    assert len(corrupted("mnist", "fog", split="train")) == TRAIN
    write("cifar10", only=BRIGHT, jobs=1, progress=False)
    assert corrupted("cifar10", "brightness", 2).source == OWN
    assert corrupted("cifar10", "brightness", 2, split="train").source == COMPUTED


def test_without_any_full_data_set(data_dir: Path) -> None:
    """On a fresh machine the shipped subset is there; the error for the full set says how to get it."""
    for data, name, severity in (("mnist-small", "zigzag", None), ("cifar10-small", "fog", 2)):
        found = corrupted(data, name, severity, limit=4)
        assert found.source == COMPUTED and len(found) == 4 and found.data == data
        assert not torch.equal(found.x, load(data, "test", limit=4).x)
        assert found.checksum == load(data, "test").checksum
    assert corrupted("fashion-mnist-small", "fog", limit=2).severity == 5
    with pytest.raises(BookError, match="robustbook data fetch mnist"):
        corrupted("mnist", "zigzag")
    with pytest.raises(BookError, match="robustbook data fetch cifar10"):
        write("cifar10", progress=False)
    with rehearsal():
        assert len(corrupted("cifar10", "fog", 2)) == 8


def test_seeds_belong_to_the_image() -> None:
    seeds = image_seeds("mnist", "test", "fog", 5, 100)
    assert np.array_equal(image_seeds("mnist", "test", "fog", 5, 7), seeds[:7])
    assert len(set(seeds.tolist())) == 100
    others = [("cifar10", "test", "fog", 5), ("mnist", "train", "fog", 5), ("mnist", "test", "fog", 4)]
    for other in [*others, ("mnist", "test", "zigzag", 5)]:
        assert not (image_seeds(*other, 100) == seeds).any()


def test_half_grey_levels_are_rounded_to_even_ones() -> None:
    """The published brightness adds 127.5 levels to every pixel."""
    levels = torch.arange(128).repeat(7)[:784].reshape(1, 1, 28, 28)
    found = rounded(corrupt_mnist(levels / 255, "brightness"))
    assert torch.equal(found.double(), (levels.double() + 127.5).round())
    assert rounded(torch.tensor([0.0, 0.4 / 255, 0.6 / 255, 1.0])).tolist() == [0, 0, 1, 255]


def test_provenance(tiny: Path) -> None:
    with recording() as notes:
        computed = corrupted("mnist", "fog", 2)
    assert notes == {"mnist/test": computed.checksum}
    write("mnist", only=("fog",), jobs=1, progress=False)
    with recording() as notes:
        found = corrupted("mnist", "fog")
    assert notes == {"mnist_c/fog/test": f"{OWN}: {found.checksum}"} and len(found.checksum) == 64


# ---------------------------------------------------------------------------------------- resuming


def test_finished_arrays_are_kept(tiny: Path) -> None:
    write("mnist", only=("fog",), jobs=1, progress=False)
    before = files(tiny / "corrupted")
    assert "1 arrays written, 1 were there" in run(
        "mnist", "--only", "fog", "--only", "stripe", "--jobs", "1"
    )
    after = files(tiny / "corrupted")
    assert {name: after[name] for name in before if "lock" not in name} == {
        name: time for name, time in before.items() if "lock" not in name
    }
    assert "0 arrays written, 2 were there" in run("mnist", "--only", "fog,stripe", "--quiet")


@pytest.mark.parametrize("damage", ["pixel", "cut", "record", "labels", "no record", "older", "part"])
def test_what_is_not_intact_is_written_again(tiny: Path, damage: str) -> None:
    write("cifar10", only=BRIGHT, jobs=1, progress=False)
    root = tiny / "corrupted" / "CIFAR-10-C"
    array, record = root / "brightness.npy", root / "brightness.json"
    good = {name: (root / name).read_bytes() for name in ("brightness.npy", "brightness.json", "labels.npy")}
    if damage == "pixel":
        array.write_bytes(good["brightness.npy"][:-1] + bytes([good["brightness.npy"][-1] ^ 1]))
    elif damage == "cut":
        array.write_bytes(good["brightness.npy"][:1000])
    elif damage == "record":
        record.write_text("{")
    elif damage == "labels":
        np.save(root / "labels.npy", np.zeros(5 * TEST, np.uint8))
    elif damage == "no record":
        record.unlink()
    elif damage == "older":
        record.write_text(json.dumps({**json.loads(record.read_text()), "fingerprint": "0"}))
    else:
        record.unlink()
        (root / ".brightness.npy.abc.part").write_bytes(b"half")
    assert "1 arrays written" in write("cifar10", only=BRIGHT, jobs=1, progress=False)
    assert {name: (root / name).read_bytes() for name in good} == good
    assert not list(root.rglob("*.part"))


KILLED = """
    import os, signal, sys
    import numpy as np
    from robustbook.corruptions import layouts, writing
    from robustbook.datasets import DATASETS, digest
    from robustbook.datasets.full import DIGITS, Stored
    from robustbook.datasets.small import mnist_small

    raw = np.load(sys.argv[1])
    digests = {"test": digest(raw["images"], raw["labels"])}
    DATASETS._entries["mnist"] = lambda: Stored("mnist", (28, 28, 1), DIGITS, {"test": 12}, digests)
    writing.PORTION, usual, calls = 5, writing.corrupt_bytes, []

    def fatal(*arguments):
        calls.append(1)
        if len(calls) == 5:  # two of three portions of the second array
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(*arguments)

    writing.corrupt_bytes = fatal
    writing.write("mnist", only=("brightness", "stripe"), jobs=1, progress=False)
"""


def test_a_killed_run_leaves_no_half_array_and_goes_on(tiny: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tiny / "mnist-test.npz")]
    assert subprocess.run(command, capture_output=True).returncode == -9
    root = tiny / "corrupted" / "mnist_c"
    left = {name for name in files(root) if not name.endswith(".part")}
    assert left == {
        *(f"brightness/{name}" for name in ("test_images.npy", "test_labels.npy", "test.json")),
        "stripe/test_labels.npy",
    }
    assert any(name.endswith(".part") for name in files(root))
    assert corrupted("mnist", "brightness").source == OWN and corrupted("mnist", "stripe").source == COMPUTED
    said = write("mnist", only=("brightness", "stripe"), jobs=1, progress=False)
    assert "1 arrays written, 1 were there" in said
    assert not list(root.rglob("*.part")) and corrupted("mnist", "stripe").source == OWN


def test_an_interrupted_run_leaves_no_half_array(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> np.ndarray:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "corrupt_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write("mnist", only=("fog",), jobs=1, progress=False)
    assert set(files(tiny / "corrupted" / "mnist_c")) == {"fog/test_labels.npy"}


def test_too_little_room(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(BookError, match=r"too little room.*set ROBUSTBOOK_DATA"):
        write("mnist", jobs=1, progress=False)


# --------------------------------------------------------------------------------- official files first


def official(tiny: Path, data: str, name: str) -> Path:
    """Made-up official files: all images of severity s have the value 40 s, or 7 for MNIST-C."""
    if data == "mnist":
        folder = tiny / "mnist_c" / name
        folder.mkdir(parents=True)
        np.save(folder / "test_images.npy", np.full((TEST, 28, 28, 1), 7, np.uint8))
        np.save(folder / "test_labels.npy", np.arange(TEST) % 10)
        return folder / "test_images.npy"
    folder = tiny / "CIFAR-10-C"
    folder.mkdir()
    values = 40 * np.repeat(np.arange(1, 6), TEST).astype(np.uint8)
    np.save(folder / f"{name}.npy", np.broadcast_to(values[:, None, None, None], (5 * TEST, 32, 32, 3)))
    np.save(folder / "labels.npy", np.tile(np.arange(TEST) % 10, 5))
    return folder / f"{name}.npy"


def test_official_arrays_come_first(tiny: Path) -> None:
    write("cifar10", only=BRIGHT, jobs=1, progress=False)
    official(tiny, "cifar10", "brightness")
    for severity in range(1, 6):
        x, y = found = corrupted("cifar10", "brightness", severity, limit=6)
        assert found.source == "official CIFAR-10-C" and y.tolist() == [0, 1, 2, 3, 4, 5]
        assert torch.equal(x, torch.full((6, 3, 32, 32), 40 * severity) / 255)
    official(tiny, "mnist", "stripe")
    assert (corrupted("mnist", "stripe").x == 7 / 255).all()
    said = write("cifar10", only=BRIGHT, jobs=1, progress=False)
    assert f"official ones in {tiny / 'CIFAR-10-C'} are used instead" in said


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("fog.npy", None, "is missing"),
        ("fog.npy", b"", "is damaged"),
        ("fog.npy", b"not an array", "is damaged"),
        ("fog.npy", np.zeros((TEST, 32, 32, 3), np.uint8), "shape"),
        ("fog.npy", np.zeros((5 * TEST, 32, 32, 3), np.float32), "float32"),
        ("fog.npy", np.array([{}] * 3, dtype=object), "is damaged"),
        ("labels.npy", None, "is missing"),
        ("labels.npy", np.zeros(TEST, np.uint8), "shape"),
        ("labels.npy", np.zeros(5 * TEST), "float64"),
        ("labels.npy", np.full(5 * TEST, 10), "labels from 10 to 10"),
        ("labels.npy", np.repeat(np.arange(5), TEST), "other labels at one severity"),
    ],
)
def test_damaged_official_files_are_named(
    tiny: Path, file: str, content: np.ndarray | bytes | None, text: str
) -> None:
    official(tiny, "cifar10", "fog")
    path = tiny / "CIFAR-10-C" / file
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(BookError, match=text) as caught:
        corrupted("cifar10", "fog", 1)
    assert str(path) in str(caught.value) and "unpack the official archive" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_arrays_of_our_own_are_named(tiny: Path) -> None:
    write("mnist", only=("stripe",), jobs=1, progress=False)
    path = tiny / "corrupted" / "mnist_c" / "stripe" / "test_images.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    with pytest.raises(BookError, match="SHA-256") as caught:
        corrupted("mnist", "stripe")
    assert str(path) in str(caught.value)
    assert "run `robustbook data corrupt mnist --only stripe`" in str(caught.value)
    path.with_name("test.json").write_text("[]")
    with pytest.raises(BookError, match=r"test\.json is damaged"):
        corrupted("mnist", "stripe")


def test_arrays_of_older_code_are_not_used(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("mnist", only=("stripe",), jobs=1, progress=False)
    monkeypatch.setattr(layouts.Array, "fingerprint", lambda self: "another")
    assert corrupted("mnist", "stripe").source == COMPUTED


def test_a_change_of_one_corruption_leaves_the_others() -> None:
    """Its fingerprint covers the code of the corruption, not that of its neighbours."""
    from robustbook.fingerprint import definitions

    reached = definitions(stored.corrupt_bytes, strings=["stripe"])
    assert "stripe" in reached and "corrupt_mnist" in reached
    assert not {"fog", "canny_edges", "spatter", "snow"} & set(reached)


# ------------------------------------------------------------------------------------------ command


def test_list_shows_corrupted_sets(tiny: Path) -> None:
    write("mnist", only=("stripe", "fog"), jobs=1, progress=False)
    official(tiny, "cifar10", "fog").write_bytes(b"")
    output = CliRunner().invoke(data_commands, ["list"], catch_exceptions=False).output
    rows = {line.split()[0]: line for line in output.splitlines()}
    assert " ok " in rows["mnist_c"] and "our own, 2 of 16 corruptions" in rows["mnist_c"]
    assert " damaged " in rows["CIFAR-10-C"] and "fog.npy" in rows["CIFAR-10-C"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("corrupt", "mnits"), "did you mean mnist"),
        (("corrupt", "svhn"), "unknown corrupted set 'svhn'"),
        (
            ("corrupt", "cifar10", "--only", "fogg"),
            "unknown corruption of CIFAR-10-C 'fogg'; did you mean fog",
        ),
        (("corrupt", "mnist", "--only", "frost"), "unknown corruption of mnist_c 'frost'"),
        (("corrupt", "mnist", "--only", ","), "--only without a name"),
        (("corrupt", "cifar10", "--train"), "no training images"),
        (("corrupt", "mnist", "--jobs", "0"), "--jobs"),
        (("corrupt",), "Missing argument"),
    ],
)
def test_mistakes_on_the_command_line(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    text: str,
) -> None:
    assert text in fails(monkeypatch, capsys, *arguments)
    assert not (tiny / "corrupted").exists()


def test_missing_clean_images(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "run `robustbook data fetch mnist`" in fails(monkeypatch, capsys, "corrupt", "mnist")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("mnist", "fogg"), "did you mean fog"),
        (("mnist", "stripe", 1), "no severities"),
        (("cifar10", "fog"), "severity=None of fog"),
        (("cifar10", "fog", True), "severity=True"),
        (("cifar10", "fog", 6), "severity=6"),
        (("cifar10", "zigzag", 1), "unknown corruption"),
        (("mnits", "fog"), "did you mean mnist"),
    ],
)
def test_mistakes_in_a_call(tiny: Path, arguments: tuple, text: str) -> None:
    with pytest.raises(BookError, match=text):
        corrupted(*arguments)


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "8"])
def test_limits_that_are_no_numbers(tiny: Path, limit: object) -> None:
    with pytest.raises(BookError, match="limit="):
        corrupted("mnist", "stripe", limit=limit)  # type: ignore[arg-type]
    with pytest.raises(BookError, match="split"):
        corrupted("mnist", "stripe", split="valid")
