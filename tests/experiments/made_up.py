"""Comparisons of noisy scores: as large as a test wants them, without training anything."""

from __future__ import annotations

import numpy as np

import mcrank
from mcrank.experiments.assemble import Outcome, assemble, measures_in
from mcrank.experiments.comparison import FoldFacts, System

SHARES = [0.5, 0.25, 0.15, 0.07, 0.03]


def made_up(queries, systems=8, rows=20, measures=("ndcg@10",), dialects=(), qids=None, keys=None, seed=0):
    """Systems add more and more noise to the grades; the first also gives probabilities and importances."""
    rng = np.random.default_rng(seed)
    y = rng.choice(5, p=SHARES, size=queries * rows).astype(np.float64)
    ids = np.arange(queries) + 10_000 if qids is None else np.array(qids, dtype=object)
    data = mcrank.Dataset(
        rng.normal(size=(queries * rows, 12)).astype(np.float32),
        y=y,
        qid=np.repeat(ids, rows),
        doc_ids=[f"D{n:07d}" for n in range(queries * rows)],
    )
    names = keys or [f"system-{number}" for number in range(systems)]
    facts = {"rows": data.n_rows, "queries": queries, "features": 12, "fingerprint": "f" * 64}
    outcomes = {
        (key, "all"): Outcome(y + rng.normal(scale=1 + 0.3 * number, size=len(y)))
        for number, key in enumerate(names)
    }
    guess = rng.dirichlet(np.ones(5), size=len(y)).astype(np.float32)
    first = Outcome(
        guess @ np.arange(5.0), np.arange(5.0), guess, np.full(12, 1 / 12), curve={"ndcg@10": [0.2, 0.4]}
    )
    outcomes[names[0], "all"] = first
    return assemble(
        [System(key, key, "scores", source="scores.txt") for key in names],
        [FoldFacts("all", None, None, facts)],
        [data],
        outcomes,
        measures_in(measures, dialects),
        {"seed": seed},
    )
