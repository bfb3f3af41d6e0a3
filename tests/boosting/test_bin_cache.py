"""Bins are found once for a data set and a way of binning, kept within a bound, and gone with their data."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from mcrank import Dataset, LambdaMART, McRank, RankBoost, RegressionRanker
from mcrank.boosting import bin_cache
from mcrank.boosting.bin_cache import BinCache
from mcrank.errors import OptionError
from mcrank.rankers.registry import to_bytes

FEW = {"n_estimators": 2, "num_leaves": 3, "min_samples_leaf": 2, "n_jobs": 1}


def some_data(seed=0, rows=120, features=5):
    stream = np.random.default_rng(seed)
    return Dataset(stream.normal(size=(rows, features)), np.arange(rows) % 3, np.arange(rows) // 12)


@pytest.fixture
def calls(monkeypatch):
    """Ways of binning asked of `find_bins`, one after the other."""
    made = []
    real = bin_cache.find_bins

    def find_bins(X, max_bins, binning, n_jobs, **more):
        made.append((max_bins, binning))
        return real(X, max_bins, binning, n_jobs)

    monkeypatch.setattr(bin_cache, "find_bins", find_bins)
    return made


def test_a_second_fit_bins_nothing_whatever_the_ranker(calls):
    data = some_data()
    McRank(**FEW).fit(data)
    assert calls == [(256, "adaptive")]
    McRank(**FEW, learning_rate=0.2).fit(data)
    RegressionRanker(**FEW).fit(data)
    LambdaMART(**FEW, subsample=0.5, colsample=0.5).fit(data)
    RankBoost(n_estimators=2, max_bins=256, n_jobs=1).fit(data)
    assert calls == [(256, "adaptive")]
    McRank(**FEW, max_bins=10).fit(data)
    McRank(**FEW, binning="quantile").fit(data)
    McRank(**FEW).fit(data)
    assert calls == [(256, "adaptive"), (10, "adaptive"), (256, "quantile")]


def test_models_are_the_same_with_bins_kept_and_not(calls, monkeypatch):
    data = some_data()
    kept = [McRank(**FEW, max_bins=9).fit(data) for _ in range(2)]
    assert len(calls) == 1
    monkeypatch.setenv(bin_cache.VARIABLE, "0")
    other = McRank(**FEW, max_bins=9).fit(some_data())
    assert len(calls) == 2
    again = McRank(**FEW, max_bins=9).fit(data)
    assert len({to_bytes(ranker) for ranker in (*kept, other, again)}) == 1


def test_other_data_has_other_bins(calls):
    data = some_data()
    for other in (data, some_data(1), data.select(np.arange(5)), pickle.loads(pickle.dumps(data))):
        RegressionRanker(**FEW).fit(other)
    assert len(calls) == 4


def test_the_least_recently_used_make_room(calls, monkeypatch):
    data = [some_data(seed, rows=10_000, features=13) for seed in range(3)]  # 0.28 MB of bins each
    cache = BinCache()
    monkeypatch.setenv(bin_cache.VARIABLE, "1")
    for place in (0, 1, 2, 0):
        cache.binned(data[place], 256, "quantile")
    assert len(calls) == 3
    cache.binned(data[1], 10, "quantile")
    cache.binned(data[2], 10, "quantile")  # 1 and 2 with 256 bins were used longest ago
    cache.binned(data[0], 256, "quantile")
    assert len(calls) == 5
    cache.binned(data[1], 256, "quantile")
    assert len(calls) == 6


def test_nothing_is_kept_beyond_the_bound(calls, monkeypatch):
    data, cache = some_data(), BinCache()
    monkeypatch.setenv(bin_cache.VARIABLE, "0")
    for _ in range(3):
        cache.binned(data, 256, "adaptive")
    assert len(calls) == 3


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "٣", "9" * 5000])
def test_a_bound_that_is_no_number_is_refused(text, monkeypatch):
    monkeypatch.setenv(bin_cache.VARIABLE, text)
    with pytest.raises(OptionError, match="MCRANK_BINS_MB must be a whole number of megabytes"):
        McRank(**FEW).fit(some_data())


def test_bins_go_with_their_data_set():
    data, cache = some_data(), BinCache()
    columns = weakref.ref(cache.binned(data, 256, "adaptive").columns)
    gc.collect()
    assert columns() is not None
    del data
    gc.collect()
    assert columns() is None
    assert not cache._shelves


def test_a_pickled_data_set_has_no_bins():
    data = some_data()
    before = len(pickle.dumps(data))
    McRank(**FEW).fit(data)
    assert len(pickle.dumps(data)) == before


def test_threads_that_ask_at_once_wait_for_one(calls):
    data, cache, found = some_data(rows=3000, features=20), BinCache(), []
    start = threading.Barrier(4)

    def ask():
        start.wait()
        found.append(cache.binned(data, 256, "quantile"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len({id(binned) for binned in found}) == 1


def test_a_failure_is_not_kept(monkeypatch, calls):
    data, cache = some_data(), BinCache()
    with monkeypatch.context() as patched:
        patched.setattr(bin_cache, "bin_dataset", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cache.binned(data, 256, "adaptive")
    assert cache.binned(data, 256, "adaptive").n_rows == 120
    assert len(calls) == 2


def test_nobody_changes_the_edges_that_rankers_share():
    ranker = McRank(**FEW).fit(some_data())
    for shared in (ranker.bin_edges_, ranker.bin_offsets_):
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 0
