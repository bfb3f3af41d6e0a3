"""Categories through every verb: by name, unknown ones like missing ones, the same bytes for any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mcrank
from mcrank.errors import DataError, OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.scorers.forest.sets import set_codes
from tests.rankers.test_limits import RATE, regression
from tests.rankers.test_start import KINDS

BRANDS = ["acme", "bolt", "cobra", "dusk", "eagle", "fern", "gold", "hawk"]


def frame(seed=1, rows=400, brands=BRANDS, missing=0.05):
    """A frame with a category that matters, grades and queries."""
    stream = np.random.default_rng(seed)
    codes = stream.integers(0, len(brands), rows)
    effect = np.random.default_rng(7).normal(size=len(brands)) * 1.5
    price = stream.normal(size=rows).round(1)
    grades = np.clip(np.round(effect[codes] + price + 2), 0, 4)
    names = np.array(brands, dtype=object)[codes]
    names[stream.random(rows) < missing] = None
    return pd.DataFrame({"brand": names, "price": price}), grades, np.repeat(np.arange(rows // 20), 20)


def as_kinds(table):
    """The same table as every library has it."""
    brands = [name if isinstance(name, str) else None for name in table["brand"]]
    levels = sorted(set(brands) - {None}, key=lambda name: name[::-1])  # in an order of its own
    return {
        "object": table,
        "category": table.assign(brand=pd.Categorical(brands, categories=[*levels, "never"])),
        "string": table.assign(brand=table["brand"].astype("string")),
        "mapping": {"brand": brands, "price": table["price"].tolist()},
        "polars": pl.DataFrame({"brand": brands, "price": table["price"].tolist()}),
        "polars categories": pl.DataFrame(
            {"brand": pl.Series(brands, dtype=pl.Categorical), "price": table["price"].tolist()}
        ),
        "arrow": pa.table({"brand": pa.array(brands), "price": table["price"].tolist()}),
        "dictionary": pa.table(
            {"brand": pa.array(brands).dictionary_encode(), "price": table["price"].tolist()}
        ),
    }


FRAME, GRADES, QIDS = frame()
SMALL = {"n_estimators": 6, "num_leaves": 6, "n_jobs": 1, "min_data_per_group": 5}


@pytest.fixture(scope="module")
def ranker():
    return mcrank.LambdaMART(**SMALL).fit(FRAME, GRADES, qid=QIDS)


def test_all_libraries_say_the_same(ranker):
    assert ranker.categories_ == {0: tuple(BRANDS)}
    assert ranker.forest_.has_sets
    for kind, table in as_kinds(FRAME).items():
        assert to_bytes(mcrank.LambdaMART(**SMALL).fit(table, GRADES, qid=QIDS)) == to_bytes(ranker), kind
        assert np.array_equal(ranker.predict(table), ranker.predict(FRAME)), kind
        data = mcrank.Dataset(table, GRADES, QIDS)
        assert data.categories == {0: tuple(BRANDS)}
        assert np.array_equal(ranker.predict(data), ranker.predict(FRAME)), kind
        assert ranker.score(table, GRADES, QIDS) == ranker.score(data)


def test_names_count_and_codes_do_not(ranker):
    """Rows of few brands have other codes by themselves; scores are the same."""
    some = FRAME[FRAME["brand"].isin(["gold", "bolt"])]
    assert np.array_equal(ranker.predict(some), ranker.predict(FRAME)[some.index])
    turned = some.assign(brand=pd.Categorical(some["brand"], categories=BRANDS[::-1]))
    assert np.array_equal(ranker.predict(turned), ranker.predict(some))
    with pytest.raises(DataError, match="matched by name: give names, not codes"):
        ranker.predict(FRAME.assign(brand=FRAME["brand"].map(dict(zip(BRANDS, range(8), strict=True)))))
    with pytest.raises(DataError, match="to LambdaMART it holds numbers"):
        ranker.predict(FRAME.assign(price="cheap"))


def test_unknown_categories_go_the_way_of_missing_values(ranker):
    gone = ranker.predict(FRAME.assign(brand=None))
    assert np.array_equal(ranker.predict(FRAME.assign(brand="zebra")), gone)
    assert np.array_equal(ranker.predict(FRAME.assign(brand=np.nan)), gone)
    assert not np.array_equal(ranker.predict(FRAME), gone)


@pytest.mark.parametrize("kind", KINDS)
def test_every_ranker_of_trees_takes_them(kind):
    make, options = KINDS[kind]
    table, grades, qid = frame(3, 400)
    valid = mcrank.Dataset(*frame(4, 200, BRANDS[:5]))
    told = SMALL | {"n_estimators": 3} | options
    if "calibrate" in make.declared_options:  # the history is of scores as they were learned
        told["calibrate"] = False
    made = [make(**told | {"n_jobs": jobs}).fit(table, grades, qid=qid, valid=valid) for jobs in (1, 2, 4)]
    assert made[0].forest_.has_sets
    assert len({to_bytes(one) for one in made}) == 1
    again = from_bytes(to_bytes(made[0]), "it")
    assert again.categories_ == made[0].categories_
    assert to_bytes(again) == to_bytes(made[0])
    assert np.array_equal(again.predict(valid), made[0].predict(valid))
    measured = next(iter(made[0].history_.values()))[made[0].best_round_ - 1]
    assert made[0].score(valid) == pytest.approx(measured, abs=1e-12)


def test_the_order_of_queries_and_categories_does_not_matter():
    data = mcrank.Dataset(FRAME, GRADES, QIDS)
    one = to_bytes(mcrank.McRank(**SMALL).fit(data))
    moved = data.select(np.random.default_rng(1).permutation(data.n_queries))
    assert to_bytes(mcrank.McRank(**SMALL).fit(moved)) == one


def test_trees_are_walked_as_they_are_folded(ranker):
    whole = ranker.predict(FRAME)
    assert [float(ranker.predict(FRAME.iloc[i : i + 1])[0]) for i in range(50)] == whole[:50].tolist()
    large = mcrank.RegressionRanker(**SMALL | {"num_leaves": 300, "min_samples_leaf": 1, "n_estimators": 2})
    table, grades, qid = frame(5, 4000)
    table["price"] += np.random.default_rng(1).normal(size=4000)
    many = large.fit(table, grades, qid=qid)
    assert np.diff(many.forest_.tree_offsets).max() > 511  # too large to be folded
    assert [float(many.predict(table.iloc[i : i + 1])[0]) for i in range(20)] == many.predict(table)[
        :20
    ].tolist()


LIGHTGBM = {
    "one against the rest": (3, {}, {}),
    "sorted": (20, {}, {}),
    "smoothed": (20, {"cat_smooth": 25.0, "cat_l2": 3.0}, {"cat_smooth": 25.0, "cat_l2": 3.0}),
    "few of many": (20, {"max_cat_threshold": 3}, {"max_cat_threshold": 3}),
    "groups": (40, {"min_data_per_group": 40}, {"min_data_per_group": 40}),
}


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm_finds_the_same_sets(name):
    """One tree, whose rows fall apart alike: leaves of LightGBM have ``cat_l2`` in them, ours have not."""
    codes, ours, theirs = LIGHTGBM[name]
    stream = np.random.default_rng(5)
    X = np.column_stack(
        [np.arange(2000) % codes, stream.integers(0, codes, 2000), stream.integers(0, 5, 2000)]
    )
    effect = stream.normal(size=(2, codes))
    y = np.clip(
        np.round(effect[0][X[:, 0]] + effect[1][X[:, 1]] + X[:, 2] / 4 + 3 + stream.normal(size=2000)), 0, 9
    )
    told = {"min_data_per_group": 100, "cat_smooth": 10.0, "cat_l2": 10.0, "max_cat_threshold": 32} | theirs
    lightgbm = pytest.importorskip("lightgbm")
    rows = lightgbm.Dataset(X.astype(float), y, categorical_feature=[0, 1], params={"min_data_in_bin": 1})
    told |= {
        "objective": "regression", "num_leaves": 7, "learning_rate": RATE, "min_data_in_leaf": 5,
        "verbose": -1, "min_sum_hessian_in_leaf": 0, "boost_from_average": False, "num_threads": 1,
        "max_cat_to_onehot": 4,
    }  # fmt: skip
    theirs = lightgbm.train(told, rows, 1).predict(X, pred_leaf=True)[:, 0]
    fitted = regression(1, categorical=[0, 1], **ours).fit(
        X, y, qid=np.zeros(2000), init_score=np.zeros(2000)
    )
    mine = fitted.predict(X)
    assert len(set(theirs)) == len(np.unique(mine)) == 7
    assert len(set(zip(theirs.tolist(), mine.tolist(), strict=True))) == 7


def test_numbers_named_as_categories():
    """Codes of a matrix: any whole numbers, and nothing hangs on which."""
    stream = np.random.default_rng(1)
    codes = stream.integers(0, 12, 400)
    y = np.clip(np.round(stream.normal(size=12)[codes] * 2 + 2), 0, 4)
    shuffled = stream.permutation(10_000)[:12]
    one, other = (np.column_stack([c, stream.random(400)]) for c in (codes, shuffled[codes]))
    other[:, 1] = one[:, 1]
    options = SMALL | {"n_estimators": 3, "min_data_per_group": 1}
    first = mcrank.RegressionRanker(categorical=[0], **options).fit(one, y, qid=QIDS)
    second = mcrank.RegressionRanker(categorical=["f1"], **options).fit(other, y, qid=QIDS)
    assert first.categories_[0] == tuple(sorted(map(str, range(12))))
    assert np.allclose(first.predict(one), second.predict(other), rtol=1e-12)
    assert first.options_["categorical"] == ["f1"]
    data = mcrank.Dataset(one, y, QIDS, categorical=[0])
    same = mcrank.RegressionRanker(**options).fit(data)
    assert np.array_equal(same.predict(one), first.predict(one))
    assert np.array_equal(
        same.predict({"f1": one[:, 0].astype(int).astype(str), "f2": one[:, 1]}), first.predict(one)
    )
    with pytest.raises(DataError, match=r"has 0\.\d+ at row 0; categories in a matrix are whole numbers"):
        mcrank.RegressionRanker(categorical=[1], **options).fit(one, y, qid=QIDS)
    with pytest.raises(OptionError, match="has feature 7; the data has 0 to 1"):
        mcrank.RegressionRanker(categorical=[7], **options).fit(one, y, qid=QIDS)
    with pytest.raises(OptionError, match=r"must be features that hold categories, such as \['brand', 3\]"):
        mcrank.RegressionRanker(categorical="brand", **options).fit(one, y, qid=QIDS)


@pytest.mark.parametrize("count", [1, 2, 300, 10_000])
def test_any_number_of_categories(count):
    names = [f"c{i}" for i in range(count)]
    rows = max(2 * count, 400) if count != 300 else 6000
    table, grades, qid = frame(2, rows, names, missing=0.0)
    fitted = mcrank.RegressionRanker(**SMALL | {"n_estimators": 2}).fit(table, grades, qid=qid)
    assert len(fitted.categories_[0]) == table["brand"].nunique()
    again = from_bytes(to_bytes(fitted), "it")
    assert np.array_equal(again.predict(table[::-1]), fitted.predict(table)[::-1])
    assert fitted.forest_.has_sets == (1 < count < 1000)  # of 10,000 all but the pool are too rare


def test_too_many_categories_are_ids():
    table = pd.DataFrame({"brand": [f"c{i}" for i in range(70_000)]})
    with pytest.raises(
        DataError, match=r"column 'brand' of .* has 70000 categories; a feature may have 65536"
    ):
        mcrank.Dataset(table, np.zeros(70_000), np.zeros(70_000))


@pytest.mark.parametrize("options", [{}, {"dart": True, "drop_rate": 0.5, "skip_drop": 0.0}, {"goss": True}])
def test_training_in_two_parts_is_one_training(options):
    data = mcrank.Dataset(FRAME, GRADES, QIDS)
    options = SMALL | options | {"learning_rate": 0.5}
    whole = mcrank.LambdaMART(**options).fit(data)
    first = mcrank.LambdaMART(**options | {"n_estimators": 2}).fit(data)
    both = mcrank.LambdaMART(**options | {"n_estimators": 4}).fit(
        data, init_model=from_bytes(to_bytes(first), "it")
    )
    assert to_bytes(both) == to_bytes(whole)


def test_going_on_with_other_categories():
    """Old trees treat what they did not know as missing, new ones learn it."""
    old = mcrank.LambdaMART(**SMALL).fit(*frame(1, 400, BRANDS[2:6])[:2], qid=QIDS)
    table, grades, qid = frame(9, 400, BRANDS)
    both = mcrank.LambdaMART(**SMALL).fit(table, grades, qid=qid, init_model=old)
    assert both.categories_ == {0: tuple(BRANDS)}
    assert both.forest_.n_trees == 12
    before = both.forest_.part(0, 6).raw(mcrank.Dataset(table, grades, qid).X)[0] + old.forest_.base[0]
    assert np.array_equal(before, old.predict(table))


def test_refit_keeps_the_sets(ranker):
    fresh = ranker.refit(*frame(8)[:2], qid=QIDS, decay=0.5)
    assert np.array_equal(fresh.forest_.set_words, ranker.forest_.set_words)
    same = ranker.refit(FRAME, GRADES, qid=QIDS, decay=0.0)
    assert np.array_equal(same.predict(FRAME), ranker.predict(FRAME))


def test_options_beside_categories():
    told = SMALL | {"n_estimators": 2}
    for options in (
        {"l1": 1.0, "l2": 2.0, "min_sum_hessian": 3.0, "min_gain": 0.1},
        {"extra_trees": True}, {"feature_weights": {"brand": 0.5}}, {"interaction": [["brand"], ["price"]]},
        {"monotone": {"price": 1}}, {"colsample_node": 0.5}, {"max_depth": 1}, {"split": "newton"},
    ):  # fmt: skip
        made = [
            mcrank.RegressionRanker(**told | options | {"n_jobs": n}).fit(FRAME, GRADES, qid=QIDS)
            for n in (1, 2)
        ]
        assert to_bytes(made[0]) == to_bytes(made[1]), options
    with pytest.raises(OptionError, match="'brand', which holds categories: these have no order"):
        mcrank.RegressionRanker(monotone={"brand": 1}).fit(FRAME, GRADES, qid=QIDS)
    with pytest.raises(DataError, match="column 'brand' is not numeric: it holds categories, which RankSVM"):
        mcrank.RankSVM().fit(FRAME, GRADES, qid=QIDS)
    with pytest.raises(DataError, match="holds categories, which FRank"):
        mcrank.FRank().fit(FRAME, GRADES, qid=QIDS)


def test_monotone_numbers_stay_so_beside_categories():
    fitted = mcrank.LambdaMART(**SMALL | {"n_estimators": 20}, monotone={"price": 1}).fit(
        FRAME, GRADES, qid=QIDS
    )
    line = np.linspace(-3, 3, 30)
    for brand in (*BRANDS, None):
        assert (np.diff(fitted.predict(pd.DataFrame({"brand": [brand] * 30, "price": line}))) >= 0).all()


def test_a_category_is_worth_more_than_a_number_for_it():
    """30 categories whose effects have nothing to do with the order of their codes."""
    names = [f"{i:02d}-{i % 7}" for i in range(30)]
    train, grades, qid = frame(1, 4000, names)
    test = frame(2, 2000, names)
    told = {"n_estimators": 30, "num_leaves": 8, "n_jobs": 2, "learning_rate": 0.1}
    codes = {name: i for i, name in enumerate(names)}
    numbered, tested = (t.assign(brand=t["brand"].map(codes)) for t in (train, test[0]))
    by_name = mcrank.LambdaMART(**told).fit(train, grades, qid=qid).score(*test)
    by_code = mcrank.LambdaMART(**told).fit(numbered, grades, qid=qid).score(tested, *test[1:])
    assert by_name > by_code + 0.01


def test_sets_have_names(ranker):
    forest = ranker.forest_
    nodes = np.flatnonzero(forest.category_set >= 0)
    assert (forest.feature[nodes] == 0).all()
    for s in range(len(forest.set_offsets) - 1):
        assert set_codes(forest, s).max(initial=-1) < len(BRANDS)
    assert ranker.feature_importances_[0] > 0.2


def test_a_column_of_no_category_is_a_missing_one(ranker):
    empty = FRAME.assign(brand=pd.Categorical([None] * len(FRAME)))
    missing = FRAME.assign(brand=pd.Categorical([None] * len(FRAME), categories=BRANDS))
    assert np.array_equal(ranker.predict(empty), ranker.predict(missing))


def test_truth_values_are_no_numbers():
    def categories(*values):
        column = pd.Series([*values] * (len(FRAME) // len(values)), dtype=object)
        frame = FRAME.head(len(column)).assign(brand=column)
        data = mcrank.Dataset(
            frame, np.arange(len(frame)) % 2, qid=np.zeros(len(frame)), categorical=["brand"]
        )
        return data.categories[0]

    assert categories(True, None, np.nan, False) == ("False", "True")
    for values in ((True, 1, "a"), (1, True), (0.0, False)):
        with pytest.raises(DataError, match="'brand' of X of Dataset mixes truth values and numbers"):
            categories(*values)


@pytest.mark.parametrize(
    "kind", [np.int64, np.uint8, np.float32, np.float64, np.bool_, np.str_], ids=lambda kind: kind.__name__
)
def test_scalars_of_numpy_are_categories_as_those_of_python_are(kind):
    values = np.array(["3", "4"] * 10) if kind is np.str_ else np.array([0, 1] * 10)
    rows, price = [kind(value) for value in values], [0.5] * 20
    plain = [value.item() for value in rows]
    found, wanted = (
        mcrank.Dataset({"town": town, "price": price}, [0, 1] * 10, [1] * 20, categorical=["town"])
        for town in ([*rows], plain)
    )
    assert dict(found.categories) == dict(wanted.categories)
    assert np.array_equal(found.X, wanted.X)
