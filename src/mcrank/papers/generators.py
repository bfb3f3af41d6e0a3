"""Is the order of Table 1 a fact of the rankers or of the data? Its four rankers under many generators."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.artificial import TOP_HEAVY, WEB, YAHOO
from mcrank.papers.grounds import CALIBRATED, N_OTHER_FORESTS, RATES, Artificial, Generator, four_rankers
from mcrank.papers.outcome import LEVEL, Claim, Reproduction, judged, larger_at, p_words
from mcrank.papers.protocols import NET
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Intervals
from mcrank.report.tables import Cell, Column, Table
from mcrank.stats import bootstrap_interval, holm

# Shares of the grades 0 to 4, and of the linear, quadratic and cubic part in the variance of the target.
LEVELS = {
    "web": WEB,
    "yahoo": YAHOO,
    "top-heavy": TOP_HEAVY,
    "equal": (0.2, 0.2, 0.2, 0.2, 0.2),
    "rare-top": (0.50, 0.30, 0.15, 0.04, 0.01),
}
DEGREES = {
    "equal": (1 / 3, 1 / 3, 1 / 3),
    "linear": (0.55, 0.25, 0.20),
    "cubic": (0.33, 0.20, 0.47),
    "calibrated": (0.37, 0.325, 0.305),
}


class Outcome(NamedTuple):
    """A generator, the share of its bottom and top grades, and NDCG@10 (per cent) of the four rankers."""

    levels: str
    degrees: str
    values: dict[str, FloatArray]

    @property
    def name(self) -> str:
        """Levels and degrees."""
        return f"{self.levels}, {self.degrees}"

    @property
    def ends(self) -> float:
        """Share of rows with the lowest or the highest grade."""
        return float(LEVELS[self.levels][0] + LEVELS[self.levels][-1])


def trainings(run: Run) -> int:
    """How many rankers are trained."""
    return len(LEVELS) * len(DEGREES) * (N_OTHER_FORESTS + len(RATES))


def make(run: Run) -> Reproduction:
    """Train the four rankers on every generator; tell orders, gaps and what decides them."""
    found = []
    for levels, shares in LEVELS.items():
        for degrees, variance in DEGREES.items():
            options = {"levels": shares, "weights": tuple(math.sqrt(share) for share in variance)}
            ground = Artificial(run, Generator.of(f"{levels}-{degrees}", variant="G1-web", **options))
            values = {name: 100 * own for name, own in four_rankers(ground).items()}
            found.append(Outcome(levels, degrees, values))
    return Reproduction(
        "generators",
        "Table 1 under many generators",
        f"{run.sizes.words}, {run.protocol.words}; one polynomial each (seed {run.seed}). The paper says "
        "“random cubic polynomials” and no more: neither shares of grades nor weights of degrees.",
        [_table(found)],
        [_figure(found)],
        [_order(found), *_what_decides(found)],
        [f"Of the generators, {CALIBRATED}. The list was drawn up after the default one had been seen."],
        "artificial data of many generators; the paper's own is not published"
        + (f". This run is smaller than the paper's: {run.sizes.smaller}" if run.sizes.smaller else ""),
    )


def _gap(outcome: Outcome) -> FloatArray:
    return outcome.values["classification"] - outcome.values["regression"]


def _table(found: list[Outcome]) -> Table:
    rankers = ("ordinal", "classification", "regression", NET)
    columns = [
        Column("grades", numeric=False),
        Column("degrees", numeric=False),
        *(Column(name) for name in rankers),
        Column("classification over regression"),
        Column("p, paired"),
        Column("order", numeric=False),
    ]
    rows = []
    for outcome in found:
        means = {name: float(outcome.values[name].mean()) for name in rankers}
        order = " > ".join(sorted(rankers, key=lambda name: -means[name]))
        gap = float(_gap(outcome).mean())
        p = min(_sides(outcome))
        rows.append(
            [
                Cell(outcome.levels),
                Cell(outcome.degrees),
                *(Cell(f"{means[name]:.2f}", means[name]) for name in rankers),
                Cell(f"{gap:+.2f}", gap),
                Cell(p_words(p), p),
                Cell(order),
            ]
        )
    return Table("generators", "NDCG@10 % of four rankers under each generator", columns, rows)


def _sides(outcome: Outcome) -> tuple[float, float]:
    return larger_at(outcome.values["classification"], outcome.values["regression"])


def _figure(found: list[Outcome]) -> Figure:
    intervals = [bootstrap_interval(dict(enumerate(_gap(outcome).tolist()))) for outcome in found]
    panel = Intervals(
        "Classification over regression",
        "points of NDCG@10",
        [outcome.name for outcome in found],
        [one.mean for one in intervals],
        [one.low for one in intervals],
        [one.high for one in intervals],
    )
    text = "Mean difference with its 95 % interval, one generator a line: grades first, degrees second."
    return Figure("gaps", "What the generator does to the order", text, [panel])


def _order(found: list[Outcome]) -> Claim:
    sides = [_sides(outcome) for outcome in found]
    ahead, behind = (sum(p < LEVEL for p in holm([pair[side] for pair in sides])) for side in (0, 1))
    return judged(
        "McRank 6.3",
        "classification beats regression on random cubic polynomials",
        True if ahead == len(found) else False if behind == len(found) else None,
        f"significantly (Holm) ahead under {ahead} of {len(found)} generators, behind under {behind}: it "
        "depends on data the paper does not describe",
    )


def _what_decides(found: list[Outcome]) -> list[Claim]:
    """Not in the paper: does the share of the extreme grades go along with the gap?"""
    ends = np.array([outcome.ends for outcome in found])
    gaps = np.array([_gap(outcome).mean() for outcome in found])
    from scipy.stats import spearmanr

    rank = spearmanr(ends, gaps)
    return [
        judged(
            "(ours)",
            "large bottom and top grades favour classification",
            True if rank.statistic > 0 and rank.pvalue < 0.05 else False if rank.pvalue < 0.05 else None,
            f"rank correlation of the share of extreme grades with the gap {rank.statistic:+.2f}, p "
            f"{p_words(float(rank.pvalue))}, over {len(found)} generators",
        )
    ]
