"""Measures as values: frozen, hashable, parsed from and printed as their canonical names.

``NDCG(k=10, dialect="yahoo")`` prints as ``ndcg@10[yahoo]`` and is read back from it. The file of a measure's
family has its arithmetic too, and is imported when the measure is asked for.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from mcrank.arrays import BoolArray, FloatArray
from mcrank.errors import MeasureError, did_you_mean
from mcrank.metrics.dialect import Dialect, number_text
from mcrank.metrics.tools import DIALECTS, find_dialect

if TYPE_CHECKING:
    from mcrank.metrics.layout import Graded, Layout
    from mcrank.metrics.prepared import PreparedMeasure
    from mcrank.metrics.ranking import RankedRows

# A new measure is one line here.
MEASURES: dict[str, str] = {
    "ndcg": "mcrank.metrics.dcg:NDCG",
    "dcg": "mcrank.metrics.dcg:DCG",
    "meanndcg": "mcrank.metrics.dcg:MeanNDCG",
    "precision": "mcrank.metrics.precision:Precision",
    "recall": "mcrank.metrics.precision:Recall",
    "map": "mcrank.metrics.precision:MAP",
    "mrr": "mcrank.metrics.cascade:MRR",
    "success": "mcrank.metrics.cascade:Success",
    "rbp": "mcrank.metrics.precision:RBP",
    "err": "mcrank.metrics.cascade:ERR",
    "pfound": "mcrank.metrics.cascade:PFound",
    "best": "mcrank.metrics.best:Best",
    "kendall": "mcrank.metrics.kendall:Kendall",
    "relative_p": "mcrank.metrics.precision:RelativePrecision",
    "f": "mcrank.metrics.precision:FMeasure",
}
# And here those that describe a finished ranking: no gradients are made for them.
EVALUATED: dict[str, str] = {
    "bpref": "mcrank.metrics.pool:Bpref",
    "gm_bpref": "mcrank.metrics.pool:GeometricBpref",
    "infap": "mcrank.metrics.pool:InferredAP",
    "judged": "mcrank.metrics.pool:Judged",
    "rprec": "mcrank.metrics.recall_points:RPrecision",
    "iprec": "mcrank.metrics.recall_points:InterpolatedPrecision",
    "11pt_avg": "mcrank.metrics.recall_points:ElevenPoint",
    "gm_map": "mcrank.metrics.recall_points:GeometricMAP",
    "bing": "mcrank.metrics.gains:BinaryG",
    "g": "mcrank.metrics.gains:G",
    "ndcg_rel": "mcrank.metrics.gains:NDCGAtRelevant",
    "rndcg": "mcrank.metrics.gains:NDCGAtLevels",
    "set_map": "mcrank.metrics.sets:SetMAP",
    "utility": "mcrank.metrics.sets:Utility",
    "num_q": "mcrank.metrics.sets:NumQueries",
    "num_ret": "mcrank.metrics.sets:NumRetrieved",
    "num_rel": "mcrank.metrics.sets:NumRelevant",
    "num_rel_ret": "mcrank.metrics.sets:NumRelevantRetrieved",
    "num_nonrel_judged_ret": "mcrank.metrics.sets:NumNonrelevantRetrieved",
    "num_unjudged_ret": "mcrank.metrics.sets:NumUnjudgedRetrieved",
}
_OTHERS = {"custom": "mcrank.metrics.custom:CustomMeasure"}  # no measure before it is given a function
_ALIASES = {
    "p": "precision",
    "ap": "map",
    "rr": "mrr",
    "mean_ndcg": "meanndcg",
    "tau": "kendall",
    "hit": "success",
}
# As trec_eval spells them, and nobody else: these names mean its numbers, unless brackets say otherwise.
_TREC = {
    "recip_rank": "mrr",
    "set_p": "precision",
    "set_recall": "recall",
    "set_relative_p": "relative_p",
    "set_f": "f",
}
_TREC_CUTS = {
    "p": "precision@",
    "recall": "recall@",
    "ndcg_cut": "ndcg@",
    "map_cut": "map@",
    "success": "success@",
    "relative_p": "relative_p@",
    "iprec_at_recall": "iprec(",
    "rprec_mult": "rprec(",
}
_TREC_CUT = re.compile(r"([a-z_]+)_([0-9]+|[0-9]*\.[0-9]+)(\[[^\[\]]*\])?", re.IGNORECASE)
_WORDS = re.compile(r"(relstring(_[0-9]+)?|runid)(\[[^\[\]]*\])?", re.IGNORECASE)  # its lines without numbers
_GRAMMAR = re.compile(
    r"(?P<label>(?:11)?[a-z_]+)(?:\((?P<parameter>[^()]*)\))?(?:@(?P<k>[^\[\]()@]*))?(?:\[(?P<dialect>[^\[\]]*)\])?",
    re.IGNORECASE,
)


class Form(Protocol):
    """The form of a measure on one data set: how it turns a ranking into a value per query."""

    @property
    def worth(self) -> FloatArray:
        """What each level is worth; decides the worst and the best order of ties."""

    @property
    def depth(self) -> int:
        """Ranks that matter."""

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part (``expected``: the mean over tied orders)."""


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """How a measure is computed on one data set: its form, and the queries that no ranking decides.

    Attributes
    ----------
    form : Form
        What a ranking is worth.
    empty, empty_value : ndarray of bool, float
        Queries without anything to find, and their value.
    short, short_value : ndarray of bool or None, float
        Queries shorter than the cut-off where that decides their value; NaN for none, which counts 0.
    normalized : bool
        Whether 1 is the value of the best order.
    weighted : bool
        Whether weights of queries count in the mean.
    summary : str
        What is made of the values of queries: their ``"mean"``, ``"sum"``, or a ``"geometric"`` mean.
    """

    form: Form
    empty: BoolArray
    empty_value: float = 0.0
    short: BoolArray | None = None
    short_value: float = 0.0
    normalized: bool = False
    weighted: bool = True
    summary: str = "mean"


@dataclass(frozen=True)
class Measure:
    """Base of every measure: a cut-off ``k`` (None: the whole list) and a dialect.

    Examples
    --------
    >>> from mcrank import MAP, parse_measure
    >>> MAP(k=5, dialect="lightgbm").name
    'map@5[lightgbm]'
    >>> parse_measure("map@5[lightgbm]") == MAP(k=5, dialect="lightgbm")
    True
    """

    k: int | None = None
    dialect: Dialect | str = DIALECTS["standard"]

    label: ClassVar[str] = ""
    parameter: ClassVar[str | None] = None
    parameter_type: ClassVar[type] = float
    bounds: ClassVar[tuple[float, float] | None] = None  # of its parameter: above, at most
    whole: ClassVar[str] = ""  # why it takes no k, if so
    higher_is_better: ClassVar[bool] = True
    summary: ClassVar[str] = "mean"  # what is made of the values of queries, as in `Arithmetic`

    def __post_init__(self) -> None:
        object.__setattr__(self, "dialect", find_dialect(self.dialect))
        if self.k is not None:
            k: Any = self.k
            if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)) or k < 1:
                raise MeasureError(f"k of {type(self).__name__} must be an integer >= 1 or None, got {k!r}.")
            if self.whole:
                raise MeasureError(f"{self.label} {self.whole} and takes no k, got {k!r}.")
            object.__setattr__(self, "k", int(k))
        if self.parameter is not None and self.bounds is not None:
            what = f"{self.parameter} of {type(self).__name__}"
            number = checked_number(getattr(self, self.parameter), what, *self.bounds)
            object.__setattr__(self, self.parameter, number)

    @property
    def switches(self) -> Dialect:
        """The dialect; a name given for it has become its `Dialect`."""
        return find_dialect(self.dialect)

    @property
    def tells_documents(self) -> bool:
        """Whether ties go by document ids, or none may stand twice in a query."""
        return self.switches.ties.startswith("id-") or self.switches.ids == "unique"

    @property
    def name(self) -> str:
        """Canonical name, e.g. ``ndcg@10[yahoo]``."""
        cut = "" if self.k is None else f"@{self.k}"
        dialect = "" if self.switches == DIALECTS["standard"] else f"[{self.switches.name}]"
        return f"{self.label}{self._parameter_text()}{cut}{dialect}"

    def _parameter_text(self) -> str:
        if self.parameter is None:
            return ""
        value = getattr(self, self.parameter)
        default = type(self).__dataclass_fields__[self.parameter].default
        return "" if value == default and self.label != "rbp" else f"({number_text(value)})"

    def __str__(self) -> str:
        return self.name

    def on(self, data: Graded) -> PreparedMeasure:
        """Make the measure ready for data: ideal DCG and the like are computed once."""
        from mcrank.metrics.layout import Layout
        from mcrank.metrics.prepared import PreparedMeasure

        return PreparedMeasure(self, Layout.of(data))

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the arithmetic of this measure on laid-out data."""
        raise MeasureError(f"{type(self).__name__} is not a measure that can be computed.")

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return self.label

    def _cut(self, default: int | None) -> int | None:
        return self.k if self.k is not None else default

    def _depth(self, layout: Layout, default: int | None = None) -> int:
        cut = self._cut(default)
        return layout.longest if cut is None else min(cut, layout.longest)

    def _cut_words(self, default: int | None = None) -> str:
        cut = self._cut(default)
        return "the whole list" if cut is None else f"the first {cut} ranks"

    def _tie_words(self) -> str:
        rule, seed = self.switches.tie_rule
        words = {
            "file": "ties in file order",
            "expected": "mean over tied orders",
            "worst": "ties in the worst order",
            "best": "ties in the best order",
            "random": f"ties in random order (seed {seed})",
        }.get(rule, f"ties by document {rule.replace('id-', 'id ')}")
        halves = {"scores": self.switches.score, "grades": self.switches.grade_precision}
        rounded = " and ".join(what for what, precision in halves.items() if precision == "float32")
        return words + (f", {rounded} rounded to float32" if rounded else "")


def checked_number(value: Any, what: str, low: float, high: float) -> float:
    """Return ``value`` as a float above ``low`` and at most ``high``, or raise `MeasureError`."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and low < value <= high:
        return float(value)
    raise MeasureError(f"{what} must be a number > {low:g} and <= {high:g}, got {value!r}.")


def find_measure(label: str) -> type[Measure]:
    """Return the class of a measure by its label, a key of `MEASURES`.

    Examples
    --------
    >>> from mcrank.metrics.measure import find_measure
    >>> find_measure("map").__name__
    'MAP'
    """
    module, _, name = (MEASURES | EVALUATED | _OTHERS)[label].partition(":")
    found: type[Measure] = getattr(importlib.import_module(module), name)
    return found


def parse_measure(name: str | Measure) -> Measure:
    """Return the measure of a name such as ``ndcg@10[yahoo]``; a `Measure` passes through unchanged.

    Examples
    --------
    >>> from mcrank.metrics.measure import parse_measure
    >>> parse_measure("rbp(0.8)").name
    'rbp(0.8)'
    >>> parse_measure("ndcg_cut_10").name
    'ndcg@10[trec]'
    >>> parse_measure("ndgc@10")
    Traceback (most recent call last):
    mcrank.errors.MeasureError: unknown measure 'ndgc@10'; did you mean ndcg@10?
    """
    if isinstance(name, Measure):
        return name
    if not isinstance(name, str):
        raise MeasureError(f"measure must be a name such as 'ndcg@10' or a Measure, got {name!r}.")
    match = _GRAMMAR.fullmatch(_house_name(name.strip()))
    if _WORDS.fullmatch(name.strip()):
        raise MeasureError(f"{name!r} is text, no measure: -m 'all[trec]' -q prints it, as trec_eval does.")
    if match is None:
        raise MeasureError(f"measure {name!r} must look like ndcg@10, rbp(0.8) or ndcg@10[yahoo].")
    label = _ALIASES.get(match["label"].lower(), match["label"].lower())
    if label not in MEASURES and label not in EVALUATED and label not in _OTHERS:
        rest = name.strip()[len(match["label"]) :]
        known = [f"{each}{rest}" for each in (*MEASURES, *EVALUATED, *_ALIASES, *_TREC)]
        hint = did_you_mean(f"{label}{rest}", known, "measures:")
        raise MeasureError(f"unknown measure {name!r}; {hint}")
    kind = find_measure(label)
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


def _house_name(name: str) -> str:
    """Return the name that trec_eval's spelling of a measure stands for; any other as it is."""
    cut = _TREC_CUT.fullmatch(name)
    if cut is not None and (start := _TREC_CUTS.get(cut[1].lower())) is not None:
        return f"{start}{cut[2]}{')' if start.endswith('(') else ''}{cut[3] or '[trec]'}"
    label, bracket, rest = name.partition("[")
    if label.lower() in _TREC:
        return f"{_TREC[label.lower()]}{bracket}{rest}" if bracket else f"{_TREC[label.lower()]}[trec]"
    return name


def _parameter(kind: type[Measure], text: str, name: str) -> dict[str, Any]:
    if kind.parameter is None:
        raise MeasureError(f"{kind.label} takes nothing in parentheses, got {name!r}.")
    try:
        return {kind.parameter: kind.parameter_type(text)}
    except ValueError:
        raise MeasureError(f"{kind.parameter} of {name!r} must be a number, got {text!r}.") from None
