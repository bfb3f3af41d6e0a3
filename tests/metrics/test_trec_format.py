"""TREC judgments and runs: missing documents and queries, ties, bad lines, and what -c and -J do."""

from __future__ import annotations

import lzma

import pytest

import mcrank
from mcrank.data import sources
from mcrank.errors import DataError, McrankError, MeasureError
from mcrank.metrics.trec_eval import ALL_TREC
from tests.metrics import goldens

CASES = {case["name"]: case for case in goldens.load("trec_format")["cases"]}
PRINTED = ["map", "recip_rank", "P_5", "ndcg", *(f"ndcg_cut_{k}" for k in (1, 2, 3, 5, 10))]
DIALECT = {"trec_eval_9.0.8": "trec", "trec_eval_10.0": "trec10"}


def files(case, folder):
    (folder / "qrels").write_text(case["qrels"])
    (folder / "run").write_text(case["run"])
    return mcrank.Run.read(folder / "run"), mcrank.Qrels.read(folder / "qrels")


def printed(stdout):
    """What trec_eval printed: {query or 'all': {measure: text}}."""
    table = {}
    for line in stdout.splitlines():
        name, query, value = line.split()
        table.setdefault(query, {})[name] = value
    return table


def measure_name(name, dialect):
    return mcrank.parse_measure(goldens._trec(dialect, name)).name


@pytest.mark.parametrize("flag", ["", " -c", " -J"])
@pytest.mark.parametrize("tool", DIALECT)
@pytest.mark.parametrize("name", CASES)
def test_trec_eval(name, tool, flag, tmp_path):
    case = CASES[name]
    output = case["output"][tool + flag]
    options = {"complete": flag == " -c", "judged_only": flag == " -J"}
    measures = {n: measure_name(n, DIALECT[tool]) for n in PRINTED}
    if output["exit_code"] != 0 and not (name == "comment_lines" and tool == "trec_eval_9.0.8"):
        with pytest.raises(McrankError):
            mcrank.evaluate(*files(case, tmp_path), list(measures.values()), **options)
        return
    result = mcrank.evaluate(*files(case, tmp_path), list(measures.values()), **options)
    table = printed(
        case["output"]["trec_eval_10.0" + flag]["stdout"] if output["exit_code"] else output["stdout"]
    )
    report = mcrank.trec_report(
        mcrank.Qrels.read(tmp_path / "qrels"), mcrank.Run.read(tmp_path / "run"), f"all[{DIALECT[tool]}]",
        per_query=True, **options,
    )  # fmt: skip
    if output["exit_code"] == 0:
        said = [line for line in output["stdout"].splitlines() if line.split()[0] in ALL_TREC]
        asked = {line.split()[0] for line in said}
        assert [line for line in report.splitlines() if line.split()[0] in asked] == said
    counted = sum(value == value for value in result.per_query[measures["ndcg"]])
    assert str(counted) == table["all"].pop("num_q")
    for query, values in table.items():
        for measure, text in values.items():
            ours = (
                result.mean[measures[measure]]
                if query == "all"
                else result.by_query(measures[measure])[query]
            )
            assert abs(float(text) - ours) <= 5.1e-5, (query, measure)


@pytest.mark.parametrize("name", CASES)
def test_the_python_tools(name, tmp_path):
    """pytrec_eval, ir_measures (with gdeval) and ranx, wherever they give numbers for one document once."""
    case, checked = CASES[name], 0
    if name in ("duplicate_doc_in_run", "five_column_run"):
        with pytest.raises(DataError, match=r"line \d"):
            files(case, tmp_path)
        return
    run, qrels = files(case, tmp_path)
    for tool, output in case["output"].items():
        if (
            tool.startswith("trec_eval")
            or isinstance(output, str)
            or (tool.startswith("ranx") and name == "tie_rank_column")
        ):
            continue
        per_query, means = output.get("per_query", {}), output.get("mean", {})
        if tool.startswith("pytrec"):
            per_query = output
        elif tool.startswith("ranx"):
            means = output
        for query, values in [*per_query.items(), (None, means)]:
            for measure, text in values.items():
                ours = mcrank.parse_measure(translate(tool, measure))
                result = mcrank.evaluate(run, qrels, ours)
                value = result.mean[ours.name] if query is None else result.by_query(ours)[query]
                assert abs(float(text) - value) <= (5.1e-6 if "gdeval" in tool else 1e-9), (
                    tool,
                    query,
                    measure,
                )
                checked += 1
    assert checked or name == "comment_lines"


def translate(tool, name):
    if tool.startswith("pytrec"):
        return goldens._trec("trec;unjudged=zero", name)
    if tool.startswith("ir_measures"):
        return goldens._ir_measures(name)
    return goldens._ranx(name).replace("ranx", "ranx;missing=zero")


def test_messages_name_file_line_and_cure(tmp_path):
    run = tmp_path / "run"
    run.write_text("1 Q0 a 1 2 r\n1 Q0 b 2 1\n")
    with pytest.raises(
        DataError, match=r"run, line 2: 5 columns, must be 6: query Q0 document rank score run"
    ):
        mcrank.Run.read(run)
    run.write_text("1 Q0 a 1 2 r\n\n1 Q0 a 2 1 r\n")
    with pytest.raises(DataError, match=r"run, line 3: document 'a' stands twice in query '1'"):
        mcrank.Run.read(run)
    run.write_text("1 Q0 a 1 nan r\n")
    with pytest.raises(DataError, match=r"run, line 1: score of document 'a' in query '1' is NaN"):
        mcrank.Run.read(run)
    run.write_text("1 Q0 a 1 high r\n")
    with pytest.raises(DataError, match=r"line 1: score must be a number, got 'high'"):
        mcrank.Run.read(run)
    run.write_text("")
    with pytest.raises(DataError, match="has no rows"):
        mcrank.Run.read(run)
    with pytest.raises(DataError, match="cannot be read"):
        mcrank.Run.read(tmp_path / "nowhere")


def test_a_missing_query_counts_0_unless_the_dialect_says_otherwise():
    qrels = mcrank.Qrels([1, 2], ["a", "a"], [1, 1])
    run = mcrank.Run([1, 3], ["a", "a"], [0.5, 0.5])
    result = mcrank.evaluate(run, qrels, ["mrr", "mrr[trec]"])
    assert dict(result.mean) == {"mrr": 0.5, "mrr[trec]": 1.0}
    assert result.counts["missing from the run"] == result.counts["only in the run"] == 1
    with pytest.raises(MeasureError, match=r"query 2 is judged but missing from the run.*missing=zero"):
        mcrank.evaluate(run, qrels, "mrr[trec10]")


def test_frames_give_qrels_and_runs():
    pandas = pytest.importorskip("pandas")
    qrels = pandas.DataFrame({"q": [7, 7], "d": ["x", "y"], "grade": [0, 2]})
    run = pandas.DataFrame({"q": ["7", "7"], "d": ["y", "x"], "score": [0.9, 0.1]})
    result = mcrank.evaluate(
        mcrank.Run(run["q"], run["d"], run["score"]),
        mcrank.Qrels(qrels["q"], qrels["d"], qrels["grade"]),
        "ndcg",
    )
    assert result.mean["ndcg"] == 1.0


def test_a_run_needs_qrels_and_qrels_a_run():
    qrels, run = mcrank.Qrels([1], ["a"], [1]), mcrank.Run([1], ["a"], [1.0])
    with pytest.raises(DataError, match="must be a Run"):
        mcrank.evaluate([1.0], qrels)
    with pytest.raises(DataError, match="must be Qrels"):
        mcrank.evaluate(run, mcrank.Grades([1], qid=[1]))


def test_a_compressed_file_that_asks_for_too_much_memory(tmp_path, monkeypatch):
    """A damaged xz header may ask for a dictionary of gigabytes; also on the second look, for the line."""
    path = tmp_path / "run.xz"
    path.write_bytes(lzma.compress(b"1 Q0 a 1 0.5 \xff\n"))

    def none_left(where, raw):
        raise MemoryError

    monkeypatch.setattr(sources, "_buffered", none_left)
    with pytest.raises(DataError, match=r"run\.xz cannot be read: it needs more memory than there is"):
        mcrank.Run.read(path)
    monkeypatch.undo()
    monkeypatch.setattr(sources, "_first_undecodable", lambda where: none_left(where, None))
    with pytest.raises(DataError, match="more memory than there is"):
        mcrank.Run.read(path)
