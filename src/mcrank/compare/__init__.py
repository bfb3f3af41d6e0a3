"""Which ranker should I use, and is the difference real? Rankers, models and score files on the same queries.

``mcrank.compare`` is this package and can be called: ``mcrank.compare(rankers, data)`` is
`mcrank.compare.experiment.compare`. (A function of the same name would be replaced by the package as soon as
one of its modules is imported.)
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that passes calls on to its main function."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from mcrank.compare.experiment import compare

        return compare(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
