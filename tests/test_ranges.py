"""Ranges that tuning searches: every declared one is a range of its option, and bad ones are refused."""

from __future__ import annotations

import pytest

from mcrank.errors import OptionError
from mcrank.options import Option
from mcrank.ranges import ROUNDS, Between, OneOf, given_range
from mcrank.rankers.registry import RANKERS, ranker_class

LEAVES = Option(10, "leaves", name="num_leaves", kind=int, low=2)


def check(option: Option):
    return lambda value: option.check(value, "a ranker")


@pytest.mark.parametrize("name", RANKERS)
def test_every_declared_range_is_one_of_its_option(name):
    declared = ranker_class(name).declared_options
    for option in declared.values():
        if option.search is not None and option.search is not ROUNDS:
            assert option.search.checked(check(option), option.name) == option.search
    assert sum(option.search is ROUNDS for option in declared.values()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4..64", Between(4, 64)),
        ("4..64,log", Between(4, 64, log=True)),
        ("4..64,even", Between(4, 64)),
        ("4|8", OneOf(4, 8)),
        ("fixed", None),
        (None, None),
        ((4, 64, "log"), Between(4, 64, log=True)),
        ([4, 8], OneOf(4, 8)),
        (OneOf(4, 8), OneOf(4, 8)),
    ],
)
def test_what_a_caller_may_write(text, expected):
    assert given_range(text, None, LEAVES.from_text, "num_leaves") == expected


def test_log_is_taken_from_what_is_declared():
    assert given_range((2, 9), Between(4, 64, log=True), int, "x") == Between(2, 9, log=True)
    assert given_range((2, 9, "even"), Between(4, 64, log=True), int, "x") == Between(2, 9)


@pytest.mark.parametrize("value", ["4..", "..", "4..8..9", "4", "", "4..8,lg", (1,), (1, 2, 3), 7, {"a": 1}])
def test_what_is_no_range_is_refused(value):
    with pytest.raises(OptionError, match="num_leaves must be"):
        given_range(value, None, LEAVES.from_text, "num_leaves")


@pytest.mark.parametrize(
    "value", [(64, 4), (4, 4), (0, 5), (1.5, 3), ("a", "b"), [4], [4, 4], [], [4, 1], (2, float("nan"))]
)
def test_a_range_that_does_not_fit_its_option_is_refused(value):
    with pytest.raises(OptionError):
        given_range(value, None, LEAVES.from_text, "num_leaves").checked(check(LEAVES), "num_leaves")


def test_log_from_zero_is_refused():
    rate = Option(0.0, "l2", name="l2", kind=float, low=0)
    with pytest.raises(OptionError, match="must begin above 0"):
        Between(0, 1, log=True).checked(check(rate), "l2")


def test_nearest():
    assert Between(4, 64).nearest(100) == 64
    assert Between(0.01, 1.0, log=True).nearest(None) == pytest.approx(0.1)
    assert OneOf("a", "b").nearest("c") == "a"
