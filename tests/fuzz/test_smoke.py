"""Every target for a second or two, and proof that the harness sees what it is there to see."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from tests.fuzz import parent
from tests.fuzz.child import run
from tests.fuzz.parent import fuzz
from tests.fuzz.target import Case, Difference, Target
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TARGETS)
def test_a_second_finds_nothing(name, tmp_path):
    for seconds in (1.0, 10.0, 60.0):  # on a busy machine the first second may be over before the first case
        outcome = fuzz(name, seconds=seconds, seed=20, out=tmp_path, quick=True)
        assert outcome.findings == []
        if outcome.counts["accepted"] and outcome.counts["refused"]:
            break
    assert outcome.counts["accepted"] > 0
    assert outcome.counts["refused"] > 0


@pytest.mark.parametrize("name", ["letor", "qrels", "cache"])
def test_a_case_depends_on_its_seed_and_number_alone(name):
    target = TARGETS[name]()
    target.prepare()
    assert target.case(3, 7) == target.case(3, 7)
    assert target.case(3, 7) != target.case(4, 7)
    assert target.case(3, 8) != target.case(3, 7)


class Broken(Target):
    """Case 1 dies by a signal, 2 sleeps, 3 takes memory, 4 raises, 5 answers wrongly, 6 never ends."""

    name = "broken"

    def make(self, random: Random) -> Case:
        return Case("x", b"")

    def case(self, seed: int, number: int) -> Case:
        return Case("x", b"", {"number": number})

    def check(self, case: Case, path: Path) -> bool:
        number = case.options["number"]
        if number == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        elif number == 2:
            time.sleep(60)
        elif number == 3:
            np.ones(230 << 20, dtype=np.uint8)
        elif number == 4:
            raise IndexError("foreign")
        elif number == 5:
            raise Difference("other numbers")
        while number == 6:
            pass
        time.sleep(0.01)
        return True


def test_the_harness_sees_what_it_is_there_to_see(tmp_path, monkeypatch):
    monkeypatch.setattr(parent, "LIMIT", 2.0)
    monkeypatch.setattr(parent, "STARVED", 4.0)
    monkeypatch.setenv("MCRANK_FUZZ_TARGET", f"{__name__}:Broken")
    outcome = fuzz("broken", seconds=0.1, out=tmp_path, quick=True)  # a hundred cases, however long they take
    found = {number: what for what, number, _ in outcome.findings}
    assert found == {1: "signal", 2: "hang", 3: "memory", 4: "foreign", 5: "difference", 6: "hang"}
    assert outcome.findings[0][2].startswith("SIGSEGV")
    assert all(words.startswith("no answer for ") for what, _, words in outcome.findings if what == "hang")
    assert outcome.counts["accepted"] > 1
    saved = (tmp_path / "broken-0-4-foreign" / "finding.txt").read_text()
    assert "IndexError: foreign" in saved
    assert "--case 4" in saved


def test_waiting_for_a_turn_is_no_hang(monkeypatch):
    clock, work = [0.0], [0.0]
    monkeypatch.setattr(parent, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(parent, "processor_seconds", lambda pid: work[0])
    silence = parent._Silence(1)
    clock[0], work[0] = 19.0, 1.9
    assert silence.too_long(2.0) == ""
    work[0] = 2.1
    assert silence.too_long(2.0) == "no answer for 2 s of processor time"
    clock[0], work[0] = 21.0, 0.0  # asleep
    assert silence.too_long(2.0) == "no answer for 21 s"


def test_a_single_case_can_be_run_again(tmp_path):
    assert run(Broken(), Broken().case(0, 5), tmp_path) == ("difference", "other numbers")
