"""`mcrank describe`: what the model file holds, readable and as JSON."""

from __future__ import annotations

import json

import mcrank


def test_json_has_everything(mcrank_cli, files):
    code, printed, err = mcrank_cli("describe", "model.mcrank", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(printed)
    ranker = mcrank.load(files / "model.mcrank")
    assert facts["ranker"] == "mcrank"
    assert facts["features"] == 5
    assert facts["grades"] == ranker.grades_.tolist()
    assert facts["trees"] == ranker.forest_.n_trees
    assert facts["leaves"] == int((ranker.forest_.feature < 0).sum())
    assert facts["options"]["num_leaves"] == 4
    assert "n_jobs" not in facts["options"]
    assert facts["training"]["history"] == ranker.history_
    assert facts["training"]["valid"] == {"ndcg@10": max(ranker.history_["ndcg@10"])}
    assert facts["provenance"]["data"]["rows"] == 240
    assert facts["provenance"]["versions"]["mcrank"] == mcrank.__version__
    named = dict(zip(ranker.feature_names_, ranker.feature_importances_.tolist(), strict=True))
    assert facts["most_useful_features"] == dict(sorted(named.items(), key=lambda item: -item[1]))


def test_text_is_for_people(mcrank_cli):
    code, printed, _ = mcrank_cli("describe", "model.mcrank", "--top", "2")
    assert code == 0
    words = " ".join(printed.split())
    assert "ranker mcrank" in words
    assert "grades 0, 1, 2, 3, 4" in words
    assert "num_leaves 4" in words
    assert "early_stopping_rounds none" in words
    features = printed.split("most useful features\n")[1].split("\n\n")[0]
    assert len(features.splitlines()) == 2
    assert "history" not in printed


def test_a_wrong_file(mcrank_cli):
    code, printed, err = mcrank_cli("describe", "train.txt")
    assert (code, printed) == (3, "")
    assert err.startswith("error: train.txt is not a mcrank model file")


def test_a_blend_shows_its_members_and_their_weights(mcrank_cli, files):
    train, valid = mcrank.make_artificial(n_train=20, n_valid=10, n_test=1, n_features=4, seed=1)[:2]
    blend = mcrank.Blend(members="ranksvm,best-feature").fit(train, valid=valid)
    blend.save(files / "blend.mcrank")
    code, printed, _ = mcrank_cli("describe", "blend.mcrank", "--json")
    assert code == 0
    weights = blend.weights_.tolist()
    assert json.loads(printed)["members"] == {"1 ranksvm": weights[0], "2 best-feature": weights[1]}
