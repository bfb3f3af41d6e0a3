"""A small package of kernels in files of its own, to be edited and imported again."""

from __future__ import annotations

import importlib
import sys

from mcrank.kept import files, folders

FILES = {
    "__init__.py": "",
    "numbers.py": """
import numpy as np

FACTOR = 10
TABLE = np.array([1, 2, 3])
""",
    "shapes.py": """
from typing import NamedTuple

class Pair(NamedTuple):
    first: object
    second: object
""",
    "machine.py": """
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

def bump(builder, value):
    return builder.add(value, ir.Constant(value.type, 1000))

@intrinsic
def bumped(typingctx, value):
    def codegen(context, builder, signature, arguments):
        return bump(builder, arguments[0])

    return types.int64(types.int64), codegen
""",
    "deep.py": """
from mcrank.kernels import step

@step()
def deepest(x):
    return x + 1
""",
    "steps.py": """
from numba import njit
from sample import numbers
from sample.deep import deepest
from sample.machine import bumped

@njit(inline="always")
def inlined(x):
    return deepest(x) * numbers.FACTOR

def maker(shift):
    @njit
    def shifted(x):
        return x + shift

    return shifted

shifted = maker(0)

@njit
def scaled(x):
    return bumped(inlined(x)) + shifted(0)
""",
    "main.py": """
from mcrank.kernels import kernel
from sample.numbers import TABLE
from sample.shapes import Pair
from sample.steps import scaled

@kernel()
def value(pair):
    return scaled(pair.first) + TABLE[2]

def call():
    return value(Pair(1, 100))
""",
}
VALUE = (1 + 1) * 10 + 1000 + 3


class Sample:
    """The package ``sample`` in a folder; `fresh` imports it as a new process would."""

    def __init__(self, folder, monkeypatch):
        self.package = folder / "sample"
        self.package.mkdir()
        for name, text in FILES.items():
            (self.package / name).write_text(text)
        monkeypatch.syspath_prepend(folder)
        # Python notices an edit by size and second only.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        # One folder, and not those of the machine after it.
        monkeypatch.setenv("MCRANK_CACHE_DIR", str(folder / "cache"))
        monkeypatch.setattr(files, "folders", lambda: iter((folders.chosen(),)))
        self.cache = folder / "cache" / "kernels"

    def fresh(self):
        self.forget()
        importlib.invalidate_caches()
        return importlib.import_module("sample.main")

    def call(self):
        """Return the kernel's value and whether it was found on disk."""
        main = self.fresh()
        found = main.call()
        return found, sum(main.value.stats.cache_hits.values()) == 1

    def edit(self, name, old, new):
        path = self.package / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    @staticmethod
    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
            del sys.modules[name]
