"""Dialects: the conventions by which tools turn one ranking into different numbers.

A `Dialect` is a named set of switches and nothing more. Most are named after the tool whose
numbers they print. Every switch can also be changed in the name of a measure: ``ndcg@10[xgboost;empty=0]``.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace
from typing import Any

from mcrank.errors import MeasureError
from mcrank.metrics.switches import check_switches, read_switch, tie_rule, written


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
    discount: str = "log2"
    grades: str = "any"
    grade_precision: str = "float64"
    max_grade: float | None = None
    outside: str = "error"
    empty: float | str = 0.0
    short: str = "cut"
    ties: str = "file"
    score: str = "float64"
    single: str = "score"
    missing: str = "zero"
    unjudged: str = "zero"
    empty_weight: str = "own"
    precision_weight: str = "own"
    nothing: str = "nan"
    ids: str = "any"
    relevant: str = ">0"
    binary: str = "any"
    precision_short: str = "k"
    map_divisor: str = "relevant"
    map_cut: str = "k"
    map_empty: float = 0.0
    recall_empty: float = 0.0
    rbp: str = "relevant"
    err: str = "exp/16"
    err_above_one: str = "error"
    err_rest: str = "float64"
    reciprocal: str = "float64"
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
        >>> from mcrank.metrics.dialects import find_dialect
        >>> find_dialect("xgboost").but(empty=0.0).name
        'xgboost;empty=0'
        """
        known = {f.name for f in fields(self)} - {"name", "note"}
        for switch in switches:
            if switch not in known:
                near = difflib.get_close_matches(switch, sorted(known), n=1)
                hint = f"did you mean {near[0]}?" if near else f"switches: {', '.join(sorted(known))}."
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
    >>> from mcrank.metrics.dialects import find_dialect, relevant_bounds
    >>> relevant_bounds(find_dialect("mslr"))
    (2.0, 4.0)
    """
    text = dialect.relevant
    try:
        if text.startswith(">="):
            return float(text[2:]), math.inf
        if text.startswith(">"):
            return math.nextafter(float(text[1:]), math.inf), math.inf
        low, _, high = text.partition("..")
        return float(low), float(high)
    except (AttributeError, ValueError):
        raise MeasureError(
            f"relevant of dialect {dialect.name} must look like '>0', '>=2' or '1..2', got {text!r}."
        ) from None


_TREC = Dialect(
    "trec", gain="linear", grades="integer", ties="id-descending", score="float32", missing="skip",
    unjudged="error", ids="unique", relevant=">=1", note="trec_eval 9.0.4 to 9.0.8, pytrec_eval-terrier",
)  # fmt: skip
_LETOR4 = Dialect(
    "letor4", gain=(0, 1, 3), discount="letor", grades="integer", short="zero", ids="unique",
    relevant="1..2", note="LETOR 4.0, Eval-Score-4.0.pl",
)  # fmt: skip
_YAHOO = Dialect(
    "yahoo", gain="exp/16", discount="ln", empty=1.0, err_above_one="keep",
    note="Yahoo! challenge evaluate.py, later copies and the 2012 paper: an empty query scores 1",
)  # fmt: skip

DIALECTS: dict[str, Dialect] = {
    d.name: d
    for d in (
        Dialect("standard", note="the definition: gain 2^grade - 1, discount 1/log2(1 + rank); empty 0"),
        replace(_LETOR4, name="letor3", short="missing", precision_short="missing",
                note="LETOR 3.0, Eval-Score-3.0.pl"),
        _LETOR4,
        replace(_LETOR4, name="mslr", gain=(0, 1, 3, 7, 15), relevant="2..4", ids="any",
                note="Microsoft eval-score-mslr.pl"),
        Dialect("letor-paper", short="zero", note="equation 4 of Busa-Fekete et al. 2012 as printed"),
        _YAHOO,
        replace(_YAHOO, name="yahoo2010", empty=0.5,
                note="Yahoo! challenge evaluate.py of March 2010: an empty query scores 0.5"),
        Dialect("ranklib", grades="truncate", score="float32", precision_short="n", err_above_one="keep",
                map_cut="ignored", reciprocal="float32", mrr_default=0, note="RankLib 2.8"),
        _TREC,
        replace(_TREC, name="trec10", score="float64", missing="error", note="trec_eval 10.0"),
        Dialect("gdeval", grades="integer", max_grade=4, empty="skip", ties="id-descending", missing="skip",
                ids="unique", relevant=">=1", note="gdeval.pl 1.3"),
        Dialect("lightgbm", grades="gain-integer", grade_precision="float32", max_grade=30, empty=1.0,
                empty_weight="one", relevant=">0.5", map_divisor="reachable", map_empty=1.0,
                note="LightGBM 4"),
        Dialect("xgboost", grades="exp-integer", grade_precision="float32", max_grade=31, empty=1.0,
                score="float32", empty_weight="one", binary="only", precision_short="n",
                map_divisor="reachable", map_empty=1.0, ndcg_default=32, precision_default=32, map_default=32,
                note="XGBoost 3: ndcg, map and pre without a cut-off are cut at 32"),
        Dialect("catboost", gain="linear", grade_precision="float32", empty=1.0, ties="worst",
                precision_weight="one", relevant=">0.5", precision_short="n", map_divisor="reachable",
                recall_empty=1.0, err="grade", err_above_one="keep", err_rest="float32",
                note="CatBoost 1.2, type=Base"),
        Dialect("sklearn", gain="linear", ties="expected", single="error", note="scikit-learn ndcg_score"),
        Dialect("ranx", gain="linear", grades="integer", missing="error", ids="unique", relevant=">=1",
                rbp="grade", note="ranx 0.3; its order among ties is not defined, file order here"),
        Dialect("rankeval", empty=1.0, score="float32",
                note="RankEval; its order among ties is not defined, file order here"),
        Dialect("allrank", empty=1.0, score="float32",
                note="allRank; its order among ties is not defined, file order here"),
        Dialect("torchmetrics", gain="linear", ties="expected", score="float32", nothing="zero",
                note="torchmetrics RetrievalNormalizedDCG, empty_target_action=neg"),
    )
}  # fmt: skip


def define_dialect(dialect: Dialect) -> None:
    """Make a dialect of your own known by name, for `parse_measure` and the command line.

    Examples
    --------
    >>> from mcrank.metrics.dialects import Dialect, define_dialect
    >>> from mcrank.metrics.measure import parse_measure
    >>> define_dialect(Dialect("mine", gain="linear", discount="position"))
    >>> parse_measure("ndcg@5[mine]").dialect.discount
    'position'
    """
    if ";" in dialect.name:
        raise MeasureError(f"name of Dialect must not have ';' to be defined, got {dialect.name!r}.")
    known = DIALECTS.get(dialect.name)
    if known is not None and known != dialect and dialect.name in _BUILT_IN:
        raise MeasureError(f"dialect {dialect.name!r} is built in; choose another name.")
    DIALECTS[dialect.name] = dialect


_BUILT_IN = frozenset(DIALECTS)


def find_dialect(name: str | Dialect) -> Dialect:
    """Return the dialect of a name such as ``yahoo`` or ``xgboost;empty=0``; a `Dialect` passes through.

    Examples
    --------
    >>> from mcrank.metrics.dialects import find_dialect
    >>> find_dialect("yahoo2010").empty
    0.5
    """
    if isinstance(name, Dialect):
        return name
    if not isinstance(name, str):
        raise MeasureError(f"dialect must be a name or a Dialect, got {name!r}.")
    base_name, *changes = [part.strip() for part in name.split(";")]
    base = DIALECTS.get(base_name.lower()) or DIALECTS.get(base_name)
    if base is None:
        near = difflib.get_close_matches(base_name.lower(), DIALECTS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"dialects: {', '.join(DIALECTS)}."
        raise MeasureError(f"unknown dialect {base_name!r}; {hint}")
    if not changes:
        return base
    switches = {}
    for change in changes:
        switch, equals, value = change.partition("=")
        if not equals:
            raise MeasureError(f"dialect {name!r}: {change!r} must look like switch=value.")
        switches[switch.strip()] = read_switch(switch.strip(), value.strip())
    return base.but(**switches)
