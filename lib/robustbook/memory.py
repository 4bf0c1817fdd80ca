"""Keep freed memory: on Linux the C library gives large blocks back to the system after every step.

A training step frees and asks again for the same tens of megabytes; each time the system hands out fresh,
zeroed pages. With these settings of glibc the blocks stay with the process, as caching allocators have it
on GPUs. No number changes.
"""

import contextlib
import ctypes
import functools
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # from <malloc.h>
LARGE = 1 << 30


@functools.cache
def keep_memory() -> bool:
    """Set the thresholds for this process, once; False where there is no glibc."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_THRESHOLD, LARGE)) and bool(mallopt(TRIM_THRESHOLD, 2 * LARGE - 1))
    return False
