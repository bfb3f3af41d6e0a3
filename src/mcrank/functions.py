"""Functions by name, for the command line: ``module:function``. Model files are never read this way."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

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
