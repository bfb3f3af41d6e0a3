"""Memory for large arrays that are about to be filled."""

from __future__ import annotations

import mmap
import sys

import numpy as np

from mcrank.arrays import ByteArray

_LARGE = 4 << 20


def fresh_bytes(size: int) -> ByteArray:
    """Bytes whose pages take no memory before they are written to, from a multiple of 64 on.

    Large ones come from the system in small pages. NumPy would ask for huge ones, which in a virtual machine
    whose free memory was handed back to its host take three to six times as long to get.

    Examples
    --------
    >>> from mcrank.memory import fresh_bytes
    >>> fresh_bytes(100).shape
    (100,)
    """
    if sys.platform != "linux" or size < _LARGE:
        memory = np.empty(size + 64, dtype=np.uint8)
        start = -memory.ctypes.data % 64
        return memory[start : start + size]
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=np.uint8)
