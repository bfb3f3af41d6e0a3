"""The bytes of a model file are the same from one place and from several, which talk through a mesh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Dataset
from mcrank.rankers.registry import to_bytes
from tests.scale.places import fitted

pytestmark = pytest.mark.slow

SMALL = {"n_estimators": 4, "num_leaves": 5, "learning_rate": 0.3, "min_samples_leaf": 3, "n_jobs": 1}
RANKERS = {
    "mcrank": lambda **o: mcrank.McRank(**SMALL | o),
    "prior": lambda **o: mcrank.McRank(init="prior", **SMALL | o),
    "sequential": lambda **o: mcrank.McRank(sequential=True, **SMALL | o),
    "abc": lambda **o: mcrank.McRank(base_class="adaptive", base_gap=1, **SMALL | o),
    "ordinal": lambda **o: mcrank.OrdinalMcRank(**SMALL | o),
    "regression": lambda **o: mcrank.RegressionRanker(**SMALL | o),
    "lad": lambda **o: mcrank.RegressionRanker(loss="lad", **SMALL | o),
    "gbrank": lambda **o: mcrank.GBRank(**SMALL | o),
    "average": lambda **o: mcrank.GBRank(form="average", **SMALL | {"learning_rate": 1.0} | o),
    "lambdamart": lambda **o: mcrank.LambdaMART(**SMALL | o),
    "map": lambda **o: mcrank.LambdaMART(measure="map", norm=True, **SMALL | o),
    "frank": lambda **o: mcrank.FRank(scorer="trees", **SMALL | o),
    "custom": lambda **o: mcrank.CustomRanker(**SMALL | o),
    "vector": lambda **o: mcrank.McRank(multi_output="tree", **SMALL | o),
}
NOT_TOGETHER = {("abc", "dart"), ("average", "dart"), ("vector", "categories")}
OPTIONS = {
    "plain": {},
    "newton": {"split": "newton"},
    "mse": {"split": "mse"},
    "sampled": {"subsample": 0.5, "colsample": 0.6, "random_state": 7},
    "goss": {"goss": True, "learning_rate": 1.0, "top_rate": 0.3, "other_rate": 0.3},
    "dart": {"dart": True, "drop_rate": 0.6, "skip_drop": 0.1},
    "wide": {"max_bins": 1024},
    "quantile": {"binning": "quantile", "max_bins": 7},
    "refined": {"binning": "adaptive-refined", "max_bins": 7},
    "limits": {"max_depth": 2, "colsample_node": 0.7, "min_gain": 1e-6},
}


def made(stream, queries, features=4, weighted=False, largest=12, grades=4):
    sizes = stream.integers(1, largest, queries)
    rows = int(sizes.sum())
    X = stream.normal(size=(rows, features)).round(2)
    X[stream.random(X.shape) < 0.1] = np.nan
    y = np.clip(np.nansum(X[:, :2], axis=1) + stream.normal(size=rows), 0, grades - 1).astype(int)
    weight = stream.random(rows) + 0.1 if weighted else None
    return Dataset(X, y, np.repeat([f"q{i}" for i in range(queries)], sizes), weight)


def cut(data, stream, parts):
    """Whole queries at random places; a place without any takes no part."""
    places = stream.integers(0, parts, data.n_queries)
    return [data.select(np.flatnonzero(places == r)) for r in np.unique(places)]


def check(make, data, parts, valid=None, valid_parts=None, done=0):
    alone = to_bytes(make().fit(data, valid=valid))
    assert to_bytes(fitted(make(), parts, valid_parts, done=done)) == alone


@pytest.mark.parametrize("options", [*OPTIONS, "weighted", "categories"])
@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_with_every_option_at_one_to_four_places(name, options):
    """With validation data, of which each place has some queries, and early stopping."""
    chosen = OPTIONS.get(options, {})
    if (name, options) in NOT_TOGETHER:
        pytest.skip("refused on one machine as well")
    stream = np.random.default_rng(3)
    data, valid = made(stream, 30, weighted=options in ("weighted", "sampled", "newton")), made(stream, 9)
    if options == "categories":
        data, valid = categorized(data, stream), categorized(valid, stream)

    def make():
        return RANKERS[name](early_stopping_rounds=2, **chosen)

    alone = to_bytes(make().fit(data, valid=valid))
    for count in (1, 2, 3, 4):
        places = np.r_[np.arange(count), stream.integers(0, count, data.n_queries - count)]
        parts = [data.select(np.flatnonzero(places == r)) for r in range(count)]
        watched = [valid.select(np.arange(9)[r::count]) for r in range(count)]
        assert to_bytes(fitted(make(), parts, watched)) == alone, count


@pytest.mark.parametrize("name", ["mcrank", "abc", "ordinal"])
def test_two_grades_that_are_corrected_at_one_to_four_places(name):
    """Their shift is moved to the mean grade of rows that no place has all of."""
    stream = np.random.default_rng(5)
    data, valid = made(stream, 40, grades=2), made(stream, 12, grades=2)
    alone = RANKERS[name]().fit(data, valid=valid)
    assert alone.correction_ is not None
    assert np.mean(alone.predict(valid)) == pytest.approx(np.mean(valid.y), abs=0.05)
    for count in (2, 3, 4):
        parts, watched = ([part.select(np.arange(part.n_queries)[r::count]) for r in range(count)]
                          for part in (data, valid))  # fmt: skip
        assert to_bytes(fitted(RANKERS[name](), parts, watched)) == to_bytes(alone), count


def categorized(data, stream):
    """The same rows with two features of categories, one of them as texts."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.n_features)])
    colours = np.array(["red", "green", "blue", "none of these", "é"])
    frame["colour"] = colours[stream.integers(0, 5, len(frame))]
    frame["x0"] = stream.integers(0, 12, len(frame))
    return Dataset(frame, data.y, data.qid, data.weight, categorical=["x0"])


@given(
    seed=st.integers(0, 10**6),
    parts=st.integers(1, 6),
    queries=st.integers(2, 30),
    features=st.integers(1, 7),
    name=st.sampled_from(sorted(RANKERS)),
    options=st.sampled_from(sorted(OPTIONS)),
    weighted=st.booleans(),
    watched=st.booleans(),
    categories=st.booleans(),
)
@settings(max_examples=100)
def test_random_data_cut_at_random(
    seed, parts, queries, features, name, options, weighted, watched, categories
):
    stream = np.random.default_rng(seed)
    data = made(stream, queries, features, weighted and options != "goss")
    data = categorized(data, stream) if categories and name != "vector" else data
    more = {} if (name, options) in NOT_TOGETHER else OPTIONS[options]
    pieces = cut(data, stream, parts)
    # Every place has all queries held out, as where there are fewer of them than places.
    valid = data.select(stream.permutation(data.n_queries)[:5]) if watched else None
    try:
        alone = to_bytes(RANKERS[name](**more).fit(data, valid=valid))
    except mcrank.MeasureError:
        reject()  # none of them counts
    everywhere = None if valid is None else [valid] * len(pieces)
    assert to_bytes(fitted(RANKERS[name](**more), pieces, everywhere, split=False)) == alone


@pytest.mark.parametrize("name", ["mcrank", "lambdamart"])
def test_categories_that_each_place_has_some_of(name):
    """As in files and partitions: no place knows the names of the others beforehand."""
    stream = np.random.default_rng(13)
    pd = pytest.importorskip("pandas")
    plain = made(stream, 40)
    frame = pd.DataFrame(plain.X, columns=["a", "b", "c", "d"])
    frame["b"] = stream.integers(0, 30, len(frame))
    frame["d"] = np.array(["x", "yy", "z", "ö"])[stream.integers(0, 4, len(frame))]
    places = stream.integers(0, 4, plain.n_queries)[np.repeat(np.arange(40), plain.sizes)]
    frame.loc[places == 2, "d"] = None  # here it is no column of texts
    data = Dataset(frame, plain.y, plain.qid)
    parts = [
        Dataset(frame[places == r].reset_index(drop=True), plain.y[places == r], plain.qid[places == r])
        for r in range(4)
    ]
    assert len({str(part.categories) for part in parts}) > 1
    make = RANKERS[name]
    alone = make(categorical=["b"], max_bins=40).fit(data)
    found = fitted(make(categorical=["b"], max_bins=40), parts, done=2, categorical=["b"])
    assert to_bytes(found) == to_bytes(alone)
    assert found.categories_[3] == ("x", "yy", "z", "ö")


def test_a_column_of_categories_here_and_numbers_there_is_refused():
    stream = np.random.default_rng(14)
    pd = pytest.importorskip("pandas")
    plain = made(stream, 8)
    half = int(plain.offsets[4])
    texts = pd.DataFrame(plain.X[half:], columns=list("abcd")).assign(c="red")
    parts = [
        Dataset(pd.DataFrame(plain.X[:half], columns=list("abcd")), plain.y[:half], plain.qid[:half]),
        Dataset(texts, plain.y[half:], plain.qid[half:]),
    ]
    with pytest.raises(mcrank.DataError, match="categories in one part and numbers in another"):
        fitted(RANKERS["mcrank"](), parts)


@pytest.mark.parametrize("name", ["mcrank", "abc", "lambdamart", "average", "lad", "sequential"])
def test_going_on_from_the_journal(name):
    stream = np.random.default_rng(8)
    data, valid = made(stream, 25), made(stream, 9)
    parts = cut(data, stream, 3)
    held_out = [valid.select(np.arange(9)[r :: len(parts)]) for r in range(len(parts))]
    check(lambda: RANKERS[name](n_estimators=7), data, parts, valid, held_out, done=3)


@pytest.mark.parametrize("name", ["mcrank", "lambdamart", "ordinal"])
@pytest.mark.parametrize("n_jobs", [2, 7])
def test_threads_at_every_place(name, n_jobs):
    stream = np.random.default_rng(12)
    data = made(stream, 40, features=40)
    alone = to_bytes(RANKERS[name]().fit(data))
    assert to_bytes(fitted(RANKERS[name](), cut(data, stream, 3), n_jobs=n_jobs)) == alone


def test_odd_places():
    stream = np.random.default_rng(5)
    data = made(stream, 14, features=2)
    singles = [data.select([q]) for q in range(data.n_queries)]  # one query each, more places than features
    for name in RANKERS:
        check(RANKERS[name], data, singles)
    lowest = np.minimum.reduceat(data.y, data.offsets[:-1])
    highest = np.maximum.reduceat(data.y, data.offsets[:-1])
    same = lowest == highest  # queries of one grade at a place of their own
    assert same.any()
    for name in RANKERS:
        check(RANKERS[name], data, [data.select(np.flatnonzero(same)), data.select(np.flatnonzero(~same))])


def test_queries_of_one_row_and_of_ten_thousand():
    stream = np.random.default_rng(6)
    small, long = made(stream, 20, largest=2), made(stream, 1, largest=10_001)
    rows = 10_000
    X = np.r_[small.X, np.tile(long.X, (rows // long.n_rows + 1, 1))[:rows]]
    y = np.r_[small.y, stream.integers(0, 4, rows)]
    data = Dataset(X, y, np.r_[small.qid, np.repeat("long", rows)])
    parts = [data.select(np.arange(20)), data.select([20])]
    for name in ("mcrank", "lambdamart"):
        check(RANKERS[name], data, parts)


@pytest.mark.parametrize("fewest", [0, 100])
@pytest.mark.parametrize("options", ["plain", "newton", "sampled"])
@pytest.mark.parametrize("name", ["mcrank", "lambdamart", "ordinal", "vector"])
def test_rows_with_numbers_and_lists(name, options, fewest, monkeypatch):
    """As at places of many rows, or at a large place beside small ones, whose rows are listed."""
    stream = np.random.default_rng(12)
    data = made(stream, 90)
    parts = [data.select(np.arange(*span)) for span in ((0, 70), (70, 75), (75, 90))]
    assert parts[0].n_rows > 100 > parts[1].n_rows
    monkeypatch.setattr("mcrank.boosting.rows.NUMBERED_ROWS", fewest)
    large = {"num_leaves": 60, "min_samples_leaf": 1}  # the last leaves are small enough to be listed
    check(lambda: RANKERS[name](**large | OPTIONS[options]), data, parts)


@pytest.mark.parametrize("name", ["mcrank", "lambdamart", "ordinal"])
def test_features_of_categories(name):
    stream = np.random.default_rng(11)
    plain = made(stream, 40)
    X = np.array(plain.X)
    X[:, 1] = stream.integers(0, 30, len(X))
    X[:, 3] = stream.integers(0, 400, len(X))
    data = Dataset(X, plain.y, plain.qid, categorical=[1, 3])
    check(lambda: RANKERS[name](max_bins=40, n_estimators=6), data, cut(data, stream, 4), done=2)


def test_going_on_from_another_model():
    stream = np.random.default_rng(9)
    data = made(stream, 25)
    first = mcrank.McRank(**SMALL).fit(data)
    alone = to_bytes(mcrank.McRank(**SMALL).fit(data, init_model=first))
    found = fitted(mcrank.McRank(**SMALL), cut(data, stream, 3), init_model=first)
    assert to_bytes(found) == alone
