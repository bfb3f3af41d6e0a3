"""Functions by name, for the command line: ``module:function``. Model files are never read this way."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from mcrank.errors import OptionError


def name_of(function: Any) -> str:
    """What a function is called in files and messages: its module and name.

    Examples
    --------
    >>> from mcrank.functions import name_of
    >>> name_of(len)
    'builtins:len'
    """
    inner = getattr(function, "func", function)  # functools.partial
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return f"{getattr(inner, '__module__', None) or type(inner).__module__}:{name}"


def hash_of(function: Any) -> str:
    """Hash of what a function does: its instructions and constants, and the values it was bound to. Of the
    functions that it calls by name it knows the names alone.

    Examples
    --------
    >>> from mcrank.functions import hash_of
    >>> one, same, other = (lambda x: x + 1), (lambda x: x + 1), (lambda x: x + 2)
    >>> hash_of(one) == hash_of(same), hash_of(one) == hash_of(other)
    (True, False)
    """
    content = repr(_content(function, ())).encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def hashes_in(options: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the functions among options by the options' names, of a measure of one's own too: what these
    are called does not tell them, as one may have been changed, and every lambda is called <lambda>.

    Examples
    --------
    >>> from mcrank.functions import hashes_in
    >>> list(hashes_in({"loss": lambda scores, grades, offsets: None, "num_leaves": 10}))
    ['loss']
    """
    functions = {name: getattr(value, "function", value) for name, value in options.items()}
    return {name: hash_of(function) for name, function in functions.items() if callable(function)}


def _content(value: Any, above: tuple[int, ...]) -> Any:
    """What a value is made of, the same in every process: no addresses, and no names of files."""
    if id(value) in above:  # a function that knows itself
        return "again"
    above = (*above, id(value))

    def parts(*of: Any) -> list[Any]:
        return [_content(part, above) for part in of]

    value = getattr(value, "py_func", value)  # compiled by Numba
    if isinstance(value, CodeType):
        return [value.co_code.hex(), value.co_names, value.co_varnames, *parts(*value.co_consts)]
    if isinstance(value, FunctionType):
        bound = [_in_cell(cell) for cell in value.__closure__ or ()]
        return parts(value.__code__, value.__defaults__, value.__kwdefaults__, bound)
    if isinstance(value, partial):
        return parts(value.func, value.args, value.keywords)
    if isinstance(value, MethodType):
        return parts(value.__func__, value.__self__)
    if isinstance(value, (list, tuple)):
        return parts(*value)
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, parts(*value)))
    if isinstance(value, dict):
        return [[repr(key), *parts(one)] for key, one in value.items()]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        return [value.dtype.str, value.shape, value.tobytes().hex()]
    if isinstance(value, (str, bytes, int, float, complex, type(None), type(...))):
        return repr(value)
    if isinstance(value, (ModuleType, np.ufunc)):
        return value.__name__
    if isinstance(value, (type, BuiltinFunctionType)) or not callable(value):
        return name_of(value)
    return [name_of(value), *parts(type(value).__call__, getattr(value, "__dict__", None))]


def _in_cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # a name that has no value yet


def import_function(text: str) -> Any:
    """Return what ``module:name`` names, in this folder or an installed package; a word without colon stays.

    Examples
    --------
    >>> from mcrank.functions import import_function
    >>> import_function("math:floor")(2.5), import_function("listnet")
    (2, 'listnet')
    """
    module, colon, name = text.partition(":")
    if not colon:
        return text
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise OptionError(f"{text} cannot be imported: {type(error).__name__}: {error}.") from error
    finally:
        sys.path.remove(here)
    return found
