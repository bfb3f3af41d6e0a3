"""Files written whole or not at all: under another name beside the target, which then takes its place."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to write; it takes the name ``path`` only when all is written and on disk.

    `OSError`, also from the caller's block, names ``path`` and not the file under way. A kill leaves
    ``.name.xxxxxxxx.part`` behind, and under ``path`` what was there.

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
    target = Path(path)
    if target.exists() and not target.is_file():
        raise OSError(None, "it exists and is not a regular file", str(target))
    # Of the name only its start: a long one has no room for more.
    part = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from None
    finally:
        part.unlink(missing_ok=True)
