"""`preset`: one word for options; what is said beside it wins, and files have the options."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import clone

import mcrank
from mcrank.errors import OptionError
from mcrank.experiments.entries import Entry
from mcrank.papers.apples import LAMBDAMART, QUICK, SETTINGS
from mcrank.rankers.presets import BEST, BEST_GRADED, FAST, PAPER, PLAIN
from mcrank.rankers.registry import to_bytes
from tests.rankers.test_determinism import noisy

KINDS = [mcrank.McRank, mcrank.OrdinalMcRank, mcrank.RegressionRanker]


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_paper_says(kind):
    options = kind(preset="paper").checked_options()
    assert {name: options[name] for name in PAPER} == PAPER
    assert (PAPER["n_estimators"], PAPER["num_leaves"], PAPER["learning_rate"]) == (1000, 10, 0.05)
    assert kind.presets["paper"].keys() <= kind.declared_options.keys()


# No matter for trees of plain training: how it runs, categories, and what another option brings to life.
IDLE = {
    *("measure", "dialect", "n_jobs", "verbose", "one_query", "random_state", "warm_start", "preset"),
    *("categorical", "cat_smooth", "cat_l2", "max_cat_to_onehot", "max_cat_threshold", "min_data_per_group"),
    *("feature_weights", "interaction", "monotone", "early_stopping_rounds"),
    *("top_rate", "other_rate", "drop_rate", "skip_drop", "max_drop", "base_search", "base_gap"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_paper_s_trees_hangs_on_our_defaults(kind):
    assert set(kind.declared_options) - IDLE == set(kind.presets["paper"])
    assert {name: kind.presets["paper"][name] for name in PLAIN} == PLAIN


def test_nor_does_the_second_paper_s_lambdamart():
    open_ones = {"n_estimators", "max_pairs"}  # rounds are beside it; the pairs at once change no result
    assert set(mcrank.LambdaMART.declared_options) - IDLE - open_ones == set(LAMBDAMART)
    for settings in (SETTINGS, QUICK):
        assert settings["lambdamart"].items() >= LAMBDAMART.items()


@pytest.mark.parametrize("kind", KINDS)
def test_options_beside_it_win_however_they_come(kind, monkeypatch):
    # Were 20 leaves our default, they could still be had under the preset.
    leaves = kind.declared_options["num_leaves"]
    monkeypatch.setitem(kind.declared_options, "num_leaves", type(leaves)(20, "", "num_leaves", int))
    ranker = kind(num_leaves=20, preset="paper", n_estimators=3)
    for one in (ranker, clone(ranker), pickle.loads(pickle.dumps(ranker)), kind().set_params(**vars(ranker))):
        assert (one.num_leaves, one.n_estimators, one.learning_rate) == (20, 3, 0.05)
    assert repr(ranker) == f"{kind.__name__}(n_estimators=3, num_leaves=20, preset='paper')"
    assert kind(preset="paper").num_leaves == 10
    assert kind(**Entry.of(ranker).options).get_params() == ranker.get_params() | {"preset": None}


def test_the_file_has_the_options_not_the_word():
    data = noisy(100)
    one = mcrank.McRank(preset="paper", n_estimators=2).fit(data)
    paper = mcrank.McRank.presets["paper"] | {"n_estimators": 2}
    other = mcrank.McRank(**paper).fit(data)
    assert (paper["init"], paper["calibrate"]) == ("zero", False)
    assert to_bytes(one) == to_bytes(other)
    assert "preset" not in one.options_


def test_a_wrong_word_is_an_error():
    for odd in ("papr", 3, ["paper"], {}):
        with pytest.raises(OptionError, match="preset of McRank must be 'paper' or 'fast' or 'best' or None"):
            mcrank.McRank(preset=odd).checked_options()
    with pytest.raises(OptionError, match="preset of LambdaMART must be 'fast' or 'best' or None"):
        mcrank.LambdaMART(preset="paper").checked_options()


@pytest.mark.parametrize("kind", [*KINDS, mcrank.LambdaMART])
@pytest.mark.parametrize(("word", "options"), [("fast", FAST), ("best", BEST)])
def test_the_other_words_set_options_of_every_tree_ranker(kind, word, options):
    ranker = kind(preset=word)
    assert {name: getattr(ranker, name) for name in options} == options
    assert kind(preset=word, learning_rate=0.07).learning_rate == 0.07
    assert kind.presets[word].keys() <= kind.declared_options.keys()


def test_best_leaves_queries_out_where_grades_are_learned():
    assert [kind.presets["best"] for kind in KINDS] == [BEST_GRADED] * 3
    assert (mcrank.McRank(preset="best").subsample, mcrank.LambdaMART(preset="best").subsample) == (0.8, 1.0)
    data = noisy(100)
    one = mcrank.OrdinalMcRank(preset="best", n_estimators=3).fit(data)
    assert to_bytes(one) == to_bytes(mcrank.OrdinalMcRank(**BEST_GRADED | {"n_estimators": 3}).fit(data))
    with pytest.raises(OptionError, match=r"share of 0\.8"):
        mcrank.McRank(preset="best", goss=True).fit(data)
    mcrank.McRank(preset="best", goss=True, subsample=1, n_estimators=2).fit(data)
