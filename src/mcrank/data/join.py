"""Judgments, runs and features brought together by query and document: TREC files as training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.columns import shown
from mcrank.data.dataset import Dataset
from mcrank.data.ids import id_kind
from mcrank.data.matrices import as_float32
from mcrank.data.tables import Features
from mcrank.data.trec import Qrels, Run
from mcrank.errors import DataError, OptionError


def join_trec(
    qrels: Qrels,
    features: Dataset | None = None,
    runs: Run | Mapping[str, Run] | None = None,
    *,
    unjudged: Literal["zero", "drop"] = "zero",
) -> Dataset:
    """Make training data of TREC judgments: rows are (query, document) pairs, grades come from the qrels.

    Parameters
    ----------
    qrels : Qrels
        Judgments. Queries without any are left out: nothing is known about them.
    features : Dataset, optional
        Feature values by query and document, categories too, and weights of its rows and queries; it must
        have `doc_ids`, its own grades are not used.
    runs : Run or mapping of name to Run, optional
        Scores of systems: the rows are the pairs that any of them ranked, and every run is one more feature
        (NaN where it did not rank the document). Without runs, the rows are those of ``features``.
    unjudged : {"zero", "drop"}
        Pairs without a judgment (or judged below 0) have grade 0, or are left out.

    Examples
    --------
    >>> from mcrank import Qrels, Run, join_trec
    >>> qrels = Qrels(["q1", "q1"], ["a", "b"], [2, 0])
    >>> data = join_trec(qrels, runs={"bm25": Run(["q1", "q1"], ["a", "c"], [7.5, 3.0])})
    >>> data.doc_ids.tolist(), data.y.tolist(), data.X.tolist()
    (['a', 'c'], [2.0, 0.0], [[7.5], [3.0]])
    """
    if unjudged not in ("zero", "drop"):
        raise OptionError(f"unjudged of join_trec must be 'zero' or 'drop', got {unjudged!r}.")
    if features is None and runs is None:
        raise DataError("join_trec needs features or runs: judgments alone have no feature values.")
    if features is not None and features.doc_ids is None:
        raise DataError("features of join_trec have no document ids to join by; give the Dataset doc_ids.")
    systems = _systems(runs)
    known = {} if features is None else _places(features)
    pairs: dict[tuple[str, str], None] = dict.fromkeys(known)
    if systems:
        pairs = {(q, d): None for run in systems.values() for q, docs in run.queries.items() for d in docs}
    rows = []
    for query, doc in pairs:
        judged = qrels.queries.get(query)
        if judged is None:
            continue
        grade = judged.get(doc, -1.0)
        if grade >= 0 or unjudged == "zero":
            rows.append((query, doc, max(grade, 0.0)))
    if not rows:
        raise DataError(
            "no pair of query and document is left after joining; compare how the files write their ids."
        )
    names = () if features is None else features.feature_names
    X = np.full((len(rows), len(names) + len(systems)), np.nan, dtype=np.float32)
    for i, (query, doc, _) in enumerate(rows):
        if features is not None and (query, doc) in known:
            X[i, : len(names)] = features.X[known[query, doc]]
        with np.errstate(over="ignore"):  # told below, with the name of the run
            for j, run in enumerate(systems.values(), start=len(names)):
                X[i, j] = run.queries.get(query, {}).get(doc, np.nan)
    every = (*names, *systems)
    X = as_float32(X, "join_trec", titles=[f"feature {name!r} of join_trec" for name in every])
    X.setflags(write=False)  # nobody else has it, so it need not be copied
    categories = {} if features is None else features.categories  # runs come behind: these keep their places
    return Dataset.of_features(
        Features(X, every, (), categories),
        [grade for _, _, grade in rows],
        np.array([query for query, _, _ in rows], dtype=object),
        *_weights(features, known, [(query, doc) for query, doc, _ in rows]),
        doc_ids=np.array([doc for _, doc, _ in rows], dtype=object),
    )


def _weights(
    features: Dataset | None, known: Mapping[tuple[str, str], int], pairs: list[tuple[str, str]]
) -> tuple[FloatArray | None, dict[str, float] | None]:
    """Weights of the pairs and of their queries, as the features have them; None where they have none."""
    if features is None:
        return None, None
    rows, queries = None, None
    if features.weight is not None:
        lost = next((pair for pair in pairs if pair not in known), None)
        if lost is not None:
            raise DataError(
                f"features of join_trec have weights of rows, but not the document {lost[1]!r} of query "
                f"{lost[0]!r}, which a run ranked; add the row, or leave out the weights."
            )
        rows = features.weight[[known[pair] for pair in pairs]]
    if features.query_weight is not None:
        given = dict(zip(map(str, features.qids.tolist()), features.query_weight.tolist(), strict=True))
        missing = next((query for query, _ in pairs if query not in given), None)
        if missing is not None:
            raise DataError(
                f"features of join_trec have weights of queries, but not query {missing!r}, which a run "
                "ranked; add the query, or leave out the weights."
            )
        queries = {query: given[query] for query, _ in pairs}
    return rows, queries


def _systems(runs: Run | Mapping[str, Run] | None) -> dict[str, Run]:
    if isinstance(runs, Run):
        return {"run": runs}
    if runs is not None and not isinstance(runs, Mapping):
        raise DataError(f"runs of join_trec must be a Run, or a mapping of names to runs, got {shown(runs)}.")
    for name, run in (runs or {}).items():
        if not isinstance(run, Run):
            raise DataError(f"run {name!r} of join_trec must be a Run, got {shown(run)}.")
    return dict(runs or {})


def _places(features: Dataset) -> dict[tuple[str, str], int]:
    places: dict[tuple[str, str], int] = {}
    docs = [] if features.doc_ids is None else features.doc_ids.tolist()
    for what, ids in (("query", features.qids), ("document", features.doc_ids)):
        if ids is not None and id_kind(ids) == "tuples":
            raise DataError(f"features of join_trec have tuples as {what} ids; ids of TREC data are texts.")
    for row, (query, doc) in enumerate(zip(features.qid.tolist(), docs, strict=True)):
        if doc == "":
            raise DataError(f"features of join_trec have no document id at row {row} (of query {query!r}).")
        if places.setdefault((str(query), str(doc)), row) != row:
            raise DataError(f"features of join_trec have document {doc!r} of query {query!r} twice.")
    return places
