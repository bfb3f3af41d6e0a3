"""Table 1 of the McRank paper on its artificial data, with the control it lacks: regression given as many
trees.

10,000 training and 10,000 test queries of 50 rows, 50 features, M = 1000 rounds, J = 10 leaves, nu = 0.05.
With M fixed, classification grows five trees a round, ordinal classification four and regression one; the
control lets regression have 5000, so that a win can be told from a larger model.

    python benchmarks/table1.py --out docs/results/table1
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import mcrank
from mcrank.boosting.predict import predict_raw
from mcrank.metrics.measure import NDCG
from mcrank.stats import paired_t, unpaired_t
from report import machine, write

PAPER = {"ordinal": "85.0 (9.5)", "classification": "83.7 (9.9)", "regression": "82.9 (10.2)"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000, help="training queries, and test queries")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--variant", default=None, help="generator of the data; the default one otherwise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-bins", type=int, default=256)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()

    chosen = {} if args.variant is None else {"variant": args.variant}
    train, _, test = mcrank.make_artificial(
        n_train=args.queries, n_valid=1, n_test=args.queries, seed=args.seed, **chosen
    )
    options = {"num_leaves": 10, "learning_rate": 0.05, "max_bins": args.max_bins}
    bound = NDCG(k=10).on(test)
    runs: dict[str, Any] = {
        "ordinal": mcrank.OrdinalMcRank(n_estimators=args.rounds, **options),
        "classification": mcrank.McRank(n_estimators=args.rounds, **options),
        "regression": mcrank.RegressionRanker(n_estimators=5 * args.rounds, **options),
    }
    values: dict[str, dict[Any, float]] = {}
    rows = []
    for name, ranker in runs.items():
        began = time.perf_counter()
        marks: list[float] = []
        ranker.fit(train, callback=lambda event, marks=marks: marks.append(event.seconds) or False)
        total = time.perf_counter() - began
        outputs = ranker.forest_.n_outputs
        # Stages of one training: the forest of the first rounds is the model those rounds would have given.
        for rounds in stages(name, args.rounds):
            raw = predict_raw(ranker.forest_.first_trees(rounds * outputs), test.X, n_jobs=2).T
            ndcg = bound.per_query(np.ascontiguousarray(ranker._rank(raw)))
            label = name if rounds == args.rounds else f"{name}, {rounds} rounds"
            values[label] = dict(zip(test.qids.tolist(), ndcg.tolist(), strict=True))
            rows.append(
                {
                    "ranker": label,
                    "NDCG@10 % (std)": f"{100 * ndcg.mean():.2f} ({100 * ndcg.std():.2f})",
                    "paper": PAPER[name] if rounds == args.rounds else None,
                    "trees": rounds * outputs,
                    "seconds": round(marks[rounds - 1] + (total - marks[-1]), 1),
                }
            )
    verdicts = []
    for better in ("ordinal", "classification"):
        for other in ("regression", f"regression, {5 * args.rounds} rounds"):
            a, b = values[better], values[other]
            verdicts.append(
                f"{better} against {other}: one-sided p {unpaired_t(a, b, 'greater').p:.3g} unpaired "
                f"(the paper's test), {paired_t(a, b, 'greater').p:.3g} paired"
            )
    a, b = values["ordinal"], values["classification"]
    verdicts.append(
        f"ordinal against classification: one-sided p {unpaired_t(a, b, 'greater').p:.3g} unpaired, "
        f"{paired_t(a, b, 'greater').p:.3g} paired"
    )
    result = {"machine": machine(), "rows": rows, "verdicts": verdicts, "arguments": vars(args)}
    write("Table 1 of the McRank paper, artificial data", result, args.out)


def stages(name: str, rounds: int) -> list[int]:
    """Rounds at which a ranker is scored."""
    early = [rounds // 4, rounds // 2, rounds]
    return [*early, 4 * rounds, 5 * rounds] if name == "regression" else early


if __name__ == "__main__":
    main()
