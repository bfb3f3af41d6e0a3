"""`rosetta`: one ranking in the dialect of every known tool, and why the numbers differ."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace

import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.trec import Qrels, Run
from mcrank.errors import DataError, MeasureError, OptionError
from mcrank.metrics.dialect import Dialect, switch_words
from mcrank.metrics.evaluate import graded_rows
from mcrank.metrics.layout import Graded, Layout
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.prepared import PreparedMeasures, checked_scores
from mcrank.metrics.tools import DIALECTS, find_dialect
from mcrank.threads import check_jobs

# What a dialect refuses, one may still want to see counted the way the tool's source code would.
_ANYWAY = (
    ("outside", "zero", "grades beyond its table gain 0"),
    ("single", "skip", "the tool refuses one-document queries, left out here"),
    ("missing", "zero", "the tool refuses queries missing from the run, 0 here"),
    ("unjudged", "zero", "the tool refuses queries without a usable judgment, 0 here"),
    ("ties", "file", "the tool goes by document ids, which the data does not have: file order here"),
    ("ids", "any", "the tool refuses a document that stands twice in a query, taken as two here"),
    ("binary", "any", "the tool takes grades 0 and 1 only, others are relevant here"),
)
# Options of the tools that change the number; searched when a number is to be explained.
VARIANTS = (
    "xgboost;empty=0", "xgboost;gain=linear", "xgboost;gain=linear;empty=0", "catboost;gain=exp",
    "catboost;discount=position", "catboost;gain=exp;discount=position", "rankeval;gain=linear",
    "ranx;gain=exp", "sklearn;gain=exp", "sklearn;ties=file", "torchmetrics;empty=1",
    "torchmetrics;empty=skip", "trec;gain=exp", "trec;missing=zero", "trec10;missing=zero", "gdeval;empty=0",
    "standard;gain=linear", "standard;empty=1", "standard;empty=skip", "standard;ties=expected",
)  # fmt: skip
_NUMBER = re.compile(
    r"[+-]?(?:\d+(?:\.(?P<decimals>\d*))?|\.(?P<fraction>\d+))(?:e(?P<exponent>[+-]?\d{1,9}))?",
    re.ASCII | re.IGNORECASE,
)
_SMALL = 1e-12  # differences below this are rounding


@dataclass(frozen=True)
class Reading:
    """One dialect's number for a ranking.

    Attributes
    ----------
    dialect : str
        Name of the dialect.
    value : float or None
        The mean it prints; None when it refuses.
    steps : tuple of (str, float)
        How the number moves from the definition to this dialect, one switch after another.
    refusal : str
        Why there is no number, or what had to be changed to get one.
    note : str
        The tool.
    compared : bool
        Whether the definition itself takes the data, so that steps lead from it.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.Grades([0, 0, 1], qid=[1, 1, 2])
    >>> mcrank.rosetta([2.0, 1.0, 3.0], data)["yahoo"].steps
    (('an empty query scores 1', 0.5),)
    """

    dialect: str
    value: float | None
    steps: tuple[tuple[str, float], ...]
    refusal: str
    note: str
    compared: bool = True

    @property
    def reason(self) -> str:
        """Why this number differs from the definition's, in words."""
        moves = "; ".join(f"{words} ({move:+.4f})" for words, move in self.steps)
        same = self.note if self.dialect == "standard" else "same as the definition here"
        if not self.compared:
            same = "the definition refuses the data"
        parts = [self.refusal, moves or ("" if self.value is None else same)]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Rosetta:
    """One ranking under every dialect; made by `rosetta`.

    Examples
    --------
    >>> import mcrank
    >>> table = mcrank.rosetta([2.0, 1.0, 3.0], mcrank.Grades([0, 0, 1], qid=[1, 1, 2]))
    >>> table["standard"].value, table["lightgbm"].value
    (0.5, 1.0)
    >>> "yahoo" in table.matches("1.00")
    True
    """

    measure: str
    readings: tuple[Reading, ...]
    variants: tuple[Reading, ...]
    value: float | str | None = None

    @property
    def printed_by(self) -> list[str]:
        """The dialects that print the number `rosetta` was given; empty when it was given none."""
        return [] if self.value is None else self.matches(self.value)

    def __getitem__(self, dialect: str) -> Reading:
        for reading in (*self.readings, *self.variants):
            if reading.dialect == dialect:
                return reading
        raise MeasureError(f"no dialect {dialect!r} here: {', '.join(r.dialect for r in self.readings)}.")

    def matches(self, value: float | str) -> list[str]:
        """Return the dialects, and options of tools, that print this number at its number of digits."""
        number, room = _printed(value)
        every = (*self.readings, *self.variants)
        return [r.dialect for r in every if r.value is not None and abs(r.value - number) <= room]

    def __str__(self) -> str:
        width = max(len(reading.dialect) for reading in self.readings)
        lines = [f"{'dialect':<{width}}  {self.measure:>8}  why"]
        for reading in self.readings:
            value = "refuses" if reading.value is None else f"{reading.value:.4f}"
            lines.append(f"{reading.dialect:<{width}}  {value:>8}  {reading.reason}")
        if self.value is not None:
            lines += ["", f"{self.value} is printed by: {', '.join(self.printed_by) or 'no known dialect'}"]
        return "\n".join(lines)


def rosetta(
    scores: npt.ArrayLike | Run,
    data: Graded | Qrels,
    measure: str | Measure = "ndcg@10",
    *,
    value: float | str | None = None,
    complete: bool = False,
    judged_only: bool = False,
    n_jobs: int = -1,
) -> Rosetta:
    """Show one ranking in the dialect of every known tool, with the reason for each difference.

    Given a ``value`` that someone printed, `Rosetta.printed_by` names the dialects, and options of tools,
    that print it. The other parameters are those of `evaluate`; the measure's own dialect does not matter.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.Grades([1, 0, 0], qid=[1, 1, 2])
    >>> print(str(mcrank.rosetta([1.0, 2.0, 3.0], data, "ndcg@2")["letor4"].reason))
    discount 1, 1, then 1/log2(rank) (+0.1845)
    """
    asked = parse_measure(measure)
    if value is not None:
        _printed(value)  # what is no number is refused before anything is computed
    jobs = check_jobs(n_jobs, "rosetta")
    graded, row_scores = graded_rows(scores, data, complete, judged_only)
    ready = PreparedMeasures(Layout.of(graded, jobs))
    used = checked_scores(row_scores, ready.layout)
    definition = replace(asked, dialect=DIALECTS["standard"])
    readings = tuple(_read(definition, dialect, ready, used) for dialect in DIALECTS.values())
    variants = tuple(_read(definition, find_dialect(name), ready, used) for name in VARIANTS)
    return Rosetta(definition.name, readings, variants, value)


def _read(definition: Measure, dialect: Dialect, ready: PreparedMeasures, scores: FloatArray) -> Reading:
    tried, value, refusal = printed_mean(definition, dialect, ready, scores)
    compared = True
    try:
        ready[definition]
    except MeasureError:
        compared = False  # ERR of a grade above 4, say, which tools take that let probabilities pass 1
    steps = () if value is None or not compared else steps_to(definition, tried, ready, scores)
    return Reading(tried.name, value, steps, refusal, dialect.note, compared)


def printed_mean(
    definition: Measure, dialect: Dialect, ready: PreparedMeasures, scores: FloatArray
) -> tuple[Dialect, float | None, str]:
    """Return the dialect that gives a number, changed where it refuses; the number; and what it refuses."""
    try:
        return dialect, ready[replace(definition, dialect=dialect)].mean(scores), ""
    except (DataError, MeasureError) as error:
        refusal = f"refuses: {error}"
    for switch, setting, words in _ANYWAY:
        if getattr(dialect, switch) == setting:
            continue
        tried = dialect.but(**{switch: setting})
        try:
            return tried, ready[replace(definition, dialect=tried)].mean(scores), words
        except (DataError, MeasureError):
            continue
    return dialect, None, refusal


def steps_to(
    definition: Measure, dialect: Dialect, ready: PreparedMeasures, scores: FloatArray
) -> tuple[tuple[str, float], ...]:
    """Turn the definition into the dialect switch by switch, and note what moves the number."""
    current = DIALECTS["standard"]
    at = ready[definition].mean(scores)
    steps = []
    # `outside` first: a table of gains makes sense of grades only once it is said what others do.
    for switch in ("outside", *(f.name for f in fields(Dialect))):
        wanted = getattr(dialect, switch)
        if switch in ("name", "note", "ids") or wanted == getattr(current, switch):
            continue
        current = replace(current, **{switch: wanted})
        try:
            then = ready[replace(definition, dialect=current)].mean(scores)
        except MeasureError:
            continue  # half-way between two dialects: the next switch makes it whole
        if abs(then - at) > _SMALL:
            steps.append((switch_words(current, switch), then - at))
        at = then
    return tuple(steps)


def _printed(value: float | str) -> tuple[float, float]:
    """Return a number that someone printed, and how far the number it was rounded from may be."""
    text = repr(float(value)) if isinstance(value, float) else str(value).strip()
    parts = _NUMBER.fullmatch(text)
    if parts is None or not math.isfinite(float(text)):
        raise OptionError(f"value of rosetta must be a finite number such as 0.7421, got {value!r}.")
    exponent = max(-400, min(int(parts["exponent"] or 0), 300))
    unit = 10.0 ** (exponent - len(parts["decimals"] or parts["fraction"] or ""))
    return float(text), 0.5 * unit + 1e-9 * unit + 1e-15
