"""Files: where they live, and how they are written so that a killed process leaves nothing half-done."""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs


def data_folder() -> Path:
    """Full data sets: `ROBUSTBOOK_DATA`, else the user's cache folder."""
    chosen = os.environ.get("ROBUSTBOOK_DATA")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("robustbook") / "data"


def cache_folder() -> Path:
    """What is too large for the repository and can be computed again, such as big networks."""
    return platformdirs.user_cache_path("robustbook")


def repository() -> Path:
    """The folder that holds `_toc.yml`: upwards from here, else from where this package lies."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
                return folder
    return Path.cwd()


def results_folder() -> Path:
    """Measured tables: `ROBUSTBOOK_RESULTS`, else `results/` of the repository."""
    chosen = os.environ.get("ROBUSTBOOK_RESULTS")
    return Path(chosen).expanduser() if chosen else repository() / "results"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place, in one step, when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb") as f:
            os.fsync(f.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a whole text file atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, sorted so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the advisory lock that belongs to `path`, so that two runs merge instead of overwriting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / f".{path.name}.lock"
    with lock.open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def sha256(*parts: bytes | memoryview) -> str:
    """Hex digest of the parts in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
