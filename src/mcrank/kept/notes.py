"""Notes of which kernels a part of the package was seen to need, so that nobody has to try.

When a part has been used and all its kernels are on disk, their names are noted, under a name made of the
conditions (`mcrank.kept.conditions`). As long as these are the same and every one of those files is there and
whole, whoever uses that part compiles nothing. Whatever is missing, other or unreadable makes a note untrue,
and the part is used again: to believe too little costs two seconds.

A note is text, one name a line, and can do no more than say so: a name is no path, and what it says of a
kernel is checked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from mcrank.kept import files
from mcrank.kept.conditions import Conditions

_FORM = "1"  # of a note: another one is not looked at
_KERNEL = re.compile(r"[A-Za-z0-9_.]{1,200}-[0-9a-f]{16}-[0-9a-f]{32}" + re.escape(files.KERNEL))
LONGEST = 1 << 20  # bytes; the longest so far has 11 thousand


def write(area: str, now: Conditions, kernels: Iterable[str]) -> None:
    """Note that these kernels are all that an area needs; where nothing can be written, nothing is."""
    names = sorted(kernels)
    content = "\n".join(names).encode()
    if names and len(content) <= LONGEST and all(map(_KERNEL.fullmatch, names)):
        files.keep(_name(area, now), content)


class Notes:
    """Notes under some conditions; each kernel is looked at once, though many areas need it."""

    def __init__(self, now: Conditions) -> None:
        self._now = now
        self._whole: dict[str, bool] = {}

    def say_kept(self, area: str) -> bool:
        """Whether there is a true note of an area: all that it needs is on disk, whole."""
        for path, content in files.found(_name(area, self._now), LONGEST):
            names = content.decode("ascii", "replace").split("\n")
            if all(map(_KERNEL.fullmatch, names)) and all(map(self._is_whole, names)):
                files.mark_used(path)
                return True
        return False

    def _is_whole(self, kernel: str) -> bool:
        if kernel not in self._whole:
            path = next((path for path, _ in files.found(kernel)), None)
            if path is not None:
                files.mark_used(path)
            self._whole[kernel] = path is not None
        return self._whole[kernel]


def _name(area: str, now: Conditions) -> str:
    digest = hashlib.sha256(repr((_FORM, area, now.sources, now.rest)).encode()).hexdigest()
    return f"warmup.{area}-{now.sources[:16]}-{digest[:32]}{files.NOTE}"
