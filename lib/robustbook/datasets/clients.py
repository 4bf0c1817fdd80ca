"""The machine's own package clients, and a bar that shows what they have downloaded.

A client works in `<folder>/incoming`; what it finished moves to `<folder>/<file>`. A finished file is
not fetched again, and an unfinished one stays where the client can continue it.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm


class ClientError(Exception):
    """A client is absent or did not succeed."""


def run(command: list[str], folder: Path) -> str:
    """Run a client quietly in `folder` and return what it printed."""
    program = shutil.which(command[0])
    if program is None:
        raise ClientError(f"{command[0]} is not installed")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("W:")]
        raise ClientError(" ".join(lines[:2]) or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def download_package(command: list[str], suffix: str, target: Path) -> None:
    """Run a client that leaves one file ending in `suffix`, and keep that file as `target`."""
    if target.is_file():
        return
    incoming = target.parent / "incoming"
    incoming.mkdir(parents=True, exist_ok=True)
    run(command, incoming)
    found = list(incoming.glob(f"*{suffix}"))
    if not found:
        raise ClientError(f"{command[0]} left no {suffix} file")
    os.replace(max(found, key=lambda file: file.stat().st_mtime_ns), target)


def npm_pack(package: str, version: str, folder: Path) -> None:
    """Keep the tarball of an npm package as `package.tgz`."""
    command = ["npm", "pack", f"{package}@{version}", "--loglevel=error", "--no-update-notifier"]
    download_package(command, ".tgz", folder / "package.tgz")


def pip_download(package: str, version: str, folder: Path) -> None:
    """Keep the wheel of a PyPI package as `package.whl`, without what it depends on; nothing is installed."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, f"{package}=={version}"]
    download_package(command, ".whl", folder / "package.whl")


def apt_download(package: str, folder: Path) -> None:
    """Keep a Debian package as `package.deb`."""
    try:
        download_package(["apt-get", "download", package], ".deb", folder / "package.deb")
    except ClientError as error:
        if "Unable to locate" in str(error) or "No packages found" in str(error):
            raise ClientError(f"{error} (run `apt-get update` first)") from None
        raise


def unpack_deb(folder: Path) -> Path:
    """Unpack `package.deb`; the folder with its files."""
    files = folder / "files"
    if not files.is_dir():
        part = folder / "files.part"
        shutil.rmtree(part, ignore_errors=True)
        run(["dpkg-deb", "-x", "package.deb", part.name], folder)
        os.replace(part, files)
    return files


def tar_members(path: Path, wanted: list[str]) -> list[bytes]:
    """The contents of some members of a gzipped tar file, in the order asked for."""
    found: dict[str, bytes] = {}
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.name in wanted else None
            if stream is not None:
                found[member.name] = stream.read()
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ClientError(f"no {absent[0]} in {path.name}")
    return [found[name] for name in wanted]


def zip_member(path: Path, wanted: str) -> bytes:
    """The content of one member of a zip file, such as a wheel."""
    with zipfile.ZipFile(path) as archive:
        if wanted not in archive.namelist():
            raise ClientError(f"no {wanted} in {path.name}")
        return archive.read(wanted)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, while others may be writing and renaming them."""
    total = 0
    for top, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.stat(os.path.join(top, file)).st_size
            except OSError:
                continue
    return total


@contextmanager
def watched(folder: Path, total: int, label: str, show: bool) -> Iterator[None]:
    """A bar of the bytes that arrive in `folder` while the block runs, only on a terminal.

    Watching the folder works for every client and keeps their own output out of the way.
    """
    stop = threading.Event()

    def watch() -> None:
        disable = None if show else True  # None: tqdm shows the bar on a terminal only
        with tqdm(total=total, desc=label, unit="B", unit_scale=True, leave=False, disable=disable) as bar:
            ended = False
            while not ended:
                ended = stop.wait(0.2)
                bar.update(max(0, min(folder_bytes(folder), total) - bar.n))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
