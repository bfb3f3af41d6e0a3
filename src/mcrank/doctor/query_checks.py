"""Checks of grades, queries and rows, and what each finding means for NDCG in each tool's dialect."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import BoolArray
from mcrank.data.dataset import Dataset
from mcrank.doctor.findings import Finding, Severity, grade_text, listed, share_text
from mcrank.doctor.row_hash import first_equal_rows
from mcrank.metrics.layout import Layout

CUT = 10  # the k of the NDCG that is spoken of
_EMPTY = (
    "Such a query counts 0 in LETOR, MS, RankLib, trec_eval, ranx and scikit-learn, 1 in LightGBM, XGBoost, "
    "CatBoost, RankEval and allRank, 0.5 or 1 in Yahoo's script, and gdeval leaves it out. The mean NDCG of "
    "one and the same ranking differs by that share between those that count 0 and 1. "
    "Dataset.drop_empty_queries() drops them."
)


def check_grade_values(data: Dataset, where: str) -> list[Finding]:
    """Grades that some tools refuse, cut or do not know."""
    grades = np.unique(data.y)
    top = float(grades[-1])
    if len(grades) == 1:
        return [
            Finding(
                "broken", "grades", where, f"every row has grade {grade_text(top)}.",
                "There is nothing to learn, and NDCG is the same for every ranking.", {"grades": [top]},
            )
        ]  # fmt: skip
    out = []
    values = {"grades": grades[:50].tolist()}
    if (grades % 1 != 0).any():
        some = [grade_text(grade) for grade in grades[:9].tolist()]
        found = f"grades are not all integers: {listed(some, len(grades))}."
        meaning = (
            "LightGBM refuses them, RankLib cuts them to integers, the LETOR scripts stop; mcrank, XGBoost, "
            "CatBoost and scikit-learn take them as they are."
        )
        out.append(Finding("warning", "grades", where, found, meaning, values))
    if top > 4:
        meaning = (
            "LETOR 3.0 and 4.0 know the gains of grades up to 2 and MS up to 4: others count as 0, silently. "
            "gdeval and ERR expect at most 4; LightGBM takes at most 30, XGBoost 31."
        )
        severity: Severity = "broken" if top > 1000 else "warning"
        out.append(
            Finding(severity, "grades", where, f"the best grade is {grade_text(top)}.", meaning, values)
        )
    return out


def check_queries(data: Dataset, where: str) -> list[Finding]:
    """Queries whose NDCG is the same for every ranking, or differs by tool."""
    layout, n = Layout.of(data), data.n_queries
    starts, sizes, empty = data.offsets[:-1], layout.sizes, layout.empty
    best, worst = np.maximum.reduceat(data.y, starts), np.minimum.reduceat(data.y, starts)
    out = []

    def add(severity: Severity, check: str, chosen: BoolArray, what: str, meaning: str) -> None:
        count = int(chosen.sum())
        if count:
            examples = [str(q) for q in data.qids[chosen][:5].tolist()]
            found = f"{share_text(count, n, 'queries')} {what}, such as {', '.join(examples)}."
            values = {"count": count, "share": count / n, "examples": examples}
            out.append(Finding(severity, check, where, found, meaning, values))

    if empty.all():
        add("broken", "empty-queries", empty, "have no relevant row", "NDCG has no value for any query.")
    else:
        add("warning", "empty-queries", empty, "have no relevant row", _EMPTY)
    add(
        "warning", "one-row-queries", sizes == 1, "have one row only",
        "Their NDCG is the same for every ranker (1 if the row is relevant), but NDCG@k is 0 for k > 1 in "
        "LETOR and MS, and scikit-learn refuses them. Pairwise losses learn nothing from them.",
    )  # fmt: skip
    add(
        "note", "short-queries", layout.shorter_than(CUT), f"have fewer than {CUT} rows",
        f"LETOR 3.0, LETOR 4.0 and MS count their NDCG@{CUT} as 0; every other tool uses the rows there are.",
    )  # fmt: skip
    add(
        "note", "single-grade-queries", (best == worst) & ~empty, "have one grade, above 0, in all rows",
        "Every ranking of them is perfect: they lift the mean of every ranker alike.",
    )  # fmt: skip
    add(
        "warning",
        "large-queries",
        sizes > 10_000,
        "have more than 10,000 rows",
        "LightGBM refuses such queries.",
    )
    return out


def check_order(data: Dataset, where: str) -> list[Finding]:
    """Queries whose rows are not next to each other."""
    if data.source_rows is None:
        return []
    return [
        Finding(
            "warning", "split-queries", where, "rows of a query are not next to each other in the source.",
            "mcrank groups them. RankLib takes each block for a query of its own (its NDCG can then pass 1), "
            "and LightGBM and XGBoost expect sorted groups.",
        )
    ]  # fmt: skip


def check_rows(data: Dataset, where: str) -> list[Finding]:
    """Rows that repeat or contradict another of their query, and documents named twice."""
    first = first_equal_rows(data.X, np.repeat(np.arange(data.n_queries), data.sizes))
    repeats = int((first != np.arange(data.n_rows)).sum())
    out = []
    if repeats:
        count = share_text(repeats, data.n_rows, "rows")
        found = f"{count} repeat the features of an earlier row of their query."
        meaning = (
            "Every ranker scores them equal. Tools order ties differently: file order in RankLib, LightGBM "
            "and XGBoost, document ids descending in trec_eval, worst first in CatBoost, the mean over "
            "orders in scikit-learn."
        )
        out.append(Finding("note", "duplicate-rows", where, found, meaning, {"count": repeats}))
    # Rows of one kind are known by the first of them; a kind with two grades contradicts itself.
    torn = np.zeros(data.n_rows, dtype=bool)
    torn[first[data.y != data.y[first]]] = True
    against = np.flatnonzero(torn[first])
    if len(against):
        count = share_text(len(against), data.n_rows, "rows")
        found = f"{count} have the features of another row of their query, but another grade."
        meaning = "No ranker can get both right: the best possible NDCG is below 1."
        rows = against if data.source_rows is None else np.sort(data.source_rows[against])
        values = {"count": len(against), "rows": rows[:20].tolist()}
        out.append(Finding("warning", "contradicting-rows", where, found, meaning, values))
    if data.doc_ids is not None:
        query = np.repeat(np.arange(data.n_queries), data.sizes).tolist()
        given = [pair for pair in zip(query, data.doc_ids.tolist(), strict=True) if str(pair[1])]
        repeated = len(given) - len(set(given))
        if repeated:
            count = share_text(repeated, data.n_rows, "rows")
            found = f"{count} have a document id that their query has already."
            meaning = "trec_eval refuses such runs, and LETOR 3.0 and 4.0 keep only the last of such rows."
            out.append(Finding("warning", "repeated-documents", where, found, meaning, {"count": repeated}))
    return out
