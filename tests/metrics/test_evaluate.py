"""`evaluate`, `rosetta` and odd input."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.data.scores import read_scores
from mcrank.errors import DataError, MeasureError, OptionError
from tests.metrics import goldens

QUIRKS = {case["name"]: case for case in goldens.load("quirks")["cases"]}
BUILT_IN = (
    "standard", "letor3", "letor4", "mslr", "letor-paper", "yahoo", "yahoo2010", "ranklib", "trec", "trec10",
    "gdeval", "lightgbm", "xgboost", "catboost", "sklearn", "ranx", "rankeval", "allrank", "torchmetrics",
)  # fmt: skip
PERL = {"letor30": "letor3", "letor40": "letor4", "mslr": "mslr"}


def files(case, folder, ids=True):
    """A quirk as the files it was: features and predictions."""
    end = "\r\n" if case["options"].get("crlf") else "\n"
    lines = [
        f"{r['label']} qid:{r['qid']} 1:0.5" + (f" #docid = {r['docid']}" if ids else "")
        for r in case["rows"]
    ]
    scores = [r["score"] for r in case["rows"]]
    (folder / "f").write_bytes(end.join([*lines, ""]).encode())
    (folder / "p").write_text("\n".join(scores[: len(scores) - case["options"].get("pcut", 0)]) + "\n")
    data = mcrank.read(folder / "f")
    return data, read_scores(folder / "p", data.n_rows)


def perl_tables(text):
    """What LETOR 4.0 and MSLR printed: {query: {measure: value}}."""
    tables, header = {}, []
    for line in text.splitlines():
        words = line.split("\t")
        if words[0] == "qid":
            header = words[1:]
        elif line:
            tables.setdefault(words[0], {}).update(zip(header, words[1:], strict=True))
    return tables


@pytest.mark.parametrize(
    ("name", "tool"),
    # LETOR 4.0 itself stops at CRLF line ends, so only the MSLR script says what they hold.
    [
        *((n, t) for n in ("qid_blocks_split", "text_qids") for t in ("letor40", "mslr")),
        ("crlf_features", "mslr"),
    ],
)
def test_odd_files_give_what_the_perl_tools_printed(name, tool, tmp_path):
    output = QUIRKS[name]["output"][tool]
    data, scores = files(QUIRKS[name], tmp_path)
    for query, printed in perl_tables(output["output_text"]).items():
        for measure, text in printed.items():
            ours = mcrank.parse_measure(goldens._perl(PERL[tool], measure))
            result = mcrank.evaluate(scores, data, ours)
            by_query = {str(q): v for q, v in result.by_query(ours).items()}
            value = result.mean[ours.name] if query == "Average" else by_query[query]
            assert abs(float(text) - value) <= 5.1e-5, (query, measure)


def test_letor_3_prints_split_blocks_merged(tmp_path):
    data, scores = files(QUIRKS["qid_blocks_split"], tmp_path)
    text = QUIRKS["qid_blocks_split"]["output"]["letor30"]["output_text"]
    rows = {line.split(":\t")[0]: line.split(":\t")[1].split() for line in text.splitlines() if ":\t" in line}
    for k, (first, second, mean) in enumerate(
        zip(rows["NDCG of query0"], [*rows["NDCG of query1"], None, None], rows["NDCG"], strict=True), start=1
    ):
        result = mcrank.evaluate(scores, data, f"ndcg@{k}[letor3]")
        values = result.per_query[f"ndcg@{k}[letor3]"]
        assert values[0] == pytest.approx(float(first), abs=1e-9)
        assert np.isnan(values[1]) if second is None else values[1] == pytest.approx(float(second), abs=1e-9)
        assert result.mean[f"ndcg@{k}[letor3]"] == pytest.approx(float(mean), abs=1e-9)


def test_ndcg_never_passes_1_where_ranklib_does(tmp_path):
    data, scores = files(QUIRKS["qid_blocks_split"], tmp_path)
    assert (mcrank.evaluate(scores, data, "ndcg@10[ranklib]").per_query["ndcg@10[ranklib]"] <= 1).all()


def test_ranklib_reads_labels_with_a_point_and_text_ids(tmp_path):
    for name, mean in (("label_text_2.0", 1.0), ("text_qids", 0.8154648767857287)):
        data, scores = files(QUIRKS[name], tmp_path)
        assert mcrank.evaluate(scores, data, "ndcg@10[ranklib]").mean["ndcg@10[ranklib]"] == pytest.approx(
            mean
        )


def test_missing_and_nan_predictions_name_their_line(tmp_path):
    with pytest.raises(DataError, match=r"p has 1 scores for 2 rows: line 2 is missing"):
        files(QUIRKS["too_few_predictions"], tmp_path)
    with pytest.raises(DataError, match=r"p, line 1: the score is NaN"):
        files(QUIRKS["nan_prediction"], tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nabc\n", r"line 2: must be one number, got 'abc'"),
        ("1 2\n3\n", r"line 1: must be one number, got '1 2'"),
        ("1\n\n3\n", r"line 2: must be one number, got ''"),
        ("1\n2\n3\n", r"3 scores for 2 rows: line 3 is one too many"),
        ("1_0\n2\n", r"line 1: must be one number, got '1_0'"),
        ("", r"0 scores for 2 rows: line 1 is missing"),
    ],
)
def test_bad_score_files(text, message, tmp_path):
    (tmp_path / "scores").write_text(text)
    with pytest.raises(DataError, match=message):
        read_scores(tmp_path / "scores", 2)


def test_score_files_may_be_written_in_many_ways(tmp_path):
    (tmp_path / "scores").write_bytes(b"\xef\xbb\xbf1e-05\r\n+3.2E+2\r\n .5 \r\n-inf\r\n\r\n")
    assert read_scores(tmp_path / "scores").tolist() == [1e-05, 320.0, 0.5, -np.inf]
    (tmp_path / "scores").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        read_scores(tmp_path / "scores")


def mixed6():
    return goldens.dataset(goldens.cases()["mixed6"])


def test_counts_explain_the_number():
    data, scores = mixed6()
    counts = mcrank.evaluate(scores, data, ["ndcg@10", "ndcg@3", "map"]).counts
    sizes = np.diff(data.offsets)
    assert counts["queries"] == 6
    assert counts["rows"] == sizes.sum()
    assert counts["empty"] == 2
    assert counts["shorter than 10"] == (sizes < 10).sum()
    tied = [
        n > 3 and np.sort(part)[::-1][2] == np.sort(part)[::-1][3]
        for n, part in zip(sizes, np.split(scores, data.offsets[1:-1]), strict=True)
    ]
    assert counts["tied at 3"] == sum(tied)


def test_scores_come_in_the_callers_order():
    y, qid, scores = np.array([0, 1, 2, 0]), np.array(["b", "a", "b", "a"]), np.array([0.1, 0.2, 0.3, 0.4])
    split = mcrank.evaluate(scores, mcrank.Dataset(np.zeros((4, 1)), y, qid), "ndcg")
    together = mcrank.evaluate(
        scores[[0, 2, 1, 3]], mcrank.Grades(y[[0, 2, 1, 3]], qid[[0, 2, 1, 3]]), "ndcg"
    )
    assert split.qids.tolist() == together.qids.tolist() == ["b", "a"]
    assert split.per_query["ndcg"].tolist() == together.per_query["ndcg"].tolist()


def test_bands_hold_every_tie_rule():
    data, scores = mixed6()
    names = ["ndcg@10", "map", "mrr", "err@5", "precision@3", "ndcg@3[catboost]"]
    result = mcrank.evaluate(scores, data, names, band=True)
    for name in names:
        worst, best = result.band[name]
        assert worst <= result.mean[name] <= best
    worst, best = result.band["ndcg@3[catboost]"]
    assert result.mean["ndcg@3[catboost]"] == worst


def test_one_call_is_many_calls():
    data, scores = mixed6()
    names = [
        f"{label}[{d}]"
        for label in ("ndcg@5", "map", "mrr")
        for d in ("standard", "trec", "sklearn;single=score", "catboost")
    ]
    together = mcrank.evaluate(scores, data, names)
    for name in together.mean:
        assert (
            together.per_query[name].tolist() == mcrank.evaluate(scores, data, name).per_query[name].tolist()
        )


def test_grades_alone_and_no_measures_are_refused():
    for data in ([1, 0], np.array([1, 0]), None):
        for ask in (mcrank.evaluate, mcrank.rosetta):
            with pytest.raises(DataError, match=r"data must have grades by query.*mcrank.Grades\(y, qid\)"):
                ask([0.5, 0.1], data)
    for measures in (None, 10):
        with pytest.raises(MeasureError, match="measures of evaluate must be names such as 'ndcg@10', got"):
            mcrank.evaluate([0.5, 0.1], mcrank.Grades([1, 0], [1, 1]), measures)


def test_bad_questions():
    data = mcrank.Grades([0, 1], qid=[1, 1])
    with pytest.raises(MeasureError, match="is empty"):
        mcrank.evaluate([1, 2], data, [])
    with pytest.raises(MeasureError, match="was not evaluated"):
        mcrank.evaluate([1, 2], data, "ndcg").by_query("map")
    with pytest.raises(OptionError, match="n_jobs"):
        mcrank.evaluate([1, 2], data, "ndcg", n_jobs=0)
    with pytest.raises(MeasureError, match=r"query 1 has one document.*single=skip"):
        mcrank.evaluate([1], mcrank.Grades([1], qid=[1]), "ndcg[sklearn]")


def test_printed_result_has_every_part():
    text = str(mcrank.evaluate([1, 2], mcrank.Grades([0, 1], qid=[1, 1]), ["ndcg@10[yahoo]"], band=True))
    for part in (
        "ndcg@10[yahoo]",
        "1.0000",
        "empty query scores 1",
        "1/ln(1 + rank)",
        "1 queries",
        "0 tied at 10",
    ):
        assert part in text


def test_rosetta_tells_every_dialects_number_and_why():
    data, scores = mixed6()
    table = mcrank.rosetta(scores, data, "ndcg@10")
    for reading in table.readings:
        name = mcrank.NDCG(k=10, dialect=reading.dialect).name
        assert reading.value == mcrank.evaluate(scores, data, name).mean[name]
        moved = sum(move for _, move in reading.steps)
        assert table["standard"].value + moved == pytest.approx(reading.value, abs=1e-12)
    assert set(BUILT_IN) <= {reading.dialect for reading in table.readings}
    assert "an empty query scores 1" in table["yahoo"].reason
    assert "a query shorter than k scores 0" in table["letor4"].reason
    assert "ties by document id, descending" in table["trec"].reason
    assert str(table).count("\n") == len(table.readings)


def test_rosetta_names_who_prints_a_number():
    data, scores = mixed6()
    table = mcrank.rosetta(scores, data, "ndcg@10")
    found = table.matches(f"{table['letor4'].value:.4f}")
    assert {"letor3", "letor4", "mslr"} <= set(found)
    assert "standard" not in found
    assert table.matches("0.123456") == []
    asked = mcrank.rosetta(scores, data, "ndcg@10", value=f"{table['letor4'].value:.4f}")
    assert asked.printed_by == found
    assert "is printed by: letor3" in str(asked)
    assert "xgboost;empty=0" in table.matches(f"{table['ranklib'].value:.6f}")


def test_masked_complex_and_timed_values_are_refused():
    y, qid, scores = np.array([0.0, 1.0, 2.0]), [1, 1, 1], np.array([1.0, 2.0, 3.0])
    data = mcrank.Grades(y, qid)
    with pytest.raises(DataError, match="scores is masked at row 1"):
        mcrank.evaluate(np.ma.array(scores, mask=[0, 1, 0]), data, "ndcg")
    with pytest.raises(DataError, match="scores is masked at row 0"):
        mcrank.NDCG().on(data).mean(np.ma.masked_all(3))
    with pytest.raises(DataError, match="y of Grades is masked at row 2"):
        mcrank.Grades(np.ma.array(y, mask=[0, 0, 1]), qid)
    with pytest.raises(DataError, match="y of Dataset is masked at row 2"):
        mcrank.Dataset(np.zeros((3, 1)), np.ma.array(y, mask=[0, 0, 1]), qid)
    with pytest.raises(DataError, match=r"X .*is masked at row 1"):
        mcrank.Dataset(np.ma.array(np.zeros((3, 1)), mask=[[0], [1], [0]]), y, qid)
    with pytest.raises(DataError, match="qid of Grades is masked at row 0"):
        mcrank.Grades(y, np.ma.array(qid, mask=[1, 0, 0]))
    with pytest.raises(DataError, match="query_weight of Dataset is masked at row 0"):
        mcrank.Grades(y, qid, query_weight=np.ma.array([1.0], mask=[1]))
    with pytest.raises(DataError, match="scores must be real numbers, got complex128"):
        mcrank.evaluate(scores + 1j, data, "ndcg")
    with pytest.raises(DataError, match=r"scores must be real numbers, got datetime64\[D\]"):
        mcrank.evaluate(scores.astype("M8[D]"), data, "ndcg")
    with pytest.raises(DataError, match=r"y of Grades has -1\.0 at row 1"):
        mcrank.Grades([0, -1], [1, 1])
    with pytest.raises(DataError, match="y of Grades must be real numbers, got complex64"):
        mcrank.Grades(y.astype(np.complex64), qid)
    for ragged in ([[1.0], [1.0, 2.0], [3.0]], [1.0, [2.0], 3.0]):
        with pytest.raises(DataError, match="scores must be numbers"):
            mcrank.evaluate(ragged, data, "ndcg")
        with pytest.raises(DataError, match="y of Grades must be numbers"):
            mcrank.Grades(ragged, qid)
    plain = mcrank.evaluate(np.ma.array(scores), mcrank.Grades(np.ma.array(y), np.ma.array(qid)), "ndcg")
    assert dict(plain.mean) == {"ndcg": 1.0}


def test_half_a_surrogate_pair_is_an_id_like_another():
    data = mcrank.Grades([1, 0], qid=[1, 1], doc_ids=["a", "\udcff"])
    assert mcrank.evaluate([1, 1], data, "mrr[trec]").mean["mrr[trec]"] == 0.5  # descending: "a" comes last


@pytest.mark.parametrize(
    "value", ["high", "nan", "inf", "-inf", "1e400", "1_0", "１", "0x1", "", "1e", ".", float("nan"), True]
)
def test_rosetta_refuses_what_nobody_prints(value):
    data, scores = mixed6()
    with pytest.raises(OptionError, match="must be a finite number"):
        mcrank.rosetta(scores, data, "ndcg@10", value=value)


def test_rosetta_takes_any_way_to_write_a_number():
    data, scores = mixed6()
    table = mcrank.rosetta(scores, data, "ndcg@10")
    for value in (
        "0.5289",
        ".5289",
        "+0.5289",
        "5.289e-1",
        "5289E-4",
        np.float64(0.5289),
        np.float32(0.5289),
    ):
        assert table.matches(value) == table.matches("0.5289")
    assert "ranklib" in table.matches("0.5289")
    assert table.matches("1e300") == table.matches("1e-400") == []
    assert table.matches("0e400") == table.matches("0e300")


def test_rosetta_shows_what_a_refusing_dialect_would_print():
    table = mcrank.rosetta([3, 2, 1, 5], mcrank.Grades([4, 0, 1, 2], qid=[1, 1, 1, 2]), "ndcg@2")
    assert table["letor4;outside=zero"].reason.startswith("grades beyond its table gain 0")
    assert table["sklearn;single=skip"].reason.startswith("the tool refuses one-document queries")
    assert "gain 0/1/3 by grade" in table["letor4;outside=zero"].reason
    tied = mcrank.rosetta([1, 1], mcrank.Grades([0, 1], qid=[1, 1]), "ndcg@2")
    assert tied["trec;ties=file"].reason.startswith("the tool goes by document ids")
    refused = mcrank.rosetta([2, 1], mcrank.Grades([0.5, 0], qid=[1, 1]), "ndcg@2")["lightgbm"]
    assert refused.value is None
    assert "integer grades only" in refused.reason


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dialect", ["standard", "letor3", "lightgbm", "catboost", "trec10", "torchmetrics"])
@pytest.mark.parametrize("name", ["ndcg@3", "map"])
def test_mean_of_some_queries_is_that_of_their_own_data(name, dialect, weighted):
    stream = np.random.default_rng(5)
    sizes = stream.integers(2, 6, size=40)
    grades = stream.choice(3, p=[0.7, 0.2, 0.1], size=sizes.sum())
    data = mcrank.Dataset(
        np.zeros((len(grades), 1)),
        y=grades,
        qid=np.repeat(np.arange(40), sizes),
        query_weight=stream.uniform(0.1, 9.0, size=40) if weighted else None,
        doc_ids=[f"d{row}" for row in range(len(grades))],
    )
    scores = stream.normal(size=len(grades))
    measure = mcrank.parse_measure(f"{name}[{dialect}]")
    prepared = measure.on(data)
    values = prepared.per_query(scores)
    for queries in (np.arange(40) % 3 == 1, np.arange(40) == 7, np.arange(40) < 20):
        alone = data.select(np.flatnonzero(queries))
        mean = measure.on(alone).mean(scores[np.repeat(queries, sizes)])
        assert repr(prepared.mean_of(values, queries)) == repr(mean)  # NaN where no query counts


def test_grades_are_not_the_callers_array():
    y = np.array([0.0, 1.0, 2.0, 0.5])
    for grades in (y, y[:3]):
        ours = mcrank.Grades(grades, np.zeros(len(grades), dtype=np.int64))
        before = ours.y.copy()
        grades += 1.0
        assert np.array_equal(ours.y, before)
