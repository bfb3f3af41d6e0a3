"""Files as they come: compressed, with marks and odd line ends, and errors that name the right line."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.data.scores import read_scores
from mcrank.errors import DataError, MeasureError, OptionError

LETOR = "2 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:0.5\n0 qid:2 1:0.1\n"
SCORES = "1\n2\n2\n1\n"
QRELS = "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\nq2 0 c 0\n"
RUN = "q1 Q0 b 1 3 r\nq1 Q0 a 2 2 r\nq2 Q0 a 1 5 r\nq2 Q0 u 2 4 r\n"
NDCG = (1 / 1.584962500721156 + 1) / 2  # the one relevant document at rank 2, then at rank 1

FORMS = {
    "plain": str.encode,
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "bzip2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
}


def evaluated(capsys, folder, *arguments):
    code = main(["evaluate", str(folder / "data"), str(folder / "scores"), *arguments, "--json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out)["mean"] if code == 0 else {}, printed.err


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("data", "scores"), [(LETOR, SCORES), (QRELS, RUN)])
def test_every_form_of_a_file_gives_the_same_number(form, data, scores, tmp_path, capsys):
    (tmp_path / "data").write_bytes(FORMS[form](data))
    (tmp_path / "scores").write_bytes(FORMS[form](scores))
    code, mean, _ = evaluated(capsys, tmp_path, "-m", "ndcg@10[standard;gain=linear]")
    assert code == 0
    assert list(mean.values()) == [pytest.approx(NDCG, abs=1e-12)]


def test_a_mark_before_a_comment_does_not_hide_that_a_file_is_qrels(tmp_path, capsys):
    (tmp_path / "data").write_text("\ufeff# made by hand\n" + QRELS)
    (tmp_path / "scores").write_text("\ufeff# a run\n" + RUN)
    assert evaluated(capsys, tmp_path, "-m", "mrr")[1] == {"mrr": 0.75}


@pytest.mark.parametrize("form", ["plain", "CRLF", "gzip"])
def test_a_grade_of_qrels_is_named_by_its_own_line(form, tmp_path, capsys):
    # Blocks are split, the run has its own order and an unjudged document: rows do not follow the lines.
    qrels = "# judgments\nq1 0 a 2\n\nq2 0 c 0\nq1 0 b 0\nq2 0 a 7\n"
    (tmp_path / "data").write_bytes(FORMS[form](qrels))
    (tmp_path / "scores").write_text("q2 Q0 u 1 9 r\nq2 Q0 a 2 8 r\nq1 Q0 a 1 7 r\n")
    code, _, err = evaluated(capsys, tmp_path, "-m", "ndcg@10[gdeval]")
    assert code == 3
    assert "cannot take grade 7 at row 3 (query q2)" in err
    assert f"(line 6 of {tmp_path / 'data'})" in err


def test_a_grade_of_compressed_letor_text_is_named_by_its_line(tmp_path, capsys):
    (tmp_path / "data").write_bytes(gzip.compress(b"# c\n" + LETOR.replace("1 qid:2", "9 qid:2").encode()))
    (tmp_path / "scores").write_text(SCORES)
    code, _, err = evaluated(capsys, tmp_path, "-m", "ndcg[mslr]")
    assert code == 3
    assert f"(line 4 of {tmp_path / 'data'})" in err


def test_rows_of_a_table_are_not_taken_for_lines(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    table, scores = tmp_path / "data.csv", tmp_path / "scores"
    table.write_text("qid,label,f\n1,2,0\n1,9,0\n")
    scores.write_text("1\n2\n")
    assert main(["evaluate", str(table), str(scores), "-m", "ndcg[mslr]"]) == 3
    err = capsys.readouterr().err
    assert "at row 1 (query 1)" in err
    assert "(line" not in err


def test_a_table_of_four_columns_is_no_qrels_and_qrels_may_be_named_tsv(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    (tmp_path / "scores").write_text("2\n1\n")
    (tmp_path / "table.tsv").write_text("qid\tdoc_id\tlabel\tf\n1\ta\t0\t0.5\n1\tb\t1\t0.5\n")
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "qrels.tsv").write_text(QRELS.replace(" ", "\t"))
    for data, scores, mean in (("table.tsv", "scores", 0.5), ("qrels.tsv", "run", 0.75)):
        arguments = ["evaluate", str(tmp_path / data), str(tmp_path / scores), "-m", "mrr", "--json"]
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["mean"] == {"mrr": mean}


def test_rows_of_qrels_made_in_python_are_the_callers():
    qrels = mcrank.Qrels(["b", "a", "b"], ["x", "x", "y"], [0, 1, 9])
    run = mcrank.Run(["b", "b", "a"], ["y", "z", "x"], [3, 2, 1])
    with pytest.raises(MeasureError, match=r"grade 9 at row 2 \(query b\)"):
        mcrank.evaluate(run, qrels, "ndcg[mslr]")


def test_ids_end_at_blanks_of_ascii_only(tmp_path):
    (tmp_path / "run").write_text("q Q0 a\u00a0b\u3000c 1 0.5 r\n")
    assert mcrank.Run.read(tmp_path / "run").queries == {"q": {"a\u00a0b\u3000c": 0.5}}


@pytest.mark.parametrize("read", [mcrank.Run.read, mcrank.Qrels.read, read_scores])
def test_files_that_cannot_be_read(read, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"# 1\n\n\xe9 1\n" if read is not read_scores else b"1\n2\n\xe9\n")
    with pytest.raises(DataError, match=r"file, line 3 cannot be read: the text is not UTF-8"):
        read(path)
    path.write_bytes(gzip.compress(b"# 1\n")[:-9])
    with pytest.raises(DataError, match=r"file is damaged or cut off"):
        read(path)
    with pytest.raises(DataError, match=r"cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("grade", ["inf", "1e400", "-inf"])
def test_a_grade_is_finite(grade, tmp_path):
    (tmp_path / "qrels").write_text(f"q 0 a 1\nq 0 b {grade}\n")
    with pytest.raises(DataError, match=r"qrels, line 2: grade of document 'b' must be finite"):
        mcrank.Qrels.read(tmp_path / "qrels")


def test_a_seed_is_not_negative(tmp_path, capsys):
    for name, scores in (("a", SCORES), ("b", "2\n1\n1\n2\n")):
        (tmp_path / name).write_text(scores)
    (tmp_path / "data").write_text(LETOR)
    paths = [str(tmp_path / name) for name in ("data", "a", "b")]
    assert main(["significance", *paths, "--seed", "-1"]) == 2
    assert "seed must be an integer >= 0, got -1" in capsys.readouterr().err
    with pytest.raises(OptionError, match="seed must be"):
        mcrank.stats.tukey({"a": {1: 0.5, 2: 0.1}, "b": {1: 0.2, 2: 0.4}}, seed=-1)


@pytest.mark.parametrize("measure", ["ndcg@3[letor3]", "precision@3[letor3]"])
def test_significance_compares_the_means_that_evaluate_prints(measure, tmp_path, capsys):
    (tmp_path / "data").write_text("1 qid:1 1:0\n0 qid:1 1:0\n0 qid:2 1:0\n1 qid:2 1:0\n2 qid:2 1:0\n")
    (tmp_path / "scores").write_text("2\n1\n3\n2\n1\n")
    (tmp_path / "other").write_text("2\n1\n1\n2\n3\n")
    _, mean, _ = evaluated(capsys, tmp_path, "-m", measure)
    paths = [str(tmp_path / name) for name in ("data", "scores", "other")]
    assert main(["significance", *paths, "-m", measure, "--rounds", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["queries"] == 2  # the short query is one of them
    assert found["systems"]["scores"]["mean"] == pytest.approx(mean[measure])
