"""Every figure the doctor states, against one computed apart: by plain loops, NumPy, SciPy, `evaluate`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import mcrank
from mcrank.cli.main import group
from mcrank.doctor.feature_checks import feature_values
from tests.reference.doctor import naive_feature_ndcg, naive_figures, naive_shared, naive_summary

# Beside the repository, or named; the figures of real data are checked where there is some.
MQ2008 = next(
    (
        folder / "MQ2008"
        for parent in Path(__file__).resolve().parents
        if (folder := parent / "shared" / "data").is_dir()
    ),
    None,
)


@st.composite
def tables(draw, widths=(1, 4)):
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 9, 10, 11]), min_size=1, max_size=5))
    rows, width = sum(sizes), draw(st.integers(*widths))
    values = st.sampled_from([0.0, 1.0, 2.0, float("nan")])
    X = draw(st.lists(st.lists(values, min_size=width, max_size=width), min_size=rows, max_size=rows))
    y = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=rows, max_size=rows))
    qid = [number for number, size in enumerate(sizes) for _ in range(size)]
    order = draw(st.permutations(range(rows))) if draw(st.booleans()) else range(rows)
    return X, y, [qid[i] for i in order]


def stated(diagnosis):
    """The figure in the words of a finding, and the one in its values: they must be one."""
    out = {}
    for finding in diagnosis.findings:
        if "count" not in finding.values:
            continue
        count, of, share = re.match(r"([\d,]+) of ([\d,]+) \w+ \(([<>\d.]+)%\)", finding.found).groups()
        assert int(count.replace(",", "")) == finding.values["count"]
        exact = 100 * finding.values["count"] / int(of.replace(",", ""))
        told = float(share.strip("<>"))
        assert exact < told if "<" in share else exact > told if ">" in share else abs(exact - told) <= 0.0501
        out[finding.check] = finding.values["count"]
    return out


@settings(deadline=None, max_examples=150)
@given(tables())
def test_counts_are_what_the_words_say(table):
    X, y, qid = table
    diagnosis = mcrank.diagnose(mcrank.Dataset(X, y, qid), n_jobs=1)
    expected = naive_figures(X, y, qid)
    by_check = {finding.check: finding.values for finding in diagnosis.findings}
    told = stated(diagnosis)
    for check in (
        "empty-queries",
        "one-row-queries",
        "short-queries",
        "single-grade-queries",
        "large-queries",
    ):
        assert told.get(check, 0) == expected[check], check
    assert told.get("duplicate-rows", 0) == expected["duplicate-rows"]
    torn = expected["contradicting-rows"]
    assert told.get("contradicting-rows", 0) == len(torn)
    assert by_check.get("contradicting-rows", {"rows": []})["rows"] == torn[:20]
    if len(expected["constant-features"]) < len(X[0]):
        constant = [f"f{j + 1}" for j in expected["constant-features"]]
        assert by_check.get("constant-features", {"features": []})["features"] == constant
        missing = {f"f{j + 1}": share for j, share in expected["missing-values"].items()}
        assert by_check.get("missing-values", {"features": {}})["features"] == pytest.approx(missing)
    (summary,) = diagnosis.to_dict()["summaries"].values()
    for name, value in naive_summary(X, y, qid).items():
        if name == "grade_rows":
            value = {f"{grade:g}": count for grade, count in value.items()}
        assert summary[name] == (pytest.approx(value) if name == "rows_per_query" else value), name
    assert sum(summary["grade_shares"].values()) == pytest.approx(1)


@settings(deadline=None, max_examples=60)
@given(tables((2, 2)))
def test_single_features_are_measured_as_evaluate_measures(table):
    X, y, qid = table
    data = mcrank.Dataset(X, y, qid)
    several = [
        q for q in range(data.n_queries) if len(set(data.y[data.offsets[q] : data.offsets[q + 1]])) > 1
    ]
    if not several:
        return
    asked = data.select(several)
    values = feature_values(asked)
    for falling in (0, 1):
        for j in range(2):
            assert values[falling, j] == pytest.approx(naive_feature_ndcg(X, y, qid, j, falling))
            column = asked.X[:, j].astype(float) * (-1 if falling else 1)
            scores = np.where(np.isnan(column), -np.inf, column)
            name = "ndcg@10[standard;ties=worst]"
            assert values[falling, j] == mcrank.evaluate(scores, asked, name).mean[name]
    telling = [f for f in mcrank.diagnose(data).findings if f.check == "telling-feature"]
    assert bool(telling) == (values.max() >= 0.95)
    for finding in telling:
        best = int(np.argmax(values.max(axis=0)))
        assert finding.found.startswith(f"f{best + 1} alone ranks with NDCG@10 {values.max():.3f}")
        assert f"over the {len(several)} queries" in finding.found
        assert finding.values["queries"] == len(several)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(tables((3, 3)), tables((3, 3)), st.integers(0, 8))
def test_figures_between_splits(first, second, shift):
    (X_a, y_a, qid_a), (X_b, y_b, qid_b) = first, second
    qid_b = [q + shift for q in qid_b]
    a, b = mcrank.Dataset(X_a, y_a, qid_a), mcrank.Dataset(X_b, y_b, qid_b)
    pair = {f.check: f.values for f in mcrank.diagnose(a, b).findings if f.where == "data 1 / data 2"}
    common, inside, elsewhere = naive_shared(X_a, X_b, qid_a, qid_b)
    told = pair.get("leakage", pair.get("same-query-ids", {"queries": 0, "rows": 0}))
    assert (told["queries"], told["rows"]) == (common, inside)
    assert pair.get("shared-rows", {"rows": 0})["rows"] == elsewhere
    grades = np.unique([*y_a, *y_b])
    moved = sum(abs(np.mean(np.array(y_a) == g) - np.mean(np.array(y_b) == g)) for g in grades) / 2
    if abs(moved - 0.1) > 1e-9:
        assert pair.get("grade-drift", {"total_variation": None})["total_variation"] == (
            pytest.approx(moved) if moved > 0.1 else None
        )


def test_drift_as_scipy_has_it():
    stream = np.random.default_rng(0)
    X = [stream.normal(size=(60_000, 3)), stream.normal([0.0, 1.0, 0.3], size=(120_000, 3))]
    a, b = (mcrank.Dataset(x, np.arange(len(x)) % 3, np.arange(len(x)) // 20) for x in X)
    (drift,) = [f for f in mcrank.diagnose(a, b, names=["a", "b"]).findings if f.check == "feature-drift"]
    # Every second row of the longer one: the words say how many the figure rests on.
    gaps = {f"f{j + 1}": ks_2samp(a.X[:, j], b.X[::2, j]).statistic for j in range(3)}
    assert drift.values["features"] == pytest.approx({"f2": gaps["f2"]})
    assert drift.values["rows"] == [60_000, 60_000]
    assert "on 60,000 rows of the first and 60,000 of the second" in drift.found
    assert f"f2 {gaps['f2']:.2f}" in drift.found


def test_grades_that_differ_late():
    data = mcrank.Dataset([[1.0], [2.0], [3.0]], y=[1.0, 1.0000001, 0.0], qid=[1, 1, 1])
    (summary,) = mcrank.diagnose(data).summaries.values()
    assert summary["grade_rows"] == {"0": 1, "1": 1, "1.0000001": 1}


def test_what_is_rare_is_not_nothing():
    y = np.zeros(6000)
    y[::2] = 1
    y[7] = 2
    text = str(mcrank.diagnose(mcrank.Dataset(np.arange(6000.0)[:, None], y, np.arange(6000) // 12)))
    assert "2: <0.1%" in text
    assert "missing values  0.00%" in text


@pytest.mark.skipif(MQ2008 is None, reason="MQ2008 is not here")
@pytest.mark.parametrize("fold", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_real_data(fold, tmp_path):
    paths = [str(MQ2008 / f"Fold{fold}" / f"{part}.txt") for part in ("train", "test")]
    result = CliRunner().invoke(group, ["doctor", "--json", *paths])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    for path in paths:
        data = mcrank.read(path)
        counts = mcrank.evaluate(np.zeros(data.n_rows), data, "ndcg@10").counts
        of = {f["check"]: f["values"] for f in told["findings"] if f["where"] == path}
        assert of["short-queries"]["count"] == counts["shorter than 10"] == (data.sizes < 10).sum()
        assert of["empty-queries"]["count"] == counts["empty"]
        assert told["summaries"][path]["queries"] == counts["queries"]
        lines = [line for line in Path(path).read_text().splitlines() if line]
        X = [[float(word.partition(":")[2]) for word in line.split("#")[0].split()[2:]] for line in lines]
        y, qid = [float(line.split()[0]) for line in lines], [line.split()[1] for line in lines]
        expected = naive_figures(X, y, qid)
        for check, value in expected.items():
            if isinstance(value, int):
                assert of.get(check, {"count": 0})["count"] == value, check
        # The file's numbers have more digits than float32; none of these rows differ in those alone.
        torn = len(expected["contradicting-rows"])
        assert of.get("contradicting-rows", {"count": 0})["count"] == torn


@pytest.mark.skipif(MQ2008 is None, reason="MQ2008 is not here")
def test_short_queries_of_the_whole_of_mq2008():
    parts = [mcrank.read(MQ2008 / f"Fold{fold}" / "test.txt") for fold in range(1, 6)]
    data = mcrank.Dataset.merge(parts)
    (short,) = [f for f in mcrank.diagnose(data, n_jobs=1).findings if f.check == "short-queries"]
    assert short.found.startswith("403 of 784 queries (51.4%) have fewer than 10 rows")
