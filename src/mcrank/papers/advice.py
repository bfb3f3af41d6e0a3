"""The apple-to-apple paper's three recommendations, tried; and what the McRank paper reports of FRank."""

from __future__ import annotations

from mcrank.papers.apples import TITLES, Orchard
from mcrank.papers.outcome import CONSIDERABLY, LEVEL, Claim, judged, larger, larger_at, p_words
from mcrank.stats import holm
from mcrank.stats.paired import t_test


def _order(orchard: Orchard, scored: str) -> list[str]:
    """The six rankers from best to worst."""
    return sorted(TITLES, key=lambda r: -float(orchard.values(r, "standard", scored).mean()))


def recommendations(orchard: Orchard) -> list[Claim]:
    """The paper's three recommendations (section 6), tried."""
    plain, letor = (_order(orchard, scored) for scored in ("standard", "letor-paper"))
    moved = [TITLES[r] for r in plain if plain.index(r) != letor.index(r)]
    made = [
        judged(
            "Apples 6 (1)",
            "tools that give 0 to short queries report another order of the algorithms",
            plain != letor,
            f"standard: {_told(plain)}; letor-paper: {_told(letor)}; moved: {', '.join(moved) or 'nobody'} "
            "(the order of the means: most neighbours are not significantly apart)",
        )
    ]
    dropped = orchard.dropped
    if dropped is not None:
        made.append(_empty_claim(orchard, dropped))
    raised = max(
        abs(float((orchard.values(r, "yahoo", "yahoo") - orchard.values(r, "yahoo")).mean())) for r in TITLES
    )
    made.append(
        judged(
            "Apples 6 (3)",
            "whatever trained a system, the final evaluation must follow the definition to be comparable",
            raised > 0.01,
            f"the same models differ by up to {raised:.4f} between the YAHOO tool and the definition, more "
            "than any two rankers here",
        )
    )
    return made


def _told(order: list[str]) -> str:
    return " > ".join(TITLES[r] for r in order)


def _empty_claim(orchard: Orchard, dropped: Orchard) -> Claim:
    """Second recommendation: data sets without queries that have no relevant document."""
    kept = ~orchard.empty
    tests, told = [], []
    for ranker in TITLES:
        before, after = orchard.values(ranker, "standard")[kept], dropped.values(ranker, "standard")
        tests.append(t_test(after, before).p)
        told.append(f"{TITLES[ranker]} {before.mean():.4f} to {after.mean():.4f}")
    changed = [TITLES[r] for r, p in zip(TITLES, holm(tests), strict=True) if p < LEVEL]
    before_order, after_order = _order(orchard, "standard"), _order(dropped, "standard")
    return judged(
        "Apples 6 (2)",
        "queries without a relevant document harm some algorithms: training without them changes results",
        bool(changed) or None,
        "on the other test queries, trained with and without empty ones: "
        + "; ".join(told)
        + f". Significant after correction: {', '.join(changed) or 'none'}. The order "
        + ("stays" if before_order == after_order else f"becomes {_told(after_order)}"),
    )


def frank_claims(orchard: Orchard) -> list[Claim]:
    """Section 6 of the McRank paper reports these of its data Web-2; here they are tried on others."""
    if orchard.frank is None:
        return []
    own = {"frank": orchard.frank, "lambdarank": orchard.frank}
    titles = {**TITLES, "frank": "FRank", "lambdarank": "LambdaRank"}
    made = []
    for better, other, size, words in (
        ("frank", "ranknet", 0.0, "slightly improves on RankNet (by about 0.5 points)"),
        ("frank", "ranksvm", CONSIDERABLY, "considerably improves on RankSVM"),
        ("frank", "rankboost", CONSIDERABLY, "considerably improves on RankBoost"),
        ("lambdarank", "frank", 0.0, "improves on FRank (by about 0.9 points)"),
    ):
        a, b = (100 * own.get(name, orchard).values(name, "standard") for name in (better, other))
        sides = larger_at(a, b, size)
        beyond = f" (here: by more than {size} points)" if size else ""
        made.append(
            judged(
                "McRank 6",
                f"{titles[better]} {words}{beyond}",
                larger(*sides),
                f"{a.mean():.2f} against {b.mean():.2f} on this data, which is not the paper's; one-sided p "
                f"{p_words(sides[0])}",
            )
        )
    return made
