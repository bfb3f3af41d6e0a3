"""Elasticsearch, OpenSearch, Solr, Vespa and RankLib: what is written scores as the model does, by twins of
their arithmetic and by walks of one row at a time; and their traps.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.errors import ModelFileError, OptionError
from mcrank.export.bounds import bound
from mcrank.export.elasticsearch import Elasticsearch, OpenSearch
from mcrank.export.hard_rows import hard_rows
from mcrank.export.ranklib import RankLib
from mcrank.export.solr import Solr, slack_free
from mcrank.export.vespa import Vespa
from mcrank.export.vespa_twin import evaluate
from mcrank.export.write import write
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.scorers.heads import Head
from tests.export import bed
from tests.export.test_random_forests import models
from tests.reference.engines import F, walk_elasticsearch, walk_ranklib, walk_solr

LARGEST = np.finfo(F).max
ONE_SUM = (
    "regression", "lambdamart", "gbrank", "rankboost", "frank", "two grades", "one grade", "exp",
    "leaves only", "known or missing", "deep", "many cuts",
)  # fmt: skip
SOFTMAX = ("mcrank", "mcrank prior", "abc", "two softmax", "one each", "no trees")
BOUNDARIES = ("ordinal", "an output without trees")
LINEAR = ("best-feature", "adarank", "plain svm", "plain ascent")
TAKEN = {
    Elasticsearch: ONE_SUM + BOUNDARIES + LINEAR,
    Solr: (*ONE_SUM, *LINEAR, "plain net"),
    Vespa: (*ONE_SUM, *BOUNDARIES, *SOFTMAX, *LINEAR, "ranksvm", "log svm"),
    RankLib: ONE_SUM,
}
PAIRS = [(target, name) for target, names in TAKEN.items() for name in names]
# Largest differences of scores up to 20, as exports of 100 to 500 trees have shown them.
NEAR = {Elasticsearch: 1.3e-5, Solr: 1.3e-5, Vespa: 1e-6, RankLib: 1.3e-5}


PLAIN = {  # without a column whose weight would be beyond float
    "plain net": lambda: mcrank.LambdaRank(epochs=2, hidden="7,3", scaling="zscore", n_jobs=1),
    "plain svm": lambda: mcrank.RankSVM(),
    "plain ascent": lambda: mcrank.CoordinateAscent(scaling="minmax", n_jobs=1),
    "log svm": lambda: mcrank.RankSVM(scaling="log"),
}


@cache
def model_of(name):
    if name not in PLAIN:
        return bed.model(name)
    data = bed.data()
    return PLAIN[name]().fit(mcrank.Dataset(data.X[:, :6], data.y, data.qid)).exportable()


def options(target):
    return {"missing_as_zero": True} if target is RankLib else {}


@pytest.fixture
def exported(tmp_path):
    def export(target, model):
        target.check(model)
        write(tmp_path / "out", target.content(model))
        return tmp_path / "out"

    return export


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_scores_are_those_of_the_model_on_hard_rows(kind, name, exported):
    target = kind(**options(kind))
    model = target.comparable(model_of(name))
    X = hard_rows(model.scorer, 2000)
    found = target.consume(model, exported(target, model), X)
    assert found.twin
    seen = target.seen(X, model)
    may = bound(model, seen, target.in_float(model))
    expected = model.scores(seen)
    with np.errstate(invalid="ignore"):
        off = np.abs(found.scores - expected)
    finite = np.isfinite(may)
    assert finite.mean() > 0.1  # FLT_MAX times a weight has no place in float
    assert (off[finite] <= may[finite]).all()
    if model.kind == "forest":
        assert finite.all()
        assert off.max() <= NEAR[kind]


@pytest.mark.parametrize(
    ("kind", "ranker"),
    [
        (Elasticsearch, mcrank.RankSVM(scaling="none")),
        (Solr, mcrank.RankSVM()),
        (Solr, mcrank.RankNet(epochs=3, scaling="zscore", random_state=1)),
    ],
    ids=["elasticsearch", "solr", "solr net"],
)
def test_features_near_the_end_of_float_stay_within_the_bound(kind, ranker, exported):
    """Their weights are below the least ordinary float, and a mean taken away from them may leave float."""
    stream = np.random.default_rng(2)
    X = stream.normal(size=(400, 4)).astype(np.float32)
    X[:, 3] = np.where(stream.random(400) < 0.2, 3.3e38, X[:, 3])
    y = np.clip(np.round(X[:, 0] + 1), 0, 4)  # the large feature says little, and has a small weight
    target = kind()
    model = target.comparable(ranker.fit(mcrank.Dataset(X, y, np.arange(400) // 10)).exportable())
    path = exported(target, model)
    for rows in (X, hard_rows(model.scorer, 2000)):
        seen = target.seen(rows, model)
        may = bound(model, seen, single=True)
        with np.errstate(invalid="ignore"):
            off = np.abs(target.consume(model, path, rows).scores - model.scores(seen))
        finite = np.isfinite(may)
        assert (off[finite] <= may[finite]).all()
        assert finite.mean() > 0.5
        assert np.median(may[finite]) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [p for p in PAIRS if p[0] is not Vespa and p[1] != "plain net"])
def test_a_walk_of_one_row_at_a_time_says_the_same(kind, name, exported):
    target = kind(**options(kind))
    model = target.comparable(model_of(name))
    # Sums of the largest numbers leave float, and with them the constant that engines do without.
    X = (
        hard_rows(model.scorer)[:30]
        if model.kind == "forest"
        else bed.data().X[:30, : model.scorer.n_features]
    )
    path = exported(target, model)
    walk = {Elasticsearch: walk_elasticsearch, Solr: walk_solr, RankLib: walk_ranklib}[kind]
    expected = np.array([walk(path, model.feature_names, row) for row in X])
    if model.head.kind == "exp":
        expected = model.head.rank(expected[None])
    elif model.values is not None and kind is not Elasticsearch:
        expected = model.head.expected(expected[None], model.values)
    found = target.consume(model, path, X).scores
    assert np.abs(found - found[0] - (expected - expected[0])).max() < 1e-9


@pytest.mark.parametrize("kind", [Elasticsearch, OpenSearch, Solr, RankLib])
@pytest.mark.parametrize("name", ["mcrank", "abc", "ranknet", "blend"])
def test_what_is_no_sum_of_trees_is_refused_with_a_way_out(kind, name):
    with pytest.raises(OptionError, match="distil it into one regression ensemble"):
        kind(**options(kind)).check(bed.model(name))


@pytest.mark.parametrize("kind", [Solr, RankLib])
def test_boundaries_are_no_single_sum(kind):
    with pytest.raises(OptionError, match="its 4 outputs are not one sum of trees; distil"):
        kind(**options(kind)).check(bed.model("ordinal"))


def test_vespa_sends_nets_to_onnx():
    with pytest.raises(OptionError, match="export to onnx with compat"):
        Vespa().check(bed.model("ranknet"))


@given(models(), st.sampled_from([Elasticsearch, Solr, Vespa, RankLib]))
@settings(max_examples=30)
def test_any_forest_is_taken_as_it_is_or_refused(tmp_path_factory, model, kind):
    target = kind(**options(kind))
    try:
        target.check(model)
    except OptionError as error:
        assert re.search("distil|Solr adds 1e-6|levels deep", str(error))  # noqa: PT017
        return
    path = tmp_path_factory.mktemp("any") / "out"
    write(path, target.content(model))
    X = hard_rows(model.scorer, 60, seed=1)[:200]
    seen = target.seen(X, model)
    off = np.abs(target.consume(model, path, X).scores - model.scores(seen))
    assert (off <= bound(model, seen, single=True)).all()


# Elasticsearch


def test_boundaries_become_models_that_a_query_adds_up(exported):
    model = bed.ranker("ordinal").exportable([0, 1, 1, 3, 7])
    path = exported(Elasticsearch(model_name="m", window=50), model)
    query = json.loads((path / "query.json").read_text())
    assert query["rescore"]["window_size"] == 50
    asked = query["rescore"]["query"]["rescore_query"]["bool"]["should"]
    assert [("function_score" in part) for part in asked] == [False, True, True]  # 0 is left out, 1 is plain
    assert sorted(file.name for file in path.iterdir()) == [
        "featureset.json", "model_1.json", "model_2.json", "model_3.json", "model_4.json", "query.json",
    ]  # fmt: skip
    features = json.loads((path / "featureset.json").read_text())["featureset"]["features"]
    assert tuple(feature["name"] for feature in features) == bed.NAMES


def test_no_score_is_below_zero_if_that_is_asked_for(exported):
    model = bed.model("lambdamart")
    X = hard_rows(model.scorer, 500)
    target = Elasticsearch(nonnegative=True)
    path = exported(target, model)
    assert model.scores(X).min() < 0
    assert min(walk_elasticsearch(path, model.feature_names, row) for row in X) >= 0
    assert np.abs(target.consume(model, path, X).scores - model.scores(target.seen(X, model))).max() < 1e-6
    with pytest.raises(OptionError, match="no lower bound"):
        target.check(bed.model("best-feature"))


def test_linear_rankers_warn_of_missing_values_and_refuse_what_cannot_be_said():
    assert "takes a feature whose query does not match for 0" in next(
        iter(Elasticsearch().warns(bed.model("best-feature")))
    )
    assert list(Elasticsearch().warns(bed.model("gbrank"))) == []
    for target in (Elasticsearch(), Solr()):
        with pytest.raises(OptionError, match="cannot take logarithms"):
            target.check(model_of("log svm"))
    with pytest.raises(OptionError, match="of feature 'tiny' is beyond float"):
        Solr().check(bed.model("ranksvm"))


def test_grades_worth_the_same_are_refused():
    with pytest.raises(OptionError, match="every grade is worth the same"):
        Elasticsearch().check(bed.ranker("ordinal").exportable([1, 1, 1, 1, 1]))


def test_trees_too_deep_for_readers_of_json_are_refused():
    depth = 401
    builder = ForestBuilder(1, [0.0])
    inner = np.arange(2 * depth + 1) % 2 == 0
    inner[-1] = False
    node = np.arange(2 * depth + 1)
    builder.append(
        feature=np.where(inner, 0, -1), threshold=node, left=np.where(inner, node + 1, -1),
        right=np.where(inner, node + 2, -1), value=np.where(inner, 0.0, node),
    )  # fmt: skip
    for target in (Elasticsearch(), Solr(), Vespa()):
        with pytest.raises(OptionError, match="401 levels deep"):
            target.check(bed.exportable(builder.build()))


# Solr


def test_thresholds_are_what_solr_makes_of_what_is_written():
    stream = np.random.default_rng(2)
    t = (stream.normal(size=20_000) * 10.0 ** stream.uniform(-3, 30, size=20_000)).astype(F)
    t = np.concatenate([t[np.abs(t) >= 1e-3], np.array([0.0, -0.0, LARGEST, -LARGEST], dtype=F)])
    assert (slack_free(t) + F(1e-6) == t).all()


def test_features_too_small_for_the_slack_are_multiplied(exported):
    model = bed.model("regression")
    tiny = bed.NAMES.index("tiny")
    assert tiny in model.forest.feature
    body = json.loads((exported(Solr(), model) / "model.json").read_text())
    norms = {f["name"]: f["norm"]["params"] for f in body["features"] if "norm" in f}
    assert float(norms["tiny"]["std"]) < 1e-30
    assert math.log2(float(norms["tiny"]["std"])).is_integer()


def test_thresholds_that_no_power_of_two_saves_are_refused():
    builder = ForestBuilder(1, [0.0])
    for threshold in (1e-45, 1e30):
        builder.append(
            feature=[0, -1, -1],
            threshold=[threshold, 0, 0],
            left=[1, -1, -1],
            right=[2, -1, -1],
            value=[0, 1, 2],
        )
    with pytest.raises(OptionError, match=r"Solr adds 1e-6 to thresholds, and those of feature 'f0'"):
        Solr().check(bed.exportable(builder.build()))


def test_numbers_are_texts_where_solr_wants_them(exported):
    text = (exported(Solr(), bed.model("gbrank")) / "model.json").read_text()
    assert re.search(r'"threshold":"[^"]+"', text)
    assert not re.search(r'"(threshold|value|weight)":[^"]', text)


# Vespa


def test_names_that_are_rank_features_stay_themselves(tmp_path):
    names = ("bm25(title)", "fieldMatch(body).completeness", "freshness(day)", "my clicks")
    data = bed.data()
    some = mcrank.Dataset(data.X[:, :4], data.y, data.qid, feature_names=names)
    model = mcrank.LambdaMART(n_estimators=5, n_jobs=1).fit(some).exportable()
    text = Vespa(profile="learned", inherits="base").content(model).decode()
    assert "rank-profile learned inherits base {" in text
    assert "bm25(title) <" in text or "!(bm25(title) >=" in text
    assert "function feature_my_clicks() {" in text
    (tmp_path / "p").write_text(text)
    found = Vespa().consume(model, tmp_path / "p", some.X)
    assert np.abs(found.scores - model.scores(some.X)).max() < 1e-6


def test_every_tree_has_a_shape_that_vespa_compiles():
    text = Vespa().content(bed.model("mcrank")).decode()
    tests = re.findall(r"if \(([^,]*),", text)
    number = r"-?[\d.]+(e[+-]?\d+)?"
    assert len(tests) == (bed.model("mcrank").forest.feature >= 0).sum()
    assert all(re.fullmatch(rf"\w+ < {number}|!\(\w+ >= {number}\)", test) for test in tests)


def test_odd_names_of_profiles_are_refused():
    with pytest.raises(OptionError, match="is no name of a rank profile"):
        Vespa(profile="a {").check(bed.model("gbrank"))


@pytest.mark.parametrize("text", ["1 +", "f(", "a $ b", "if (a < 1, 2", "attribute(no)"])
def test_the_twin_of_vespa_refuses_what_it_cannot_read(text):
    profile = f"function score() {{ expression {{ {text} }} }} first-phase {{ expression: score }}"
    with pytest.raises(ModelFileError):
        evaluate(profile, {"attribute(a)": np.zeros(1)}, 1)


@pytest.mark.parametrize(
    "text",
    ["0" + " + attribute(a)" * 3000, "if (attribute(a) < 1, " * 400 + "3000" + ", 2)" * 400],
    ids=["long", "deep"],
)
def test_the_twin_of_vespa_takes_many_trees_and_deep_ones(text):
    profile = f"function score() {{ expression {{ {text} }} }} first-phase {{ expression: score }}"
    before = sys.getrecursionlimit()
    found = evaluate(profile, {"attribute(a)": np.array([1.0 if "+" in text else 0.5])}, 1)
    assert (found.tolist(), sys.getrecursionlimit()) == ([3000.0], before)


# RankLib


def test_a_model_that_knows_missing_values_is_refused_unless_that_is_accepted(tmp_path):
    model = bed.model("known or missing")
    with pytest.raises(OptionError, match="trained on missing values, which RankLib takes for 0"):
        RankLib().check(model)
    RankLib(missing_as_zero=True).check(model)
    with pytest.warns(UserWarning, match="sends the two different ways"):
        bed.ranker("gbrank").export(tmp_path / "m.txt", to="ranklib", missing_as_zero=True)


def test_no_word_of_missing_values_where_they_go_the_way_of_zero(tmp_path):
    builder = ForestBuilder(1, [0.5])
    for threshold, left in ((1.0, 1), (-1.0, 0), (0.0, 1)):
        builder.append(
            feature=[0, -1, -1], threshold=[threshold, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
            value=[0, 1, 2], missing_left=[left, 0, 0],
        )  # fmt: skip
    model = bed.exportable(builder.build())
    RankLib().check(model)
    assert list(RankLib().warns(model)) == []


def test_ranklib_has_one_tag_a_line(exported):
    text = exported(RankLib(missing_as_zero=True), bed.model("regression")).read_text()
    for line in text.splitlines()[4:]:
        assert re.fullmatch(r"<[^<>]+>|<(\w+)> [^<>]+ </\1>", line)


def test_head_of_two_grades_is_ranked_by_its_log_odds(exported):
    forest = ForestBuilder(1, [0.0])
    forest.append(feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, -1.0, 3.0])
    model = bed.exportable(forest.build(), Head("cumulative", np.array([0.0, 1.0])))
    path = exported(RankLib(), model)
    X = np.array([[-1.0], [1.0]], dtype=F)
    assert [walk_ranklib(path, model.feature_names, row) for row in X] == [-1.0, 3.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.abs(RankLib().consume(model, path, X).scores - model.scores(X)).max() < 1e-7


@pytest.mark.parametrize("kind", [Elasticsearch, OpenSearch])
def test_odds_of_a_score_leave_one_order_whatever_grades_are_worth(kind, exported):
    """The promise of a consumer that knows no odds: it ranks as `predict` does."""
    for relevance in (None, "gain"):
        model, target = bed.model("ordinal", relevance), kind()
        assert model.head.odds is not None
        assert list(target.notes(model)) == []
        assert any("as they were learned" in words for words in target.lacks(model))
        X = target.seen(hard_rows(model.scorer, 500), model)
        prepared = target.prepared(model)
        found, scores = target.consume(prepared, exported(target, prepared), X).scores, model.scores(X)
        order = np.argsort(found)
        assert (np.diff(scores[order])[np.diff(found[order]) > 1e-5] > 0).all()
