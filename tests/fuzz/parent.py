"""The parent: watches a child, and writes down signals, hangs, memory, foreign errors and differences."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 30.0  # seconds of processor time of a case; the slowest takes a hundredth of that
READY = 300.0  # the same to make valid files and compile kernels
STARVED = 10.0  # times as long on the clock: a child that waits for a busy machine is not one that hangs
LOOK = 0.5  # seconds between two looks at a silent child
LEAST = 100  # cases of a run of seconds
KEPT = 20  # findings of a kind that are saved


@dataclass
class Outcome:
    """What a run over one target gave."""

    target: str
    seed: int
    quick: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, int, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return sum(self.counts.values())

    def enough(self, seconds: float) -> bool:
        """Whether the time is over; on a busy machine a short run goes on until it has seen something."""
        return self.seconds >= seconds and (not self.quick or self.cases >= LEAST)

    def __str__(self) -> str:
        words = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return (
            f"{self.target}: {self.cases} cases in {self.seconds:.0f} s, seed {self.seed}: {words or 'none'}"
        )


def fuzz(
    target: str,
    seconds: float,
    seed: int = 0,
    start: int = 0,
    out: Path | None = None,
    *,
    quick: bool = False,
) -> Outcome:
    """Run a target for a time (counted from when it is ready); findings are saved under ``out``."""
    outcome = Outcome(target, seed, quick)
    number = start
    while not outcome.enough(seconds):
        number = _one_child(outcome, number, seconds, out) + 1
        if outcome.counts["signal"] + outcome.counts["hang"] > KEPT:
            break
    return outcome


def _one_child(outcome: Outcome, start: int, seconds: float, out: Path | None) -> int:
    """Watch a child until its time is over or it dies; return the number of its last case."""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.child", outcome.target]
    child = subprocess.Popen(
        [*command, str(outcome.seed), str(start), "quick" if outcome.quick else "long", str(write_end)],
        cwd=ROOT, pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write_end)
    number, running = start, False
    try:
        for what, case, words in _messages(read_end, child.pid, outcome, seconds):
            if what == "begin":
                number, running = case, True
            elif what == "end":  # the child is gone
                break
            elif what == "hang":
                _note(outcome, "hang", number, words, out)
                return number
            elif what == "over":
                return number
            elif what != "ready":
                running = False
                _note(outcome, what, case, words, out)
        child.wait(30)
        died = f"ended with {child.returncode}"
        if child.returncode < 0:
            died = signal.Signals(-child.returncode).name
        trace = child.stderr.read().decode(errors="replace")[-4000:] if child.stderr else ""
        if not running:
            raise RuntimeError(f"the child of {outcome.target} {died} outside a case:\n{trace}")
        _note(outcome, "signal", number, f"{died}\n{trace}", out)
        return number
    finally:
        child.kill()
        child.wait()
        if child.stderr is not None:
            child.stderr.close()
        os.close(read_end)


def processor_seconds(pid: int) -> float | None:
    """Processor time of a process and its threads so far; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Silence:
    """How long a child has said nothing, on the clock and in its own work."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.clock, self.work = time.monotonic(), processor_seconds(pid)

    def too_long(self, limit: float) -> str:
        """What is wrong with it; nothing while it may only be waiting for its turn."""
        work, clock = processor_seconds(self.pid), time.monotonic() - self.clock
        if work is None or self.work is None:
            return f"no answer for {limit:g} s" if clock > limit else ""
        if work - self.work > limit:
            return f"no answer for {limit:g} s of processor time"
        return f"no answer for {clock:.0f} s" if clock > STARVED * limit else ""


def _messages(channel: int, pid: int, outcome: Outcome, seconds: float):
    """Yield what the child says; also "hang" after silence, "over" when time is up, "end" when it is gone."""
    selector = selectors.DefaultSelector()
    selector.register(channel, selectors.EVENT_READ)
    rest, patience, began = b"", READY, 0.0
    while True:
        silence = _Silence(pid)
        while not selector.select(LOOK):
            words = silence.too_long(patience)
            if words:
                yield "hang", -1, words
                return
        block = os.read(channel, 1 << 16)
        if not block:
            yield "end", -1, ""
            return
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            what, number, words = json.loads(line)
            if what == "ready":
                patience, began = LIMIT, time.monotonic() - outcome.seconds
            yield what, number, words
        if began:
            outcome.seconds = time.monotonic() - began
            if outcome.enough(seconds) and not any(line.startswith(b'["begin"') for line in lines[-1:]):
                yield "over", -1, ""
                return


def _note(outcome: Outcome, what: str, number: int, words: str, out: Path | None) -> None:
    outcome.counts[what] += 1
    if what in ("accepted", "refused"):
        return
    outcome.findings.append((what, number, words))
    if out is None or outcome.counts[what] > KEPT:
        return
    from tests.fuzz.targets import find_target

    folder = out / f"{outcome.target}-{outcome.seed}-{number}-{what}"
    folder.mkdir(parents=True, exist_ok=True)
    again = f"python -m tests.fuzz {outcome.target} --seed {outcome.seed} --case {number}"
    target = find_target(outcome.target)
    target.quick = outcome.quick
    target.prepare()
    case = target.case(outcome.seed, number)
    case.write(folder)
    (folder / "finding.txt").write_text(f"{what}\n{again}\noptions: {case.options!r}\n\n{words}\n")
