"""Score files of other tools and saved models in a comparison."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.errors import DataError
from mcrank.experiments.foreign import read_foreign, sniff
from mcrank.experiments.trial import Trial, trial_name
from tests.experiments.conftest import QUICK


@pytest.fixture(scope="module")
def tests(letor):
    return [fold.test for fold in mcrank.read_folds(letor)]


@pytest.fixture(scope="module")
def scores(tests):
    """Scores of all folds without ties."""
    rng = np.random.default_rng(0)
    return [rng.permutation(test.n_rows) / 8 for test in tests]


FOLDS = ("Fold1", "Fold2", "Fold3")


def lines(scores):
    return "".join(f"{score}\n" for score in scores)


def ranklib(test, scores, order):
    rows = [
        f"{query}\t{row - start}\t{scores[row]}\n"
        for query, start, stop in zip(test.qids, test.offsets[:-1], test.offsets[1:], strict=True)
        for row in range(start, stop)
    ]
    return "".join(rows[place] for place in order.permutation(len(rows)))


def trec(test, scores, order, text="{}"):
    rows = [
        f"{query} Q0 {text.format(document)} 1 {score} me\n"
        for query, document, score in zip(test.qid, test.doc_ids, scores, strict=True)
    ]
    return "".join(rows[place] for place in order.permutation(len(rows)))


@pytest.mark.parametrize("per_fold", [True, False])
@pytest.mark.parametrize("form", ["lines", "ranklib", "trec", "indri"])
def test_every_format_gives_the_same_scores(tests, scores, form, per_fold, tmp_path):
    order = np.random.default_rng(1)
    write = {
        "lines": lambda test, values: lines(values),
        "ranklib": lambda test, values: ranklib(test, values, order),
        "trec": lambda test, values: trec(test, values, order),
        "indri": lambda test, values: trec(test, values, order, "docid = {} inc = 1 prob = 0.5"),
    }[form]
    texts = [write(test, values) for test, values in zip(tests, scores, strict=True)]
    if per_fold:
        for fold, text in zip(FOLDS, texts, strict=True):
            (tmp_path / f"{fold}.txt").write_text(text)
        found = read_foreign(str(tmp_path / "{fold}.txt"), FOLDS, tests)
    else:
        (tmp_path / "all.txt").write_text("".join(texts))
        found = read_foreign(str(tmp_path / "all.txt"), FOLDS, tests)
    for got, wanted in zip(found.scores, scores, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert found.notes == []
    words = {"lines": "one score per line", "ranklib": "RankLib scores"}.get(form, "TREC run")
    path = "{fold}.txt" if per_fold else "all.txt"
    assert found.understood == f"{tmp_path}/{path}: {words}"


def test_rows_without_a_score_come_last(tests, scores, tmp_path):
    path = tmp_path / "run.txt"
    order = np.random.default_rng(1)
    text = "".join(trec(test, values, order) for test, values in zip(tests, scores, strict=True))
    kept = text.splitlines(keepends=True)
    gone = kept[3].split()[2]
    path.write_text("".join(line for line in kept if line.split()[2] != gone) + "q9 Q0 d 1 1.0 me\n")
    found = read_foreign(str(path), FOLDS, tests)
    assert found.notes == [
        f"{path} has no score for 1 test rows; they are ranked last in their queries.",
        f"{path} has 1 queries that are not tested; they were left out.",
    ]
    for test, got in zip(tests, found.scores, strict=True):
        for row in np.flatnonzero(test.doc_ids == gone):
            query = np.searchsorted(test.offsets, row, side="right") - 1
            mine = slice(test.offsets[query], test.offsets[query + 1])
            assert got[row] < np.delete(got[mine], row - mine.start).min()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("1 2\n", "scores must be one number per line, RankLib's"),
        ("0.5\n", "has 1 scores for"),
        ("no\tsuch\t0.5\n", "must be query, number of the document"),
        ("no\t1\t0.5\n", "has none of the test queries"),
        ("1\t1\tx\n", "line 1: the score must be a number, got 'x'"),
        ("1\t1\tnan\n", "the score must be finite"),
        ("1\t1\t1\n1\t01\t2\n", "line 2: document '1' stands twice in query '1'"),
        ("1 Q0 d 1 0.5 me\n1 Q0 d\n", "line 2: 3 columns"),
    ],
)
def test_bad_files(tests, text, words, tmp_path):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(DataError, match=words):
        read_foreign(str(tmp_path / "bad.txt"), FOLDS, tests)


def test_missing_file():
    with pytest.raises(DataError, match=r"nowhere\.txt cannot be read: No such file"):
        sniff("nowhere.txt")


def test_infinite_lines(tests, tmp_path):
    rows = sum(test.n_rows for test in tests)
    (tmp_path / "inf.txt").write_text("inf\n" + "0\n" * (rows - 1))
    with pytest.raises(DataError, match="line 1: the score must be finite"):
        read_foreign(str(tmp_path / "inf.txt"), FOLDS, tests)


def test_in_a_comparison(letor, tests, scores, tmp_path):
    """A ranker, its own saved models and its own predictions as a score file have the same numbers."""
    out = tmp_path / "run"
    first = mcrank.compare(f"regression:{QUICK}", letor, "ndcg@5", out=out, n_jobs=1)
    (tmp_path / "scores.txt").write_text("".join(f"{float(score)!r}\n" for score in first.scores[0]))
    found = mcrank.compare(
        {
            "trained": f"regression:{QUICK}",
            "saved": f"{out}/models/regression.{{fold}}.mcrank",
            "one": f"{out}/models/regression.Fold1.mcrank",
            "file": tmp_path / "scores.txt",
        },
        letor,
        "ndcg@5",
        n_jobs=1,
    )
    np.testing.assert_array_equal(found.scores[0], found.scores[1])
    np.testing.assert_array_equal(found.scores[0], found.scores[3])
    assert [system.kind for system in found.systems] == ["ranker", "model", "model", "scores"]
    assert found.systems[3].source.endswith("scores.txt: one score per line")
    assert not np.array_equal(found.scores[0], found.scores[2])
    # A model that has seen the queries of the other folds is named.
    (note,) = found.notes
    assert note.startswith("one on Fold2, Fold3: it was trained on the training part of Fold1")
    assert found.sizes["saved", "Fold1"] == first.sizes["regression", "Fold1"]
    assert found.timings["saved", "Fold1"].train_seconds is None
    assert ("saved", "Fold1") not in found.chosen


def test_a_missing_model_of_a_fold(letor, tmp_path):
    data = mcrank.read_folds(letor)[0]
    mcrank.RegressionRanker(n_estimators=1).fit(data.train).save(tmp_path / "Fold1.mcrank")
    with pytest.raises(DataError, match=r"Fold2.mcrank, the model of .* for Fold2, does not exist"):
        mcrank.compare(str(tmp_path / "{fold}.mcrank"), letor, n_jobs=1)


@pytest.fixture
def with_empty(tmp_path):
    """Two folds whose test parts have empty queries; rows of a query do not stand together in the files."""
    rng = np.random.default_rng(3)
    for number, first in ((1, 0), (2, 8)):
        folder = tmp_path / "data" / f"Fold{number}"
        folder.mkdir(parents=True)
        for part in ("train", "vali", "test"):
            shift = first if part == "test" else 100
            rows = [(query, row) for row in range(3) for query in range(shift, shift + 8)]
            text = "".join(
                f"{0 if query % 3 == 0 else row} qid:{query} 1:{rng.random():.4f} # docid = {query}-{row}\n"
                for query, row in rows
            )
            (folder / f"{part}.txt").write_text(text)
    return tmp_path


@pytest.mark.parametrize("pattern", ["{fold}.txt", "all.txt"])
def test_scores_of_dropped_queries_are_dropped_with_them(with_empty, pattern):
    data = with_empty / "data"
    texts = {}
    for number, fold in enumerate(mcrank.read_folds(data), start=1):
        scores = np.round(fold.test.to_caller(np.sin(np.arange(fold.test.n_rows) * 7.3)), 6)
        texts[f"Fold{number}.txt"] = lines(scores)
    texts["all.txt"] = "".join(texts.values())
    for name, text in texts.items():
        (with_empty / name).write_text(text)
    entry = {"tool": str(with_empty / pattern)}
    whole = mcrank.compare(entry, data, "ndcg@10", n_jobs=1)
    kept = mcrank.compare(entry, data, "ndcg@10", n_jobs=1, drop_empty=True)
    assert whole.n_queries == 16
    assert kept.n_queries == 10
    by_query = dict(zip(whole.qids.tolist(), whole.per_query("ndcg@10")[0].tolist(), strict=True))
    assert kept.per_query("ndcg@10")[0].tolist() == [by_query[query] for query in kept.qids.tolist()]
    assert any("without a relevant document; they were left out" in note for note in kept.notes)


def test_scores_of_the_rows_left_are_taken_and_others_refused(with_empty):
    data, path = with_empty / "data", with_empty / "few.txt"
    entry = {"tool": str(path)}
    path.write_text(lines(range(30)))
    assert mcrank.compare(entry, data, "ndcg@10", n_jobs=1, drop_empty=True).n_queries == 10
    path.write_text(lines(range(31)))
    with pytest.raises(DataError, match="31 scores for 30 rows"):
        mcrank.compare(entry, data, "ndcg@10", n_jobs=1, drop_empty=True)


def test_a_file_that_is_called_like_a_word_of_an_option_is_no_part_of_a_training(tmp_path, monkeypatch):
    """Nets have scaling="log": a file log where the command runs must not make them train anew."""
    monkeypatch.chdir(tmp_path)
    trial = Trial("s", 0, "ranknet", {}, {})
    before = trial_name(trial, {}, ("f",))
    (tmp_path / "log").write_text("a\n")
    assert trial_name(trial, {}, ("f",)) == before
