"""Entries: texts, rankers and files become systems with keys."""

from __future__ import annotations

import pytest

import mcrank
from mcrank.errors import OptionError
from mcrank.experiments.entries import Entry, entries_of, systems_of


def keys(rankers, dialects=None):
    return [system.key for system, _ in systems_of(entries_of(rankers), dialects)]


def test_text_with_options_and_grid():
    entry = Entry.parse(
        "big=mcrank:num-leaves=4|10, learning_rate=0.1,early_stopping_rounds=none,sequential=true"
    )
    assert entry.title == "big"
    assert entry.options == {"learning_rate": 0.1, "early_stopping_rounds": None, "sequential": True}
    assert entry.grid == {"num_leaves": [4, 10]}
    assert entry.points() == [{"num_leaves": 4}, {"num_leaves": 10}]


def test_grid_of_two():
    points = Entry.parse("mcrank:num_leaves=4|10,subsample=0.5|1.0").points()
    assert points == [
        {"num_leaves": 4, "subsample": 0.5},
        {"num_leaves": 4, "subsample": 1.0},
        {"num_leaves": 10, "subsample": 0.5},
        {"num_leaves": 10, "subsample": 1.0},
    ]


def test_measures_in_options():
    assert Entry.parse("mcrank:measure=rbp(0.8)[yahoo;gain=0/1/3],num_leaves=3").options == {
        "measure": "rbp(0.8)[yahoo;gain=0/1/3]",
        "num_leaves": 3,
    }


def test_commas_inside_a_value():
    assert Entry.parse("ranknet:hidden=20,10,epochs=5").options == {"hidden": "20,10", "epochs": 5}


def test_a_ranker_keeps_what_was_changed():
    entry = Entry.of(mcrank.McRank(num_leaves=7, measure=mcrank.MAP()))
    assert (entry.ranker, dict(entry.options)) == ("mcrank", {"num_leaves": 7, "measure": "map"})


def test_keys_are_names_as_given_and_unique():
    assert keys(["mcrank", "mcrank:num_leaves=4", "ordinal"]) == ["mcrank", "mcrank-2", "ordinal"]
    assert keys({"My best!": "mcrank", "Ä": "ordinal"}) == ["My best!", "Ä"]
    assert keys("mcrank", ["standard", "yahoo"]) == ["mcrank-standard", "mcrank-yahoo"]
    with pytest.raises(OptionError, match="two entries are called 'a'"):
        keys(["a=mcrank", "a=ordinal"])
    with pytest.raises(OptionError, match="two entries are called"):
        keys({"A\u0308": "mcrank", "\u00c4": "ordinal"})  # they look the same
    assert keys(["mcrank", "mcrank", "mcrank-2=ordinal"]) == ["mcrank", "mcrank-3", "mcrank-2"]
    assert keys(["A/B test=mcrank", "a | b=ordinal:num_leaves=4"]) == ["A/B test", "a | b"]


def test_titles():
    titles = [system.title for system, _ in systems_of(entries_of(["mcrank:num_leaves=4|10"]), ["yahoo"])]
    assert titles == ["mcrank num_leaves=4|10 [yahoo]"]


def test_cards_come_along():
    system, _ = systems_of(entries_of("regression"), None)[0]
    assert system.card == mcrank.RegressionRanker.card._asdict()


def test_files(tmp_path):
    data = mcrank.make_artificial(n_train=4, n_valid=1, n_test=1, docs_per_query=8, n_features=2).train
    model = tmp_path / "Fold1.mcrank"
    mcrank.RegressionRanker(n_estimators=1).fit(data).save(model)
    scores = tmp_path / "a=b.txt"
    scores.write_text("1\n2\n")
    assert Entry.parse(str(model)).model == str(model)
    assert Entry.parse(f"{tmp_path}/{{fold}}.mcrank").model == f"{tmp_path}/{{fold}}.mcrank"
    assert Entry.parse(str(scores)).scores == str(scores)
    assert Entry.parse(f"other={scores}") == Entry(scores=str(scores), title="other")
    assert Entry.of(scores).kind == "scores"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("mcrnk", "'mcrnk' is neither a file nor a ranker. There is no ranker 'mcrnk'; did you mean mcrank"),
        ("mcrank:num_leafs=3", "McRank has no option 'num_leafs'; did you mean num_leaves"),
        ("mcrank:num_leaves=1", "num_leaves of McRank must be an integer >= 2"),
        ("mcrank:num_leaves=4|one", "num_leaves of McRank must be an integer >= 2 .*got 'one'"),
        ("mcrank:num_leaves", "must look like option=value"),
        ("mcrank:num_leaves=2,num_leaves=3", "given twice"),
        ("mcrank:measure=ndgc@10", "did you mean ndcg@10"),
        ("mcrank:dialect=yahooo", "did you mean yahoo"),
        ("a\nb=mcrank", "has the control character"),
        ("\x1b[31mred=mcrank", "has the control character"),
        ("a\ud800=mcrank", "has the control character"),
        ("a\u202eb=mcrank", "has the control character"),
        (Entry(ranker="mcrank", title=" "), "is blank"),
        (Entry(), "must have one of ranker, model and scores, got none"),
        (Entry(ranker="mcrank", scores="x"), "got ranker and scores"),
        (Entry(model="x", options={"a": 1}), "options are for rankers"),
        (Entry(ranker="mcrank", options={"num_leaves": 3}, grid={"num_leaves": [3]}), "say it once"),
        (Entry(ranker="mcrank", grid={"num_leaves": 3}), "needs a list of values"),
        (Entry(ranker="mcrank", grid={"num_leaves": []}), "needs a list of values"),
        (mcrank.McRank(dialect=mcrank.Dialect("unheard")), "unheard"),
    ],
)
def test_bad_entries(what, words):
    with pytest.raises(mcrank.McrankError, match=words):
        Entry.of(what)


def test_a_fitted_ranker_is_refused():
    data = mcrank.make_artificial(n_train=4, n_valid=1, n_test=1, docs_per_query=8, n_features=2).train
    with pytest.raises(OptionError, match="is fitted; save it"):
        Entry.of(mcrank.RegressionRanker(n_estimators=1).fit(data))


def test_a_dialect_twice_is_refused():
    with pytest.raises(OptionError, match="has a dialect of its own"):
        systems_of(entries_of("mcrank:dialect=yahoo"), ["standard"])
