"""Sections 3.4 and 6.2 of the McRank paper: "not sensitive" to M, J and nu within reasonable ranges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.experiments.entries import Entry
from mcrank.metrics.dcg import NDCG
from mcrank.papers.grounds import Ground, ground_of, staged
from mcrank.papers.outcome import LEVEL, Claim, Reproduction, judged
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table
from mcrank.stats import bootstrap_interval

FOLDER = "sensitivity"
# Around the paper's setting: nu up to 0.1 (section 6.2, after Friedman), J from half to four times as many.
LEAVES = (0.5, 1.0, 2.0, 4.0)
RATES = (0.4, 1.0, 2.0)
STAGES = (0.25, 0.5, 0.75, 1.0)
PARAMETERS = {"M": "rounds", "J": "leaves", "ν": "rate"}
TITLES = {"classification": "mcrank", "ordinal": "ordinal", "regression": "regression"}
# Points of NDCG@10 within which a change of a parameter is "not sensitive": the smallest difference between
# two rankers that the paper calls an improvement (Web-3, regression to ordinal: 72.0 to 72.5).
NOT_SENSITIVE = 0.5


class Setting(NamedTuple):
    """One model: the ranker, J, nu, and after how many rounds it is scored."""

    ranker: str
    leaves: int
    rate: float
    rounds: int


def trainings(run: Run) -> int:
    """How many rankers are trained."""
    return len(TITLES) * len(LEAVES) * len(RATES) * ground_of(run).n_folds


def make(run: Run) -> Reproduction:
    """Train every J with every nu once; the rounds in between are stages of those trainings."""
    ground = ground_of(run)
    found = _values(ground)
    own = Setting("", run.protocol.leaves, run.protocol.rate, run.sizes.rounds)
    return Reproduction(
        "sensitivity",
        "How sensitive boosting is to M, J and ν (sections 3.4 and 6.2 of the McRank paper)",
        f"{ground.words}. J from half to four times the paper's value, ν from 0.4 to twice, M at four "
        "stages, all combinations; NDCG@10 in per cent. The paper states the claim and gives no experiment.",
        [_table(found)],
        [_figure(found, ranker) for ranker in TITLES],
        [_claim(found, ranker, own, name) for ranker in TITLES for name in PARAMETERS],
        [
            "Ranges and the bound of half a point are ours: the paper says only “reasonable”.",
            "Each claim changes one parameter and leaves the others at the paper's; the table has all "
            "combinations. Its intervals hold together with 95 % (each is wider, by their number).",
        ],
        ground.tried_on,
    )


def _values(ground: Ground) -> dict[Setting, FloatArray]:
    run = ground.run
    leaves = sorted({max(2, round(share * run.protocol.leaves)) for share in LEAVES})
    rates = [round(share * run.protocol.rate, 6) for share in RATES]
    stages = sorted({max(1, round(share * run.sizes.rounds)) for share in STAGES})
    entries = {
        _key(name, j, rate): Entry(ranker, ground.trees(num_leaves=j, learning_rate=rate))
        for name, ranker in TITLES.items()
        for j in leaves
        for rate in rates
    }
    ground.forests(FOLDER, entries)
    found: dict[Setting, list[FloatArray]] = {}
    for number in range(ground.n_folds):
        test = ground.fold(number).test
        prepared = NDCG(k=10).on(test)
        for name in TITLES:
            for j in leaves:
                for rate in rates:
                    ranker = ground.model(FOLDER, _key(name, j, rate), number)
                    for stage, raw in zip(stages, staged(ranker, test, stages), strict=True):
                        values = prepared.per_query(np.ascontiguousarray(ranker.head_.rank(raw)))
                        found.setdefault(Setting(name, j, rate, stage), []).append(100 * values)
    return {setting: np.concatenate(parts) for setting, parts in found.items()}


def _key(name: str, leaves: int, rate: float) -> str:
    return f"{name}-j{leaves}-nu{round(1e6 * rate)}e-6"


def _table(found: dict[Setting, FloatArray]) -> Table:
    stages = sorted({s.rounds for s in found})
    columns = [
        Column("ranker", numeric=False),
        Column("J"),
        Column("ν"),
        *(Column(f"M = {m}") for m in stages),
    ]
    rows = []
    for first in (s for s in found if s.rounds == stages[0]):
        means = [float(found[first._replace(rounds=m)].mean()) for m in stages]
        named = [
            Cell(first.ranker),
            Cell(str(first.leaves), first.leaves),
            Cell(f"{first.rate:g}", first.rate),
        ]
        rows.append([*named, *(Cell(f"{mean:.2f}", mean) for mean in means)])
    return Table("settings", "NDCG@10 % of every setting", columns, rows)


def _figure(found: dict[Setting, FloatArray], ranker: str) -> Figure:
    pairs = sorted({(s.leaves, s.rate) for s in found})
    lines = []
    for number, (leaves, rate) in enumerate(pairs):
        at = sorted((s.rounds, s) for s in found if (s.ranker, s.leaves, s.rate) == (ranker, leaves, rate))
        means = [float(found[s].mean()) for _, s in at]
        lines.append(Line(f"J {leaves}, ν {rate:g}", [m for m, _ in at], means, number, dots=True))
    panel = Lines(f"{ranker}: NDCG@10 by rounds", "rounds M", "NDCG@10, %", lines, whole_x=True)
    return Figure(ranker, f"{ranker.capitalize()}", "One line for each J and ν.", [panel])


def _claim(found: dict[Setting, FloatArray], ranker: str, own: Setting, name: str) -> Claim:
    """Judge one parameter, the others being the paper's."""
    paper = own._replace(ranker=ranker)
    field = PARAMETERS[name]
    nearby = [s for s in found if s != paper and s._replace(**{field: getattr(paper, field)}) == paper]
    level = 1 - LEVEL / len(nearby)
    gaps = {
        s: bootstrap_interval(dict(enumerate((found[s] - found[paper]).tolist())), level=level)
        for s in nearby
    }
    within = [s for s in nearby if max(-gaps[s].low, gaps[s].high) < NOT_SENSITIVE]
    beyond = [s for s in nearby if gaps[s].high < -NOT_SENSITIVE or gaps[s].low > NOT_SENSITIVE]
    told = ", ".join(
        f"{gaps[s].mean:+.2f} ({gaps[s].low:+.2f} to {gaps[s].high:+.2f}) with {getattr(s, field):g}"
        for s in nearby
    )
    return judged(
        "McRank 3.4, 6.2",
        f"{ranker} is not sensitive to {name} (here: within {NOT_SENSITIVE} points of the paper's setting)",
        False if beyond else True if len(within) == len(nearby) else None,
        f"{found[paper].mean():.2f} with {name} = {getattr(paper, field):g}; {told}",
    )
