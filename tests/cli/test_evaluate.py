"""The commands evaluate, rosetta and significance."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(3)
    grades = rng.integers(0, 3, 200)
    lines = [f"{g} qid:{i // 8 + 1} 1:0.5 #docid = d{i}\n" for i, g in enumerate(grades)]
    (tmp_path / "data.txt").write_text("".join(lines))
    for name, noise in (("a", 0.5), ("b", 1.0), ("c", 8.0)):
        scores = grades + rng.normal(0, noise, 200)
        (tmp_path / f"{name}.txt").write_text("".join(f"{s:.6f}\n" for s in scores))
    return tmp_path


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_evaluate_prints_means_counts_and_queries(files, capsys):
    data, scores = files / "data.txt", files / "a.txt"
    code, out, err = run(capsys, "evaluate", data, scores, "-m", "ndcg@10", "-m", "map[mslr]", "--per-query")
    assert (code, err) == (0, "")
    loaded = mcrank.read(data)
    result = mcrank.evaluate(np.loadtxt(scores), loaded, ["ndcg@10", "map[mslr]"])
    assert f"{result.mean['ndcg@10']:.4f}" in out
    assert "25 queries, 200 rows" in out
    assert f"1\t{result.per_query['ndcg@10'][0]:.6f}\t{result.per_query['map[mslr]'][0]:.6f}" in out


def test_evaluate_json(files, capsys):
    code, out, _ = run(
        capsys,
        "evaluate",
        files / "data.txt",
        files / "a.txt",
        "-m",
        "ndcg@10[letor3]",
        "--json",
        "--per-query",
    )
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"mean", "counts", "definitions", "per_query"}
    assert found["mean"] == {"ndcg@10[letor3]": 0.0}  # every query has 8 documents
    assert found["per_query"]["ndcg@10[letor3]"]["1"] is None
    assert found["counts"]["shorter than 10"] == 25


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-m", "ndgc@10"], 2, "did you mean ndcg@10?"),
        (["-m", "ndcg@10[letor4;gain=0/1]"], 3, "line "),
        (["--bogus"], 2, "--bogus"),
    ],
)
def test_evaluate_says_what_is_wrong(files, capsys, arguments, code, message):
    found, out, err = run(capsys, "evaluate", files / "data.txt", files / "a.txt", *arguments)
    assert found == code
    assert out == ""
    assert message in err


def test_a_bad_grade_is_named_by_its_line(files, capsys):
    text = "# a comment\n\n1 qid:1 1:0\n7 qid:1 1:0\n"
    (files / "odd.txt").write_text(text)
    (files / "two.txt").write_text("1\n2\n")
    code, _, err = run(capsys, "evaluate", files / "odd.txt", files / "two.txt", "-m", "ndcg[mslr]")
    assert code == 3
    assert "cannot take grade 7 at row 1 (query 1)" in err
    assert f"(line 4 of {files / 'odd.txt'})" in err


def test_bad_scores_end_with_code_3(files, capsys):
    (files / "bad.txt").write_text("1\n" * 199)
    code, _, err = run(capsys, "evaluate", files / "data.txt", files / "bad.txt")
    assert code == 3
    assert "199 scores for 200 rows: line 200 is missing" in err


def test_qrels_and_run(files, capsys):
    (files / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    (files / "run").write_text("1 Q0 u 1 3 r\n1 Q0 a 2 2 r\n1 Q0 b 3 1 r\n")
    means = {}
    for flags in ((), ("-c",), ("-J",)):
        _, out, _ = run(
            capsys, "evaluate", files / "qrels", files / "run", "-m", "mrr[trec]", "--json", *flags
        )
        means[flags] = json.loads(out)["mean"]["mrr[trec]"]
    assert means == {(): 0.5, ("-c",): 0.25, ("-J",): 1.0}
    code, _, err = run(capsys, "evaluate", files / "qrels", files / "run", "-m", "mrr[trec10]")
    assert code == 3
    assert "query 2 is judged but missing from the run" in err


def test_all_of_trec_eval_and_the_overlap_of_runs(tmp_path, capsys):
    qrels, one, other = tmp_path / "qrels", tmp_path / "one.run", tmp_path / "other.run"
    qrels.write_text("# judged by hand\nq 0 a 1\nq 0 b 0\n")
    one.write_text("# first\nq Q0 b 1 2 mine\nq Q0 a 2 1 mine\n")
    other.write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\n")
    code, out, err = run(capsys, "evaluate", qrels, one, "-m", "all[trec]", "-q")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{'num_ret':<22}\tq\t2"
    assert f"{'relstring':<22}\tq\t'01'\n" in out
    assert f"{'runid':<22}\tall\tmine\n" in out
    assert f"{'bpref':<22}\tall\t0.0000\n" in out
    code, out, _ = run(capsys, "evaluate", one, other, "-m", "rbo(0.5)", "-q")
    assert code == 0
    assert out.splitlines()[0] == "rbo(0.5)  0.5000"
    assert out.splitlines()[-1] == "q\t0.500000"


def test_they_are_json_too(tmp_path, capsys):
    qrels, one, other = tmp_path / "qrels", tmp_path / "one.run", tmp_path / "other.run"
    qrels.write_text("q 0 a 1\nq 0 b 0\nq 0 c 1\n")
    one.write_text("q Q0 b 1 2 mine\nq Q0 a 2 1 mine\nz Q0 a 1 1 mine\n")
    other.write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\n")
    _, out, _ = run(capsys, "evaluate", qrels, one, "-m", "all[trec]", "--json", "-q")
    found = json.loads(out)
    assert (found["run"], found["mean"]["num_rel"], found["mean"]["map"]) == ("mine", 2, 0.25)
    assert found["per_query"]["relstring"] == {"q": "01"}
    _, out, _ = run(capsys, "evaluate", qrels, one, "-m", "all[trec]", "--json")
    assert json.loads(out) == {"run": "mine", "mean": found["mean"]}
    _, out, _ = run(capsys, "evaluate", one, other, "-m", "rbo(0.5)", "--json", "-q")
    counts = {"in both runs": 1, "only in the first": 1, "only in the second": 0}
    wanted = {"mean": {"rbo(0.5)": 0.5}, "counts": counts, "per_query": {"rbo(0.5)": {"q": 0.5}}}
    assert json.loads(out) == wanted


def test_what_is_no_judgment_or_stands_alone_is_refused(tmp_path, capsys):
    (tmp_path / "prefs").write_text("q judge 0 a 1.0\nq judge 0 b 0\n")
    (tmp_path / "run").write_text("q Q0 a 1 2 mine\n")
    code, out, err = run(capsys, "evaluate", tmp_path / "prefs", tmp_path / "run", "-m", "bpref")
    assert (code, out) == (3, "")
    assert "Five columns are preferences" in err
    # The words of trec_eval's own example have colons, and comments stand before it.
    (tmp_path / "prefs").write_text("# A comment\n1.EC.AB  F:Ret,C:Not   F:Rnkd\t doc#1    1\n")
    code, _, err = run(capsys, "evaluate", tmp_path / "prefs", tmp_path / "run", "-m", "all[trec]")
    assert (code, "Five columns are preferences" in err) == (3, True)
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    code, _, err = run(capsys, "evaluate", tmp_path / "run", tmp_path / "qrels", "-m", "all[trec]")
    assert (code, "is a run of six columns, not judgments" in err) == (3, True)
    code, out, err = run(
        capsys, "evaluate", tmp_path / "qrels", tmp_path / "run", "-m", "map", "-m", "all_trec"
    )
    assert code != 0
    assert "ask for it alone" in err


def test_rosetta(files, capsys):
    data, scores = files / "data.txt", files / "a.txt"
    code, out, err = run(capsys, "rosetta", data, scores, "-m", "ndcg@5")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("standard", "letor4", "yahoo2010", "torchmetrics"))
    value = (
        f"{mcrank.evaluate(np.loadtxt(scores), mcrank.read(data), 'ndcg@5[trec]').mean['ndcg@5[trec]']:.4f}"
    )
    code, out, _ = run(capsys, "rosetta", data, scores, "-m", "ndcg@5", "--value", value, "--json")
    found = json.loads(out)
    assert "trec" in found["matches"]
    assert f"{found['dialects']['trec']['value']:.4f}" == value
    assert "gain = grade" in found["dialects"]["trec"]["reason"]
    _, out, _ = run(capsys, "rosetta", data, scores, "--value", "0.00001234")
    assert "0.00001234 is printed by: no known dialect" in out


@pytest.mark.parametrize("value", ["1e400", "nan", "inf", "1_0", "high"])
def test_rosetta_refuses_a_value_that_nobody_prints(value, files, capsys):
    code, out, err = run(capsys, "rosetta", files / "data.txt", files / "a.txt", "--value", value)
    assert (code, out) == (2, "")
    assert "must be a finite number such as 0.7421" in err


def test_significance(files, capsys):
    systems = [files / f"{name}.txt" for name in "abc"]
    code, out, err = run(capsys, "significance", files / "data.txt", *systems, "--rounds", 300, "--tukey")
    assert (code, err) == (0, "")
    assert "wins/ties/losses" in out
    assert "95% interval" in out
    assert out.count("Tukey HSD") == 3
    code, out, _ = run(capsys, "significance", files / "data.txt", *systems, "--level", 0.995)
    assert "99.5% interval" in out
    code, out, _ = run(capsys, "significance", files / "data.txt", *systems, "--rounds", 300, "--json")
    found = json.loads(out)
    a, c = (found["systems"][f"{name}.txt"] for name in "ac")
    assert found["queries"] == 25
    assert a["p"] is None
    assert a["interval"][0] < a["mean"] < a["interval"][1]
    assert c["wins"] + c["ties"] + c["losses"] == 25
    assert c["difference"] < 0
    assert c["p"] <= c["corrected_p"] < 0.05


@pytest.mark.parametrize("command", ["significance", "rosetta"])
def test_a_second_measure_is_not_the_last_word(command, files, capsys):
    given = ["data.txt", "a.txt", *(["b.txt"] if command == "significance" else [])]
    code, out, err = run(capsys, command, *(files / name for name in given), "-m", "map", "-m", "mrr")
    assert (code, out) == (2, "")
    assert "one at a time; got map and mrr" in err


@pytest.mark.parametrize(("measure", "plain"), [("gm_map", "map"), ("gm_bpref", "bpref")])
def test_significance_tests_no_geometric_means(measure, plain, files, capsys):
    code, out, err = run(
        capsys, "significance", *(files / f for f in ("data.txt", "a.txt", "b.txt")), "-m", measure
    )
    assert (code, out) == (3, "")
    assert f"{measure} is a geometric mean" in err
    assert f"such as {plain}." in err


def test_significance_needs_two_systems(files, capsys):
    code, _, err = run(capsys, "significance", files / "data.txt", files / "a.txt")
    assert code == 2
    assert "at least two systems" in err
    code, _, err = run(capsys, "significance", files / "data.txt", files / "a.txt", files / "a.txt")
    assert code == 3
    assert "named twice" in err


def test_ties_by_document_id_are_those_of_python_whatever_the_file(mcrank_cli, tmp_path):
    """Document ids are read where a measure goes by them: comments of LETOR text, columns of tables."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    docs, grades = ["b", "a", "c", "a", "c", "b"], [0, 2, 1, 0, 1, 2]
    rows = enumerate(zip(grades, docs, strict=True))
    lines = [f"{g} qid:{7 + i // 3} 1:{i} #docid = {d}" for i, (g, d) in rows]
    (tmp_path / "d.txt").write_text("\n".join(lines) + "\n")
    frame = pandas.DataFrame({"qid": [7] * 3 + [8] * 3, "grade": grades, "docno": docs, "f1": range(6)})
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet", index=False)
    frame.to_feather(tmp_path / "d.feather")
    (tmp_path / "scores").write_text("1\n" * 6)
    wanted = mcrank.evaluate([1.0] * 6, mcrank.read(tmp_path / "d.txt"), "ndcg@2[trec]").mean
    by_file = mcrank.evaluate([1.0] * 6, mcrank.read(tmp_path / "d.txt"), "ndcg@2[trec;ties=file]").mean
    assert list(wanted.values()) != list(by_file.values())
    (tmp_path / "worse").write_text("0\n1\n" * 3)
    for name in ("d.txt", "d.csv", "d.parquet", "d.feather"):
        code, out, err = mcrank_cli("evaluate", name, "scores", "-m", "ndcg@2[trec]", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["mean"] == wanted
        out = mcrank_cli("rosetta", name, "scores", "-m", "ndcg@2", "--json")[1]
        assert json.loads(out)["dialects"]["trec"]["value"] == wanted["ndcg@2[trec]"]
        out = mcrank_cli("significance", name, "scores", "worse", "-m", "ndcg@2[trec]", "--json")[1]
        assert json.loads(out)["systems"]["scores"]["mean"] == wanted["ndcg@2[trec]"]
        if name == "d.csv":
            continue
        plan, data = mcrank.scan(tmp_path / name), mcrank.read(tmp_path / name)
        model = mcrank.BestFeature().fit(data)
        for scores in ([1.0] * 6, model):
            in_batches = mcrank.evaluate(scores, plan, "ndcg@2[trec]").mean
            assert in_batches == mcrank.evaluate(scores, data, "ndcg@2[trec]").mean


def test_rosetta_takes_a_document_that_stands_twice_and_says_so(mcrank_cli, files):
    (files / "twice.txt").write_text("1 qid:1 1:1 # same\n0 qid:1 1:2 # same\n")
    (files / "scores").write_text("1\n2\n")
    code, out, err = mcrank_cli("rosetta", "twice.txt", "scores", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["dialects"]
    assert "a document that stands twice in a query, taken as two here" in found["trec;ids=any"]["reason"]
    assert found["trec;ids=any"]["value"] == found["standard"]["value"]
    code, _, err = mcrank_cli("evaluate", "twice.txt", "scores", "-m", "ndcg@10[trec]")
    assert code == 3
    assert "document 'same' stands twice in one query" in err


def test_grades_are_all_that_is_looked_at_in_a_table_of_text(mcrank_cli, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "d.csv").write_text(",query_id,label,price,note\n0,1,2,cheap,3\n1,1,0,7,none\n")
    (tmp_path / "scores").write_text("1\n2\n")
    code, out, err = mcrank_cli("evaluate", str(tmp_path / "d.csv"), str(tmp_path / "scores"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["mean"]["ndcg@10"] == pytest.approx(0.6309, abs=1e-4)
