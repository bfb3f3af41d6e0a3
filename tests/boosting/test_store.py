"""Training from disk gives the model file of training in memory, byte for byte; files of bins are checked."""

from __future__ import annotations

import errno
import os
import pickle

import numpy as np
import pytest

import mcrank
from mcrank.boosting import boost, disk
from mcrank.boosting.binning import bin_dataset, find_bins, line_of
from mcrank.boosting.store import BinnedData
from mcrank.boosting.workspace import BinnedArrays
from mcrank.container import BINS, unpack
from mcrank.rankers.registry import to_bytes
from tests.fuzz.forging import seal

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(rows: int, queries: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 21)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = rng.integers(0, 7, rows)
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=rows) * 0.3), 0, 4)
    X[rng.random(X.shape) < 0.05] = np.nan
    qid = rng.integers(0, queries, rows)  # rows of a query lie apart
    columns = {"qid": qid, "label": y, "w": rng.uniform(0.5, 2, rows)}
    return pa.table(columns | {f"x{j}": X[:, j] for j in range(X.shape[1])})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    whole = table(900, 40, 0)
    for i in range(3):
        pq.write_table(whole.slice(300 * i, 300), folder / f"train{i}.parquet", row_group_size=70)
    pq.write_table(table(300, 20, 1), folder / "valid.parquet")
    return folder


def options_of(files, weight=None):
    features = [f"x{j}" for j in range(21)]
    return files / "train*.parquet", {"weight": weight, "features": features}


CASES = [
    (mcrank.McRank, {}),
    (mcrank.McRank, {"split": "newton", "init": "prior", "n_jobs": 2}),
    (mcrank.McRank, {"subsample": 0.6, "colsample": 0.5}),
    (mcrank.McRank, {"goss": True, "learning_rate": 0.9, "n_jobs": 2}),
    (mcrank.McRank, {"max_bins": 1024, "subsample": 0.5}),
    (mcrank.McRank, {"categorical": ["x4"]}),
    (mcrank.McRank, {"base_class": "adaptive"}),
    (mcrank.McRank, {"sequential": True, "binning": "quantile"}),
    (mcrank.McRank, {"dart": True, "skip_drop": 0.0, "drop_rate": 0.5}),
    (mcrank.OrdinalMcRank, {"num_leaves": 31, "min_samples_leaf": 2}),
    (mcrank.RegressionRanker, {}),
    (mcrank.RegressionRanker, {"loss": "lad"}),
    (mcrank.LambdaMART, {}),
    (mcrank.GBRank, {"max_depth": 2, "monotone": {"x0": 1}}),
    (mcrank.GBRank, {"form": "average", "learning_rate": 1.0}),
    (mcrank.FRank, {"scorer": "trees"}),
    (mcrank.CustomRanker, {"split": "newton"}),
    (mcrank.LambdaMART, {"measure": "map", "norm": True, "categorical": ["x4"], "split": "newton"}),
    (mcrank.OrdinalMcRank, {"categorical": ["x4", "x3"], "max_bins": 1024}),
]


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 64, 200, 1 << 18])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_model_is_that_of_memory(files, tmp_path, kind, options, weight, part, monkeypatch):
    """Also in passes over parts of so many rows, where memory could not keep the pages of the files."""
    source, columns = options_of(files, weight)
    plan, valid = mcrank.scan(source, **columns), mcrank.scan(files / "valid.parquet", **columns)
    options = {"n_estimators": 4, "n_jobs": 1, "early_stopping_rounds": 2} | options
    here, held = mcrank.read(source, **columns), mcrank.read(files / "valid.parquet", **columns)
    wanted = to_bytes(kind(**options).fit(here, valid=held))
    if part:
        monkeypatch.setattr(disk, "PART_ROWS", part)
        monkeypatch.setattr(disk, "pays", lambda binned, *_: disk.is_on_disk(binned.columns) or binned.wide)
        monkeypatch.setattr(boost, "pays", disk.pays)
    assert to_bytes(kind(**options).fit(plan, valid=valid, memory="4GB")) == wanted
    if "categorical" in options:
        return  # of which files of bins have none
    way = {name: options[name] for name in ("max_bins", "binning") if name in options}
    mcrank.write_bins(plan, tmp_path / "train.bins", **way, n_jobs=2)
    bins = mcrank.open_bins(tmp_path / "train.bins")
    assert to_bytes(kind(**options).fit(bins, valid=held, memory="4GB")) == wanted


def test_the_model_is_that_of_memory_quickly(files, tmp_path):
    source, columns = options_of(files)
    plan = mcrank.scan(source, **columns)
    wanted = to_bytes(mcrank.LambdaMART(n_estimators=2, n_jobs=1).fit(plan.read()))
    assert to_bytes(mcrank.LambdaMART(n_estimators=2, n_jobs=1).fit(plan)) == wanted
    mcrank.write_bins(plan.read(), tmp_path / "train.bins")
    bins = mcrank.open_bins(tmp_path / "train.bins")
    assert (
        to_bytes(mcrank.LambdaMART(n_estimators=2, n_jobs=1).fit(pickle.loads(pickle.dumps(bins)))) == wanted
    )


def test_stumps_train_from_a_scan_without_a_limit(files, tmp_path):
    source, columns = options_of(files)
    plan, stumps = mcrank.scan(source, **columns), mcrank.FRank(n_estimators=2, n_jobs=1)
    assert to_bytes(stumps.fit(plan)) == to_bytes(mcrank.FRank(n_estimators=2, n_jobs=1).fit(plan.read()))
    with pytest.raises(mcrank.OptionError, match="scorer='trees'"):
        stumps.fit(plan, memory="4GB")
    mcrank.write_bins(plan, tmp_path / "train.bins")
    with pytest.raises(mcrank.DataError, match="holds bins, not the values"):
        stumps.fit(mcrank.open_bins(tmp_path / "train.bins"))


def test_passes_are_for_files_that_memory_has_no_room_for(kept, monkeypatch):
    binned = BinnedArrays.of(mcrank.open_bins(kept).binned)
    size = binned.columns.nbytes + binned.lines.nbytes
    for free, memory, wanted in (
        (1 << 40, None, False),
        (2 * size - 2, None, True),
        (2 * size - 2, 1 << 40, True),
        (2 * size - 2, 1000, False),  # nor has it for what passes need
        (1000, None, False),
    ):
        monkeypatch.setattr(disk, "available_bytes", lambda free=free: free)
        assert disk.pays(binned, 900, 1, memory) is wanted
    here = mcrank.make_artificial(n_train=20, n_valid=1, n_test=1, seed=0).train
    monkeypatch.setattr(disk, "available_bytes", lambda: 10000)
    assert not disk.pays(BinnedArrays.of(bin_dataset(here, find_bins(here.X, 16))), 900, 1, None)


@pytest.fixture(scope="module")
def kept(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("bins") / "train.bins"
    source, columns = options_of(files, "w")
    mcrank.write_bins(mcrank.scan(source, **columns), path, n_jobs=1)
    return path


def test_what_is_not_in_a_file_of_bins_is_refused(kept):
    data = mcrank.open_bins(kept)
    assert isinstance(data, BinnedData)
    assert (data.n_rows, data.n_features, data.n_queries) == (900, 21, 40)
    with pytest.raises(mcrank.DataError, match="holds bins, not the values"):
        data.select([0])
    with pytest.raises(mcrank.DataError, match="holds bins"):
        mcrank.RankSVM().fit(data)
    with pytest.raises(mcrank.OptionError, match="was binned with max_bins=256 and binning='adaptive'"):
        mcrank.McRank(max_bins=64).fit(data)


@pytest.mark.parametrize("take", [mcrank.read, mcrank.scan])
def test_bins_are_not_read_as_data(kept, take):
    with pytest.raises(mcrank.DataError, match=r"train\.bins holds bins, to train on"):
        take(kept)


def test_a_memory_that_is_too_small_is_told_what_would_do(kept):
    with pytest.raises(mcrank.OptionError, match=r"at least (\d+)MB for 900 rows of 21") as told:
        mcrank.McRank(n_jobs=1).fit(mcrank.open_bins(kept), memory="3MB")
    enough = str(told.value).split("at least ")[1].split(" ")[0]
    more = int(enough.removesuffix("MB")) + 20  # the process may have grown by then
    mcrank.McRank(n_jobs=1, n_estimators=1).fit(mcrank.open_bins(kept), memory=f"{more}MB")


def test_rows_that_cannot_fit_are_told_before_anything_is_read(files, monkeypatch):
    plan = mcrank.scan(files / "train*.parquet")
    monkeypatch.setattr(type(plan), "known_rows", 10**9)
    monkeypatch.setattr(type(plan), "batches", None)
    with pytest.raises(mcrank.OptionError, match="for the 1,000,000,000 rows of"):
        mcrank.McRank().fit(plan, memory="8GB")


def test_memory_is_for_data_on_disk(files):
    with pytest.raises(mcrank.OptionError, match="is for data on disk"):
        mcrank.McRank().fit(mcrank.read(files / "valid.parquet"), memory="1GB")


def test_rankers_that_are_no_trees_say_so(files):
    with pytest.raises(mcrank.OptionError, match=r"RankSVM\.fit got a Scan"):
        mcrank.RankSVM().fit(mcrank.scan(files / "valid.parquet"))


def test_a_file_is_written_whole_or_not_at_all(files, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(mcrank.DataError, match=r"train\.bins cannot be written: No space"):
        mcrank.write_bins(mcrank.read(files / "valid.parquet"), tmp_path / "train.bins")
    assert list(tmp_path.iterdir()) == []


def forged(kept, tmp_path, change):
    header, arrays = unpack(kept.read_bytes(), "bins", BINS)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    path = tmp_path / "forged.bins"
    path.write_bytes(seal(header, arrays, BINS))
    return path


def put(name, at, value):
    def change(_, arrays):
        arrays[name][at] = value

    return change


def one_bin_too_many(_, arrays):
    beyond = arrays["bin_counts"][3] + arrays["missing"][3]
    assert beyond < 20
    begin, stride = line_of(3, *arrays["columns"].shape)
    arrays["columns"][3, 5] = arrays["lines"][8 * begin + 3 + 5 * 8 * stride] = beyond


def cut(name, size):
    def change(_, arrays):
        arrays[name] = arrays[name][:size]

    return change


def say(name, value):
    def change(header, _):
        header[name] = value

    return change


HOSTILE = [
    one_bin_too_many,
    put("columns", (0, 5), 255),
    put("columns", (20, 899), 254),
    put("lines", 7, 200),
    put("lines", -3, 99),
    put("missing", 0, 2),
    put("missing", 3, 0),
    put("bin_counts", 0, 0),
    put("bin_counts", 0, 70000),
    put("lowest", 5, 1e30),
    put("offsets", 1, -1),
    put("offsets", 40, 10**12),
    put("y", 0, -1.0),
    put("weight", 0, -1.0),
    put("source_rows", 0, 900),
    lambda _, arrays: arrays["source_rows"].fill(7),
    cut("source_rows", 9),
    cut("y", 10),
    cut("columns", 3),
    cut("lines", 1),
    cut("qids", 2),
    cut("highest", 9),
    say("layout", 0),
    say("named", 1),
    say("max_bins", "256"),
    say("binning", "none"),
    say("ids", "texts"),
    say("features", ["x"]),
    say("features", 7),
    say("more", 1),
    lambda header, arrays: arrays.pop("lines"),
    lambda header, arrays: arrays.update(wide_columns=arrays["columns"].astype(np.uint16)),
    lambda header, arrays: arrays.update(columns=arrays["columns"].T.copy()),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_forged_file_is_refused(kept, tmp_path, change):
    with pytest.raises(mcrank.DataError, match=r"forged\.bins"):
        mcrank.open_bins(forged(kept, tmp_path, change))


def test_an_unchanged_one_is_not(kept, tmp_path):
    assert mcrank.open_bins(forged(kept, tmp_path, lambda *_: None)).n_rows == 900


@pytest.mark.parametrize("place", [0, 9, 13, 40, 3000, -100, -1])
def test_a_damaged_byte_is_found(kept, tmp_path, place):
    content = bytearray(kept.read_bytes())
    content[place] ^= 1
    path = tmp_path / "damaged.bins"
    path.write_bytes(content)
    with pytest.raises(mcrank.DataError, match=r"damaged\.bins"):
        mcrank.open_bins(path)


@pytest.mark.parametrize("size", [0, 8, 100, -1])
def test_a_cut_file_is_found(kept, tmp_path, size):
    path = tmp_path / "cut.bins"
    path.write_bytes(kept.read_bytes()[:size])
    with pytest.raises(mcrank.DataError, match=r"cut\.bins"):
        mcrank.open_bins(path)


def test_a_file_that_is_cut_while_it_is_trained_on(kept, tmp_path):
    path = tmp_path / "train.bins"
    path.write_bytes(kept.read_bytes())

    def cut(event):
        os.truncate(path, 4096)

    with pytest.raises(mcrank.DataError, match="was cut short, from"):
        mcrank.RegressionRanker(n_estimators=3, n_jobs=1).fit(mcrank.open_bins(path), callback=cut)


def test_a_model_is_no_file_of_bins(files, tmp_path):
    path = tmp_path / "model.mcrank"
    mcrank.BestFeature().fit(mcrank.read(files / "valid.parquet")).save(path)
    with pytest.raises(mcrank.DataError, match="not a mcrank bins file"):
        mcrank.open_bins(path)


def test_bins_never_take_the_place_of_their_data(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    with pytest.raises(mcrank.errors.OptionError, match=r"rows\.txt, which is read and would be lost"):
        mcrank.write_bins(mcrank.scan(file), file)
    assert file.read_text().startswith("1 qid:1")


def test_too_little_memory_for_text_is_not_said_of_no_rows(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    with pytest.raises(mcrank.errors.OptionError, match=r"for any row of .*rows.txt, got 1MB"):
        mcrank.McRank().fit(mcrank.scan(file), memory="1MB")


def test_scores_to_start_from_are_those_of_the_rows_as_they_lay(files, tmp_path):
    data = mcrank.read(files / "valid.parquet", ignore=["w"])
    assert data.source_rows is not None
    start = np.random.default_rng(8).normal(size=data.n_rows)
    mcrank.write_bins(mcrank.scan(files / "valid.parquet", ignore=["w"]), tmp_path / "x.bins", n_jobs=1)
    kept = mcrank.open_bins(tmp_path / "x.bins")
    np.testing.assert_array_equal(kept.source_rows, data.source_rows)
    first, second = (
        mcrank.RegressionRanker(n_estimators=3, n_jobs=1).fit(of, init_score=start) for of in (kept, data)
    )
    assert to_bytes(first) == to_bytes(second)
