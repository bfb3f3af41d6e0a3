"""`mcrank reproduce apples`: the apple-to-apple paper on two small folds."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.papers import apples
from mcrank.papers.apples import SCORED, TITLES, TRAINED
from mcrank.papers.outcome import NO_VERDICT

pytestmark = pytest.mark.slow  # six rankers under every dialect are trained first


def rows(reproduction, key):
    return reproduction.to_dict()["tables"][key]


@pytest.fixture(scope="module")
def orchard(tmp_path_factory, short_and_empty):
    folder = tmp_path_factory.mktemp("apples")
    small = {
        "adarank": {"n_estimators": 5},
        "ranknet": {"epochs": 2},
        "rankboost": {"n_estimators": 4},
        "ranksvm": {"C": 0.1},
        "coordinate-ascent": {"restarts": 1, "max_sweeps": 2},
        "lambdamart": {"n_estimators": 4, "min_samples_leaf": 3},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apples, "QUICK", small)
        patch.setattr(
            apples,
            "FRANK",
            ({"frank": {}, "lambdarank": {}}, {"frank": {"n_estimators": 3}, "lambdarank": {"epochs": 2}}),
        )
        told = []
        made = mcrank.reproduce(
            "apples", short_and_empty, out=folder, quick=True, n_jobs=1, callback=told.append
        )
    comparison = mcrank.Comparison.load(folder / "runs" / "apples-quick-seed1")
    object.__setattr__(made, "folder", folder)
    object.__setattr__(made, "told", told)
    return made, comparison


def test_apples_scores_every_model_under_every_dialect(orchard):
    made, comparison = orchard
    trained = rows(made, "trained")
    assert len(trained) == (len(TITLES) + 1) * len(TRAINED)
    for row in rows(made, "tools"):
        key = {title: name for name, title in TITLES.items()}[row["ranker"]] + "-standard"
        result = comparison.evaluate(key, [f"ndcg@10[{dialect}]" for dialect in SCORED])
        assert [row[dialect] for dialect in SCORED] == pytest.approx(list(result.mean.values()))


def test_apples_finds_what_must_be_so(orchard):
    """Spec: LambdaMART and Coordinate Ascent learn the same under yahoo and standard."""
    _, comparison = orchard
    for name in ("lambdamart", "coordinate-ascent", "ranksvm"):
        one, other = (comparison.scores[comparison.place(f"{name}-{d}")] for d in ("yahoo", "standard"))
        assert np.array_equal(one, other)


def test_apples_claims(orchard):
    claims = {claim.claim: claim for claim in orchard[0].claims}
    assert len(claims) == len(orchard[0].claims) >= 18
    shift = next(c for c in claims.values() if "YAHOO tool" in c.claim)
    assert "no other query differs" in shift.evidence
    same = next(c for c in claims.values() if c.claim.startswith("LambdaMART is slightly better"))
    assert same.verdict == NO_VERDICT
    assert same.evidence.startswith("the same model")
    assert orchard[0].tried_on.startswith("other data")
    recommended = [c for c in claims.values() if c.source.startswith("Apples 6")]
    assert [c.source[-2] for c in recommended] == ["1", "2", "3"]
    assert sum("FRank" in claim for claim in claims) == 4


def test_apples_without_empty_queries_has_only_the_others(orchard, short_and_empty):
    made, comparison = orchard
    dropped = mcrank.Comparison.load(made.folder / "runs" / "apples-dropped-quick-seed1")
    empty = np.maximum.reduceat(comparison.grades, comparison.offsets[:-1]) <= 0
    assert dropped.n_queries == comparison.n_queries - empty.sum() > 0
    assert dropped.qids.tolist() == comparison.qids[~empty].tolist()


def test_apples_are_counted_before_they_are_trained(orchard):
    told = orchard[0].told
    assert len({one.trials for one in told}) == 1
    assert told[0].done == 0
    assert told[-1].done == told[-1].trials
