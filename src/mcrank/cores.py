"""How many cores this process may use: as its affinity and a container's CPU quota allow.

A container that may use the time of two cores of a machine of 64 still sees all 64. Its quota stands in the
files of its control group, or of a group above it. (joblib reads it too, but only where a container sees its
own group as the topmost one, and takes 0.8 s to import.)
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path


def available_cores() -> int:
    """Cores this process may use, at least 1; part of a core counts as one.

    Examples
    --------
    >>> from mcrank.cores import available_cores
    >>> available_cores() >= 1
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _quota())))


@lru_cache(maxsize=1)
def _quota() -> float:
    """`cpu_quota` of this process, read once: an evaluation takes less time than the files do."""
    return cpu_quota(Path("/proc/self"))


def cpu_quota(process: Path) -> float:
    """Cores' worth of time that control groups allow the process described in a folder of ``/proc``.

    The least of the quotas of its group and of all groups above it; no limit, or no such files: infinity.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mcrank.cores import cpu_quota
    >>> cpu_quota(Path("no such folder"))
    inf
    """
    return _least(process, "cpu", _read_quota)


def memory_limit(process: Path = Path("/proc/self")) -> float:
    """Bytes that control groups allow the process, as `cpu_quota` finds them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mcrank.cores import memory_limit
    >>> memory_limit(Path("no such folder"))
    inf
    """
    return _least(process, "memory", _read_limit)


def available_bytes() -> int:
    """Memory that the system could give, or keep pages of files in; what it does not tell is much.

    Examples
    --------
    >>> from mcrank.cores import available_bytes
    >>> available_bytes() > 0
    True
    """
    try:
        told = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        free = int(told[1]) * 1024 if told else 1 << 62
    except OSError:
        free = 1 << 62
    return int(min(free, memory_limit()))


def _read_limit(folder: Path) -> float:
    for name in ("memory.max", "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            return int((folder / name).read_text(encoding="ascii"))
    return math.inf


def _least(process: Path, what: str, read: Callable[[Path], float]) -> float:
    """The least of what is read from a process's groups and all groups above them."""
    try:
        groups = (process / "cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        mounts = (process / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in groups:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "" or what in controllers.split(","):
            for top, folder in _folders(mounts, controllers, group, what):
                quotas += [read(place) for place in (folder, *folder.parents) if _within(place, top)]
    return min(quotas)


def _within(place: Path, top: Path) -> bool:
    return place == top or top in place.parents


def _folders(mounts: list[str], controllers: str, group: str, what: str) -> Iterator[tuple[Path, Path]]:
    """Where a group's files are: the topmost folder that can be seen of its hierarchy, and its own."""
    for line in mounts:
        before, after = (fields.split(" ") for fields in f"{line} - ".split(" - ")[:2])
        # The second version has one hierarchy and no controllers in a line of `cgroup`, the first several.
        if len(before) < 5 or after[0] != ("cgroup" if controllers else "cgroup2"):
            continue
        if controllers and what not in after[-1].split(","):
            continue
        root, top = (_plain(field) for field in before[3:5])
        # A container may see a part of the hierarchy only, while the group is named from its beginning.
        inside = group.removeprefix(root) if root != "/" and f"{group}/".startswith(f"{root}/") else group
        folder = Path(top, inside.lstrip("/"))
        yield Path(top), folder if folder.is_dir() and ".." not in folder.parts else Path(top)


def _plain(field: str) -> str:
    """A path as `mountinfo` writes it, with blanks as octal numbers."""
    for code in ("040", "011", "012", "134"):
        field = field.replace(f"\\{code}", chr(int(code, 8)))
    return field


def _read_quota(folder: Path) -> float:
    """Quota of one group, in either version's files; infinity where there is none."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        # "max", or -1 in the first version, is no limit.
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
