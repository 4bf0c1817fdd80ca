"""Freed memory stays with the process: fewer page faults, the same numbers."""

import platform
import subprocess
import sys

import pytest

STEPS = """
import resource, sys, torch
from robustbook.memory import keep_memory
if sys.argv[1] == "keep":
    assert keep_memory() and keep_memory()
x = torch.ones(3_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    blocks = [x + i for i in range(8)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    done = subprocess.run([sys.executable, "-c", STEPS, mode], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_blocks_are_used_again() -> None:
    assert faults("keep") < faults("leave") / 2
