"""Classes with declared options have in the reference the docstring of `help`, with every option."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class DeclaredOptions(griffe.Extension):
    """Take docstrings of classes of options from the classes themselves."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Take docstring and constructor from the class as it is when alive."""
        if cls.docstring is None or not cls.path.startswith("mcrank.rankers."):
            return
        alive = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if getattr(alive, "declared_options", None) and "__init__" not in cls.members:
            cls.docstring.value = inspect.getdoc(alive) or ""
            kind = griffe.ParameterKind.keyword_only
            options = [
                griffe.Parameter(name, kind=kind, default=repr(option.default))
                for name, option in alive.declared_options.items()
            ]
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*options)))
