"""Outcomes of all systems on all folds become one `Comparison`: rows pooled, measures taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from mcrank.arrays import Array, Arrays, FeatureArray, FloatArray, IntArray, read_only
from mcrank.data.dataset import Dataset
from mcrank.data.ids import plain_ids
from mcrank.errors import DataError, MeasureError
from mcrank.experiments.comparison import Choice, Comparison, FoldFacts, System, SystemFold, TestRows, Timing
from mcrank.metrics.evaluate import evaluate_ready
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.tools import find_dialect

# Features of the test rows are kept for the look at single queries; more than this costs more than it tells.
MOST_FEATURE_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one system gave on one fold; rows in the grouped order of the fold's test part."""

    scores: FloatArray
    grades: FloatArray | None = None  # of the columns of `probabilities`
    probabilities: FeatureArray | None = None
    importances: FloatArray | None = None
    features: Sequence[str] | None = None  # whose these are; None: as the test data has them
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    choice: Choice | None = None
    timing: Timing | None = None
    model_bytes: int | None = None


def measures_in(
    names: str | Measure | Iterable[str | Measure], dialects: Iterable[Any] = ()
) -> tuple[str, ...]:
    """Return canonical names: each measure in its own dialect and in all ``dialects``, standard included.

    Examples
    --------
    >>> from mcrank.experiments.assemble import measures_in
    >>> measures_in(["ndcg@10", "map[letor4]"], ["yahoo"])
    ('ndcg@10', 'ndcg@10[yahoo]', 'map[letor4]', 'map', 'map[yahoo]')
    """
    asked = [names] if isinstance(names, (str, Measure)) else list(names)
    if not asked:
        raise MeasureError("measures of compare is empty; name at least one, such as 'ndcg@10'.")
    found: dict[str, None] = {}
    for name in asked:
        measure = parse_measure(name)
        found[measure.name] = None
        for dialect in ("standard", *dialects):
            found[replace(measure, dialect=find_dialect(dialect)).name] = None
    return tuple(found)


def pool_rows(names: Sequence[str], tests: Sequence[Dataset]) -> tuple[TestRows, IntArray]:
    """Return the test rows of all folds one after the other, and the fold of each query."""
    seen: dict[Any, str] = {}
    ids = plain_ids([test.qids for test in tests])
    for name, queries in zip(names, ids, strict=True):
        for query in queries.tolist():
            if seen.setdefault(query, name) != name:
                raise DataError(
                    f"query {query!r} is in the test parts of {seen[query]} and {name}; "
                    "every query may be tested only once, or it would count twice."
                )
    documents = plain_ids([test.doc_ids for test in tests if test.doc_ids is not None])
    weights = [np.ones(t.n_queries) if t.query_weight is None else t.query_weight for t in tests]
    rows = TestRows(
        np.concatenate([test.y for test in tests]),
        np.r_[0, np.cumsum(np.concatenate([test.sizes for test in tests]))].astype(np.int64),
        np.concatenate(ids),
        np.concatenate(documents) if len(documents) == len(tests) else None,
        np.concatenate(weights) if any(t.query_weight is not None for t in tests) else None,
    )
    return rows, np.repeat(np.arange(len(tests)), [test.n_queries for test in tests])


def check_measures(measures: Iterable[str], rows: TestRows) -> None:
    """Refuse now what a measure would refuse when everything is trained: all scores tied is the hard case."""
    found = evaluate_ready(np.zeros(len(rows.y)), rows, measures, rows.ready)
    for name, values in found.counted.items():
        known = int((~np.isnan(values)).sum())
        if known < 2:
            raise DataError(
                f"{name} gives a value to {known} of the {len(rows.qids)} test queries; comparing needs at "
                "least 2: take more test data, or another measure or dialect."
            )


def assemble(
    systems: Sequence[System],
    folds: Sequence[FoldFacts],
    tests: Sequence[Dataset],
    outcomes: Mapping[SystemFold, Outcome],
    measures: Sequence[str],
    environment: Mapping[str, Any],
    notes: Sequence[str] = (),
    pooled: tuple[TestRows, IntArray] | None = None,
) -> Comparison:
    """Put outcomes together; ``measures`` are canonical names (see `measures_in`).

    ``pooled`` is what `pool_rows` gives for the folds, where it has been asked.
    """
    names = [fold.name for fold in folds]
    rows, fold_of_query = pool_rows(names, tests) if pooled is None else pooled
    by_system = {s.key: [outcomes[s.key, name] for name in names] for s in systems}
    scores = np.stack([np.concatenate([part.scores for part in parts]) for parts in by_system.values()])
    found = [evaluate_ready(row, rows, measures, rows.ready) for row in scores]
    levels = np.unique(
        np.concatenate([np.empty(0), *(o.grades for o in outcomes.values() if o.grades is not None)])
    )
    if rows.query_weight is not None:
        notes = [
            *notes,
            "Queries have weights: means, intervals and tests use them; wins are counted in queries.",
        ]
    return Comparison(
        systems=tuple(systems),
        folds=tuple(folds),
        rows=rows,
        fold_of_query=fold_of_query,
        measures=tuple(measures),
        values=_frozen({m: np.stack([result.per_query[m] for result in found]) for m in measures}),
        means=_frozen({m: np.array([result.mean[m] for result in found]) for m in measures}),
        scores=read_only(scores),
        feature_names=tests[0].feature_names,
        features=_features(tests),
        levels=levels,
        probabilities=_frozen(_probabilities(by_system, levels)),
        importances=_frozen(_importances(by_system, tests[0].feature_names)),
        curves=MappingProxyType({of: o.curve for of, o in outcomes.items() if o.curve}),
        chosen=MappingProxyType({of: o.choice for of, o in outcomes.items() if o.choice is not None}),
        timings=MappingProxyType({of: o.timing for of, o in outcomes.items() if o.timing is not None}),
        sizes=MappingProxyType(
            {of: o.model_bytes for of, o in outcomes.items() if o.model_bytes is not None}
        ),
        environment=MappingProxyType(dict(environment)),
        notes=tuple(notes),
    )


def _probabilities(by_system: Mapping[str, Sequence[Outcome]], levels: FloatArray) -> dict[str, FeatureArray]:
    """Probabilities over all levels: a grade that one fold's training part does not have gets 0 there."""
    tables = {}
    for key, parts in by_system.items():
        blocks = []
        for part in parts:
            if part.probabilities is None or part.grades is None:
                break
            block = np.zeros((len(part.scores), len(levels)), dtype=np.float32)
            block[:, np.searchsorted(levels, part.grades)] = part.probabilities
            blocks.append(block)
        if len(blocks) == len(parts):
            tables[key] = np.concatenate(blocks)
    return tables


def _importances(by_system: Mapping[str, Sequence[Outcome]], names: Sequence[str]) -> dict[str, FloatArray]:
    """Means over folds, in the order of ``names``; a feature that a model does not know has none."""

    def share(part: Outcome) -> FloatArray | None:
        if part.importances is None or part.features is None:
            return part.importances
        known = dict(zip(part.features, part.importances.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in names])

    shares = {key: [share(part) for part in parts] for key, parts in by_system.items()}
    return {
        key: np.mean([part for part in parts if part is not None], axis=0)
        for key, parts in shares.items()
        if all(part is not None for part in parts)
    }


def _features(tests: Sequence[Dataset]) -> FeatureArray | None:
    if sum(test.X.nbytes for test in tests) > MOST_FEATURE_BYTES:
        return None
    return read_only(np.concatenate([test.X for test in tests]))


def _frozen(table: Arrays) -> Mapping[str, Array]:
    return MappingProxyType({name: read_only(array) for name, array in table.items()})
