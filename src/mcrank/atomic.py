"""Files written whole or not at all: under another name beside the target, which then takes its place."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_ABANDONED = 3600.0  # seconds without a change after which a part of a file has no writer any more


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to write; it takes the name ``path`` only when all is written and on disk.

    `OSError`, also from the caller's block, names ``path`` and not the file under way. A kill leaves
    ``.name.xxxxxxxx.part`` behind, and under ``path`` what was there; writing ``path`` an hour later or more
    removes it. A link stays one, and what it leads to is written; who may read a file that is written again
    stays as it was.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank.atomic import written_whole
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> with written_whole(path) as file:
    ...     _ = file.write(b"all of it")
    >>> path.read_bytes(), [other.name for other in path.parent.iterdir()]
    (b'all of it', ['a.txt'])
    """
    target = Path(os.path.realpath(path))
    there = target.exists()
    if there and not target.is_file():
        raise OSError(None, "it exists and is not a regular file", str(path))
    start = f".{target.name[:50]}."  # a long name has no room for more
    part = target.with_name(f"{start}{secrets.token_hex(4)}.part")
    try:
        _remove_abandoned(target.parent, start)
        with open(part, "xb") as file:
            if there:
                with contextlib.suppress(OSError):  # of a file that is somebody else's
                    shutil.copymode(target, part)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        with contextlib.suppress(OSError):  # where nothing can be taken away either, the first error counts
            part.unlink(missing_ok=True)


def _remove_abandoned(folder: Path, start: str) -> None:
    """Remove parts of files that nobody has written to for an hour: their writers were killed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(start) and re.fullmatch(r"[0-9a-f]{8}\.part", entry.name[len(start) :]):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > _ABANDONED:
                        os.unlink(entry.path)
