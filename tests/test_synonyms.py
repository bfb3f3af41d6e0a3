"""What other libraries call options: every word leads somewhere, and none is taken."""

from __future__ import annotations

import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import OptionError
from mcrank.rankers.registry import RANKERS, ranker_class
from mcrank.synonyms import _OURS, _THEIRS, word_for


@pytest.fixture(scope="module")
def options():
    return {name for ranker in RANKERS for name in ranker_class(ranker).declared_options}


def test_every_word_leads_to_an_option_of_some_ranker(options):
    assert set(_THEIRS) <= options


def test_no_word_of_others_is_an_option_here(options):
    assert not options & set(_OURS)


def test_every_word_of_others_stands_once():
    words = [word for words in _THEIRS.values() for word in words.split()]
    assert sorted(words) == sorted(_OURS)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("eta", "learning_rate"), ("num_boost_round", "n_estimators"), ("reg_lambda", "l2")],
)
def test_a_ranker_tells_its_own_word(theirs, ours):
    with pytest.raises(OptionError, match=f"LambdaMART has no option '{theirs}'; here it is {ours}"):
        mcrank.LambdaMART(**{theirs: 1})
    with pytest.raises(OptionError, match=f"here it is {ours}"):
        mcrank.LambdaMART().set_params(**{theirs: 1})


def test_an_option_that_this_ranker_lacks_is_not_promised():
    assert word_for("num_leaves", mcrank.RankSVM.declared_options) is None
    with pytest.raises(OptionError, match="RankSVM has no option 'eta'; options: measure"):
        mcrank.RankSVM(eta=0.1)


def test_the_command_line_tells_its_own_word(capsys, tmp_path):
    assert (
        main(["train", str(tmp_path / "none.txt"), "--ranker", "lambdamart", "--num-boost-round", "5"]) == 2
    )
    assert "No such option '--num-boost-round'; here it is --n-estimators." in capsys.readouterr().err
    assert main(["train", str(tmp_path / "none.txt"), "--ranker", "lambdamart", "--eta=0.1"]) == 2
    assert "here it is --learning-rate." in capsys.readouterr().err
    assert main(["train", str(tmp_path / "none.txt"), "--ranker", "lambdamart", "--zzz"]) == 2
    assert "here it is" not in capsys.readouterr().err
