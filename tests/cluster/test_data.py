"""Every kind of data a cluster trains on, with any number of workers: the model file of one machine."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import Cluster, DataError, Dataset
from mcrank.rankers.registry import to_bytes
from mcrank.scale.worker import together
from tests.cluster.conftest import made

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

OPTIONS = {"n_estimators": 4, "num_leaves": 5, "min_samples_leaf": 3, "n_jobs": 1}
DATA, VALID = made(named=True), made(queries=12, seed=2, named=True)


def ranker(**more):
    return mcrank.McRank(**OPTIONS | more)


@pytest.fixture(scope="module")
def alone():
    return to_bytes(ranker().fit(DATA, valid=VALID))


def frame(data):
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    return table.assign(label=data.y, qid=data.qid)


def cut(data, queries):
    """A Dask dataframe whose partitions end after these queries."""
    table, ends = frame(data), data.offsets[[*queries, data.n_queries]]
    starts = [0, *ends[:-1]]
    return dd.concat(
        [dd.from_pandas(table.iloc[a:b], npartitions=1) for a, b in zip(starts, ends, strict=True)]
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_numbers_of_workers(client, alone, count):
    cluster = Cluster(client, workers=count)
    assert to_bytes(ranker().fit(DATA, valid=VALID, cluster=cluster)) == alone


def test_threads_inside_workers(client, alone):
    assert to_bytes(ranker(n_jobs=3).fit(DATA, valid=VALID, cluster=client)) == alone


def test_frames_over_dasks_own_connections(client, alone):
    assert to_bytes(ranker().fit(DATA, valid=VALID, cluster=Cluster(client, carrier="dask"))) == alone


def test_files(client, alone, tmp_path):
    for start, part in zip(range(0, 40, 10), "abcd", strict=True):
        table = frame(DATA.select(np.arange(start, start + 10)))
        table.to_parquet(tmp_path / f"{part}.parquet", row_group_size=17)
    frame(VALID).to_parquet(tmp_path / "valid.parquet")
    train, valid = mcrank.scan(tmp_path / "?.parquet"), mcrank.scan(tmp_path / "valid.parquet")
    assert to_bytes(ranker().fit(train, valid=valid, cluster=client)) == alone
    assert to_bytes(ranker().fit(str(tmp_path / "?.parquet"), valid=VALID, cluster=client)) == alone


def test_text_whose_parts_mention_different_features(client, tmp_path):
    path = tmp_path / "train.txt"
    mcrank.write(made(features=6), path)
    lines = path.read_text().splitlines()
    half = len(lines) // 2  # the first rows mention four features only
    few = [" ".join(w for w in line.split() if not w.startswith(("5:", "6:"))) for line in lines[:half]]
    path.write_text("\n".join([*few, *lines[half:]]) + "\n")
    alone = to_bytes(ranker().fit(mcrank.read(path)))
    assert to_bytes(ranker().fit(mcrank.scan(path), cluster=client)) == alone
    missing = to_bytes(ranker().fit(mcrank.read(path, absent="missing")))
    assert to_bytes(ranker().fit(mcrank.scan(path, absent="missing"), cluster=client)) == missing
    assert missing != alone


def test_dataframes(client, alone):
    table, valid = cut(DATA, [7, 9, 30]), cut(VALID, [5])
    columns = {"y": "label", "qid": "qid"}
    found = ranker().fit(table, **columns, valid=(valid, "label", "qid"), cluster=client)
    assert to_bytes(found) == alone
    found = ranker().fit(table, y="label", valid=VALID, cluster=client)  # the column of ids is known by name
    assert to_bytes(found) == alone


def test_a_query_in_two_partitions_is_named(client, alone):
    table = dd.from_pandas(frame(DATA), npartitions=4, sort=False)
    columns = {"y": "label", "qid": "qid"}
    with pytest.raises(DataError, match=r"query 1\d\d .*regroup=True"):
        ranker().fit(table, **columns, cluster=client)
    found = ranker().fit(table, **columns, valid=VALID, cluster=client, regroup=True)
    assert to_bytes(found) == alone


def test_arrays(client):
    data = made()
    rows = tuple(np.diff(data.offsets[[0, 10, 25, 40]]).tolist())
    X = da.from_array(data.X, chunks=(rows, -1))
    y, qid = (da.from_array(values, chunks=(rows,)) for values in (data.y, data.qid))
    assert to_bytes(ranker().fit(X, y, qid=qid, cluster=client)) == to_bytes(ranker().fit(data))
    with pytest.raises(DataError, match="one chunk"):
        ranker().fit(X.rechunk((50, 2)), y, qid=qid, cluster=client)


def test_fewer_queries_than_workers(client):
    data, valid = made(queries=2, largest=30), made(queries=1, seed=3, largest=30)
    assert to_bytes(ranker().fit(data, valid=valid, cluster=client)) == to_bytes(
        ranker().fit(data, valid=valid)
    )


def test_weights_sampling_and_early_stopping(client):
    data, valid = made(weighted=True), made(queries=12, seed=2)
    more = {"subsample": 0.6, "colsample": 0.6, "early_stopping_rounds": 2, "n_estimators": 12}
    found = ranker(**more).fit(data, valid=valid, cluster=client)
    assert to_bytes(found) == to_bytes(ranker(**more).fit(data, valid=valid))


@pytest.mark.parametrize(
    "other",
    [
        mcrank.LambdaMART(**OPTIONS),
        mcrank.RegressionRanker(loss="lad", **OPTIONS),
        mcrank.McRank(base_class="adaptive", dart=False, max_bins=1024, split="newton", **OPTIONS),
        mcrank.OrdinalMcRank(dart=True, drop_rate=0.7, skip_drop=0.0, **OPTIONS),
    ],
)
def test_other_rankers(client, other):
    from sklearn.base import clone

    assert to_bytes(clone(other).fit(DATA, cluster=client)) == to_bytes(other.fit(DATA))


def test_a_callback_ends_training_at_its_round(client):
    seen = []

    def stop(event):
        seen.append(event.round)
        return event.round == 3

    found = ranker(n_estimators=50).fit(DATA, cluster=client, callback=stop)
    assert seen == [1, 2, 3]
    alone = ranker(n_estimators=50).fit(DATA, callback=lambda event: event.round == 3)
    assert to_bytes(found) == to_bytes(alone)


def test_going_on_from_a_model(client):
    first = ranker().fit(DATA)
    assert to_bytes(ranker().fit(DATA, init_model=first, cluster=client)) == to_bytes(
        ranker().fit(DATA, init_model=first)
    )


def test_nothing_to_learn(client):
    data = mcrank.Dataset(DATA.X, np.ones(DATA.n_rows), DATA.qid)
    assert to_bytes(ranker().fit(data, cluster=client)) == to_bytes(ranker().fit(data))


def test_a_cut_query_is_told_alike_within_a_place_and_between_places():
    """Which worker holds which partition is Dask's choice; what is said must not depend on it."""
    data = made()
    half = int(data.offsets[3] + 1)  # inside the fourth query
    before, after = (
        Dataset(data.X[rows], data.y[rows], data.qid[rows]) for rows in (slice(half), slice(half, None))
    )
    said = rf"query {data.qids[3]} has rows in different parts of the data, and 0 more .*regroup=True"
    with pytest.raises(DataError, match=said):
        together([before, after], data.n_features, 0.0)
    assert together([before, after], data.n_features, 0.0, "join").n_queries == data.n_queries
