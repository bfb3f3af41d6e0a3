"""Declared options: derived constructors, checks and messages."""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest

from mcrank.errors import McrankError, OptionError
from mcrank.options import Option, Optioned, option


class Base(Optioned):
    depth: int = option(default=3, low=1, high=9, help="how deep")
    rate: float = option(default=0.5, low=0, open_low=True, help="how fast")


class Child(Base):
    kind: str = option(default="a", choices=("a", "b"), help="which")
    limit: int | None = option(default=None, low=1, help="how many")
    loud: bool = option(default=False, help="whether to say so")
    name: str = option(default="x", help="what it is called")


def test_constructor_is_derived():
    assert list(inspect.signature(Child).parameters) == ["depth", "rate", "kind", "limit", "loud", "name"]
    assert Child().get_params() == {
        "depth": 3, "rate": 0.5, "kind": "a", "limit": None, "loud": False, "name": "x",
    }  # fmt: skip
    assert inspect.signature(Child).parameters["rate"].default == 0.5
    with pytest.raises(TypeError):
        Child(3)


def test_children_do_not_change_their_parents():
    assert list(Base.declared_options) == ["depth", "rate"]
    assert not hasattr(Base, "depth")


def test_kinds_come_from_annotations():
    kinds = {name: (o.kind, o.optional) for name, o in Child.declared_options.items()}
    assert kinds == {
        "depth": (int, False), "rate": (float, False), "kind": (str, False), "limit": (int, True),
        "loud": (bool, False), "name": (str, False),
    }  # fmt: skip


GOOD = [
    ("depth", 1, 1), ("depth", 9, 9), ("depth", np.int64(4), 4), ("rate", 1, 1.0),
    ("rate", np.float32(0.5), 0.5), ("rate", Fraction(1, 4), 0.25), ("rate", 5e-324, 5e-324),
    ("kind", "b", "b"), ("kind", np.str_("b"), "b"),
    ("limit", None, None), ("limit", 7, 7), ("loud", np.bool_(True), True), ("name", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "plain"), GOOD)
def test_good_values_become_plain(name, value, plain):
    checked = Child(**{name: value}).checked_options()[name]
    assert checked == plain
    assert type(checked) is type(plain)


BAD = [
    ("depth", 0, "an integer >= 1 and <= 9"), ("depth", 10, "an integer >= 1 and <= 9"),
    ("depth", 3.0, "an integer >= 1 and <= 9"), ("depth", "3", "an integer >= 1 and <= 9"),
    ("depth", True, "an integer >= 1 and <= 9"), ("depth", None, "an integer >= 1 and <= 9"),
    ("rate", 0, "a number > 0"), ("rate", float("nan"), "a number > 0"),
    ("rate", float("inf"), "a number > 0"),
    ("rate", 10**400, "a number > 0"), ("rate", "1", "a number > 0"), ("rate", 1j, "a number > 0"),
    ("rate", np.bool_(True), "a number > 0"), ("rate", [1], "a number > 0"),
    ("kind", "c", "'a' or 'b'"), ("kind", None, "'a' or 'b'"), ("kind", ["a"], "'a' or 'b'"),
    ("limit", 0, "an integer >= 1 or None"), ("limit", 2.5, "an integer >= 1 or None"),
    ("loud", 1, "True or False"), ("loud", "yes", "True or False"), ("name", 5, "a text"),
    ("name", b"x", "a text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "requirement"), BAD)
def test_bad_values_are_named(name, value, requirement):
    with pytest.raises(OptionError) as error:
        Child(**{name: value}).checked_options()
    assert str(error.value) == f"{name} of Child must be {requirement}, got {value!r}."


def test_option_errors_are_what_scikit_learn_and_python_expect():
    assert issubclass(OptionError, (McrankError, ValueError))
    assert issubclass(OptionError, TypeError)


def test_unknown_names_get_a_hint():
    with pytest.raises(OptionError, match=r"Child has no option 'dept'; did you mean depth\?"):
        Child(dept=3)
    with pytest.raises(OptionError, match="Child has no option 'zzz'; options: depth, rate, kind"):
        Child().set_params(zzz=3)


def test_set_params_changes_all_or_nothing():
    thing = Child()
    with pytest.raises(OptionError):
        thing.set_params(depth=5, zzz=1)
    assert thing.depth == 3
    assert thing.set_params(depth=5).get_params(deep=False)["depth"] == 5


def test_repr_shows_what_was_changed():
    assert repr(Child()) == "Child()"
    assert repr(Child(limit=4, kind="b", depth=3)) == "Child(kind='b', limit=4)"
    assert (
        eval(repr(Child(rate=0.25, name="it's"))).get_params() == Child(rate=0.25, name="it's").get_params()
    )


def test_requirement_words():
    assert Option(1, "", kind=int).requirement == "an integer"
    assert Option(1, "", kind=float, low=0, high=1).requirement == "a number >= 0 and <= 1"
    assert Option(1, "", kind=int, optional=True).requirement == "an integer or None"
    assert Option(1, "").requirement == "a value"
