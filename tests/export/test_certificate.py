"""Certificates: what a consumer made of an export, on the user's rows and on hard ones; and broken bounds."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest

import mcrank
from mcrank.cli import exits
from mcrank.cli.main import main
from mcrank.errors import ModelFileError
from mcrank.export.bounds import bound
from mcrank.export.certificate import certify, swapped_pairs
from mcrank.export.elasticsearch import Elasticsearch
from mcrank.export.onnx import ONNX
from mcrank.export.ranklib import RankLib
from mcrank.export.target import Consumed, ConsumerMissing
from mcrank.export.vespa import Vespa
from mcrank.export.write import write
from mcrank.rankers.distil import distil
from mcrank.report.certificate import render_certificate
from tests.export import bed


def certified(target, model, tmp_path, content=None, data=None, **options):
    path = tmp_path / "out"
    write(path, target.content(model) if content is None else content)
    return certify(model, target, path, data or bed.data(), n_hard=300, **options)


def test_a_right_copy_holds_and_says_who_scored(tmp_path):
    found = certified(Vespa(), bed.model("mcrank"), tmp_path)
    data = bed.data()
    assert (found.holds, found.twin, found.single) == (True, True, True)
    assert (found.data.rows, found.data.missing) == (data.n_rows, int(np.isnan(data.X).any(axis=1).sum()))
    assert 0 < found.data.largest < found.data.bound < 1e-4
    assert found.data.used < 1
    assert found.hard.rows >= 300
    assert sum(rows for _, rows in found.hard.sizes) == found.hard.rows
    assert found.before == pytest.approx(bed.ranker("mcrank").score(data), abs=1e-12)
    assert found.swaps.pairs == data.n_queries * 12 * 11 // 2
    assert set(found.files) == {"out"}
    said = json.loads(found.to_json())
    assert said["data"]["largest"] == found.data.largest
    assert said["consumer"] == "Vespa 8"


@pytest.mark.consumer
def test_the_consumer_itself_is_asked_where_it_is_there(tmp_path):
    import onnxruntime

    found = certified(ONNX(), bed.model("ordinal"), tmp_path)
    assert (found.holds, found.twin) == (True, False)
    assert found.consumer == f"onnxruntime {onnxruntime.__version__}"
    assert found.data.raw is not None
    assert found.data.raw < 1e-14
    assert found.data.bound < 1e-12


def test_rows_are_verified_by_the_names_of_their_columns(tmp_path):
    data = bed.data(20)
    order = np.arange(data.n_features)[::-1]
    names = [data.feature_names[k] for k in order]
    turned = mcrank.Dataset(data.X[:, order], data.y, data.qid, feature_names=names)
    (path,) = bed.ranker("mcrank").export(tmp_path / "m.profile", "vespa", relevance="gain")
    for rows in (data, turned):
        found = bed.ranker("mcrank").verify(path, "vespa", rows, relevance="gain")
        assert (found.holds, found.swaps.swapped) == (True, 0)
        assert found.data.largest < 1e-6
    assert not bed.ranker("mcrank").verify(path, "vespa", data).holds  # it was exported with another T


def damaged(content):
    """The same with the sign of one leaf turned."""
    text = content.decode()
    leaf = re.search(r"if \([^,()]*, (-?\d\.\d+), ", text)
    assert leaf is not None
    value = leaf[1][1:] if leaf[1][0] == "-" else "-" + leaf[1]
    return (text[: leaf.start(1)] + value + text[leaf.end(1) :]).encode()


def test_one_leaf_changed_breaks_the_bound(tmp_path):
    model = bed.model("gbrank")
    found = certified(Vespa(), model, tmp_path, damaged(Vespa().content(model)))
    assert not found.holds
    assert found.data.broken + found.hard.broken > 0
    assert max(found.data.used, found.hard.used) > 1
    page = render_certificate(found)
    assert "The export does not hold" in page
    assert 'class="mark broken"' in page


@pytest.mark.parametrize("kind", ["forest", "base", "threshold"])
def test_small_damage_is_noticed(kind, tmp_path):
    """What is exported is not what is certified: one number of the forest differs."""
    model = bed.model("lambdamart")
    arrays = {name: array.copy() for name, array in model.forest.to_arrays().items()}
    if kind == "forest":
        arrays["value"][np.flatnonzero(arrays["feature"] < 0)[3]] += 1e-3
    elif kind == "base":
        arrays["base"] += 1e-4
    else:
        node = np.flatnonzero(arrays["feature"] >= 0)[0]
        arrays["threshold"][node] = np.nextafter(arrays["threshold"][node], np.float32(np.inf))
    other = bed.exportable(type(model.forest).from_arrays(arrays))
    other = type(model)(**{**vars(other), "feature_names": model.feature_names})
    found = certified(Vespa(), model, tmp_path, Vespa().content(other))
    assert not found.holds


def test_grades_that_the_measure_cannot_take_do_not_hinder(tmp_path, capsys, monkeypatch):
    """Clicks, say: 2 to the power of them is no number."""
    given = bed.data(20)
    clicks = mcrank.Dataset(given.X, given.y * 5000, given.qid)
    mcrank.RegressionRanker(n_estimators=3, n_jobs=1).fit(clicks).save(tmp_path / "clicks.mcrank")
    mcrank.write(clicks, tmp_path / "clicks.txt")
    monkeypatch.chdir(tmp_path)
    line = ["export", "clicks.mcrank", "--to", "vespa", "--out", "x.profile", "--verify", "clicks.txt"]
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert re.search(r"holds +yes", shown)
    assert "ndcg" not in shown
    said = json.loads((tmp_path / "x.profile.certificate.json").read_text())
    assert (said["before"], said["after"]) == (None, None)
    assert any("its gain is too large" in note for note in said["notes"])
    assert "its gain is too large" in (tmp_path / "x.profile.certificate.html").read_text()


def test_what_is_no_number_is_infinitely_far(tmp_path):
    class Broken(Vespa):
        def consume(self, model, path, X):
            scores = model.scores(X)
            scores[1] = np.nan
            return Consumed(scores, "nobody")

    found = certified(Broken(), bed.model("gbrank"), tmp_path)
    assert (found.holds, found.data.broken, found.data.sizes[-1]) == (False, 1, ("no number", 1))
    assert json.loads(found.to_json())["data"]["largest"] is None
    assert "no number" in render_certificate(found)


def test_rows_beyond_float_are_held_to_nothing_and_counted(tmp_path):
    data = bed.data(10)
    far = mcrank.Dataset(np.where(data.X > 1, np.float32(3e38), data.X), data.y, data.qid)
    found = certified(Elasticsearch(), bed.model("adarank"), tmp_path, data=far)
    assert 0 < found.data.unbounded < far.n_rows
    assert found.holds
    assert "rows have terms beyond the largest float" in render_certificate(found)


def test_rows_that_cannot_be_seen_as_they_are_are_told(tmp_path):
    target = RankLib(missing_as_zero=True)
    found = certified(target, bed.model("regression"), tmp_path)
    assert found.holds
    assert found.data.unlike == found.data.missing > 0
    assert found.data.moved > 0.1
    assert found.swaps.swapped > 0
    assert found.before != found.after
    assert found.swaps.queries >= len(found.swaps.most) > 0
    assert any("takes a missing value for 0" in note for note in found.notes)


def naive_swaps(ours, theirs, offsets):
    swapped, ties = [], 0
    for first, last in itertools.pairwise(offsets):
        here = 0
        for i in range(first, last):
            for j in range(i + 1, last):
                a, b = np.sign(ours[i] - ours[j]), np.sign(theirs[i] - theirs[j])
                here += a * b < 0
                ties += (a == 0) != (b == 0)
        swapped.append(int(here))
    return swapped, ties


@pytest.mark.parametrize("seed", range(5))
def test_swapped_pairs_are_counted_as_one_by_one(seed):
    stream = np.random.default_rng(seed)
    qid = np.sort(stream.integers(0, 6, 60))
    data = mcrank.Dataset(np.zeros((60, 1)), y=np.zeros(60), qid=qid)
    ours = stream.integers(0, 12, 60) / 4
    theirs = np.where(stream.random(60) < 0.2, stream.integers(0, 12, 60) / 4, ours)
    found = swapped_pairs(ours, theirs, data)
    swapped, ties = naive_swaps(ours, theirs, data.offsets)
    assert (found.swapped, found.ties) == (sum(swapped), ties)
    assert found.queries == sum(count > 0 for count in swapped)
    assert [count for _, count, _ in found.most] == sorted(filter(None, swapped), reverse=True)


@pytest.mark.parametrize("name", bed.FORESTS)
def test_sums_in_any_order_stay_within_the_bound(name):
    """Trees added from the last to the first: another rounding of the same model."""
    model = bed.model(name)
    X = bed.data().X[:200, : model.scorer.n_features]
    may = bound(model, X, single=False)
    assert may.max() < 1e-11
    forest = model.forest
    raw = np.zeros((forest.n_outputs, len(X)))
    for tree in reversed(range(forest.n_trees)):
        raw += forest.part(tree, tree + 1).raw(X)
    raw += forest.base[:, None]
    scores = model.head.rank(raw) if model.values is None else model.head.expected(raw, model.values)
    assert (np.abs(scores - model.scores(X)) <= may).all()


# Distilling


def test_one_ensemble_follows_a_model_that_has_none(tmp_path):
    data = bed.data()
    found = distil(bed.ranker("mcrank"), data, n_estimators=60, n_jobs=1)
    assert (found.queries, found.held_out, found.flattered) == (12, True, True)
    assert found.error < found.spread
    scores, theirs = bed.ranker("mcrank").predict(data), found.ranker.predict(data)
    assert np.corrcoef(scores, theirs)[0, 1] > 0.97
    assert abs(scores.mean() - theirs.mean()) < 0.05
    files = found.ranker.export(tmp_path / "es", to="elasticsearch")
    assert [file.name for file in files] == ["featureset.json", "model.json", "query.json"]
    assert "flatters the first figure" in found.words


def test_scores_below_zero_and_few_queries_can_be_followed():
    data = bed.data(n_queries=4)
    found = distil(bed.ranker("ranksvm"), data, n_estimators=30, n_jobs=1)
    assert (found.queries, found.held_out, found.flattered) == (4, False, False)
    assert found.ranker.predict(data).min() < 0
    assert "all trained on" in found.words


# The command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = bed.data(40, seed=3)
    plain = mcrank.Dataset(np.nan_to_num(data.X, nan=0.0), data.y, data.qid)
    mcrank.write(plain, tmp_path / "data.txt")
    mcrank.LambdaMART(n_estimators=5, n_jobs=1).fit(plain).save(tmp_path / "m.mcrank")
    mcrank.McRank(n_estimators=3, n_jobs=1).fit(plain).save(tmp_path / "g.mcrank")
    return tmp_path


LINE = ["export", "m.mcrank", "--to", "vespa", "--out", "x.profile", "--verify", "data.txt"]


def test_the_command_verifies_what_it_wrote(files, capsys):
    assert main(LINE) == 0
    shown = capsys.readouterr().out
    assert "Vespa 8 (a twin of its arithmetic)" in shown
    assert re.search(r"holds +yes", shown)
    said = json.loads((files / "x.profile.certificate.json").read_text())
    assert said["holds"] is True
    page = (files / "x.profile.certificate.html").read_text()
    assert "The export holds" in page
    assert "<script" not in page
    assert main([*LINE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"] == said


def test_a_broken_bound_is_exit_code_4(files, monkeypatch, capsys):
    whole = Vespa.content
    monkeypatch.setattr(Vespa, "content", lambda self, model: damaged(whole(self, model)))
    assert main(LINE) == exits.CONDITION_MET == 4
    assert re.search(r"holds +no", capsys.readouterr().out)
    assert main([*LINE, "--quiet"]) == 4  # which is never without a word
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(
        r"failed: [\d,]+ rows are beyond their bounds; see x\.profile\.certificate\.html\.\n", shown.err
    )
    assert json.loads((files / "x.profile.certificate.json").read_text())["holds"] is False


def test_a_consumer_that_is_not_there_is_said(files, monkeypatch, capsys):
    def missing(self, model, path, X):
        raise ConsumerMissing("the consumer is not installed.")

    monkeypatch.setattr(Vespa, "consume", missing)
    assert main(LINE) == exits.FAILURE
    assert "not installed" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_is_distilled_on_the_way(files, capsys):
    line = ["export", "g.mcrank", "--to", "elasticsearch", "--out", "es"]
    assert main(line) == exits.USAGE
    assert "distil it into one regression ensemble (--distil DATA)" in capsys.readouterr().err
    assert main([*line, "--distil", "data.txt", "--verify", "data.txt", "--json"]) == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert "distilled into 300 trees: ndcg@10" in shown.err
    assert facts["ranker"] == "regression"
    assert facts["distilled"]["flattered"] is True
    assert facts["certificate"]["first"] > 0
    assert set(facts["certificate"]["files"]) == {"featureset.json", "model.json", "query.json"}
    assert "The model was distilled from one with ndcg@10" in (files / "es.certificate.html").read_text()


def test_standard_output_cannot_be_verified(files, capsys):
    assert main(["export", "m.mcrank", "--to", "vespa", "--out", "-", "--verify", "data.txt"]) == exits.USAGE
    assert "--verify and --out - both want standard output" in capsys.readouterr().err


def test_opensearch_is_its_own_consumer(tmp_path):
    from mcrank.export.elasticsearch import OpenSearch

    model = bed.model("ordinal")
    for target, words in ((Elasticsearch(), "Elasticsearch's plug-in"), (OpenSearch(), "OpenSearch 3.8")):
        assert certified(target, model, tmp_path / target.name).consumer.startswith(words)


@pytest.mark.consumer
def test_c_is_compiled_whatever_its_file_is_called(tmp_path):
    from mcrank.export.c import C

    found = certified(C(), bed.model("ordinal"), tmp_path)
    assert (found.holds, found.twin) == (True, False)


LIBRARIES = [pytest.param(to, marks=pytest.mark.consumer) for to in ("lightgbm", "xgboost")]


@pytest.mark.parametrize("to", ["c", "javascript", "python", "sql", "vespa", *LIBRARIES])
def test_what_is_no_export_is_told(tmp_path, to):
    ranker, file = bed.ranker("mcrank"), tmp_path / "file"
    with pytest.raises(ModelFileError, match="does not exist; export the model there first"):
        ranker.verify(file, to, bed.data(n_queries=2))
    file.write_text("no model (")
    with pytest.raises(ModelFileError):
        ranker.verify(file, to, bed.data(n_queries=2))
