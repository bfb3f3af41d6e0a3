"""What the apple-to-apple paper claims, and what the rankers here say of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.papers.advice import frank_claims, recommendations
from mcrank.papers.apples import PUBLISHED, TITLES, TRAINED, Orchard
from mcrank.papers.outcome import LEVEL, Claim, all_larger, judged, larger, p_words
from mcrank.stats import holm, paired_t

METRIC_DRIVEN = ("adarank", "lambdamart", "coordinate-ascent")
OTHERS = ("ranknet", "ranksvm", "rankboost")


def claims(orchard: Orchard) -> list[Claim]:
    """Judge every claim that MQ2008 can test."""
    return [
        *_scale_claims(orchard),
        *_training_claims(orchard),
        *_order_claims(orchard),
        *_adarank_claims(orchard),
        *_tool_claims(orchard),
        *recommendations(orchard),
        *frank_claims(orchard),
    ]


def _test(orchard: Orchard, a: Any, b: Any, alternative: str = "two-sided") -> float:
    qids = orchard.comparison.qids.tolist()
    first, second = (dict(zip(qids, values.tolist(), strict=True)) for values in (a, b))
    return paired_t(first, second, alternative).p


def _judge(orchard: Orchard, a: Any, b: Any) -> tuple[bool | None, str]:
    """Whether a is larger than b, and the words for it."""
    p, against = (_test(orchard, a, b, side) for side in ("greater", "less"))
    words = f"{a.mean():.4f} against {b.mean():.4f}, paired one-sided p {p_words(p)}"
    return larger(p, against), words


def _scale_claims(orchard: Orchard) -> list[Claim]:
    shift = np.array(
        [
            (orchard.values(r, "standard", "yahoo") - orchard.values(r, "standard", "standard")).mean()
            for r in TITLES
        ]
    )
    empty = float(orchard.empty.mean())
    only_empty = all(
        np.allclose(  # another base of the logarithm rounds otherwise
            orchard.values(r, "standard", "yahoo")[~orchard.empty],
            orchard.values(r, "standard", "standard")[~orchard.empty],
            rtol=0,
            atol=1e-12,
        )
        for r in TITLES
    )
    drops = {
        k: [
            (
                orchard.values(r, "standard", "standard", k) - orchard.values(r, "standard", "letor-paper", k)
            ).mean()
            for r in TITLES
        ]
        for k in (5, 8, 10)
    }
    return [
        judged(
            "Apples 5",
            "scores by the YAHOO tool are around 0.25 higher, which comes solely from empty queries",
            bool(only_empty and abs(shift - 0.25).max() < 0.05),
            f"{shift.min():.4f} to {shift.max():.4f} higher; the share of empty queries is {empty:.4f}, and "
            f"{'no' if only_empty else 'some'} other query differs",
        ),
        judged(
            "Apples 5",
            "scores by the LETOR tool fall rapidly at cut-offs 8 to 10, by around or above 0.25",
            bool(min(drops[10]) > 0.2),
            f"below standard by {min(drops[5]):.3f} to {max(drops[5]):.3f} at 5, {min(drops[8]):.3f} to "
            f"{max(drops[8]):.3f} at 8, {min(drops[10]):.3f} to {max(drops[10]):.3f} at 10",
        ),
    ]


def _training_claims(orchard: Orchard) -> list[Claim]:
    made = []
    changed = {
        r: [t for t in TRAINED if t != "standard" and not orchard.same_model(r, "standard", t)]
        for r in TITLES
    }
    words = "; ".join(f"{TITLES[r]}: {', '.join(changed[r]) or 'none'}" for r in METRIC_DRIVEN)
    made.append(
        judged(
            "Apples 5",
            "AdaRank, LambdaMART and Coordinate Ascent become other models when trained by another tool",
            all(changed[r] for r in METRIC_DRIVEN),
            f"dialects whose model differs from the one trained towards standard: {words}",
        )
    )
    same = {r: orchard.same_model(r, "standard", "yahoo") for r in TITLES}
    made.append(
        judged(
            "Apples 5",
            "YAHOO against RANKLIB changes the models of AdaRank and LambdaMART (blue and black curves)",
            not same["adarank"] and not same["lambdamart"],
            "AdaRank: "
            + ("the same model" if same["adarank"] else "another model (only α feels empty queries)")
            + "; LambdaMART: "
            + ("the same model, every test score equal" if same["lambdamart"] else "another model")
            + "; Coordinate Ascent: "
            + ("the same model" if same["coordinate-ascent"] else "another model")
            + ". Empty queries have no pairs, and a constant moves no maximum: for LambdaMART and Coordinate "
            "Ascent the two tools are one by construction",
        )
    )
    for ranker in METRIC_DRIVEN:
        for trained in ("letor-paper", "letor4"):
            holds, evidence = _judge(
                orchard, orchard.values(ranker, "standard"), orchard.values(ranker, trained)
            )
            words = f"{TITLES[ranker]} is significantly worse when trained by LETOR ({trained})"
            made.append(judged("Apples 5", words, holds, evidence))
    for ranker in ("adarank", "lambdamart"):
        holds, evidence = _judge(orchard, orchard.values(ranker, "yahoo"), orchard.values(ranker, "standard"))
        words = f"{TITLES[ranker]} is slightly better when trained by YAHOO than by RANKLIB"
        if same[ranker]:
            holds, evidence = False, f"the same model, {orchard.values(ranker, 'standard').mean():.4f} both"
        made.append(judged("Apples 5", words, holds, evidence))
    made.append(_best_trainer(orchard))
    moved = {r: changed[r] for r in OTHERS if changed[r]}
    made.append(
        judged(
            "Apples 4, 5",
            "RankNet, RankSVM and RankBoost do not use NDCG in training, only to choose on validation data",
            all(orchard.same_model(r, "standard", "yahoo") for r in OTHERS),
            "towards yahoo and standard the models are the same for "
            f"{', '.join(TITLES[r] for r in OTHERS if same[r]) or 'none'}; a LETOR dialect chooses "
            f"another round, epoch or C for {', '.join(TITLES[r] for r in moved) or 'none'}",
        )
    )
    return made


def _best_trainer(orchard: Orchard) -> Claim:
    """YAHOO is in general equal or better than the other tools as a target."""
    gaps = {
        (r, t): orchard.values(r, "yahoo") - orchard.values(r, t)
        for r in TITLES
        for t in ("standard", "letor-paper")
    }
    zeros = np.zeros(orchard.comparison.n_queries)
    less, greater = (
        dict(zip(gaps, holm([_test(orchard, gap, zeros, side) for gap in gaps.values()]), strict=True))
        for side in ("less", "greater")
    )
    worse = [f"{TITLES[r]} ({t}, {gaps[r, t].mean():+.4f})" for r, t in gaps if less[r, t] < LEVEL]
    better = sum(p < LEVEL for p in greater.values())
    lower = sum(gap.mean() < 0 for gap in gaps.values())
    return judged(
        "Apples 5",
        "the best metric to train by is YAHOO: equal or better models in general",
        False if worse else True if better else None,
        f"of {len(gaps)} pairs of a ranker and another tool, after correction YAHOO is better in {better} "
        f"and worse in {len(worse)}{': ' + ', '.join(worse) if worse else ''}; its mean is lower "
        f"in {lower}",
    )


def _order_claims(orchard: Orchard) -> list[Claim]:
    made = []
    leaders = {}
    for scored in ("standard", "yahoo", "letor-paper", "letor4"):
        means = {r: float(orchard.values(r, "standard", scored).mean()) for r in TITLES}
        leaders[scored] = max(means, key=lambda r: means[r])
    best = orchard.values(leaders["standard"], "standard")
    ascent = orchard.values("coordinate-ascent", "standard")
    leads = leaders["standard"] == "coordinate-ascent"
    p = 1.0 if leads else _test(orchard, best, ascent)
    behind = "" if leads else f", the leader {best.mean():.4f}, two-sided p {p_words(p)}"
    always = all(leader == "coordinate-ascent" for leader in leaders.values())
    made.append(
        judged(
            "Apples 5",
            "Coordinate Ascent has a slight advantage whichever metric scores",
            True if always else False if p < 0.05 else None,
            "; ".join(f"{TITLES[r]} leads under {s}" for s, r in leaders.items())
            + f". By standard: Coordinate Ascent {ascent.mean():.4f}{behind}",
        )
    )
    three = ("rankboost", "ranksvm", "lambdamart")
    trio = {r: orchard.values(r, "standard") for r in three}
    spread = max(v.mean() for v in trio.values()) - min(v.mean() for v in trio.values())
    lowest = min(
        holm([_test(orchard, trio[a], trio[b]) for i, a in enumerate(three) for b in three[i + 1 :]])
    )
    made.append(
        judged(
            "Apples 5",
            "RankBoost, RankSVM and LambdaMART are very close to each other",
            bool(lowest > 0.05),
            ", ".join(f"{TITLES[r]} {v.mean():.4f}" for r, v in trio.items())
            + f"; spread {spread:.4f}, smallest two-sided p of a pair, corrected, {p_words(lowest)}",
        )
    )
    orders = {
        s: sorted(three, key=lambda r: -float(orchard.values(r, "standard", s).mean()))
        for s in ("standard", "letor-paper")
    }
    made.append(
        judged(
            "Apples 5",
            "the order of these three changes with the metric that scores",
            True if orders["standard"] != orders["letor-paper"] else None,
            "; ".join(f"{s}: {' > '.join(TITLES[r] for r in order)}" for s, order in orders.items()),
        )
    )
    made.append(_short_claim(orchard))
    return made


def _short_claim(orchard: Orchard) -> Claim:
    short = orchard.sizes < 10
    words = "RankBoost has a slight advantage on short queries, which disappears under LETOR"
    if short.all() or not short.any():
        return judged("Apples 5", words, None, f"{short.sum()} of {len(short)} test queries are short")
    told, sides = [], []
    for other in ("ranksvm", "lambdamart"):
        gap = orchard.values("rankboost", "standard") - orchard.values(other, "standard")
        on_short = np.where(short, gap, 0.0)
        p, against = (_test(orchard, on_short, np.zeros_like(gap), side) for side in ("greater", "less"))
        sides.append((p, against))
        told.append(
            f"against {TITLES[other]} {gap[short].mean():+.4f} on queries below 10 documents (one-sided p "
            f"{p_words(p)}) and {gap[~short].mean():+.4f} on the others"
        )
    return judged("Apples 5", words, all_larger(sides), "; ".join(told))


def _adarank_claims(orchard: Orchard) -> list[Claim]:
    comparison = orchard.comparison
    told = []
    falls = []
    for ranker in ("adarank", PUBLISHED):
        curves = [
            comparison.curves[orchard.key(ranker, "letor-paper"), fold.name] for fold in comparison.folds
        ]
        first, last = (float(np.mean([curve["short"][at] for curve in curves])) for at in (0, -1))
        falls.append(last < first)
        name = "RankLib's update" if ranker == "adarank" else "the published one"
        told.append(f"{name}: {first:.3f} to {last:.3f}")
    others = [r for r in TITLES if r != "adarank"]
    means = {r: orchard.values(r, "standard") for r in TITLES}
    tests = holm([_test(orchard, means[r], means["adarank"], "greater") for r in others])
    behind = [r for r, p in zip(others, tests, strict=True) if p < LEVEL]
    script = {r: float(orchard.values(r, "standard", "letor4").mean()) for r in ("adarank", PUBLISHED)}
    return [
        judged(
            "Apples 3",
            "under LETOR the weight of short queries in AdaRank converges to zero",
            all(falls),
            "share of short (not empty) queries in the weights, first and last round, mean of the folds: "
            + "; ".join(told)
            + ". Their measure is 0 whatever the ranking: they take the largest weight, not the smallest",
        ),
        judged(
            "Apples 5",
            "the competitive results of AdaRank cannot be reproduced",
            True if len(behind) >= len(others) - 1 else None if behind else False,
            f"AdaRank {means['adarank'].mean():.4f}, significantly behind "
            f"{', '.join(TITLES[r] for r in behind) or 'nobody'}; by the LETOR script "
            f"{script['adarank']:.4f} (RankLib's update) and {script[PUBLISHED]:.4f} (published); about "
            ".2307 in LETOR's own table",
        ),
    ]


def _tool_claims(orchard: Orchard) -> list[Claim]:
    comparison = orchard.comparison
    three = orchard.values("ranksvm", "standard", "letor3")
    plain = orchard.values("ranksvm", "standard", "standard")
    short = orchard.sizes < 10
    lost = int(((three == 0) & (plain > 0))[short].sum())
    tied = {
        r: comparison.evaluate(orchard.key(r, "standard"), "ndcg@10").counts["tied at 10"] for r in TITLES
    }
    return [
        judged(
            "Apples 3",
            "the LETOR 3.0 script computes NDCG by the definition",
            lost == 0,
            f"{lost} short queries that have a value by the definition count 0 in its mean "
            f"({three.mean():.4f} against {plain.mean():.4f} for RankSVM)",
        ),
        judged(
            "Apples 5",
            "ties are rare and can be left aside",
            bool(max(tied.values()) < 0.05 * comparison.n_queries),
            "queries with equal scores across rank 10: "
            + ", ".join(f"{TITLES[r]} {count}" for r, count in tied.items())
            + f" of {comparison.n_queries}",
        ),
    ]
