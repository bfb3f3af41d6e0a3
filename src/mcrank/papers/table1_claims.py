"""What section 6.3 and others of the McRank paper claim, and what the rankers of `table1` say of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.experiments.comparison import Comparison
from mcrank.metrics.dcg import NDCG
from mcrank.metrics.evaluate import evaluate
from mcrank.metrics.lemma import check_classification
from mcrank.papers.grounds import CONTROL, OTHER_VARIANT, graded
from mcrank.papers.outcome import (
    CONSIDERABLY,
    FAR_AHEAD,
    Claim,
    about,
    all_larger,
    judged,
    larger,
    larger_at,
    larger_by,
    p_words,
)
from mcrank.papers.protocols import NET
from mcrank.papers.run import Run
from mcrank.stats import bootstrap_interval, paired_t, unpaired_t_from_summary

# Its significance tests: data, queries, better (mean, std), other (mean, std), p as printed.
PRINTED = (
    ("Web-1, ordinal over regression", 10_000, (72.4, 24.1), (71.7, 24.4), 0.021),
    ("Web-1, ordinal over LambdaRank", 10_000, (72.4, 24.1), (71.2, 24.5), 0.0002),
    ("Web-2, classification over regression", 3_800, (75.8, 23.8), (74.7, 24.4), 0.023),
    ("Web-2, classification over LambdaRank", 3_800, (75.8, 23.8), (74.3, 24.3), 0.003),
    ("Web-3, ordinal over regression", 26_000, (72.5, 26.5), (72.0, 27.6), 0.017),
    ("Web-3, ordinal over LambdaRank", 26_000, (72.5, 26.5), (71.3, 28.8), 3.8e-7),
)
ByPlace = Mapping[Hashable, float]
SECTION = "McRank 6.3"
RANKNET = "RankNet, two layers"


@dataclass(frozen=True, eq=False)
class Line:
    """A ranker at some number of rounds: NDCG@10 of every test query."""

    name: str
    rounds: int
    trees: int
    values: FloatArray

    @property
    def words(self) -> str:
        """Mean and standard deviation in per cent, as the paper prints them."""
        return f"{100 * self.values.mean():.2f} ({100 * self.values.std():.2f})"


def by_place(lines: Mapping[str, Line]) -> dict[str, ByPlace]:
    """Values of every line by the place of the query, as `mcrank.stats` takes them."""
    return {name: dict(enumerate(line.values.tolist())) for name, line in lines.items()}


def claims(forests: Comparison, lines: dict[str, Line], other: dict[str, Line], run: Run) -> list[Claim]:
    """Judge what the table's rankers can say; ``other`` are those under another generator."""
    return [
        *_order_claims(lines, other, run),
        *_scoring_claims(forests),
        _shift_claim(forests),
        _printed_claim(),
    ]


def recomputed(n: int, better: tuple[float, float], other: tuple[float, float]) -> float:
    """The paper's test, from what it printed."""
    return unpaired_t_from_summary(*better, n, *other, n, alternative="greater").p


def _printed_claim() -> Claim:
    shares = [recomputed(n, a, b) / p for _, n, a, b, p in PRINTED]
    near = all(0.8 < share < 1.25 for share in shares)
    return judged(
        "McRank Table 1",
        "p-values are those of a one-sided t-test",
        near,
        "the six that are not 0 come out of the printed means and deviations by an unpaired test, within "
        f"{max(abs(share - 1) for share in shares):.0%} (means are rounded to 0.1); a paired test, which the "
        "same queries allow, would have been sharper",
        any_size=True,
    )


def _order_claim(lines: dict[str, Line], other: dict[str, Line]) -> Claim:
    """Classification against regression: told by two generators, as the paper does not give its own."""
    sides, told = [], []
    generators = [("default", lines), (OTHER_VARIANT, other)] if other else [("", lines)]
    for name, found in generators:
        a, b = (dict(enumerate(100 * found[key].values)) for key in ("classification", "regression"))
        p = larger_by(a, b)
        sides.append(larger(*p))
        told.append(
            f"{found['classification'].words} against {found['regression'].words}, paired one-sided p "
            + p_words(p[0])
            + (f" (generator {name})" if name else "")
        )
    depends = ". It depends on data the paper does not describe: see the study of generators" if other else ""
    holds = sides[0] if len(set(sides)) == 1 else None
    return judged(SECTION, "classification beats regression", holds, "; ".join(told) + depends)


def _size_claims(values: Mapping[str, ByPlace], told: Callable[[str, str], str]) -> list[Claim]:
    """Claims whose words name a size: "far ahead", "considerably"."""
    points = {name: {q: 100 * v for q, v in own.items()} for name, own in values.items()}
    net, trees = NET, ("ordinal", "classification", "regression")
    lad = "regression, least absolute deviation"
    return [
        judged(
            SECTION,
            f"all three tree rankers are far ahead of LambdaRank (here: by more than {FAR_AHEAD} points)",
            all_larger([larger_by(points[name], points[net], FAR_AHEAD) for name in trees]),
            "; ".join(told(name, net) for name in trees),
        ),
        judged(
            "McRank 5",
            "least absolute deviation is considerably worse than least squares (here: by more than "
            f"{CONSIDERABLY} points)",
            larger(*larger_by(points["regression"], points[lad], CONSIDERABLY)),
            told("regression", lad),
        ),
    ]


def _order_claims(lines: dict[str, Line], other: dict[str, Line], run: Run) -> list[Claim]:
    control = f"regression, {CONTROL * run.sizes.rounds} rounds"
    values = by_place(lines)

    def told(a: str, b: str) -> str:
        p = paired_t(values[a], values[b], "greater").p
        return f"{lines[a].words} against {lines[b].words}, paired one-sided p {p_words(p)}"

    def beats(a: str, b: str, words: str) -> Claim:
        return judged(SECTION, words, larger(*larger_by(values[a], values[b])), told(a, b))

    rounds = run.sizes.rounds
    half = f", {rounds // 2} rounds"
    later = [(name, name + half) for name in ("ordinal", "classification", "regression")]
    rising = all_larger([larger_by(values[a], values[b]) for a, b in [*later, (control, "regression")]])
    nets = (NET, RANKNET)
    gain = bootstrap_interval({q: 100 * (values[nets[0]][q] - values[nets[1]][q]) for q in values[nets[0]]})
    return [
        beats(
            "ordinal", "classification", "ordinal classification beats classification on the artificial data"
        ),
        _order_claim(lines, other),
        beats("ordinal", "regression", "ordinal classification beats regression"),
        *_size_claims(values, told),
        judged(
            "McRank 6",
            "LambdaRank improves on RankNet by about 1.0 point",
            about(gain.low, gain.high, 0.5, 1.5),
            f"by {gain.mean:+.2f}, 95 % interval {gain.low:+.2f} to {gain.high:+.2f}: {told(*nets)}",
        ),
        judged(
            "McRank 6.2",
            "no obvious over-fitting even for very many rounds",
            rising,
            f"{lines['ordinal' + half].words} to {lines['ordinal'].words} (ordinal) and "
            f"{lines['classification' + half].words} to {lines['classification'].words} (classification) "
            f"from {rounds // 2} to {rounds} rounds; {lines[control].words} for regression "
            f"at {CONTROL * rounds}",
        ),
        beats(
            "ordinal",
            control,
            "(control, not in the paper) ordinal classification is ahead of regression also when regression "
            "has as many trees as classification",
        ),
    ]


def _scoring_claims(forests: Comparison) -> list[Claim]:
    """Claims of section 3 on the predictions of classification."""
    test = graded(forests)
    probabilities = forests.probabilities["classification"]
    classes = forests.levels[np.argmax(probabilities, axis=1)]
    check = check_classification(classes, test, k=10)
    fair = "ndcg@10[standard;ties=expected]"
    by_class = evaluate(classes, test, fair, band=True)
    (name,) = by_class.mean
    low, high = by_class.band[name]
    own = forests.per_query("ndcg@10")[forests.place("classification")]
    expected, better = float(own.mean()), larger_at(own, by_class.per_query[name])
    return [
        judged(
            "McRank 3.1",
            "the DCG error is bounded by the classification error (Lemma 1)",
            check.holds,
            f"no test query of {len(check.loss):,} loses more than its bound; the nearest loses "
            f"{check.tightest:.0%} of it",
            any_size=True,
        ),
        judged(
            "McRank 3.3",
            "ranking by predicted class is unstable; Expected Relevance is stable and better",
            larger(*better),
            f"by class {100 * low:.1f} to {100 * high:.1f} with the worst and the best order of ties, "
            f"{100 * by_class.mean[name]:.1f} on average; by Expected Relevance {100 * expected:.1f}, paired "
            f"one-sided p {p_words(better[0])}",
        ),
    ]


def _shift_claim(forests: Comparison) -> Claim:
    """Section 3.1: a classifier that is always one level too low errs on every row and ranks perfectly."""
    test = graded(forests)
    values = NDCG(k=10).on(test).per_query(test.y - 1.0)
    empty = np.maximum.reduceat(test.y, test.offsets[:-1]) <= 0
    perfect = bool(np.all(np.abs(values[~empty] - 1.0) < 1e-12))
    return judged(
        "McRank 3.1",
        "predicting every grade one level too low still gives a perfect DCG",
        perfect,
        f"NDCG@10 is 1 on {'all' if perfect else 'not all'} {(~empty).sum():,} queries with a relevant row",
        any_size=True,
    )
