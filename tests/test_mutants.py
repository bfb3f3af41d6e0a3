"""The mutants of `make mutants` are still lines of the source, and their tests are still there."""

from __future__ import annotations

from collections import Counter

from benchmarks.mutants import MUTANTS, SPARED, TOP, mutated


def test_there_are_at_least_thirty_and_at_most_one_may_survive():
    assert len(MUTANTS) >= 30
    assert SPARED == 1
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1


def test_every_mutant_changes_one_place_and_its_tests_exist():
    for mutant in MUTANTS:
        text = (TOP / "src" / "mcrank" / mutant.path).read_text()
        assert mutated(mutant, text) != text
        for test in mutant.tests.split():
            path, _, name = test.partition("::")
            assert f"def {name}" in (TOP / "tests" / path).read_text()
