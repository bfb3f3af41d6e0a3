"""`Comparison`: its tables agree with `mcrank.evaluate` and `mcrank.stats`, and survive saving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.leaderboard import stars, verdict
from tests.experiments.small import small_comparison


@pytest.fixture(scope="module")
def small():
    return small_comparison()


def test_values_and_means_are_those_of_evaluate(small):
    qid = np.repeat(small.qids, np.diff(small.offsets))
    grades = mcrank.Grades(small.grades, qid)
    for place, key in enumerate(small.keys):
        found = mcrank.evaluate(small.scores[place], grades, small.measures)
        for name in small.measures:
            np.testing.assert_array_equal(found.per_query[name], small.values[name][place])
            assert found.mean[name] == small.means[name][place]
        assert small.mean("err")[place] == mcrank.evaluate(small.scores[place], grades, "err").mean["err"]
        assert small.evaluate(key, "mrr").mean["mrr"] == small.mean("mrr")[place]


def test_standard_is_always_there(small):
    assert small.measures[0] == "ndcg@10"
    assert {"ndcg@10[yahoo]", "ndcg@10[mslr]", "map", "map[yahoo]"} <= set(small.measures)


def test_leaderboard_is_that_of_stats(small):
    lines = small.leaderboard()
    assert [line.mean for line in lines] == sorted((line.mean for line in lines), reverse=True)
    assert [line.rank for line in lines] == [1, 2, 3, 4]
    values = {
        key: dict(zip(small.qids.tolist(), row.tolist(), strict=True))
        for key, row in zip(small.keys, small.values["ndcg@10"], strict=True)
    }
    rows = {row.system: row for row in stats.compare(values, baseline=lines[0].system)}
    for line in lines:
        row = rows[line.system]
        assert (line.ci_low, line.ci_high) == (row.interval.low, row.interval.high)
        assert (line.p, line.corrected_p, line.difference) == (row.p, row.corrected_p, row.difference)
        assert (line.wins, line.ties, line.losses) == (row.wins, row.ties, row.losses)
    assert lines[0].mark == "best"
    assert lines[0].p is None


def test_leaderboard_against_a_baseline(small):
    lines = {line.system: line for line in small.leaderboard("map", baseline="f1")}
    assert lines["f1"].mark == "baseline"
    assert lines["f1"].difference is None
    means = dict(zip(small.keys, small.means["map"], strict=True))
    assert lines["mcrank"].difference == pytest.approx(means["mcrank"] - means["f1"], abs=1e-12)
    with pytest.raises(mcrank.OptionError, match="there is no system 'f2'"):
        small.leaderboard(baseline="f2")


def test_costs_are_medians(small):
    line = next(line for line in small.leaderboard() if line.system == "mcrank")
    per_row = [1e6 * 0.25 / fold.test["rows"] for fold in small.folds]
    assert line.train_seconds == 0.5
    assert line.predict_microseconds == pytest.approx(np.median(per_row))
    assert line.model_bytes == np.mean([small.sizes["mcrank", fold.name] for fold in small.folds])
    assert next(line for line in small.leaderboard() if line.system == "f1").train_seconds is None


def test_fold_means_weighted_by_queries_are_the_mean(small):
    queries = np.bincount(small.fold_of_query)
    for name in small.measures:
        table = small.fold_means(name)
        assert table.shape == (4, 3)
        np.testing.assert_allclose(table @ queries / queries.sum(), small.means[name], atol=1e-12)


def lines_with(*corrected):
    """A leaderboard of systems a, b, c... with these corrected p-values behind the first."""
    made = []
    for place, p in enumerate((None, *corrected)):
        line = replace(
            small_line(), rank=place + 1, system="abcd"[place], mean=0.5 - place / 100, corrected_p=p,
            difference=None if place == 0 else -place / 100, mark=stars(p),
        )  # fmt: skip
        made.append(line)
    return made


def small_line():
    from mcrank.experiments.leaderboard import Standing

    return Standing(1, "a", 0.5, 0.4, 0.6, None, None, None, None, "", None, None, None, None, None, None)


@pytest.mark.parametrize(
    ("corrected", "words"),
    [
        ((0.01, 0.001), "it is real: it beats b (0.4900, 0.0100 behind, corrected p = 0.01 over "
         "2 tests) and every other"),
        ((0.3, 0.4), "may be luck: it is not reliably ahead of b"),
        ((0.3, 0.004), "its lead over b (0.4900, 0.0100 behind, corrected p = 0.3 over 2 tests) may be "
         "luck; it is really ahead of c."),
        ((0.3, 0.4, 0.004), "may be luck; it is really ahead of d."),
        ((0.3, 0.001, 0.004), "may be luck; it is really ahead of c and d."),
        ((0.01, 0.4), "really ahead of b (0.4900, 0.0100 behind, corrected p = 0.01 over 2 tests) but not "
         "reliably of c"),
        ((0.01,), "it is real: it beats b (0.4900, 0.0100 behind, corrected p = 0.01 over 1 test) "
         "on the same queries."),
        ((), "nothing to compare it with"),
    ],
)  # fmt: skip
def test_verdict(corrected, words):
    sentence = verdict(lines_with(*corrected), "ndcg@10")
    assert sentence.startswith("a has the best ndcg@10, 0.5000")
    assert words in sentence


@pytest.mark.parametrize(
    ("corrected", "words"),
    [
        ((1.0,), "a and b have the best ndcg@10, 0.5000, equal on every query: nothing tells them apart."),
        ((1.0, 0.001), "equal on every query; they are really ahead of c (corrected over 2 tests)."),
        ((1.0, 0.3, 0.001), "really ahead of d and not reliably ahead of c (corrected over 3 tests)."),
    ],
)
def test_who_is_equal_on_every_query_is_not_behind(corrected, words):
    best, second, *others = lines_with(*corrected)
    equal = replace(second, mean=best.mean, difference=0.0, wins=0, ties=9, losses=0)
    assert verdict([best, equal, *others], "ndcg@10").endswith(words)


def test_saved_and_loaded(small, tmp_path):
    small.save(tmp_path / "run")
    back = Comparison.load(tmp_path / "run")
    assert back.systems == small.systems
    assert back.folds == small.folds
    assert back.measures == small.measures
    assert dict(back.chosen) == dict(small.chosen)
    assert dict(back.timings) == dict(small.timings)
    assert {k: dict(v) for k, v in back.curves.items()} == {k: dict(v) for k, v in small.curves.items()}
    assert back.notes == ("A note.",)
    np.testing.assert_array_equal(back.scores, small.scores)
    np.testing.assert_array_equal(back.features, small.features)
    assert back.qids.tolist() == small.qids.tolist()
    for name in small.measures:
        np.testing.assert_array_equal(back.values[name], small.values[name])
        assert back.leaderboard(name) == small.leaderboard(name)
    for key in ("mcrank", "ordinal"):
        np.testing.assert_array_equal(back.probabilities[key], small.probabilities[key])
        np.testing.assert_allclose(back.probabilities[key].sum(axis=1), 1, atol=1e-6)
    back.save(tmp_path / "again")
    for path in sorted((tmp_path / "run").iterdir()):
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_saving_again_touches_nothing(small, tmp_path):
    small.save(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    small.save(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_text_ids_survive(tmp_path):
    small = small_comparison(queries=12, names=("regression",))
    texts = np.array([f"q\n{query}é\0" for query in small.qids.tolist()], dtype=object)
    documents = np.array([f"d{row}" for row in range(len(small.grades))], dtype=object)
    changed = replace(small, rows=replace(small.rows, qids=texts, doc_ids=documents), _standings={})
    changed.save(tmp_path)
    back = Comparison.load(tmp_path)
    assert back.qids.tolist() == texts.tolist()
    assert back.doc_ids.tolist() == documents.tolist()


def test_not_a_comparison(tmp_path, small):
    with pytest.raises(mcrank.DataError, match="holds no comparison"):
        Comparison.load(tmp_path)
    small.save(tmp_path)
    for name in ("results.json", "scores.npz", "test.npz"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(mcrank.DataError, match="damaged comparison"):
            Comparison.load(tmp_path)
        (tmp_path / name).write_bytes(content)


def test_frozen(small):
    with pytest.raises(AttributeError):
        small.notes = ()
    with pytest.raises(ValueError):
        small.scores[0, 0] = 1
    with pytest.raises(ValueError):
        small.values["map"][0, 0] = 1


def test_text_form(small):
    text = str(small)
    assert all(key in text for key in small.keys)
    assert text.endswith(small.verdict())
    header = next(line for line in text.splitlines() if "ndcg@10[yahoo]" in line)
    assert header.split() == list(small.measures)
    best = small.leaderboard()[0].system
    means = [f"{small.means[name][small.place(best)]:.4f}" for name in small.measures]
    assert f"{best} {' '.join(means)}".split() in [line.split() for line in text.splitlines()]


def test_a_folder_is_not_taken_for_complete_while_it_changes(small, tmp_path, monkeypatch):
    small.save(tmp_path)
    other = replace(small, environment={**small.environment, "seed": 9}, _standings={})

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("mcrank.experiments.store.npz_bytes", full)
    with pytest.raises(OSError, match="no space"):
        other.save(tmp_path)
    assert not (tmp_path / "run.json").exists()


def test_queries_that_count_without_a_value(small):
    """LETOR 3.0 gives short queries no value and counts them as 0: tests must see the mean it prints."""
    name = "ndcg@10[standard;short=missing]"
    offsets = np.r_[small.offsets[:3], small.offsets[3:] - 10]
    kept = np.delete(np.arange(len(small.grades)), np.arange(small.offsets[2], small.offsets[2] + 10))
    short = replace(
        small,
        rows=replace(small.rows, y=small.grades[kept], offsets=offsets),
        scores=small.scores[:, kept],
        values={},
        means={},
        _standings={},
    )
    assert np.isnan(short.per_query(name)[:, 2]).all()
    for line in short.leaderboard(name):
        assert line.ci_low <= line.mean <= line.ci_high
        assert line.mean == pytest.approx(np.nansum(short.per_query(name)[short.place(line.system)]) / 24)
        if line.difference is not None:
            assert line.difference == pytest.approx(line.mean - short.leaderboard(name)[0].mean, abs=1e-12)
