"""Contributions and pairs of models with categories: by the definition of Shapley, and by name."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mcrank
from mcrank.explain.between import forest_between
from mcrank.explain.forest import forest_contributions
from tests.reference.shapley import forest_shapley, rows_shapley

STREAM = np.random.default_rng(6)
SHOPS = np.array(["amber", "birch", "cedar", "dune", "elm", "fjord"], dtype=object)[
    STREAM.integers(0, 6, 300)
]
SHOPS[STREAM.random(300) < 0.1] = None
TABLE = {
    "shop": SHOPS,
    "price": STREAM.normal(size=300).round(1),
    "town": STREAM.integers(0, 3, 300).astype(str),
}
GRADES = np.clip(
    np.round(np.isin(SHOPS, ["birch", "elm"]) * 1.5 + TABLE["price"] + (TABLE["town"] == "1")), 0, 3
)
DATA = mcrank.Dataset(TABLE, GRADES, np.repeat(range(15), 20), categorical=["town"])
MORE = {"n_estimators": 30, "cat_l2": 1.0}
FEW = {"n_estimators": 5, "num_leaves": 7, "min_data_per_group": 5, "min_samples_leaf": 5, "n_jobs": 1}


@pytest.mark.parametrize("leaves", [7, 40])
def test_contributions_are_those_of_the_definition(leaves):
    """Also of trees too large for tables of their patterns."""
    ranker = mcrank.McRank(**FEW | {"num_leaves": leaves}).fit(DATA)
    forest = ranker.forest_
    assert (forest.category_set >= 0).sum() > 10
    for rows in (DATA.X[:12], DATA.X[:200]):  # few rows have no tables
        found = forest_contributions(forest, rows)
        for output in range(forest.n_outputs):
            for i in (0, 5, 11):
                assert np.allclose(found[output, i], forest_shapley(forest, rows[i], output), atol=1e-12)
    a, b = DATA.X[3], DATA.X[np.flatnonzero(DATA.X[:, 0] != DATA.X[3, 0])[0]]
    between = forest_between(forest, a[None], b)
    for output in range(forest.n_outputs):
        wanted = rows_shapley(lambda rows, k=output: forest.raw(rows.astype(np.float32))[k], a, b)
        assert np.allclose(between[output, 0], wanted, atol=1e-12)


def test_a_pair_is_explained_by_names():
    ranker = mcrank.LambdaMART(**FEW | MORE).fit(DATA)
    prices = np.arange(-1, 2, 0.1).round(1).tolist()

    def scores(shop):
        return ranker.predict({"shop": [shop] * 30, "price": prices, "town": ["0"] * 30})

    # A better shop at a lower price, where the price counts too.
    at = next(i for i in range(1, 30) if scores("amber")[i] < scores("birch")[0] < scores("birch")[i])
    good = {"shop": "birch", "price": prices[0], "town": "0"}
    bad = {"shop": "amber", "price": prices[at], "town": "0"}
    why = ranker.explain_pair(good, bad)
    assert why.difference > 0
    assert why.values["shop"] == ("birch", "amber")
    assert sum(why.contributions.values()) == pytest.approx(why.difference, abs=1e-12)
    assert why.contributions["shop"] > 0 > why.contributions["price"]
    assert "shop (birch against amber)" in why.sentence()
    changes = {(change.row, change.feature): change for change in why.changes}
    change = changes["b", "shop"]
    assert (change.before, change.size, change.exact) == ("amber", 1.0, True)
    (mine,) = ranker.predict({name: [value] for name, value in (bad | {"shop": change.after}).items()})
    (other,) = ranker.predict({name: [value] for name, value in good.items()})
    assert mine > other
    every = {"shop": list(ranker.categories_[0]), "price": [bad["price"]] * 6, "town": ["0"] * 6}
    assert mine == min(score for score in ranker.predict(every) if score > other)
    alone = dataclasses.replace(why, changes=(change,), about=change.after)
    assert alone.sentence().endswith(f"if its shop were {change.after} instead of amber.")
    told = why.to_dict()
    assert told["contributions"][0]["values"] == ["birch", "amber"]


def test_without_a_category_there_is_nothing_to_change_it_from():
    ranker = mcrank.LambdaMART(**FEW | MORE).fit(DATA)
    why = ranker.explain_pair(
        {"shop": None, "price": 0.0, "town": "0"}, {"shop": "elm", "price": 0.0, "town": "0"}
    )
    assert not any(change.row == "a" and change.feature == "shop" for change in why.changes)
    assert "missing" in why.sentence()
