"""Measures as values: frozen, hashable, parsed from and printed as their canonical names.

``NDCG(k=10, dialect="yahoo")`` prints as ``ndcg@10[yahoo]`` and is read back from it.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from mcrank.errors import MeasureError
from mcrank.metrics.graded import DCG, NDCG, Best, Kendall, MeanNDCG
from mcrank.metrics.relevance import MAP, MRR, RBP, Precision, Recall, Success
from mcrank.metrics.satisfaction import ERR, PFound
from mcrank.metrics.value import Measure

__all__ = [
    "DCG", "ERR", "MAP", "MEASURES", "MRR", "NDCG", "RBP", "Best", "Kendall", "MeanNDCG", "Measure", "PFound",
    "Precision", "Recall", "Success", "parse_measure",
]  # fmt: skip

MEASURES: dict[str, type[Measure]] = {
    m.label: m
    for m in (NDCG, DCG, MeanNDCG, Precision, Recall, MAP, MRR, Success, RBP, ERR, PFound, Best, Kendall)
}
_ALIASES = {
    "p": "precision",
    "ap": "map",
    "rr": "mrr",
    "mean_ndcg": "meanndcg",
    "tau": "kendall",
    "hit": "success",
}
_GRAMMAR = re.compile(
    r"(?P<label>[a-z_]+)(?:\((?P<parameter>[^()]*)\))?(?:@(?P<k>[^\[\]()@]*))?(?:\[(?P<dialect>[^\[\]]*)\])?",
    re.IGNORECASE,
)


def parse_measure(name: str | Measure) -> Measure:
    """Return the measure of a name such as ``ndcg@10[yahoo]``; a `Measure` passes through unchanged.

    Examples
    --------
    >>> from mcrank.metrics.measure import parse_measure
    >>> parse_measure("rbp(0.8)").name
    'rbp(0.8)'
    >>> parse_measure("ndgc@10")
    Traceback (most recent call last):
    mcrank.errors.MeasureError: unknown measure 'ndgc@10'; did you mean ndcg@10?
    """
    if isinstance(name, Measure):
        return name
    if not isinstance(name, str):
        raise MeasureError(f"measure must be a name such as 'ndcg@10' or a Measure, got {name!r}.")
    match = _GRAMMAR.fullmatch(name.strip())
    if match is None:
        raise MeasureError(f"measure {name!r} must look like ndcg@10, rbp(0.8) or ndcg@10[yahoo].")
    label = _ALIASES.get(match["label"].lower(), match["label"].lower())
    kind = MEASURES.get(label)
    if kind is None:
        near = difflib.get_close_matches(label, [*MEASURES, *_ALIASES], n=1)
        rest = name.strip()[len(match["label"]) :]
        hint = f"did you mean {near[0]}{rest}?" if near else f"measures: {', '.join(MEASURES)}."
        raise MeasureError(f"unknown measure {name!r}; {hint}")
    arguments: dict[str, Any] = {}
    if match["k"] is not None:
        if not match["k"].isdecimal() or int(match["k"]) < 1:
            raise MeasureError(f"cut-off of {name!r} must be an integer >= 1, got {match['k']!r}.")
        arguments["k"] = int(match["k"])
    if match["parameter"] is not None:
        arguments.update(_parameter(kind, match["parameter"], name))
    if match["dialect"] is not None:
        arguments["dialect"] = match["dialect"]
    return kind(**arguments)


def _parameter(kind: type[Measure], text: str, name: str) -> dict[str, float]:
    if kind.parameter is None:
        raise MeasureError(f"{kind.label} takes nothing in parentheses, got {name!r}.")
    try:
        return {kind.parameter: float(text)}
    except ValueError:
        raise MeasureError(f"{kind.parameter} of {name!r} must be a number, got {text!r}.") from None
