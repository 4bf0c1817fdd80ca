"""What corruptions cost: ours, a batch at a time, beside the package imagecorruptions, image by image.

    python benchmarks/corruptions.py [rounds]

One run, one thread, the same images, severity 3 and ImageNet-C's constants for both. The two take turns, so
that whatever else the machine does hits them alike; a ratio compares processor times within a round, and the
table has the medians over rounds with their quartiles. Writes results/benchmarks/corruptions.csv and .json.

The table also says how far the images change (root mean square, levels of 255), which is alike where both do
the same. They do not in three: the package's elastic transform is one of its own, its frost is photographs,
and its fog on images of 32 px has a map of 32 px, not the 256 px of ImageNet-C. For what Pillow does (pixels,
JPEG) ours adds the way from floats to bytes and back.

The package is from 2020, and parts of it do not run on the present versions of what it uses. The column
`imagecorruptions` says what it takes: it "runs", it "runs repaired" (see `repair`), or it fails and why. To
be imported at all it needs a stand-in for pkg_resources, which setuptools no longer has.

The package and what it uses are no part of the environment: `make bench` installs them.
"""

import contextlib
import importlib
import io
import os
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import torch
from robustbook.corruptions import NAMES, corrupt
from robustbook.datasets import load
from robustbook.errors import BookError
from robustbook.provenance import environment, today
from robustbook.storage import results_folder, write_json, write_text
from torch import Tensor
from torch.nn.functional import interpolate

PEERS = ("imagecorruptions", "scikit-image", "opencv-python-headless")
SEVERITY = 3
SIZES = {32: 100, 224: 8}
"""Side of the images in pixels, and how many of them."""


# ----------------------------------------------------------------------------------------------- peer


def peer() -> types.ModuleType:
    """The package, as it is but for the stand-in that its import needs."""
    try:
        importlib.import_module("pkg_resources")
    except ImportError:
        stand_in = types.ModuleType("pkg_resources")
        stand_in.resource_filename = resource_filename  # type: ignore[attr-defined]
        sys.modules["pkg_resources"] = stand_in
    try:
        importlib.import_module("cv2").setNumThreads(1)
        return importlib.import_module("imagecorruptions")
    except ImportError as error:
        text = f"this benchmark compares with imagecorruptions ({error}); run: make bench"
        raise BookError(text) from error


def resource_filename(module: str, name: str) -> str:
    """Where a file beside a module lies."""
    return os.path.join(os.path.dirname(str(sys.modules[module].__file__)), name)


def repair() -> None:
    """Give back a name that numpy dropped, and an option that scikit-image gave another one."""
    np.float_ = np.float64  # type: ignore[attr-defined]
    module = sys.modules["imagecorruptions.corruptions"]
    present: Callable[..., Any] = module.gaussian

    def gaussian(image: Any, *args: Any, multichannel: bool = False, **options: Any) -> Any:
        return present(image, *args, channel_axis=-1 if multichannel else None, **options)

    module.gaussian = gaussian  # type: ignore[attr-defined]


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Neither the warnings nor the prints of the package."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def theirs(package: types.ModuleType, images: np.ndarray, name: str) -> Tensor:
    """Corrupt bytes (N, H, W, C) image by image."""
    with silence():
        found = [package.corrupt(image, corruption_name=name, severity=SEVERITY) for image in images]
    return torch.from_numpy(np.stack(found)).movedim(-1, 1) / 255


def failure(package: types.ModuleType, image: np.ndarray, name: str) -> str:
    """Why a corruption does not run, in a few words; empty if it does."""
    try:
        theirs(package, image[None], name)
    except Exception as error:  # whatever it is, it is what a user meets
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


# --------------------------------------------------------------------------------------------- turns


def change(x: Tensor, y: Tensor) -> float:
    """Root mean square difference, in levels of 255."""
    return 255 * (y - x).square().mean().sqrt().item()


def compare(package: types.ModuleType, x: Tensor, name: str, state: str, rounds: int) -> dict[str, Any]:
    """Let both corrupt the same images in turns; one line of the table."""
    images = (x * 255).round().byte().movedim(1, -1).contiguous().numpy()
    runs: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: corrupt(x, name, SEVERITY, constants="imagenet"),
        "theirs": lambda: theirs(package, images, name),
    }
    if state.startswith("fails"):
        del runs["theirs"]
    found = {side: run() for side, run in runs.items()}  # which also warms both up
    times: dict[str, list[float]] = {side: [] for side in runs}
    for _ in range(rounds):
        for side, run in runs.items():
            start = time.process_time()
            run()
            times[side].append(time.process_time() - start)
    line: dict[str, Any] = {"task": f"{x.shape[-1]} px", "corruption": name, "images": len(x)}
    line["milliseconds"] = 1e3 * statistics.median(times["ours"]) / len(x)
    if "theirs" in runs:
        ratios = [slow / fast for slow, fast in zip(times["theirs"], times["ours"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, method="inclusive")
        line |= {"ratio": middle, "ratio_low": low, "ratio_high": high}
        line["their milliseconds"] = 1e3 * statistics.median(times["theirs"]) / len(x)
        line["their change"] = change(x, found["theirs"])
    return line | {"change": change(x, found["ours"]), "imagecorruptions": state}


def photos() -> Iterator[Tensor]:
    """Images of both sizes; the large ones are small ones enlarged."""
    x = next(iter(load("cifar10", "test", limit=max(SIZES.values()))))
    for side, count in SIZES.items():
        large = interpolate(x[:count], (side, side), mode="bicubic").clamp(0, 1) if side != 32 else x[:count]
        yield (large * 255).round() / 255


def main(rounds: int = 5) -> pd.DataFrame:
    """All corruptions at both sizes, printed as they come; quartiles need two rounds."""
    torch.set_num_threads(1)
    with silence():
        package = peer()
    sizes = list(photos())
    image = (sizes[0][0] * 255).round().byte().movedim(0, -1).numpy()
    before = {name: failure(package, image, name) for name in NAMES}
    repair()
    states = {name: state(before[name], failure(package, image, name)) for name in NAMES}
    table = pd.DataFrame()
    for x in sizes:
        for name in NAMES:
            line = compare(package, x, name, states[name], max(2, rounds))
            table = pd.concat([table, pd.DataFrame([line])], ignore_index=True)
            print(table.tail(1).round(3).to_string(index=False, header=len(table) == 1), flush=True)
    digits = {"milliseconds": 3, "their milliseconds": 3, "change": 1, "their change": 1}
    return table.round({**digits, "ratio": 2, "ratio_low": 2, "ratio_high": 2})


def state(before: str, after: str) -> str:
    """What the package needs for a corruption, from its failures before and after the repair."""
    if after:
        return f"fails: {after}"
    return f"runs repaired ({before})" if before else "runs"


if __name__ == "__main__":
    table = main(*map(int, sys.argv[1:2]))
    folder = results_folder() / "benchmarks"
    write_text(folder / "corruptions.csv", table.to_csv(index=False, lineterminator="\n"))
    facts = {**environment(), "date": today(), "threads": 1, "peers": {name: version(name) for name in PEERS}}
    write_json(folder / "corruptions.json", facts)
