"""Fold directories, splits and k-folds by query."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import mcrank

MQ2008 = Path(__file__).parents[3] / "shared" / "data" / "MQ2008"


@pytest.fixture
def folds_directory(tmp_path):
    for number in (1, 2, 10):
        folder = tmp_path / f"Fold{number}"
        folder.mkdir()
        for part in ("train", "vali", "test"):
            extra = " 3:1" if part == "train" else ""
            (folder / f"{part}.txt").write_text(f"1 qid:{part}{number} 1:0.5{extra}\n")
    return tmp_path


def test_folds_come_in_number_order_and_one_width(folds_directory):
    folds = mcrank.read_folds(folds_directory)
    assert len(folds) == 3
    assert [fold.test.qids[0] for fold in folds] == ["test1", "test2", "test10"]
    assert {part.n_features for fold in folds for part in fold} == {3}
    assert folds[-1].valid.qids.tolist() == ["vali10"]
    assert len(folds[1:]) == 2
    assert mcrank.read_folds(folds_directory.parent / folds_directory.name / "Fold1")[0].train.n_rows == 1


def test_read_options_reach_the_files(folds_directory):
    fold = mcrank.read_folds(folds_directory, cache=True)[0]
    assert (folds_directory / "Fold1" / "test.txt.mcrank-cache").exists()
    assert mcrank.read_folds(folds_directory, cache=True)[0].test.qids.tolist() == fold.test.qids.tolist()


def test_compressed_parts_and_missing_ones(folds_directory):
    plain = folds_directory / "Fold1" / "test.txt"
    (folds_directory / "Fold1" / "test.txt.gz").write_bytes(gzip.compress(plain.read_bytes()))
    with pytest.raises(mcrank.DataError, match=r"has test\.txt and test\.txt\.gz for the test part"):
        mcrank.read_folds(folds_directory)
    plain.unlink()
    assert mcrank.read_folds(folds_directory)[0].test.qids.tolist() == ["test1"]
    (folds_directory / "Fold2" / "vali.txt").unlink()
    with pytest.raises(mcrank.DataError, match="has no file for the valid part"):
        mcrank.read_folds(folds_directory)
    with pytest.raises(mcrank.DataError, match="is not a directory"):
        mcrank.read_folds(folds_directory / "none")


@pytest.fixture(scope="module")
def data():
    stream = np.random.default_rng(0)
    sizes = stream.integers(1, 80, 200)
    rate = stream.choice([0.0, 0.1, 0.5], 200)
    y = np.concatenate(
        [(stream.random(n) < p) * stream.integers(1, 5, n) for n, p in zip(sizes, rate, strict=True)]
    )
    return mcrank.Dataset(stream.random((len(y), 2)), y, np.repeat(np.arange(200), sizes))


def test_kfold_partitions_the_queries(data):
    folds = mcrank.kfold(data, 5, seed=1)
    tests = [set(fold.test.qids.tolist()) for fold in folds]
    assert sorted(q for part in tests for q in part) == list(range(200))
    for number, fold in enumerate(folds):
        ids = [set(part.qids.tolist()) for part in fold]
        assert len(set.union(*ids)) == 200 == sum(map(len, ids))
        assert ids[1] == tests[(number + 1) % 5]
        assert 38 <= len(ids[2]) <= 42


def test_parts_have_the_same_mix(data):
    """Stratified parts are closer to the whole than the average unstratified split of the same data."""

    def spread(parts):
        values = []
        for part in parts:
            best = np.maximum.reduceat(part.y, part.offsets[:-1])
            values.append([(best == 0).mean(), part.sizes.mean() / 40, (part.y > 0).mean()])
        return np.std(values, axis=0).sum()

    stratified = np.mean([spread([f.test for f in mcrank.kfold(data, 5, seed=s)]) for s in range(10)])
    plain = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(200)
        plain.append(spread([data.select(np.sort(order[i::5])) for i in range(5)]))
    assert stratified < 0.6 * np.mean(plain)


def test_split_shares_and_seed(data):
    train, valid, test = mcrank.split(data, 0.7, 0.1, 0.2, seed=4)
    assert [abs(p.n_queries - n) <= 2 for p, n in ((train, 140), (valid, 20), (test, 40))] == [True] * 3
    again = mcrank.split(data, 0.7, 0.1, 0.2, seed=4)
    other = mcrank.split(data, 0.7, 0.1, 0.2, seed=5)
    assert again[2].qids.tolist() == test.qids.tolist() != other[2].qids.tolist()
    assert [p.n_queries for p in mcrank.split(data.select([0, 1, 2]), 0.98, 0.01, 0.01)] == [1, 1, 1]
    assert len(mcrank.split(data)) == 3
    for shares in ((0.5, 0.6), (1.0, 0.0), (-1, 2), ("all",)):
        with pytest.raises(mcrank.OptionError, match="shares of split"):
            mcrank.split(data, *shares)
    with pytest.raises(mcrank.DataError, match="needs as many queries"):
        mcrank.split(data.select([0]), 0.5, 0.5)
    for k in (2, 3.5, "3"):
        with pytest.raises(mcrank.OptionError, match="k of kfold must be an integer >= 3"):
            mcrank.kfold(data, k)
    with pytest.raises(mcrank.OptionError, match="seed of kfold"):
        mcrank.kfold(data, 3, seed="a")
    with pytest.raises(mcrank.OptionError, match="seed of split"):
        mcrank.split(data, seed=-1)
    with pytest.raises(mcrank.DataError, match="needs as many queries"):
        mcrank.kfold(data.select([0, 1]), 3)


@pytest.mark.skipif(not MQ2008.is_dir(), reason="MQ2008 is not beside the checkout")
def test_mq2008_has_its_documented_counts():
    folds = mcrank.datasets.load(MQ2008)
    expected = [(471, 157, 156), (471, 156, 157), (470, 157, 157), (470, 157, 157), (470, 157, 157)]
    tests = []
    for fold, counts in zip(folds, expected, strict=True):
        assert tuple(part.n_queries for part in fold) == counts
        assert {part.n_features for part in fold} == {46}
        tests.append(fold.test)
    whole = mcrank.Dataset.merge(tests)
    assert (whole.n_queries, whole.n_rows) == (784, 15_211)
    assert np.bincount(whole.y.astype(int)).tolist() == [12_279, 2_001, 931]
    assert whole.n_queries - whole.drop_empty_queries().n_queries == 220
    assert (whole.sizes.min(), whole.sizes.max()) == (5, 121)
    assert all(str(doc).startswith("GX") for doc in whole.doc_ids)
