"""What a kernel is compiled from, as one digest: the kernel, all it calls, and every constant they read.

A kernel may be taken from disk only if compiling it again would give the same. Its own source does not decide
that: callees and constants of other modules are compiled into it. So the functions are walked as they are
loaded, each name they mention is looked up among their globals, and what is found there is described in turn:
functions by their byte code, constants by their value. Files are not looked at: a process that goes on after
its source was edited must not leave old code under the name of the new one, and byte code does not change
with a comment.

How functions are lowered (`mcrank.kernels.lowering`) and optimised (`mcrank.kernels.entry`, `linked`) is part
of every stamp.

A name that is only an attribute (``shape``) and happens to be a global as well is described too. That costs
nothing and can make a stamp change too often, never too seldom.
"""

from __future__ import annotations

import enum
import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.extending import is_jitted

from mcrank.kernels import entry, linked, lowering, tested

# Where `step` leaves its options, which Numba keeps out of reach.
STEP_OPTIONS = "_mcrank_step_options"
# Classes on whose methods machine code depends.
_WAYS = (*lowering.WAYS, entry.KernelLibrary, linked.LinkedLibrary, linked.OuterLibrary)
# What these packages do is known by their version; Python's own modules by that of Python.
VERSIONS = {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "numpy": np.__version__}
_NAMED = sys.stdlib_module_names | VERSIONS.keys()
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_CODE = (
    "co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_exceptiontable",
)  # fmt: skip

# Of a class, what says nothing of what it does.
_CLASS_FURNITURE = {
    "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__",
    "__firstlineno__", "__static_attributes__", "_abc_impl",
}  # fmt: skip


class Undescribed(Exception):
    """A kernel reaches something that has no description; it is compiled in every process."""


def stamp(dispatcher: Any) -> str:
    """Return the digest of all that a kernel is compiled from, whatever its argument types.

    Examples
    --------
    >>> from mcrank.kernels.stamp import stamp
    >>> from mcrank.losses.quantize import round_gradients
    >>> len(stamp(round_gradients))
    64
    """
    walk = _Walk()
    walk.describe(_how_made())
    walk.describe(dispatcher)
    return walk.digest.hexdigest()


def describe_types(signature: Any) -> str:
    """Return the digest of argument types; a named tuple's with its fields, a function's with its code."""
    walk = _Walk()
    walk.describe(signature)
    return walk.digest.hexdigest()


class _Walk:
    """One walk over what a kernel reaches; each function and class is described where it is first met."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._met: dict[int, tuple[int, Any]] = {}  # by identity; the object is kept so that it stays its own

    def describe(self, value: Any) -> None:
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            self._say("plain", type(value).__name__, value)
        elif isinstance(value, np.generic | np.ndarray):
            self._say("array", value.dtype.descr, value.shape, value.flags.f_contiguous, value.tobytes())
        elif isinstance(value, tuple | list):
            self._say("sequence", len(value))
            self.describe(type(value))
            self._each(value)
        elif isinstance(value, dict):
            self._say("dict", len(value))
            self._in_any_order(value.items())
        elif isinstance(value, set | frozenset):
            self._say("set", len(value))
            self._in_any_order(value)
        elif isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, ModuleType):
            self._say("module", value.__name__)
        elif not self._again(value):
            self._object(value)

    def _object(self, value: Any) -> None:
        if is_jitted(value):
            self._say("kernel")
            self._each((value.targetoptions, value.locals))
            self.describe(value.py_func)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, enum.Enum):
            self._say("member", type(value).__qualname__, value.name)
            self.describe(value.value)
        elif isinstance(value, BuiltinFunctionType | np.ufunc):
            self._say("built in", str(getattr(value, "__module__", None)), value.__name__)
        elif isinstance(getattr(value, "_defn", None), FunctionType):  # an intrinsic
            self._say("intrinsic", str(value._prefer_literal), sorted(map(str, value._ctor_kwargs.items())))
            self.describe(value._defn)
        elif isinstance(value, numba.types.Type):
            self._type(value)
        elif _top(type(value)) in _NAMED:
            self._say("instance", type(value).__qualname__, _text(value))
        else:
            raise Undescribed(f"{type(value).__module__}.{type(value).__qualname__}")

    def _function(self, function: Any) -> None:
        self._say("function", function.__module__, function.__qualname__)
        if _top(function) in _NAMED:
            return
        self._each((function.__defaults__, function.__kwdefaults__, getattr(function, STEP_OPTIONS, None)))
        for cell in function.__closure__ or ():
            try:
                self.describe(cell.cell_contents)
            except ValueError:
                raise Undescribed(f"an empty variable of {function.__qualname__}") from None
        self._code(function.__code__)
        self._globals(function.__code__, function.__globals__)

    def _code(self, code: CodeType) -> None:
        self._say("code", *(getattr(code, name) for name in _CODE))
        self._each(code.co_consts)

    def _globals(self, code: CodeType, names: dict[str, Any]) -> None:
        """Describe what the names of a function, and of those inside it, stand for."""
        for name in code.co_names:
            if name in names:
                value = names[name]
                self._say("global", name)
                self.describe(value)
                if isinstance(value, ModuleType) and _top_name(value.__name__) not in _NAMED:
                    self._globals(code, vars(value))
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._globals(inner, names)

    def _class(self, kind: type) -> None:
        self._say("class", kind.__module__, kind.__qualname__)
        if _top(kind) in _NAMED:
            return
        if issubclass(kind, enum.Enum):
            self._each((member.name, member.value) for member in kind)
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            self._each((kind._fields, getattr(kind, "_field_defaults", None)))
        else:
            self._each(kind.__bases__)
            for name, value in sorted(vars(kind).items()):
                if name not in _CLASS_FURNITURE:
                    self._say("attribute", name)
                    self.describe(_function_in(value))

    def _type(self, kind: Any) -> None:
        """Describe a Numba type: its name says all but what functions and named tuples are made of."""
        dispatcher = getattr(kind, "dispatcher", None)
        if isinstance(dispatcher, Dispatcher):
            self._say("type of", type(kind).__qualname__)
            self.describe(dispatcher)
            return
        self._say("type", _text(kind))
        if isinstance(kind, numba.types.BaseTuple):
            self._each(getattr(kind, "types", ()))
        self.describe(getattr(kind, "instance_class", None))

    def _again(self, value: Any) -> bool:
        """Whether a value was met before, perhaps in its own description; if so it is named by its number."""
        if id(value) in self._met:
            self._say("again", self._met[id(value)][0])
            return True
        self._met[id(value)] = (len(self._met), value)
        return False

    def _in_any_order(self, values: Iterable[Any]) -> None:
        digests = []
        for value in values:
            apart = _Walk()
            apart._met = self._met.copy()
            apart.describe(value)
            digests.append(apart.digest.hexdigest())
        self._say(*sorted(digests))

    def _each(self, values: Iterable[Any]) -> None:
        for value in values:
            self.describe(value)

    def _say(self, *words: Any) -> None:
        self.digest.update(repr(words).encode("utf-8", "surrogatepass"))


@cache
def _how_made() -> str:
    """Digest of the code of our lowering and libraries. Not of their classes: Numba numbers passes in the
    order they are met.
    """
    walk = _Walk()
    for kind in _WAYS:
        for _, value in sorted(vars(kind).items()):
            if isinstance(method := _function_in(value), FunctionType):
                walk.describe(method.__code__)
    walk.describe(tested.TRIED)
    return walk.digest.hexdigest()


def _function_in(value: Any) -> Any:
    """The function of an attribute of a class, if it is a method of some kind or is computed."""
    return getattr(value, "fget", None) or getattr(value, "__func__", value)


def _text(value: Any) -> str:
    text = str(value)
    if " at 0x" in text:  # an address: another one in every process
        raise Undescribed(text)
    return text


def _top(thing: Any) -> str:
    return _top_name(getattr(thing, "__module__", None) or "")


def _top_name(module: str) -> str:
    return module.partition(".")[0]
