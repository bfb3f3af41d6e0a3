"""The switches of a dialect: the values each may have, and how they are written in a name and read back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mcrank.errors import MeasureError

if TYPE_CHECKING:
    from mcrank.metrics.dialects import Dialect

CHOICES: dict[str, tuple[str, ...]] = {
    "discount": ("log2", "ln", "letor", "position"),
    "grades": ("any", "integer", "gain-integer", "exp-integer", "truncate"),
    "grade_precision": ("float64", "float32"),
    "outside": ("error", "zero"),
    "short": ("cut", "zero", "missing"),
    "score": ("float64", "float32"),
    "single": ("score", "skip", "error"),
    "missing": ("zero", "skip", "error"),
    "unjudged": ("zero", "error"),
    "empty_weight": ("own", "one"),
    "precision_weight": ("own", "one"),
    "nothing": ("nan", "zero"),
    "ids": ("any", "unique"),
    "binary": ("any", "only"),
    "precision_short": ("k", "n", "missing"),
    "map_divisor": ("relevant", "reachable"),
    "map_cut": ("k", "ignored"),
    "rbp": ("relevant", "grade"),
    "err": ("exp/16", "grade"),
    "err_above_one": ("error", "keep"),
    "err_rest": ("float64", "float32"),
    "reciprocal": ("float64", "float32"),
}
DEFAULT_CUTS = ("ndcg_default", "precision_default", "map_default", "mrr_default")
_SHARES = ("empty", "map_empty", "recall_empty")
_TIES = ("file", "id-ascending", "id-descending", "worst", "best", "expected", "random")


def check_switches(dialect: Dialect) -> None:
    """Raise `MeasureError` for a switch with a value it cannot have."""
    for switch, choices in CHOICES.items():
        if getattr(dialect, switch) not in choices:
            _refuse(dialect, switch, " or ".join(choices))
    _check_gain(dialect)
    tie_rule(dialect)
    for switch in _SHARES:
        value = getattr(dialect, switch)
        # They stand in for a share: a query without gain must not lift a mean above 1.
        if not (switch == "empty" and value == "skip") and not (_is_number(value) and 0 <= value <= 1):
            _refuse(dialect, switch, "a number from 0 to 1" + " or 'skip'" * (switch == "empty"))
    if dialect.max_grade is not None and not (_is_number(dialect.max_grade) and dialect.max_grade >= 0):
        _refuse(dialect, "max_grade", "a number >= 0 or none")
    for switch in DEFAULT_CUTS:
        value = getattr(dialect, switch)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            _refuse(dialect, switch, "an integer >= 0 or none")


def _refuse(dialect: Dialect, switch: str, allowed: str) -> None:
    raise MeasureError(
        f"{switch} of dialect {dialect.name} must be {allowed}, got {getattr(dialect, switch)!r}."
    )


def _check_gain(dialect: Dialect) -> None:
    gain: Any = dialect.gain
    table = isinstance(gain, tuple) and gain and all(_is_number(g) and g >= 0 for g in gain)
    if not table and gain not in ("exp", "exp/16", "linear"):
        _refuse(dialect, "gain", "exp, exp/16, linear or a table of numbers >= 0")


def tie_rule(dialect: Dialect) -> tuple[str, int]:
    """Return a dialect's tie rule and seed (0 unless random)."""
    ties: Any = dialect.ties
    if ties in _TIES:
        return ties, 0
    if isinstance(ties, str) and ties.startswith("random(") and ties.endswith(")") and ties[7:-1].isdecimal():
        return "random", int(ties[7:-1])
    raise MeasureError(
        f"ties of dialect {dialect.name} must be {', '.join(_TIES[:-1])} or random(seed), got {ties!r}."
    )


def number_text(value: float) -> str:
    """Return a number as short as it can be written and still be read back as itself."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def written(value: Any) -> str:
    """Return the value of a switch as it stands in the name of a measure.

    Examples
    --------
    >>> from mcrank.metrics.switches import written
    >>> written((0, 1, 3)), written(0.5), written(None)
    ('0/1/3', '0.5', 'none')
    """
    if isinstance(value, tuple):
        return "/".join(map(number_text, value))
    if isinstance(value, float):
        return number_text(value)
    return "none" if value is None else str(value)


def read_switch(switch: str, text: str) -> Any:
    """Return the value that a text stands for; one it cannot stand for is left to `check_switches`.

    Examples
    --------
    >>> from mcrank.metrics.switches import read_switch
    >>> read_switch("gain", "0/1/3"), read_switch("empty", "0.5"), read_switch("map_default", "none")
    ((0.0, 1.0, 3.0), 0.5, None)
    """
    if switch == "gain" and text[:1].isdigit():
        try:
            return tuple(float(part) for part in text.split("/"))
        except ValueError:
            return text
    if switch in (*_SHARES, "max_grade", *DEFAULT_CUTS):
        if text == "none":
            return None
        try:
            return int(text) if switch in DEFAULT_CUTS else float(text)
        except ValueError:
            return text
    return text
