"""A child process: cases one after another, each announced before it begins; the parent then knows which."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from mcrank.errors import McrankError
from tests.fuzz.target import Case, Difference, Target

ROOM = 2 << 30  # address space above what the process has when it is ready
SPARE = 200 << 20  # resident memory that a case of a few kilobytes may take at its peak, above what there was


def main(name: str, seed: int, start: int, quick: bool, channel: int) -> None:
    """Run cases from ``start`` on until the parent ends it; tell each on the channel."""
    from tests.fuzz.targets import find_target

    target = find_target(name)
    target.quick = quick
    target.prepare()
    used = _status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tell(channel, "ready", -1)
    # A RAM disk where there is one: thousands of small files.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, prefix="mcrank-fuzz-") as folder:
        number = start
        while True:
            tell(channel, "begin", number)
            outcome, words = run(target, target.case(seed, number), Path(folder))
            tell(channel, outcome, number, words)
            number += 1


def run(target: Target, case: Case, folder: Path) -> tuple[str, str]:
    """Run one case; return how it ended: accepted, refused, or what was found, with the words for it."""
    for old in folder.iterdir():
        old.unlink()
    path = case.write(folder)
    before = _reset_peak()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=UserWarning)  # what is said on purpose
            accepted = target.check(case, path)
    except McrankError as error:
        if not str(error).strip():
            return "foreign", f"{type(error).__name__} without a word"
        accepted = False
    except Difference as error:
        return "difference", str(error)
    except BaseException as error:
        return "foreign", "".join(traceback.format_exception(error))
    peak = _status("VmHWM") - before
    if before and peak > SPARE + 64 * len(case.content):
        return "memory", f"{peak >> 20} MB for {len(case.content)} bytes"
    return ("accepted" if accepted else "refused"), ""


def tell(channel: int, what: str, number: int, words: str = "") -> None:
    os.write(channel, (json.dumps([what, number, words]) + "\n").encode())


def _status(key: str) -> int:
    """A line of the process's status, in bytes; 0 where there is no such file."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{key}:"))
    except OSError:
        return 0


def _reset_peak() -> int:
    """Make the kernel forget the peak of resident memory; return what is resident now, 0 when it cannot."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return 0
    return _status("VmRSS")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "quick", int(sys.argv[5]))
