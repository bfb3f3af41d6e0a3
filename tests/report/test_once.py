"""Every fact of a comparison is computed once, however often it is shown."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import mcrank
from mcrank.experiments import calibration, cutoffs, dialect_orders
from mcrank.experiments.comparison import Comparison
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.metrics.tools import DIALECTS
from mcrank.report.page import render_report
from mcrank.report.plots import write_figures
from mcrank.report.tables import write_tables
from mcrank.stats import many
from tests.experiments.made_up import made_up

pytestmark = pytest.mark.slow


@pytest.fixture
def made(monkeypatch):
    """Counts of the measures made ready, by their switches."""
    made = Counter()
    before = PreparedMeasure.__init__

    def counted(self, measure, layout):
        made[measure, id(layout)] += 1
        before(self, measure, layout)

    monkeypatch.setattr(PreparedMeasure, "__init__", counted)
    return made


def of_this_version(**more):
    environment = {"versions": {"mcrank": mcrank.__version__}}
    return replace(made_up(30, 3, **more), environment=environment)


def shown(comparison, folder):
    """The page, the tables and the figures."""
    write_tables(comparison, folder / "tables", times=False)
    page = render_report(comparison, times=False)
    write_figures(comparison, folder / "figures", formats=["svg"])
    return page


def test_a_measure_is_made_ready_once(made, tmp_path):
    for systems, folds in ((2, 1), (7, 1), (3, 5)):
        made.clear()
        whole = made_up(15, systems, measures=["ndcg@10", "map"], dialects=["lightgbm", "yahoo"])
        facts = [replace(whole.folds[0], name=f"Fold{fold}") for fold in range(folds)]
        comparison = replace(whole, folds=tuple(facts), fold_of_query=np.arange(15) % folds)
        few = len(comparison.measures) + len(cutoffs.CUTOFFS) + len(DIALECTS)
        shown(comparison, tmp_path)
        assert max(made.values()) == 1
        # Beyond what is shown: dialects changed to make them give a number, and steps that explain a flip.
        assert few - 2 <= len(made) <= few + 4 * len(DIALECTS), systems


def test_facts_are_computed_once(monkeypatch, tmp_path):
    calls = Counter()

    def count(module, name):
        before = getattr(module, name)

        def counted(*args):
            calls[name] += 1
            return before(*args)

        monkeypatch.setattr(module, name, counted)

    count(cutoffs, "cutoffs")
    count(calibration, "calibrations")
    count(dialect_orders, "dialect_orders")
    shown(made_up(15, 3), tmp_path)
    assert calls == {"cutoffs": 1, "calibrations": 1, "dialect_orders": 1}


@pytest.fixture
def draws(monkeypatch):
    """Bootstrap intervals that were drawn."""
    drawn = []
    before = many.intervals_of
    monkeypatch.setattr(
        many, "intervals_of", lambda *args, **more: drawn.append(args) or before(*args, **more)
    )
    return drawn


def test_a_loaded_comparison_draws_no_interval_again(draws, tmp_path):
    comparison = of_this_version(measures=["ndcg@10", "map"], dialects=["lightgbm"])
    comparison.save(tmp_path / "run")
    assert draws
    lines = {name: comparison.leaderboard(name) for name in comparison.measures}
    page = shown(comparison, tmp_path)
    draws.clear()
    again = Comparison.load(tmp_path / "run")
    assert {name: again.leaderboard(name) for name in again.measures} == lines
    assert shown(again, tmp_path) == page
    assert not draws
    assert again.leaderboard("map", baseline="system-1")
    assert len(draws) == 1  # of all three at once


def _other_version(run, results):
    run["versions"]["mcrank"] = "0.1.0"


def _null(run, results):
    results["leaderboards"]["ndcg@10"][1]["effect"] = None


def _text(run, results):
    results["leaderboards"]["ndcg@10"][0]["ci_low"] = "0.1"


def _without(run, results):
    del results["leaderboards"]["ndcg@10"][2]


def _mark(run, results):
    results["leaderboards"]["ndcg@10"][1]["mark"] = "<b>"


@pytest.mark.parametrize("change", [_other_version, _null, _text, _without, _mark])
def test_leaderboards_that_are_not_ours_are_made_again(draws, tmp_path, change):
    comparison = of_this_version()
    comparison.save(tmp_path)
    files = [tmp_path / "run.json", tmp_path / "results.json"]
    both = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    change(*both)
    for path, content in zip(files, both, strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    lines = comparison.leaderboard()
    draws.clear()
    assert Comparison.load(tmp_path).leaderboard() == lines
    assert draws
