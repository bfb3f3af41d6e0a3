"""Nets at their limits: layers that are none, options out of bounds, scores that could overflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import RankNet
from mcrank.container import pack, unpack
from mcrank.errors import ModelFileError, OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.scorers.net import layer_sizes, n_weights
from tests.rankers.test_nets import small_net
from tests.reference import mlp as naive

QUICK = {"epochs": 4, "hidden": "5", "n_jobs": 1}

PARTS = mcrank.make_artificial(n_train=40, n_valid=15, n_test=15, docs_per_query=12, n_features=6, seed=4)


@pytest.mark.parametrize("hidden", ["", "0", "3,", "1,2,3,4", "-3", "4097", "3.5", "a", "٣", "1e2", "3;4"])
def test_layers_that_are_none(hidden):
    with pytest.raises(OptionError, match=r"hidden of RankNet must be 1 to 3 layer sizes"):
        RankNet(hidden=hidden).fit(PARTS.train)


def test_layers_with_spaces():
    assert layer_sizes(7, " 64, 32 ", "hidden").tolist() == [7, 64, 32, 1]


@pytest.mark.parametrize(
    ("option", "value"),
    [("epochs", 0), ("learning_rate", 0), ("learning_rate", 11), ("batch_queries", 0), ("l2", -1),
     ("activation", "gelu"), ("optimizer", "lbfgs"), ("scaling", "rank"), ("sigma", 0), ("random_state", -1),
     ("early_stopping_rounds", 0)],
)  # fmt: skip
def test_options_out_of_bounds(option, value):
    with pytest.raises(OptionError, match=f"{option} of RankNet must be"):
        RankNet(**{option: value}).fit(PARTS.train)


def test_a_file_whose_scores_could_overflow_is_refused():
    header, arrays = unpack(bytearray(to_bytes(RankNet(**QUICK).fit(PARTS.train))), "it")
    arrays["net_weights"][:] = 1e300
    with pytest.raises(ModelFileError, match="scores are not finite"):
        from_bytes(pack(header, arrays))


@settings(max_examples=40)
@given(st.data())
def test_no_score_is_beyond_the_reach(data):
    net, stream = small_net(data.draw)
    X = stream.standard_normal((50, net.n_features))
    reach = net.reach(np.abs(X).max(axis=0))
    assert len(net.weights) == n_weights(net.sizes)
    assert np.abs(naive.scores(X, net.sizes, net.weights, net.activation)).max() <= reach
