"""Where and when something was measured."""

import datetime
import functools
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-learn", "pandas")


@functools.cache
def cpu() -> str:
    """The processor's own name for itself, with the vector instructions that change last bits."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines) if v}
    widest = next((flag for flag in ("avx512f", "avx2", "avx") if flag in facts.get("flags", "").split()), "")
    return " ".join(filter(None, [facts.get("model name", platform.machine()), widest]))


@functools.cache
def versions() -> dict[str, str]:
    """Python and the packages that can change a number; local tags such as +cpu do not count."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = version(name).partition("+")[0]
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def today() -> str:
    """Today's date, ISO."""
    return datetime.date.today().isoformat()


def environment() -> dict[str, Any]:
    """Processor and versions of this process."""
    return {"cpu": cpu(), "versions": versions()}
