"""A kernel is compiled again when anything it reaches has changed, in whatever file, and only then."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from types import FunctionType

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

import mcrank
from mcrank.kernels.entry import KernelLibrary
from mcrank.kernels.linked import OuterLibrary
from mcrank.kernels.lowering import ValueLower
from mcrank.kernels.stamp import Undescribed, _how_made, stamp
from tests.kernels.sample import VALUE

pytestmark = pytest.mark.slow

EDITS = {
    "its own body": ("main.py", "+ TABLE[2]", "- TABLE[2]", VALUE - 6),
    "an array of another file": ("numbers.py", "[1, 2, 3]", "[1, 2, 4]", VALUE + 1),
    "a number read through its module": ("numbers.py", "FACTOR = 10", "FACTOR = 11", VALUE + 2),
    "a step of a step": ("deep.py", "x + 1", "x + 2", VALUE + 10),
    "how instructions are written": ("machine.py", "1000", "2000", VALUE + 1000),
    "what a function was made with": ("steps.py", "maker(0)", "maker(5)", VALUE + 5),
    "the order of an argument's fields": (
        "shapes.py",
        "first: object\n    second: object",
        "second: object\n    first: object",
        VALUE + 99 * 10,
    ),
}


@pytest.mark.parametrize(("name", "old", "new", "value"), EDITS.values(), ids=EDITS)
def test_every_kind_of_edit_is_noticed(sample, name, old, new, value):
    assert sample.call() == (VALUE, False)
    assert sample.call() == (VALUE, True)
    sample.edit(name, old, new)
    assert sample.call() == (value, False)
    sample.edit(name, new, old)  # back on the old branch: its kernel is still there
    assert sample.call() == (VALUE, True)


@pytest.mark.parametrize("new", ["@step(fastmath=True)", "@step(boundscheck=True)"])
def test_options_of_a_step_count(sample, new):
    assert sample.call() == (VALUE, False)
    sample.edit("deep.py", "@step()", new)
    assert sample.call() == (VALUE, False)


def test_comments_lines_and_unused_names_do_not_count(sample):
    assert sample.call() == (VALUE, False)
    sample.edit("deep.py", "@step()", "# a comment\n\nUNUSED = 3\n\n@step()")
    assert sample.call() == (VALUE, True)


def test_a_running_process_leaves_no_old_code_under_the_name_of_the_new(sample):
    """Edited after it was imported and before it was compiled: what is kept is what was imported."""
    main = sample.fresh()
    sample.edit("deep.py", "x + 1", "x + 2")
    assert main.call() == VALUE
    assert sample.call() == (VALUE + 10, False)


def kernels():
    found = {}
    for module in pkgutil.walk_packages(mcrank.__path__, "mcrank."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Dispatcher) and type(value._cache).__name__ == "KernelCache":
                    found[f"{value.py_func.__module__}.{value.py_func.__qualname__}"] = value
    return found


CODE = """
import json
from tests.kernels.test_stamp import kernels, stamp
print(json.dumps({name: stamp(kernel) for name, kernel in kernels().items()}))
"""


def test_every_kernel_of_the_package_has_a_stamp_and_it_is_the_same_in_every_process():
    here = {name: stamp(kernel) for name, kernel in kernels().items()}
    assert len(here) > 50
    assert len(set(here.values())) == len(here)
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == here


def _functions(kernel):
    """All functions that a kernel's code reaches through names, found another way than `stamp` does."""
    found, waiting = set(), [kernel.py_func]
    while waiting:
        function = waiting.pop()
        if function in found or not function.__module__.startswith("mcrank"):
            continue
        found.add(function)
        for name in function.__code__.co_names:
            value = getattr(sys.modules[function.__module__], name, None)
            value = getattr(value, "py_func", getattr(value, "_defn", value))
            if isinstance(value, FunctionType):
                waiting.append(value)
    return found


def test_a_change_of_any_function_changes_the_stamps_of_the_kernels_that_reach_it(monkeypatch):
    every = {name: (kernel, _functions(kernel), stamp(kernel)) for name, kernel in kernels().items()}
    functions = set().union(*(reached for _, reached, _ in every.values()))
    assert len(functions) > 150
    for function in functions:
        code = function.__code__
        with monkeypatch.context() as patch:
            patch.setattr(function, "__code__", code.replace(co_consts=(*code.co_consts, "changed")))
            for name, (kernel, reached, before) in every.items():
                if function in reached:
                    assert stamp(kernel) != before, (name, function)


@pytest.mark.parametrize(
    "method", [ValueLower.storevar, KernelLibrary._optimize_functions, OuterLibrary._optimize_final_module]
)
def test_how_machine_code_is_made_is_in_every_stamp(monkeypatch, method):
    from mcrank.losses.quantize import round_gradients

    before, code = stamp(round_gradients), method.__code__
    _how_made.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(method, "__code__", code.replace(co_consts=(*code.co_consts, "changed")))
        changed = stamp(round_gradients)
    _how_made.cache_clear()
    assert changed != before
    assert stamp(round_gradients) == before


def test_what_cannot_be_described_is_refused():
    class Thing:
        size = 3

    thing = Thing()

    @njit
    def reads(x):
        return x + thing.size

    with pytest.raises(Undescribed, match="Thing"):
        stamp(reads)


def test_a_class_is_what_its_methods_do():
    """Writers of machine instructions are classes; kernels reach them by their names."""

    def stamped(first, second, third):
        class Writer:
            @property
            def width(self):
                return first

            @staticmethod
            def lanes():
                return second

            def write(self):
                return third

        @njit
        def writes(x):
            return x if Writer is None else x + 1

        return stamp(writes)

    stamps = [stamped(1, 2, 3), stamped(9, 2, 3), stamped(1, 9, 3), stamped(1, 2, 9)]
    assert len(set(stamps)) == 4
    assert stamped(1, 2, 3) == stamps[0]


def test_equal_constants_of_different_kinds_differ():
    def stamped(value):
        @njit
        def reads():
            return value

        return stamp(reads)

    values = [
        0,
        0.0,
        -0.0,
        False,
        "0",
        b"0",
        None,
        np.int8(0),
        np.int64(0),
        np.zeros(1),
        np.zeros((1, 1)),
        (0,),
        (0, 0),
    ]
    assert len({stamped(value) for value in values}) == len(values)
    assert stamped({"a": 1, "b": 2}) == stamped({"b": 2, "a": 1})
    assert stamped(frozenset("abc")) == stamped(frozenset("cba"))
