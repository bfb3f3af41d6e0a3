"""mcrank: learning to rank with calibrated grades, and evaluation that every tool would sign.

Names are imported when first used, so that ``import mcrank`` and ``mcrank --help`` stay instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module that holds it. One line each; `__getattr__` does the rest.
_HOMES = {
    "Dataset": "mcrank.data.dataset",
    "read": "mcrank.data.read",
    "make_artificial": "mcrank.data.artificial",
    "McRank": "mcrank.rankers.mcrank",
    "OrdinalMcRank": "mcrank.rankers.mcrank",
    "RegressionRanker": "mcrank.rankers.regression",
    "load": "mcrank.models.file",
    "NDCG": "mcrank.metrics.measure",
    "evaluate": "mcrank.metrics.evaluate",
    "McrankError": "mcrank.errors",
    "OptionError": "mcrank.errors",
    "DataError": "mcrank.errors",
    "MeasureError": "mcrank.errors",
    "ModelFileError": "mcrank.errors",
    "NotFittedError": "mcrank.errors",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from mcrank.data.artificial import make_artificial as make_artificial
    from mcrank.data.dataset import Dataset as Dataset
    from mcrank.data.read import read as read
    from mcrank.errors import DataError as DataError
    from mcrank.errors import McrankError as McrankError
    from mcrank.errors import MeasureError as MeasureError
    from mcrank.errors import ModelFileError as ModelFileError
    from mcrank.errors import NotFittedError as NotFittedError
    from mcrank.errors import OptionError as OptionError
    from mcrank.metrics.evaluate import evaluate as evaluate
    from mcrank.metrics.measure import NDCG as NDCG
    from mcrank.models.file import load as load
    from mcrank.rankers.mcrank import McRank as McRank
    from mcrank.rankers.mcrank import OrdinalMcRank as OrdinalMcRank
    from mcrank.rankers.regression import RegressionRanker as RegressionRanker


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mcrank' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
