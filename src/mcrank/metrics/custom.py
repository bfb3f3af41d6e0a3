"""Measures given as functions of one ranked query."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import FloatArray, RowArray
from mcrank.errors import MeasureError
from mcrank.functions import import_function, name_of
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.walk import OneByOne

Function = Callable[[FloatArray, FloatArray], Any]


@dataclass(frozen=True, eq=False)
class RankedFunction(OneByOne):
    """A function of the scores and grades of each query, in the order of their ranks."""

    function: Function

    def _value(self, query: int, ranked: RowArray, scores: FloatArray) -> float:
        where = f"{self.name} of query {self.layout.qids[query]}"
        try:
            found: Any = self.function(scores[ranked], self.layout.grades[ranked])
        except Exception as error:
            raise MeasureError(f"{where} failed: {type(error).__name__}: {error}") from error
        try:
            value = float(found)
        except (TypeError, ValueError):
            raise MeasureError(f"{where} must be one number, got {found!r}.") from None
        if not math.isfinite(value):
            raise MeasureError(f"{where} must be finite, got {value}.")
        return value


@dataclass(frozen=True, init=False)
class CustomMeasure(Measure):
    """A measure given as a function ``function(scores, grades) -> value`` of one query; higher is better.

    Both arrays are in the order of the ranks, ties broken as the dialect says. It can be watched on
    validation data and evaluated, not trained on by gradients. Its name is ``custom(title)``; a model file
    keeps that name alone, and loads and predicts without the function.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.Dataset([[0.0]] * 3, y=[0, 1, 2], qid=["a", "a", "b"])
    >>> top = mcrank.CustomMeasure(lambda scores, grades: grades[0], title="top")
    >>> result = mcrank.evaluate([0.5, 0.1, 0.3], data, top)
    >>> result.per_query["custom(top)"].tolist()
    [0.0, 2.0]
    """

    function: Function | None = None
    title: str = ""

    label: ClassVar[str] = "custom"
    parameter: ClassVar[str | None] = "title"
    parameter_type: ClassVar[type] = str

    def __init__(
        self,
        function: Function | None = None,
        title: str = "",
        k: None = None,
        dialect: Dialect | str = "standard",
    ) -> None:
        if function is not None and not callable(function):
            raise MeasureError(f"function of CustomMeasure must be a function, got {function!r}.")
        if k is not None:
            raise MeasureError(f"k of CustomMeasure must be None, got {k!r}; its function sees all ranks.")
        if set(str(title)) & set("()[]@,\n"):
            raise MeasureError(f"title of CustomMeasure must have no ()[]@ or comma, got {title!r}.")
        said = str(title) or name_of(function).partition(":")[2].rpartition(".")[2]
        for name, value in (("k", None), ("function", function), ("title", said), ("dialect", dialect)):
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _parameter_text(self) -> str:
        return f"({self.title})"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the arithmetic of the function on laid-out data."""
        if self.function is None:
            raise MeasureError(
                f"{self.name} is only the name of a function; give the function, as "
                f"CustomMeasure(function, title={self.title!r})."
            )
        nothing = np.zeros(layout.n_queries, dtype=np.bool_)
        return Arithmetic(RankedFunction(self.name, layout.level_grades, layout, self.function), nothing)

    @property
    def definition(self) -> str:
        """First line of the function's docstring."""
        told = (getattr(self.function, "__doc__", None) or "").strip().splitlines()
        return f"{told[0] if told else 'a function of the ranked grades'}; {self._tie_words()}"


def named_measure(text: str) -> str | Measure:
    """Return the measure of a function that ``module:function`` names; another name stays as it is.

    Examples
    --------
    >>> from mcrank.metrics.custom import named_measure
    >>> named_measure("ndcg@10"), named_measure("numpy:dot").name
    ('ndcg@10', 'custom(numpy:dot)')
    """
    if ":" not in text or "(" in text or "[" in text:
        return text
    return CustomMeasure(import_function(text), title=text)
