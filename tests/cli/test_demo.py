"""`mcrank demo`: Table 1 in miniature, with models that load."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import mcrank
from mcrank.stats import paired_t, unpaired_t

ARGUMENTS = ("demo", "--queries", "24", "--rounds", "4", "--seed", "5")


def test_the_leaderboard_is_what_the_saved_models_score(mcrank_cli, tmp_path):
    code, printed, err = mcrank_cli(*ARGUMENTS, "--out", str(tmp_path / "d"), "--json")
    assert (code, err) == (0, "")
    board = json.loads(printed)["leaderboard"]
    assert {entry["ranker"] for entry in board} == {"ordinal classification", "classification", "regression"}
    assert [entry["ndcg@10"] for entry in board] == sorted((e["ndcg@10"] for e in board), reverse=True)
    test = mcrank.make_artificial(n_train=24, n_valid=6, n_test=12, seed=5).test
    by_query = {}
    for entry in board:
        ranker = mcrank.load(entry["model"])
        result = mcrank.evaluate(ranker.predict(test), test, ["ndcg@10"])
        by_query[entry["ranker"]] = result.by_query("ndcg@10")
        assert entry["ndcg@10"] == pytest.approx(ranker.score(test), abs=1e-12)
        assert entry["trees"] == ranker.forest_.n_trees
        assert entry["seconds"] >= 0
    page = Path(json.loads(printed)["report"]).read_text(encoding="utf-8")
    shown = [float(value) for value in re.findall('class="number mean" data-value="([^"]+)"', page)]
    assert shown == pytest.approx([entry["ndcg@10"] for entry in board], abs=1e-12)
    for entry in board:
        if entry["ranker"] == "regression":
            assert entry["p_paired"] is None
            continue
        pair = by_query[entry["ranker"]], by_query["regression"]
        assert entry["p_unpaired"] == pytest.approx(unpaired_t(*pair, "greater").p)
        assert entry["p_paired"] == pytest.approx(paired_t(*pair, "greater").p)


def test_the_table_is_for_people(mcrank_cli, tmp_path):
    code, printed, _ = mcrank_cli(*ARGUMENTS, "--out", str(tmp_path / "new" / "folder"))
    assert code == 0
    lines = printed.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("ranker "))
    assert "24 training, 6 validation, 12 test queries; 50 rows each, 50 features" in printed
    assert "M = 4 rounds, J = 10 leaves" in printed
    assert [len(line.split("  ")[0]) > 0 for line in lines[header + 2 : header + 5]] == [True] * 3
    assert sorted(p.name for p in (tmp_path / "new" / "folder").iterdir()) == [
        "classification.mcrank",
        "ordinal.mcrank",
        "regression.mcrank",
        "report.html",
    ]
    assert lines[-1] == f"report: {tmp_path / 'new' / 'folder' / 'report.html'}"
