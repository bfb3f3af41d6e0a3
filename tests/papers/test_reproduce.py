"""`mcrank reproduce`: its numbers are those of `evaluate` and `stats`, and a second run changes nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from xml.dom import minidom

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.cli import reproduce as reproduce_command
from mcrank.cli.main import main
from mcrank.errors import OptionError
from mcrank.experiments.schedule import Progress
from mcrank.papers import figure3
from mcrank.papers import run as runs
from mcrank.papers.grounds import Artificial, staged
from mcrank.papers.outcome import NO_VERDICT, VERDICTS, Claim, Reproduction, judged, larger, larger_by
from mcrank.papers.protocols import PROTOCOLS
from mcrank.papers.reproduce import ON_OWN_DATA, TARGETS
from tests.experiments.conftest import tree

TINY = runs.Sizes(12, 6, 10, 8, 2)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(runs, "SMALL", TINY)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def made(out):
    """Table 1 and Figure 1 in one folder; the second finds what the first has trained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", TINY)
        first = mcrank.reproduce("table1", out=out, quick=True, n_jobs=1)
        trials = {path: path.stat().st_mtime_ns for path in out.rglob("*.trial")}
        second = mcrank.reproduce("figure1", out=out, quick=True, n_jobs=1)
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*.trial")} == trials
    return first, second


def rows(reproduction, key):
    return reproduction.to_dict()["tables"][key]


def test_table1_is_what_evaluate_says_of_fresh_rankers(made):
    train, _, test = mcrank.make_artificial(12, 6, 10, seed=1)
    options = {"preset": "paper", "num_leaves": 10, "learning_rate": 0.05, "random_state": 1}
    fresh = {
        "ordinal": mcrank.OrdinalMcRank(n_estimators=8, **options),
        "classification, 4 rounds": mcrank.McRank(n_estimators=4, **options),
        "classification, Newton splits": mcrank.McRank(n_estimators=8, split="newton", **options),
        "regression": mcrank.RegressionRanker(n_estimators=8, **options),
        "regression, 40 rounds": mcrank.RegressionRanker(n_estimators=40, **options),
    }
    found = {row["ranker"]: row for row in rows(made[0], "rankers")}
    values = {}
    for name, ranker in fresh.items():
        result = mcrank.evaluate(ranker.fit(train).predict(test), test, "ndcg@10")
        assert found[name]["NDCG@10 % (std)"] == pytest.approx(100 * result.mean["ndcg@10"], rel=1e-12)
        assert found[name]["trees"] == ranker.forest_.n_trees
        values[name] = result.by_query("ndcg@10")
    tests = {(row["better?"], row["than"]): row for row in rows(made[0], "tests")}
    row = tests["ordinal", "regression"]
    a, b = values["ordinal"], values["regression"]
    assert row["p, unpaired (the paper's test)"] == pytest.approx(stats.unpaired_t(a, b, "greater").p)
    assert row["p, paired"] == pytest.approx(stats.paired_t(a, b, "greater").p)


def test_the_paper_s_p_values_come_out_of_its_means(made):
    for row in rows(made[0], "printed"):
        p = row["p recomputed from the printed means and deviations"]
        assert p == pytest.approx(row["p printed"], rel=0.25)
    assert any(c.verdict == "confirmed" and "t-test" in c.claim for c in made[0].claims)


def test_figure1_at_10_is_table1(made):
    table = {row["ranker"]: row["NDCG@10 % (std)"] for row in rows(made[0], "rankers")}
    means = {row["ranker"]: row for row in rows(made[1], "mean")}
    for name, other in (("ordinal", "ordinal"), ("lambdarank", "LambdaRank, two layers")):
        assert means[name]["k = 10"] == pytest.approx(table[other])
    other = {row["ranker"]: row["NDCG@10 % (std)"] for row in rows(made[0], "other")}
    means = {row["ranker"]: row for row in rows(made[1], "mean-g5")}
    assert means["regression"]["k = 10"] == pytest.approx(other["regression"])


def test_a_second_run_gives_the_same_bytes(made, out, tiny):
    before = tree(out, without=("runs",))
    again = mcrank.reproduce("table1", out=out, quick=True, n_jobs=1)
    assert tree(out, without=("runs",)) == before
    assert again.to_markdown() == (out / "table1.md").read_text()
    assert json.loads((out / "table1.json").read_text())["claims"] == [asdict(c) for c in again.claims]


def test_every_claim_has_a_verdict_and_evidence(made):
    for reproduction in made:
        assert reproduction.claims
        for claim in reproduction.claims:
            assert claim.verdict in VERDICTS if claim.any_size else claim.verdict == NO_VERDICT
            assert claim.evidence
            assert claim.claim in reproduction.to_markdown().replace("\\|", "|")


def test_figures_are_files_that_stand_alone(made, out):
    page = (out / "figure1.md").read_text()
    assert "Made by `mcrank reproduce figure1 --out results --quick`." in page
    for name in (f"figure1-cutoffs{key}-{n}.svg" for key in ("", "-g5") for n in (1, 2)):
        assert f"({name})" in page
        element = minidom.parse(str(out / name)).documentElement
        assert element.namespaceURI == "http://www.w3.org/2000/svg"
        assert element.getElementsByTagName("style")


def test_stages_are_the_models_of_so_many_rounds():
    train, _, test = mcrank.make_artificial(12, 1, 8, seed=3)
    whole = mcrank.McRank(n_estimators=6, n_jobs=1).fit(train)
    for rounds, raw in zip([2, 5], staged(whole, test, [2, 5]), strict=True):
        part = mcrank.McRank(n_estimators=rounds, n_jobs=1).fit(train)
        np.testing.assert_allclose(whole.head_.rank(raw), part.predict(test), rtol=1e-12)


def test_figure3(out, tiny, monkeypatch):
    monkeypatch.setattr(figure3, "STAGES", 4)
    made = mcrank.reproduce("figure3", out=out, quick=True, n_jobs=1)
    table = rows(made, "bins")
    assert [row["most bins"] for row in table] == [8, 16, 32, 64, 128, 256, 65536]
    run = runs.Run(out, True, 1, 1, None)
    for row in table:
        ranker = Artificial(run).model("figure3", f"bins-{row['most bins'].bit_length() - 1}")
        assert row["bins used"] == sum(
            len(np.unique(e)) + 1 for e in np.split(ranker.bin_edges_, ranker.bin_offsets_[1:-1])
        )
        score = ranker.score(Artificial(run).parts.test)
        assert row["NDCG@10 %"] == pytest.approx(100 * score)
    scoring = rows(made, "scoring")
    assert [row["rounds"] for row in scoring] == [2, 4, 6, 8]
    finest = Artificial(run).model("figure3", "bins-16")
    test = Artificial(run).parts.test
    gain = mcrank.evaluate(finest.predict(test, relevance="gain"), test, "ndcg@10").mean["ndcg@10"]
    assert scoring[-1]["Expected Gain, test"] == pytest.approx(100 * gain)


def test_judging():
    assert judged("s", "c", None, "e") == Claim("s", "c", "undecided", "e")
    assert [judged("s", "c", holds, "e").verdict for holds in (True, False)] == ["confirmed", "refuted"]
    assert [larger(0.01, 0.99), larger(0.99, 0.01), larger(0.3, 0.7)] == [True, False, None]


def test_a_size_must_be_exceeded():
    """Two systems 2 points apart on every query: ahead, by more than 1, not by more than 3."""
    b = {query: float(query % 7) for query in range(50)}
    a = {query: value + 2.0 + 0.1 * (query % 3) for query, value in b.items()}
    assert larger(*larger_by(a, b))
    assert larger(*larger_by(a, b, 1.0))
    assert larger(*larger_by(a, b, 3.0)) is False


def test_verdicts_are_told_and_a_quick_run_has_none():
    claims = [Claim("p", "one", "refuted", "e"), Claim("p", "two", "confirmed", "e", any_size=True)]
    made = Reproduction("t", "T", "", [], [], claims)
    assert VERDICTS["refuted"] in made.to_markdown()
    quick = made.at_quick_sizes()
    assert [claim.verdict for claim in quick.claims] == [NO_VERDICT, "confirmed"]
    assert VERDICTS["refuted"] not in quick.to_markdown()


@pytest.fixture(scope="module")
def own(tmp_path_factory, short_and_empty):
    """The experiments of the McRank paper on somebody's folds."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", TINY)
        patch.setattr(figure3, "STAGES", 2)
        found = {
            target: mcrank.reproduce(
                target, short_and_empty, out=folder, quick=True, protocol="web-3", n_jobs=1
            )
            for target in ("table1", "figure1", "figure3", "figure2")
        }
    return folder, found


@pytest.mark.slow
def test_table1_on_ones_own_folds_pools_them(own, short_and_empty):
    _, found = own
    folds = mcrank.read_folds(short_and_empty)
    values = []
    for train, _, test in folds:
        ranker = mcrank.McRank(
            preset="paper", n_estimators=8, num_leaves=20, learning_rate=0.02, random_state=1
        )
        values.append(mcrank.evaluate(ranker.fit(train).predict(test), test, "ndcg@10").per_query["ndcg@10"])
    row = next(row for row in rows(found["table1"], "rankers") if row["ranker"] == "classification")
    assert row["NDCG@10 % (std)"] == pytest.approx(100 * np.concatenate(values).mean(), rel=1e-12)
    assert row["paper"] == "72.4 (27.3)"
    assert "other" not in found["table1"].to_dict()["tables"]
    assert found["table1"].tried_on.endswith(
        "other data than the paper's, whose web search data are not public"
    )
    means = {row["ranker"]: row["k = 10"] for row in rows(found["figure1"], "mean")}
    assert means["classification"] == pytest.approx(row["NDCG@10 % (std)"])


def test_figure3_has_a_curve_for_every_part(own):
    columns = list(rows(own[1]["figure3"], "scoring")[0])
    for part in ("test", "valid", "train"):
        assert f"Expected Gain, {part}" in columns
    assert own[1]["figure3"].notes == ["Bins and the curves of panel (c) are those of the first of 2 folds."]
    assert not any("continuous" in claim.evidence for claim in own[1]["figure3"].claims)


def test_figure2_counts_bins_that_a_grid_would_waste(own):
    for row in rows(own[1]["figure2"], "bins"):
        assert row["adaptive bins"] <= 16
        assert row["bins of that length that cover the range"] >= row["adaptive bins"] - 1
        assert 0 < row["best split at an edge of 16 bins, % of the best of all"] <= row["of 256 bins"] + 1e-9
        assert row["of 256 bins"] == pytest.approx(100.0)  # every value has its bin here


def test_table1_in_the_form_of_the_paper(made):
    table = rows(made[0], "paper")
    assert [row["data set"] for row in table][:4] == [f"{name}, printed" for name in PROTOCOLS]
    assert table[0]["Regression, p-value"] == "82.9 (10.2), 0"
    assert table[2]["Ordinal Classification"] == "—"
    ours = {row["ranker"]: row["NDCG@10 % (std)"] for row in rows(made[0], "rankers")}
    assert table[4]["Classification"] == pytest.approx(ours["classification"])
    assert len(table) == 6


def test_smaller_runs_say_so(tmp_path):
    run = runs.Run(tmp_path, False, 1, None, None, queries=1000)
    assert (run.sizes.train, run.sizes.valid, run.sizes.test) == (1000, 500, 10_000)
    assert run.folder("a").name == "a-full-queries1000-seed1"
    assert "1,000 training queries instead of 10,000" in Artificial(run).tried_on
    assert "smaller" not in Artificial(replace(run, queries=None)).tried_on
    assert run.command("table1") == "mcrank reproduce table1 --out results --queries 1000"
    fewer = replace(run, test_queries=200, rounds=50)
    assert fewer.sizes == replace(run.sizes, test=200, rounds=50)
    assert fewer.folder("a").name == "a-full-queries1000-test200-rounds50-seed1"
    assert fewer.command("table1").endswith("--queries 1000 --test-queries 200 --rounds 50")
    assert fewer.sizes.smaller == (
        "1,000 training queries instead of 10,000, 200 test queries instead of 10,000 and 50 rounds instead "
        "of 1000"
    )
    assert replace(run, queries=None).sizes.smaller == ""
    assert replace(run, queries=None, units=(10,), data=tmp_path / "MQ2008").command("apples") == (
        "mcrank reproduce apples MQ2008 --out results --units 10"
    )


def test_progress_is_that_of_the_whole_target(made, out, tiny):
    """Everything is trained already: all of it is told as done, whatever comparison is looked at."""
    told = []
    mcrank.reproduce("table1", out=out, quick=True, n_jobs=1, callback=told.append)
    assert [(one.done, one.trials) for one in told] == [(5, 17), (11, 17), (14, 17), (17, 17)]
    assert told[-1].seconds_left == 0


def test_one_level_too_low_is_still_perfect(made):
    claim = next(c for c in made[0].claims if "one level too low" in c.claim)
    assert claim.verdict == "confirmed"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sensitivity", "generators"])
def test_studies(target, tmp_path, tiny):
    found = mcrank.reproduce(target, out=tmp_path, quick=True, n_jobs=2)
    assert all(claim.verdict == NO_VERDICT for claim in found.claims)
    if target == "generators":
        assert len(rows(found, "generators")) == 20
        return
    train, _, test = mcrank.make_artificial(12, 6, 10, seed=1)
    ranker = mcrank.McRank(preset="paper", n_estimators=6, num_leaves=20, learning_rate=0.02, random_state=1)
    value = 100 * ranker.fit(train).score(test)
    wanted = {"ranker": "classification", "J": 20, "ν": 0.02}
    (row,) = [row for row in rows(found, "settings") if wanted.items() <= row.items()]
    assert row["M = 6"] == pytest.approx(value, rel=1e-12)


def test_names_in_a_page_cannot_break_its_table():
    made = Reproduction("t", "T", "", [], [], [Claim("a", "x | y\nz", "confirmed", "<b>")])
    assert "| a | x \\| y z | confirmed | &lt;b&gt; |" in made.to_markdown()


def test_bad_calls(tmp_path):
    with pytest.raises(OptionError, match="target of reproduce must be 'table1'"):
        mcrank.reproduce("table2", out=tmp_path)
    with pytest.raises(OptionError, match="generators makes its own data"):
        mcrank.reproduce("generators", tmp_path, out=tmp_path)
    with pytest.raises(OptionError, match="protocol of reproduce is for data of your own"):
        mcrank.reproduce("table1", out=tmp_path, protocol="web-1")
    with pytest.raises(OptionError, match="did you mean web-1"):
        mcrank.reproduce("table1", tmp_path, out=tmp_path, protocol="web1")
    with pytest.raises(OptionError, match="rounds of reproduce must be an integer >= 4"):
        mcrank.reproduce("table1", out=tmp_path, rounds=3)
    with pytest.raises(OptionError, match="queries of reproduce must be an integer >= 10"):
        mcrank.reproduce("table1", out=tmp_path, queries=3)
    with pytest.raises(OptionError, match="is for artificial data alone"):
        mcrank.reproduce("table1", tmp_path, out=tmp_path, queries=30)
    with pytest.raises(OptionError, match="test_queries of reproduce must be an integer >= 10"):
        mcrank.reproduce("table1", out=tmp_path, test_queries=3)
    with pytest.raises(OptionError, match="units of reproduce must be integers"):
        mcrank.reproduce("apples", tmp_path, out=tmp_path, units=[0])
    with pytest.raises(OptionError, match="units of reproduce is for apples"):
        mcrank.reproduce("table1", out=tmp_path, units=[10])
    assert list(tmp_path.iterdir()) == []


def test_sizes_have_folders_of_their_own(tmp_path):
    run = runs.Run(tmp_path, False, 1, None, None)
    names = {run.folder("a"), replace(run, quick=True).folder("a"), replace(run, seed=2).folder("a")}
    assert len(names | {replace(run, rounds=7).folder("a")}) == 4
    assert run.sizes == runs.PAPER
    assert (runs.PAPER.train, runs.PAPER.test, runs.PAPER.rounds) == (10_000, 10_000, 1000)
    assert replace(run, rounds=7).sizes.rounds == 7


def test_the_command(tmp_path, tiny, capsys, made, out):
    assert main(["reproduce", "table1", "--out", str(out), "--quick", "--jobs", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["claims"] == [asdict(claim) for claim in made[0].claims]
    assert main(["reproduce", "apples", "--out", str(tmp_path)]) == 2
    assert "apples needs DATA" in capsys.readouterr().err
    assert main(["reproduce", "generators", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "table1", "--out", str(tmp_path), "--protocol", "web-1"]) == 2
    assert main(["reproduce", "apples", str(tmp_path), "--out", str(tmp_path), "--rounds", "9"]) == 2
    assert main(["reproduce", "apples", str(tmp_path), "--out", str(tmp_path), "--units", "x"]) == 2
    assert main(["reproduce", "table1", str(tmp_path), "--out", str(tmp_path), "--queries", "20"]) == 2
    capsys.readouterr()
    assert main(["reproduce", "table1", str(tmp_path), "--out", str(tmp_path), "--test-queries", "20"]) == 2
    assert "--test-queries is for artificial data" in capsys.readouterr().err
    assert main(["reproduce", "table1", "--out", str(tmp_path), "--units", "10"]) == 2


@pytest.mark.slow
def test_the_command_takes_a_table(tmp_path, tiny, capsys):
    """One file is cut into five folds; rows without a grade are refused, or have grade 0 as in Web-2."""
    stream = np.random.default_rng(2)
    lines = ["qid,grade,a,b"]
    for query in range(20):
        for a, b in stream.normal(size=(6, 2)):
            lines.append(f"q{query},{int(a > 0) + int(a + b > 1)},{a:.3f},{b:.3f}")
    whole, holes = tmp_path / "whole.csv", tmp_path / "holes.csv"
    whole.write_text("\n".join(lines) + "\n")
    holes.write_text("\n".join([*lines[:-1], "q19,,0.1,0.2"]) + "\n")
    call = ["--out", str(tmp_path / "out"), "--quick", "--jobs", "1", "--json"]
    assert main(["reproduce", "figure3", str(whole), "--protocol", "web-3", *call]) == 0
    assert "whole.csv, 5 fold(s)" in json.loads(capsys.readouterr().out)["setting"]
    assert main(["reproduce", "figure3", str(holes), *call]) == 3
    assert "grades must be finite" in capsys.readouterr().err
    assert main(["reproduce", "figure3", str(holes), "--protocol", "web-2", *call]) == 0
    assert main(["reproduce", "apples", str(whole), *call]) == 3
    assert "whole.csv is not a directory" in capsys.readouterr().err


def test_an_estimate_that_has_halved_is_told_again(monkeypatch):
    said = []
    monkeypatch.setattr(reproduce_command, "say", said.append)
    monkeypatch.setattr(reproduce_command, "can_move", lambda: False)
    teller = reproduce_command._Teller("table1")
    for done, left in ((0, None), (0, None), (0, 3600.0), (0, 2000.0), (0, 1700.0), (0, 1600.0), (1, 1600.0)):
        teller(Progress(done, 5, (), 0.0, left))
    assert said == [
        "table1: 0 of 5 trained",
        "table1: 0 of 5 trained, about 60 min left",
        "table1: 0 of 5 trained, about 28 min left",
        "table1: 1 of 5 trained, about 27 min left",
    ]


def test_the_command_knows_the_targets():
    cli = reproduce_command
    assert tuple(TARGETS) == cli.TARGETS
    assert cli.ON_OWN_DATA == ON_OWN_DATA
    assert tuple(PROTOCOLS) == cli.PROTOCOLS
