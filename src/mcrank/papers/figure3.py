"""Figure 3 of the McRank paper: how many bins are enough, and two ways to make a score of probabilities."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.entries import Entry
from mcrank.metrics.dcg import NDCG
from mcrank.papers.grounds import Ground, by_query, ground_of, staged
from mcrank.papers.outcome import (
    CONSIDERABLY,
    Claim,
    Reproduction,
    all_larger,
    judged,
    larger,
    larger_at,
    p_words,
)
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table
from mcrank.stats import bootstrap_interval, paired_t, unpaired_t

EXPONENTS = (3, 4, 5, 6, 7, 8, 16)
STAGES = 20
FOLDER = "figure3"
CLOSE = 0.1  # points of NDCG that the paper's axis could show


def trainings(run: Run) -> int:
    """How many rankers are trained."""
    return len(EXPONENTS) * ground_of(run).n_folds


def make(run: Run) -> Reproduction:
    """Train classification with each number of bins; score the finest model in stages."""
    ground = ground_of(run)
    entries = {f"bins-{e}": Entry("mcrank", ground.trees(max_bins=2**e)) for e in EXPONENTS}
    comparison = ground.forests(FOLDER, entries)
    bins = {e: _bins_used(ground.model(FOLDER, f"bins-{e}")) for e in EXPONENTS}
    loss = _losses(comparison)
    rounds, curves = _curves(ground)
    return Reproduction(
        "figure3",
        f"Figure 3 of the McRank paper, on {'the artificial data' if run.data is None else run.data_name}",
        f"{ground.words}; classification with at most 2^3 to 2^8 and 2^16 adaptive bins a feature. The "
        "paper's figure is of its data set Web-1, which is not public.",
        [_bins_table(bins, comparison), _scoring_table(rounds, curves)],
        [_bins_figure(bins, loss), _scoring_figure(rounds, curves)],
        [*_bins_claims(bins, comparison, run.data is None), *_scoring_claims(rounds, curves)],
        [f"Bins and the curves of panel (c) are those of the first of {ground.n_folds} folds."]
        if ground.n_folds > 1
        else [],
        tried_on=ground.tried_on,
    )


def _bins_used(ranker: Any) -> int:
    """Bins of all features: one more than there are edges between them."""
    return len(ranker.bin_edges_) + int(ranker.n_features_in_)


def _losses(comparison: Comparison) -> dict[int, float]:
    """What each number of bins loses against 2^16, in points of NDCG@10."""
    means = comparison.mean("ndcg@10")
    finest = means[comparison.place(f"bins-{EXPONENTS[-1]}")]
    return {e: float(100 * (finest - means[comparison.place(f"bins-{e}")])) for e in EXPONENTS}


def _curves(ground: Ground) -> tuple[list[int], dict[str, FloatArray]]:
    """NDCG@10 of Expected Relevance and Expected Gain over the rounds, on the parts of the first fold."""
    ranker = ground.model(FOLDER, f"bins-{EXPONENTS[-1]}")
    most = ground.run.sizes.rounds
    rounds = sorted({max(1, most * (stage + 1) // STAGES) for stage in range(STAGES)})
    curves: dict[str, FloatArray] = {}
    parts = ground.fold(0)._asdict()
    for part in ("test", "valid", "train"):
        data = parts[part]
        if data is None:
            continue
        prepared = NDCG(k=10).on(data)
        found = [
            [
                prepared.per_query(np.ascontiguousarray(ranker.head_.expected(raw, values)))
                for values in (ranker.grades_, np.exp2(ranker.grades_) - 1)
            ]
            for raw in staged(ranker, data, rounds)
        ]
        table = 100 * np.array(found)  # stages x scorings x queries
        for number, name in enumerate(("Expected Relevance", "Expected Gain")):
            curves[f"{name}, {part}"] = table[:, number]
    return rounds, curves


def _bins_table(bins: dict[int, int], comparison: Comparison) -> Table:
    columns = [
        Column("most bins"),
        Column("bins used"),
        Column("share of 2^16, %"),
        Column("NDCG@10 %"),
        Column("loss against 2^16, points"),
        Column("p, paired"),
    ]
    values = 100 * comparison.per_query("ndcg@10")
    last = EXPONENTS[-1]
    finest = values[comparison.place(f"bins-{last}")]
    rows = []
    for e in EXPONENTS:
        own = values[comparison.place(f"bins-{e}")]
        p = paired_t(by_query(comparison, finest), by_query(comparison, own)).p if e != last else 1.0
        share = 100 * bins[e] / bins[last]
        rows.append(
            [
                Cell(f"2^{e}", 2**e),
                Cell(f"{bins[e]:,}", bins[e]),
                Cell(f"{share:.2f}", share),
                Cell(f"{own.mean():.2f}", float(own.mean())),
                Cell(f"{(finest - own).mean():+.2f}", float((finest - own).mean())),
                Cell("" if e == last else p_words(p), p),
            ]
        )
    return Table("bins", "Panels (a) and (b): bins and what they cost", columns, rows)


def _scoring_table(rounds: list[int], curves: dict[str, FloatArray]) -> Table:
    columns = [Column("rounds"), *(Column(name) for name in curves)]
    rows = [
        [Cell(str(m), m), *(Cell(f"{v[i].mean():.2f}", float(v[i].mean())) for v in curves.values())]
        for i, m in enumerate(rounds)
    ]
    return Table("scoring", "Panel (c): NDCG@10 % by rounds", columns, rows)


def _bins_figure(bins: dict[int, int], loss: dict[int, float]) -> Figure:
    names = [f"2^{e}" for e in EXPONENTS]
    places = list(range(len(EXPONENTS)))
    share = [100 * bins[e] / bins[EXPONENTS[-1]] for e in EXPONENTS]
    lost = list(loss.values())
    panels = [
        Lines("Bins used", "most bins", "% of those at 2^16", [Line("", places, share, 0, dots=True)], names),
        Lines("NDCG loss", "most bins", "points of NDCG@10", [Line("", places, lost, 0, dots=True)], names),
    ]
    return Figure("bins", "Panels (a) and (b)", "Bins used and NDCG lost, relative to 2^16.", panels)


def _scoring_figure(rounds: list[int], curves: dict[str, FloatArray]) -> Figure:
    lines = [
        Line(name.removeprefix("Expected "), rounds, values.mean(axis=1).tolist(), number, dots=True)
        for number, (name, values) in enumerate(curves.items())
    ]
    panel = Lines("Two scoring functions", "round", "NDCG@10, %", lines, whole_x=True)
    return Figure("scoring", "Panel (c)", "Expected Relevance and Expected Gain over the rounds.", [panel])


def _bins_claims(bins: dict[int, int], comparison: Comparison, artificial: bool) -> list[Claim]:
    share = bins[8] / bins[16]
    values = 100 * comparison.per_query("ndcg@10")
    finest, own = (values[comparison.place(f"bins-{e}")] for e in (16, 8))
    interval = bootstrap_interval(by_query(comparison, finest - own))
    close = max(abs(interval.low), abs(interval.high)) < 2 * CLOSE
    apart = interval.low > CLOSE or interval.high < -CLOSE
    coarse = values[comparison.place("bins-3")]
    fine, rough = by_query(comparison, finest), by_query(comparison, coarse)
    return [
        judged(
            "McRank App. II",
            "2^8 bins reach the same test NDCG as 2^16",
            True if close else False if apart else None,
            f"{own.mean():.2f} against {finest.mean():.2f}; the loss is {interval.mean:+.2f} points, 95 % "
            f"interval {interval.low:+.2f} to {interval.high:+.2f}",
        ),
        judged(
            "McRank App. II",
            "at 2^8 there are about 6 % of the bins of 2^16",
            True if 0.03 < share < 0.12 else None,
            f"{share:.1%} here ({bins[8]:,} of {bins[16]:,}); the share depends on how many values the "
            "features have" + (", and these are continuous, unlike many of Web-1" if artificial else ""),
        ),
        judged(
            "McRank App. II",
            "few bins lose NDCG (quantization slows training down)",
            larger(*(paired_t(fine, rough, side).p for side in ("greater", "less"))),
            f"{coarse.mean():.2f} with 2^3 bins, {finest.mean():.2f} with 2^16, paired one-sided p "
            f"{p_words(paired_t(fine, rough, 'greater').p)}",
        ),
    ]


def _scoring_claims(rounds: list[int], curves: dict[str, FloatArray]) -> list[Claim]:
    claims = []
    last: dict[str, FloatArray] = {}
    for part in [part for part in ("test", "valid", "train") if f"Expected Gain, {part}" in curves]:
        relevance, gain = curves[f"Expected Relevance, {part}"], curves[f"Expected Gain, {part}"]
        gaps = (relevance - gain).mean(axis=1)
        last[part] = (relevance - gain)[-1]
        claims.append(
            judged(
                "McRank App. II",
                f"Expected Relevance is consistently better than Expected Gain ({part} queries)",
                all_larger([larger_at(r, g) for r, g in zip(relevance, gain, strict=True)]),
                f"by {gaps.min():+.2f} to {gaps.max():+.2f} points over {len(rounds)} stages, "
                f"{gaps[-1]:+.2f} at the end; ahead at {(gaps > 0).sum()} stages",
            )
        )
    above, below = larger_at(last["test"], np.zeros(len(last["test"])), CONSIDERABLY)
    claims.append(
        judged(
            "McRank App. II",
            f"the difference of the two is small on test queries (here: less than {CONSIDERABLY} points)",
            larger(below, above),
            f"{last['test'].mean():+.2f} points of NDCG@10 at the last round; one-sided p of less than "
            f"{CONSIDERABLY} {p_words(below)}",
        )
    )
    both: list[dict[Hashable, float]] = [dict(enumerate(last[part].tolist())) for part in ("train", "test")]
    more, less = (unpaired_t(both[0], both[1], side).p for side in ("greater", "less"))
    claims.append(
        judged(
            "McRank App. II",
            "the difference is smaller on test queries than on training queries",
            larger(more, less),
            f"{last['test'].mean():+.2f} against {last['train'].mean():+.2f} points at the last round, "
            f"unpaired one-sided p {p_words(more)}",
        )
    )
    return claims
