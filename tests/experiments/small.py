"""A small real comparison: three rankers and scores of another tool, on three folds of artificial data."""

from __future__ import annotations

import numpy as np

import mcrank
from mcrank.experiments.assemble import Outcome, assemble, measures_in
from mcrank.experiments.comparison import Choice, FoldFacts, System, Timing
from mcrank.rankers.provenance import provenance
from mcrank.rankers.registry import ranker_class, to_bytes

OPTIONS = {"n_estimators": 8, "num_leaves": 4, "min_samples_leaf": 5, "n_jobs": 1}


def small_comparison(queries=24, names=("mcrank", "ordinal", "regression"), seed=1):
    """Train and assemble in this process, without a folder."""
    data = mcrank.make_artificial(
        n_train=queries, n_valid=1, n_test=1, docs_per_query=14, n_features=6, seed=seed
    )
    parts = mcrank.kfold(data.train, 3, seed=0)
    folds, tests, outcomes = [], [], {}
    systems = [
        System(name, name, "ranker", name, OPTIONS, card=ranker_class(name).card._asdict()) for name in names
    ]
    systems.append(System("f1", "first feature", "scores", source="f1.txt: one score per line"))
    for number, (train, valid, test) in enumerate(parts, start=1):
        fold = f"Fold{number}"
        facts = [provenance(part)["data"] for part in (train, valid, test)]
        folds.append(FoldFacts(fold, *facts))
        tests.append(test)
        for system in systems[:-1]:
            outcomes[system.key, fold] = _trained(system, train, valid, test)
        outcomes["f1", fold] = Outcome(test.X[:, 0].astype(np.float64))
    measures = measures_in(("ndcg@10", "map"), ("yahoo", "mslr", "lightgbm"))
    environment = {"seed": 0, "versions": provenance(tests[0])["versions"], "command": "mcrank compare ..."}
    return assemble(systems, folds, tests, outcomes, measures, environment, ["A note."])


def _trained(system, train, valid, test):
    ranker = ranker_class(system.ranker)(**system.options).fit(train, valid=valid)
    measure, curve = next(iter(ranker.history_.items()))
    has_probabilities = hasattr(ranker, "predict_proba")
    return Outcome(
        scores=ranker.predict(test),
        grades=ranker.grades_ if has_probabilities else None,
        probabilities=ranker.predict_proba(test).astype(np.float32) if has_probabilities else None,
        importances=ranker.feature_importances_,
        curve=ranker.history_,
        choice=Choice({}, ranker.best_round_, ranker.n_rounds_, measure, curve[ranker.best_round_ - 1]),
        timing=Timing(0.5, 0.25, 0.5),
        model_bytes=len(to_bytes(ranker)),
    )
