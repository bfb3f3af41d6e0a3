"""Memory for large arrays: fresh pages that are about to be filled, and files that take the place of memory.

What lies in a scratch file is mapped: the system keeps of it in memory what there is room for. The files
have no name, so that nobody can cut them short while they are mapped, and nothing is left of them when their
arrays are gone or the process is killed. Their room on disk is taken before they are mapped: a full disk is
an error, not the end of the process.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, ByteArray
from mcrank.errors import DataError, OptionError

_LARGE = 4 << 20
_SLAB = 64 << 20
_DONTNEED = getattr(mmap, "MADV_DONTNEED", 4)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


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


class OnDisk(mmap.mmap):
    """A mapped file that stands for memory."""


def scratch_folder() -> Path:
    """Where scratch files lie: ``TMPDIR``, or ``/var/tmp``, as ``/tmp`` is memory on many systems.

    Examples
    --------
    >>> from mcrank.memory import scratch_folder
    >>> scratch_folder().is_dir()
    True
    """
    named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    disk = Path("/var/tmp")
    return disk if not named and os.access(disk, os.W_OK) else Path(tempfile.gettempdir())


def scratch_file() -> IO[bytes]:
    """Open a file without a name in the folder for scratch files."""
    try:
        return tempfile.TemporaryFile(dir=scratch_folder())
    except OSError as error:
        raise _full(error) from None


def _full(error: OSError) -> DataError:
    return DataError(
        f"scratch files in {scratch_folder()} cannot be written: {error.strerror or error}; make room there, "
        "or let TMPDIR name a folder on a disk that has it."
    )


def write_scratch(file: IO[bytes], block: Any) -> None:
    """Write all of a block to a scratch file."""
    try:
        file.write(block)
    except OSError as error:
        raise _full(error) from None


def map_scratch(file: IO[bytes], shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Map what was written to a scratch file."""
    kind = np.dtype(dtype)
    try:
        file.flush()
        pages = OnDisk(file.fileno(), max(1, math.prod(shape) * kind.itemsize))
    except OSError as error:
        raise _full(error) from None
    return np.frombuffer(pages, dtype=kind, count=math.prod(shape)).reshape(shape)


def scratch_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Zeros in a scratch file.

    Examples
    --------
    >>> from mcrank.memory import is_on_disk, scratch_array
    >>> zeros = scratch_array((2, 3), "float32")
    >>> zeros.tolist(), is_on_disk(zeros[1:])
    ([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], True)
    """
    size = max(1, math.prod(shape) * np.dtype(dtype).itemsize)
    with scratch_file() as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise _full(error) from None
        return map_scratch(file, shape, dtype)


class _Writable:
    """Claims that pages of a file may be written to."""

    def __init__(self, array: Array) -> None:
        self.obj = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def for_kernels(array: Array) -> Array:
    """Pages of a file that is open for reading, as an array like those in memory.

    Kernels are compiled for arrays that can be written to; for others they would be compiled once more. None
    of them writes to what it only reads: the system would end the process.
    """
    return np.asarray(_Writable(array))


def pages_of(array: Array) -> OnDisk | None:
    """Return the mapped file that an array is in, None for memory."""
    owner: Any = array
    while owner is not None and not isinstance(owner, OnDisk):
        owner = owner.base if isinstance(owner, np.ndarray) else getattr(owner, "obj", None)
    return owner


def check_whole(array: Array) -> None:
    """Raise `DataError` where the file of an array has been cut short: reading it would end the process."""
    pages = pages_of(array)
    if pages is not None and pages.size() < len(pages):
        raise DataError(
            f"a file that is being trained on was cut short, from {len(pages)} bytes to {pages.size()}; "
            "leave it alone while it is used."
        )


def is_on_disk(array: Array) -> bool:
    """Whether an array lies in a mapped file."""
    return pages_of(array) is not None


def zeros_beside(array: Array, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Zeros in memory, or on disk if ``array`` is there.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.memory import is_on_disk, zeros_beside
    >>> is_on_disk(zeros_beside(np.zeros(3), (2,), "uint8"))
    False
    """
    return scratch_array(shape, dtype) if is_on_disk(array) else np.zeros(shape, dtype=dtype)


def copied(array: Array) -> Array:
    """A copy in memory, or on disk if ``array`` is there.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.memory import copied
    >>> copied(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if not is_on_disk(array):
        return array.copy()
    out = scratch_array(array.shape, array.dtype)
    for part in slabs(array):
        out[part] = array[part]
        let_go(array[part])
        let_go(out[part])
    return out


def slabs(array: Array) -> list[slice]:
    """Rows of an array in parts of some megabytes: as much of a file as is in memory at a time."""
    step = max(1, _SLAB * len(array) // max(1, array.nbytes))
    return [slice(first, min(first + step, len(array))) for first in range(0, len(array), step)]


def let_go(array: Array) -> None:
    """Take neighbouring pages of a file out of this process's memory; the system may keep them. Memory stays
    what it is.
    """
    advise(array, _DONTNEED)


def bytes_of(memory: str | int, where: str) -> int:
    """Read an amount of memory: a number of bytes, or a text such as 8GB, 450MiB or 1.5 G.

    Examples
    --------
    >>> from mcrank.memory import bytes_of
    >>> bytes_of("1.5GB", "memory"), bytes_of("450 MiB", "memory")
    (1500000000, 471859200)
    """
    text = str(memory).strip()
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]?)(I?)B?", text.upper())
    if found is None or isinstance(memory, bool) or (found[3] and not found[2]):
        raise OptionError(f"{where} must be an amount of memory such as 8GB or 450MiB, got {memory!r}.")
    unit = _UNITS[found[2]]
    return int(float(found[1]) * (1024 ** round(math.log10(unit) / 3) if found[3] else unit))


def shown_bytes(size: int) -> str:
    """An amount of memory that `bytes_of` reads, rounded up.

    Examples
    --------
    >>> from mcrank.memory import shown_bytes
    >>> shown_bytes(412_300_001), shown_bytes(12_345_678_901)
    ('413MB', '12346MB')
    """
    return f"{-(-size // 10**6)}MB"


def advise(array: Array, advice: int) -> None:
    """Tell the system what will become of neighbouring pages of a file (``mmap.MADV_...``); not of memory."""
    pages = pages_of(array)
    if pages is None or array.size == 0:
        return
    first = array.ctypes.data - np.frombuffer(pages, dtype=np.uint8, count=1).ctypes.data
    start = first // mmap.PAGESIZE * mmap.PAGESIZE
    if hasattr(pages, "madvise"):
        pages.madvise(advice, start, first + array.nbytes - start)


def private_bytes() -> int:
    """Memory of this process that the system cannot take back, as far as it tells."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]
    except (OSError, TypeError, ValueError):
        return 200 << 20


def arrays_in(*owners: Any) -> int:
    """Bytes of the arrays in memory that objects hold, each counted once: in their attributes, in lists and
    tuples, and in those of what they hold.
    """
    seen: set[int] = set()
    total, waiting = 0, list(owners)
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            total += 0 if id(one) in seen or is_on_disk(one) else one.nbytes
        elif id(one) not in seen:
            if isinstance(one, (list, tuple)):
                waiting += one
            elif type(one).__module__.startswith("mcrank."):
                names = getattr(type(one), "__slots__", ())
                waiting += [getattr(one, name) for name in names if hasattr(one, name)]
                waiting += vars(one).values() if hasattr(one, "__dict__") else ()
        seen.add(id(one))
    return total
