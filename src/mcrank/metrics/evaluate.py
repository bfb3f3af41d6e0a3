"""`evaluate`: scores and grades become means, values per query, and the counts that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, BoolArray, FloatArray
from mcrank.data.scan import Scan
from mcrank.data.trec import Judged, Qrels, Run, judge
from mcrank.errors import DataError, MeasureError, OptionError
from mcrank.metrics.influence import in_mean
from mcrank.metrics.layout import Graded, Layout
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.prepared import (
    PreparedMeasure,
    PreparedMeasures,
    measure_together,
    score_array,
    score_column,
)
from mcrank.threads import check_jobs


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    mean : mapping of str to float
        Mean of each measure, by canonical name.
    per_query : mapping of str to ndarray
        Value of each query, in the order of ``qids``; NaN where the dialect gives none.
    qids : ndarray
        Query ids.
    counts : mapping of str to int
        Queries, rows, empty queries (no grade above 0), and for the cut-offs asked: ``shorter than k``,
        ``tied at k``.
    definitions : mapping of str to str
        Each measure's definition in one line.
    band : mapping of str to (float, float)
        Mean under the worst and the best order of ties; only when asked for.
    counted : mapping of str to ndarray
        Value of each query as the mean counts it: NaN only where the dialect leaves the query out.
    in_mean : mapping of str to ndarray
        What each query adds to the mean, for tests and intervals: values whose plain mean is ``mean``. They
        are ``counted``, unless queries have weights or the measure is a sum; of a geometric mean, too.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.Dataset([[0.0]] * 3, y=[0, 1, 2], qid=["a", "a", "b"])
    >>> result = mcrank.evaluate([0.5, 0.1, 0.3], data, ["ndcg@10", "mrr"])
    >>> result.mean["mrr"], result.per_query["mrr"].tolist()
    (0.75, [0.5, 1.0])
    """

    mean: Mapping[str, float]
    per_query: Mapping[str, FloatArray]
    qids: Array
    counts: Mapping[str, int]
    definitions: Mapping[str, str]
    band: Mapping[str, tuple[float, float]]
    counted: Mapping[str, FloatArray]
    in_mean: Mapping[str, FloatArray]

    def by_query(
        self, measure: str | Measure, *, counted: bool = False, in_mean: bool = False
    ) -> dict[Any, float]:
        """Return one measure's value of every query by query id, as `mcrank.stats` takes it.

        With ``counted``, a query without a value that the dialect's mean counts as 0 has 0 and not NaN. With
        ``in_mean``, what it adds to the mean: tests of weighted queries and of sums take that.
        """
        name = parse_measure(measure).name
        if name not in self.per_query:
            raise MeasureError(f"{name} was not evaluated; there are: {', '.join(self.per_query)}.")
        values = (self.in_mean if in_mean else self.counted if counted else self.per_query)[name]
        return dict(zip(self.qids.tolist(), values.tolist(), strict=True))

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Return means, counts and definitions as plain values, for JSON."""
        plain: dict[str, Any] = {
            "mean": dict(self.mean),
            "counts": dict(self.counts),
            "definitions": dict(self.definitions),
        }
        if self.band:
            plain["band"] = {name: list(ends) for name, ends in self.band.items()}
        if per_query:
            plain["per_query"] = {
                name: dict(zip(map(str, self.qids.tolist()), values.tolist(), strict=True))
                for name, values in self.per_query.items()
            }
        return plain

    def per_query_table(self) -> str:
        """Return the value of every query, one line each, tab separated; nothing where there is no value."""
        lines = ["\t".join(["query", *self.per_query])]
        columns = [values.tolist() for values in self.per_query.values()]
        for place, query in enumerate(self.qids.tolist()):
            values = ("" if column[place] != column[place] else f"{column[place]:.6f}" for column in columns)
            lines.append("\t".join([str(query), *values]))
        return "\n".join(lines)

    def __str__(self) -> str:
        width = max(len("measure"), *(len(name) for name in self.mean))
        lines = [f"{'measure':<{width}}  {'mean':>8}  definition"]
        for name, value in self.mean.items():
            worst_best = (
                f"  [{self.band[name][0]:.4f}, {self.band[name][1]:.4f}]" if name in self.band else ""
            )
            lines.append(f"{name:<{width}}  {value:>8.4f}{worst_best}  {self.definitions[name]}")
        counts = ", ".join(f"{value} {what}" for what, value in self.counts.items())
        return "\n".join([*lines, counts])


class Scores(Protocol):
    """What gives rows their scores: a fitted ranker."""

    def graded_scores(
        self, X: Any, *, cluster: Any = None, documents: bool = False
    ) -> tuple[FloatArray, Any]:
        """Return the score of every row of data with grades, and the grades."""


def evaluate(
    scores: npt.ArrayLike | Run | Scores,
    data: Graded | Qrels | Scan,
    measures: str | Measure | Iterable[str | Measure] = ("ndcg@10",),
    *,
    band: bool = False,
    complete: bool = False,
    judged_only: bool = False,
    n_jobs: int = -1,
    cluster: Any = None,
) -> Evaluation:
    """Measure scores against grades.

    Parameters
    ----------
    scores : array-like of shape (rows,), Run or Ranker
        One score per row, in the caller's row order; a TREC run, when ``data`` is `Qrels`; or a fitted
        ranker, which scores a `Dataset` or a scan.
    data : Dataset, Grades, Scan or Qrels
        The grades; of a scan, grades and query ids alone are read.
    measures : names or measures
        What to compute, e.g. ``["ndcg@10", "map", "ndcg@10[yahoo]"]``.
    band : bool
        Also compute each mean under the worst and the best order of tied scores.
    complete : bool
        Count judged queries that the run misses as ranked with nothing (``-c`` of trec_eval), whatever the
        dialect does.
    judged_only : bool
        Take unjudged documents out of the run (``-J`` of trec_eval).
    n_jobs : int
        Threads; -1 for one per processor.
    cluster : distributed.Client, str, int or Cluster, optional
        Of a ranker: have the workers of a Dask cluster read and score the rows.

    Returns
    -------
    Evaluation
        Means, values per query, counts and definitions.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.Dataset([[0.0]] * 2, y=[0, 1], qid=[7, 7])
    >>> round(mcrank.evaluate([0.9, 0.4], data, "ndcg@10").mean["ndcg@10"], 4)
    0.6309
    """
    wanted = _measures(measures)
    jobs = check_jobs(n_jobs, "evaluate")
    documents = any(measure.tells_documents for measure in wanted)
    if hasattr(scores, "graded_scores"):
        if isinstance(data, Qrels):
            raise DataError("a ranker has no documents of qrels to score; give a run, or rows with features.")
        scores, data = scores.graded_scores(data, cluster=cluster, documents=documents)
    elif cluster is not None:
        raise OptionError("cluster of evaluate is for a fitted ranker; scores are measured where they are.")
    known = data.grades(jobs, documents=documents) if isinstance(data, Scan) else data
    graded, row_scores = graded_rows(scores, known, complete, judged_only)
    return _evaluate(wanted, graded, row_scores, PreparedMeasures(Layout.of(graded, jobs)), band)


def evaluate_ready(
    scores: npt.ArrayLike,
    data: Graded,
    measures: str | Measure | Iterable[str | Measure],
    ready: PreparedMeasures,
) -> Evaluation:
    """Evaluate scores in grouped row order as `evaluate` does, with measures made ready for ``data``."""
    return _evaluate(_measures(measures), data, scores, ready, band=False)


def _evaluate(
    wanted: list[Measure], graded: Graded, row_scores: npt.ArrayLike, ready: PreparedMeasures, band: bool
) -> Evaluation:
    layout = ready.layout
    used = score_column(row_scores, layout)
    prepared = [ready[measure] for measure in wanted]
    cuts = sorted({measure.k for measure in wanted if measure.k is not None})
    values, tied = measure_together(prepared, used, cuts)
    per_query = {}
    mean = {}
    counted = {}
    added = {}
    for measure, one, those in zip(wanted, prepared, values, strict=True):
        those.setflags(write=False)
        per_query[measure.name] = those
        mean[measure.name] = one.mean_of(those)
        counted[measure.name] = one.counted(those) if np.isnan(those).any() else those
        added[measure.name] = counted[measure.name] if one.plain else in_mean(one, those)
    return Evaluation(
        mean=MappingProxyType(mean),
        per_query=MappingProxyType(per_query),
        qids=layout.qids,
        counts=MappingProxyType(_counts(layout, tied, graded)),
        definitions=MappingProxyType({m.name: m.definition for m in wanted}),
        band=MappingProxyType(_bands(prepared, used) if band else {}),
        counted=MappingProxyType(counted),
        in_mean=MappingProxyType(added),
    )


def _measures(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    if isinstance(measures, (str, Measure)):
        measures = [measures]
    if not isinstance(measures, Iterable):
        raise MeasureError(f"measures of evaluate must be names such as 'ndcg@10', got {measures!r}.")
    asked = list(measures)
    if not asked:
        raise MeasureError("measures of evaluate is empty; name at least one, such as 'ndcg@10'.")
    # A name asked twice is computed once.
    return list(dict.fromkeys(parse_measure(measure) for measure in asked))


def graded_rows(
    scores: npt.ArrayLike | Run, data: Graded | Qrels, complete: bool, judged_only: bool
) -> tuple[Graded, npt.ArrayLike]:
    """Return grades and scores in one row order, whichever way the caller has them."""
    if isinstance(data, Qrels):
        if not isinstance(scores, Run):
            raise DataError(
                "scores of evaluate must be a Run when data is Qrels, so that documents meet by id."
            )
        judged = judge(data, scores, complete=complete, judged_only=judged_only)
        return judged, judged.scores
    if isinstance(scores, Run):
        raise DataError("data of evaluate must be Qrels when scores is a Run, so that documents meet by id.")
    if not hasattr(data, "offsets"):
        raise DataError(
            f"data must have grades by query, as a Dataset, Grades, a Scan and Qrels have, got "
            f"{type(data).__name__}; mcrank.Grades(y, qid) takes two columns."
        )
    given = score_array(scores)
    rows = int(data.offsets[-1])
    if given.shape != (rows,):
        raise DataError(f"scores must have one value per row: {rows} rows, got shape {given.shape}.")
    to_grouped = getattr(data, "to_grouped", None)
    return data, given if to_grouped is None else to_grouped(given)


def _counts(layout: Layout, tied: Mapping[int, BoolArray], graded: Graded) -> dict[str, int]:
    counts = {"queries": layout.n_queries, "rows": layout.n_rows, "empty": int(layout.empty.sum())}
    if isinstance(graded, Judged):
        counts |= {"missing from the run": int(graded.absent.sum()), "only in the run": graded.only_in_run}
    for k, at_cut in tied.items():
        counts[f"shorter than {k}"] = int(layout.shorter_than(k).sum())
        counts[f"tied at {k}"] = int(at_cut.sum())
    return counts


def _bands(prepared: list[PreparedMeasure], scores: FloatArray) -> dict[str, tuple[float, float]]:
    bands = {}
    for ready in prepared:
        measure = ready.measure
        ends = (replace(measure, dialect=measure.switches.but(ties=rule)) for rule in ("worst", "best"))
        worst, best = (PreparedMeasure(end, ready.layout).mean(scores) for end in ends)
        bands[measure.name] = (worst, best)
    return bands
