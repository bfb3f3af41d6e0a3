"""Files of what is kept: whole or not at all, and gone when nobody will ask for them again.

A file is kept under a name with a digest of everything its content depends on, so one found under the right
name is the right one, and no index has to be kept. Inside, a digest of name and content is checked before
anything is believed: a file that was cut short or damaged is deleted. Files appear by renaming: processes
that write the same one at the same time do not disturb each other, and one that is killed leaves no half.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator

from mcrank.kept.folders import Folder, folders

KERNEL = ".kernel"
NOTE = ".note"
_PART = ".part"
_MAGIC = b"mcrank kernel 1\n"
_HEAD_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
# Versions of one kernel that are kept, so that going back and forth between two branches compiles nothing.
VERSIONS_KEPT = 4
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DAY = 24 * 3600.0
UNUSED_SECONDS = 90 * _DAY
_ABANDONED_SECONDS = 3600.0


def found(name: str, limit: int | None = None) -> Iterator[tuple[str, bytes]]:
    """Give the path and content of every whole file of this name that may be believed, the first first.

    One of more than ``limit`` bytes is none of ours.

    Examples
    --------
    >>> from mcrank.kept.files import found
    >>> list(found("nobody.wrote-0123456789abcdef-0123.kernel"))
    []
    """
    for folder in folders():
        path = os.path.join(folder.path, name)
        content = _read(folder, path, name, limit)
        if content is not None:
            yield path, content


def keep(name: str, content: bytes) -> bool:
    """Write a file into the first folder that takes it; return whether one did."""
    for folder in folders():
        try:
            folder.make()
            _write(os.path.join(folder.path, name), _head(name, content) + content)
        except OSError:
            continue
        _prune(folder.path, name)
        return True
    return False


def remove(path: str) -> None:
    """Delete a file, if it is there and can be."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def mark_used(path: str) -> None:
    """Note, once a day, that a file is in use."""
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > _DAY:
            os.utime(path)


def _head(name: str, content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(name.encode() + content).digest()


def _read(folder: Folder, path: str, name: str, limit: int | None) -> bytes | None:
    """Return what was kept in a file, if it is there, may be believed and is whole; else delete it."""
    if not folder.usable():
        return None
    try:
        # Without waiting: where others may put files, one may be a pipe that nobody writes to.
        with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
            if not folder.trusts(os.fstat(file.fileno())):
                return None
            kept = file.read() if limit is None else file.read(_HEAD_BYTES + limit + 1)
    except OSError:
        return None
    content = kept[_HEAD_BYTES:]
    if (limit is None or len(content) <= limit) and kept[:_HEAD_BYTES] == _head(name, content):
        return content
    remove(path)
    return None


def _write(path: str, content: bytes) -> None:
    part = f"{path}.{secrets.token_hex(4)}{_PART}"
    try:
        # Never writable for others, whatever the umask says: what anybody may change is not run.
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        remove(part)
        raise


def _prune(folder: str, name: str) -> None:
    """Delete what nobody will ask for again: old versions of this file, what was not used for long.

    Other processes may be reading: an open file stays whole, and one that is gone is made again.
    """
    about_this = name.rsplit("-", 2)[0]
    versions: dict[str, list[tuple[float, str]]] = defaultdict(list)
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            used = entry.stat().st_mtime
            if entry.name.endswith((KERNEL, NOTE)) and entry.name.count("-") >= 2:
                about, version, _ = entry.name.rsplit("-", 2)
                if now - used > UNUSED_SECONDS:
                    remove(entry.path)
                elif about == about_this:
                    versions[version].append((used, entry.path))
            elif entry.name.endswith(_PART) and now - used > _ABANDONED_SECONDS:
                remove(entry.path)
    latest_first = sorted(versions.values(), key=max, reverse=True)
    for version_files in latest_first[VERSIONS_KEPT:]:
        for _, path in version_files:
            remove(path)
