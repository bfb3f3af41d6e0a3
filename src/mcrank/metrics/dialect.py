"""A dialect: the conventions by which a tool turns a ranking into a number, as a named set of switches.

Every switch can also be changed in the name of a measure: ``ndcg@10[xgboost;empty=0]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from mcrank.errors import MeasureError, did_you_mean

_DEFAULT_CUTS = ("ndcg_default", "precision_default", "map_default", "mrr_default")
_SHARES = ("empty", "map_empty", "recall_empty")
_TIES = ("file", "id-ascending", "id-descending", "worst", "best", "expected", "random")


def _one_of(words: dict[str, str]) -> Any:
    """Declare a switch by its values, the definition's first, and what each does to a number, in words."""
    return field(default=next(iter(words)), metadata={"words": words})


@dataclass(frozen=True)
class Dialect:
    """How a tool computes its measures, as switches.

    Parameters
    ----------
    name : str
        Name, as it stands in brackets behind a measure.
    gain : str or tuple of float
        ``"exp"`` (2^grade - 1), ``"exp/16"``, ``"linear"``, or a table: the gain of grade 0, 1, 2...
    discount : str
        ``"log2"`` 1/log2(1 + rank); ``"ln"`` 1/ln(1 + rank); ``"letor"`` 1, 1, then 1/log2(rank);
        ``"position"`` 1/rank.
    grades : str
        ``"any"`` number; ``"integer"`` only; ``"gain-integer"``: only integers have a gain, other measures
        take any number; ``"exp-integer"``: the same, and linear gain takes any number; or ``"truncate"`` to
        an integer.
    grade_precision : str
        ``"float32"`` rounds grades before anything is made of them.
    max_grade : float or None
        Highest grade the tool knows (a gain table has its own end; ``"exp-integer"``: not in linear gain).
    outside : str
        A grade the tool does not know is an ``"error"``, or gains ``"zero"`` as the tool silently does.
    empty : float or "skip"
        What NDCG gives a query without gain; ``"skip"`` leaves the query out, for every measure.
    short : str
        NDCG@k of a query with fewer than k documents: ``"cut"`` k to what there is, ``"zero"``, or
        ``"missing"`` (no value for the query, 0 in the mean).
    ties : str
        ``"file"`` order, ``"id-ascending"``, ``"id-descending"``, ``"worst"``, ``"best"``,
        ``"expected"`` value over all orders, or ``"random(seed)"``.
    score : str
        ``"float32"`` rounds scores before they are compared.
    single : str
        A query of one document: ``"score"`` it, ``"skip"`` it, or ``"error"``.
    missing : str
        A judged query the run does not have: ``"zero"``, ``"skip"`` or ``"error"``.
    unjudged : str
        A query whose judgments are all below 0: ``"zero"`` or ``"error"``.
    empty_weight : str
        In a weighted mean of NDCG an empty query counts with its ``"own"`` weight or with weight ``"one"``.
    precision_weight : str
        In a mean of precision, recall or average precision queries count with their ``"own"`` weight or with
        weight ``"one"``.
    nothing : str
        Mean when every query was skipped: ``"nan"`` or ``"zero"``.
    ids : str
        ``"unique"``: the tool keys documents by id, so one id twice in a query is an error.
    relevant : str
        Grades that binary measures call relevant: ``">0"``, ``">=2"``, ``"1..2"``.
    binary : str
        ``"only"``: binary measures refuse grades other than 0 and 1.
    precision_short : str
        Precision@k of a short query divides by ``"k"``, by ``"n"``, or is ``"missing"`` (0 in the mean).
    map_divisor : str
        Average precision is divided by the ``"relevant"`` documents, or those ``"reachable"`` within k.
    map_cut : str
        Average precision looks at the first ``"k"`` ranks, or k is ``"ignored"``.
    map_empty, recall_empty : float
        Average precision, and recall, of a query without a relevant document.
    rbp : str
        Rank-biased precision counts 1 for a ``"relevant"`` document, or its ``"grade"``.
    err : str
        Probability of satisfaction: ``"exp/16"`` (2^grade - 1)/16, or the ``"grade"`` itself.
    err_above_one : str
        A probability above 1 is an ``"error"``, or is kept as the tool does (the worst and the best order of
        ties are then simply by grade).
    err_rest : str
        Precision of 1 - probability in ERR.
    reciprocal : str
        Precision of 1/rank in the reciprocal rank.
    recall_points : str
        A share of the relevant documents, in interpolated precision, is a number of them rounded ``"up"``
        from 0.1 on, or to the nearest (``"round"``).
    ndcg_default, precision_default, map_default, mrr_default : int or None
        Cut-off the tool uses when none is asked for (0: nothing is looked at).
    note : str
        The tool in a few words.

    Examples
    --------
    >>> from mcrank import NDCG, Dialect
    >>> mine = Dialect("mine", gain="linear", empty=1.0)
    >>> NDCG(k=5, dialect=mine).name
    'ndcg@5[mine]'
    >>> NDCG(k=5, dialect="catboost;gain=exp").dialect.discount
    'log2'
    """

    name: str
    gain: str | tuple[float, ...] = "exp"
    discount: str = _one_of(
        {
            "log2": "discount 1/log2(1 + rank)",
            "ln": "discount 1/ln(1 + rank)",
            "letor": "discount 1, 1, then 1/log2(rank)",
            "position": "discount 1/rank",
        }
    )
    grades: str = _one_of(
        {
            "any": "",
            "integer": "",
            "gain-integer": "",
            "exp-integer": "",
            "truncate": "grades cut to integers",
        }
    )
    grade_precision: str = _one_of({"float64": "", "float32": "grades rounded to float32"})
    max_grade: float | None = None
    outside: str = _one_of({"error": "", "zero": ""})
    empty: float | str = 0.0
    short: str = _one_of(
        {"cut": "", "zero": "a query shorter than k scores 0", "missing": "a query shorter than k counts 0"}
    )
    ties: str = "file"
    score: str = _one_of({"float64": "", "float32": "scores rounded to float32"})
    single: str = _one_of({"score": "", "skip": "one-document queries are left out", "error": ""})
    missing: str = _one_of({"zero": "", "skip": "queries missing from the run are left out", "error": ""})
    unjudged: str = _one_of({"zero": "", "error": ""})
    empty_weight: str = _one_of({"own": "", "one": "an empty query counts with weight 1"})
    precision_weight: str = _one_of({"own": "", "one": "weights of queries do not count"})
    nothing: str = _one_of({"nan": "", "zero": ""})
    ids: str = _one_of({"any": "", "unique": ""})
    relevant: str = ">0"
    binary: str = _one_of({"any": "", "only": ""})
    precision_short: str = _one_of(
        {"k": "", "n": "divided by min(k, n)", "missing": "a query shorter than k counts 0"}
    )
    map_divisor: str = _one_of({"relevant": "", "reachable": "divided by min(relevant, k)"})
    map_cut: str = _one_of({"k": "", "ignored": "the tool ignores k"})
    map_empty: float = 0.0
    recall_empty: float = 0.0
    rbp: str = _one_of({"relevant": "", "grade": "a relevant document counts its grade"})
    err: str = _one_of({"exp/16": "", "grade": "the grade itself is the probability"})
    err_above_one: str = _one_of({"error": "", "keep": ""})
    err_rest: str = _one_of({"float64": "", "float32": "1 - probability in float32"})
    reciprocal: str = _one_of({"float64": "", "float32": "1/rank in float32"})
    recall_points: str = _one_of({"up": "", "round": "points of recall rounded"})
    ndcg_default: int | None = None
    precision_default: int | None = None
    map_default: int | None = None
    mrr_default: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name.split(";")[0].strip() or set(name) & set("[]@"):
            raise MeasureError(f"name of Dialect must be a text without [ ] @, got {name!r}.")
        gain: Any = self.gain
        if isinstance(gain, list):
            object.__setattr__(self, "gain", tuple(gain))
        check_switches(self)
        relevant_bounds(self)

    def but(self, **switches: Any) -> Dialect:
        """Return this dialect with some switches changed, and a name that says so.

        Examples
        --------
        >>> from mcrank.metrics.tools import find_dialect
        >>> find_dialect("xgboost").but(empty=0.0).name
        'xgboost;empty=0'
        """
        from mcrank.metrics.tools import DIALECTS

        known = {f.name for f in fields(self)} - {"name", "note"}
        for switch in switches:
            if switch not in known:
                hint = did_you_mean(switch, sorted(known), "switches:")
                raise MeasureError(f"dialect {self.name} has no switch {switch!r}; {hint}")
        changed = replace(self, **switches)
        base_name = self.name.split(";")[0]
        base = DIALECTS.get(base_name, self)
        if base is self and ";" in self.name:
            base_name = self.name
        differing = [
            f"{f.name}={written(getattr(changed, f.name))}"
            for f in fields(self)
            if f.name not in ("name", "note") and getattr(changed, f.name) != getattr(base, f.name)
        ]
        return replace(changed, name=";".join([base_name, *differing]))

    @property
    def tie_rule(self) -> tuple[str, int]:
        """Tie rule and seed (0 unless random)."""
        return tie_rule(self)


def relevant_bounds(dialect: Dialect) -> tuple[float, float]:
    """Return the lowest and highest grade (both included) that binary measures call relevant.

    Examples
    --------
    >>> from mcrank.metrics.dialect import relevant_bounds
    >>> from mcrank.metrics.tools import find_dialect
    >>> relevant_bounds(find_dialect("mslr"))
    (2.0, 4.0)
    """
    text = dialect.relevant
    try:
        if text.startswith(">="):
            low, high = float(text[2:]), math.inf
        elif text.startswith(">"):
            low, high = math.nextafter(float(text[1:]), math.inf), math.inf
        else:
            low, high = map(float, text.split(".."))
    except (AttributeError, ValueError):
        low, high = math.nan, math.nan
    if math.isfinite(low) and low <= high:  # else no grade would be relevant, or who knows which
        return low, high
    raise MeasureError(
        f"relevant of dialect {dialect.name} must look like '>0', '>=2' or '1..2', the lowest grade and the "
        f"highest, got {text!r}."
    )


_CHOICES: dict[str, dict[str, str]] = {
    f.name: f.metadata["words"] for f in fields(Dialect) if "words" in f.metadata
}
_GAINS = {"exp": "gain 2^grade - 1", "exp/16": "gain (2^grade - 1)/16", "linear": "gain = grade"}
_TIE_WORDS = {
    "id-descending": "ties by document id, descending",
    "expected": "mean over tied orders",
    "worst": "ties in the worst order",
}


def switch_words(dialect: Dialect, switch: str) -> str:
    """Say in words what a switch of a dialect does.

    Examples
    --------
    >>> from mcrank import Dialect
    >>> from mcrank.metrics.dialect import switch_words
    >>> switch_words(Dialect("mine", discount="position"), "discount")
    'discount 1/rank'
    """
    value = getattr(dialect, switch)
    if switch == "gain":
        return (
            _GAINS[value] if isinstance(value, str) else f"gain {'/'.join(f'{g:g}' for g in value)} by grade"
        )
    if switch in _SHARES:
        return "empty queries are left out" if value == "skip" else f"an empty query scores {value:g}"
    if switch in _DEFAULT_CUTS:
        return f"without a cut-off, the first {value} ranks"
    if switch == "relevant":
        return f"relevant = grade {value}"
    words = _TIE_WORDS if switch == "ties" else _CHOICES.get(switch, {})
    return words.get(value) or f"{switch}={value}"


def check_switches(dialect: Dialect) -> None:
    """Raise `MeasureError` for a switch with a value it cannot have."""
    for switch, choices in _CHOICES.items():
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
    for switch in _DEFAULT_CUTS:
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
    if not table and gain not in tuple(_GAINS):
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
    >>> from mcrank.metrics.dialect import written
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
    >>> from mcrank.metrics.dialect import read_switch
    >>> read_switch("gain", "0/1/3"), read_switch("empty", "0.5"), read_switch("map_default", "none")
    ((0.0, 1.0, 3.0), 0.5, None)
    """
    if switch == "gain" and text[:1].isdigit():
        try:
            return tuple(float(part) for part in text.split("/"))
        except ValueError:
            return text
    if switch in (*_SHARES, "max_grade", *_DEFAULT_CUTS):
        if text == "none":
            return None
        try:
            return int(text) if switch in _DEFAULT_CUTS else float(text)
        except ValueError:
            return text
    return text
