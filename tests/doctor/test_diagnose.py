"""The doctor: each ailment is found where it is, and not where it is not."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mcrank
from mcrank.doctor.feature_checks import feature_values
from mcrank.doctor.row_hash import duplicate_columns, first_equal_rows
from mcrank.doctor.split_checks import distribution_gap


def healthy(queries=30, rows=12, seed=0):
    stream = np.random.default_rng(seed)
    X = stream.normal(size=(queries * rows, 4))
    y = np.tile(np.arange(rows) % 3, queries)
    return X, y, np.repeat(np.arange(queries) + 1000 * seed, rows)


def checks(*parts, severity=None):
    data = [part if isinstance(part, mcrank.Dataset) else mcrank.Dataset(*part) for part in parts]
    return {f.check: f for f in mcrank.diagnose(*data).findings if severity in (None, f.severity)}


def test_healthy_data_has_nothing():
    assert checks(healthy(), healthy(seed=1)) == {}


def test_empty_short_single_and_flat_queries():
    X, y, qid = healthy()
    y[:12] = 0  # query 0
    y[12:24] = 2  # query 1
    keep = np.r_[0:29, 36:360]  # query 2 keeps 5 rows
    found = checks((X[keep], y[keep], qid[keep]))
    assert found["empty-queries"].values == {"count": 1, "share": 1 / 30, "examples": ["0"]}
    assert found["single-grade-queries"].values["examples"] == ["1"]
    assert found["short-queries"].values["examples"] == ["2"]


def test_one_row_queries():
    X, y, qid = healthy()
    qid[1] = 77
    found = checks((X, y, qid))
    assert found["one-row-queries"].values["examples"] == ["77"]
    assert "split-queries" in found


def test_grades():
    X, y, qid = healthy()
    assert checks((X, y * 0, qid), severity="broken").keys() == {"grades", "empty-queries"}
    assert checks((X, y * 0 + 1, qid), severity="broken").keys() == {"grades"}
    assert "LightGBM refuses" in checks((X, y / 2, qid))["grades"].meaning
    assert checks((X, y * 3, qid))["grades"].severity == "warning"
    assert checks((X, y * 600, qid))["grades"].severity == "broken"


def test_features():
    X, y, qid = healthy()
    X[:, 1] = 3
    X = np.c_[X, X[:, 2], qid, X[:, 3] * 1e9, np.full(len(X), np.nan), np.where(X[:, 0] > 0, np.nan, 1.0)]
    found = checks((X, y, qid))
    assert found["constant-features"].values["features"] == ["f2", "f8"]
    assert found["duplicate-features"].values["pairs"] == [("f3", "f5")]
    assert found["query-features"].values["features"] == ["f6"]
    assert list(found["missing-values"].values["features"]) == ["f8", "f9"]
    assert found["scales"].found.startswith("features differ widely in scale: f7 spans")
    assert checks((np.ones((24, 2)), y[:24], qid[:24]), severity="broken").keys() == {"constant-features"}


def test_codes_of_categories_have_no_scale():
    X, y, qid = healthy()
    table = {"wide": X[:, 0] * 1e7, "wider": X[:, 1] * 1e8, "brand": np.tile(["a", "b", "c", "d"], 90)}
    found = {f.check for f in mcrank.diagnose(mcrank.Dataset(table, y, qid)).findings}
    assert "scales" not in found
    table["narrow"] = X[:, 2] / 10
    found = {f.check: f.found for f in mcrank.diagnose(mcrank.Dataset(table, y, qid)).findings}
    assert re.search("wider spans .*, narrow ", found["scales"])


def test_rows():
    X, y, qid = healthy()
    X[3] = X[0]  # grades 0 and 0
    X[13] = X[12]  # grades 0 and 1
    X[24] = X[0]  # another query
    found = checks(mcrank.Dataset(X, y, qid, doc_ids=[f"d{i % 11}" for i in range(len(y))]))
    assert found["duplicate-rows"].values["count"] == 2
    assert found["contradicting-rows"].values == {"count": 2, "rows": [12, 13]}
    assert found["repeated-documents"].values["count"] == 30


def test_a_telling_feature():
    X, y, qid = healthy()
    X[:, 2] = -y + np.random.default_rng(1).normal(0, 0.05, len(y))
    found = checks((X, y, qid))["telling-feature"]
    assert next(iter(found.values["ndcg"])) == "f3"
    assert found.values["ndcg"]["f3"] > 0.95


def test_leakage_between_splits():
    a, b = healthy(), healthy(seed=1)
    same_ids = (b[0], b[1], a[2])
    assert checks(a, same_ids)["same-query-ids"].severity == "warning"
    copied = tuple(np.r_[part_b, part_a[:24]] for part_a, part_b in zip(a, b, strict=True))
    leak = checks(a, copied)["leakage"]
    assert leak.severity == "broken"
    assert leak.values == {"queries": 2, "rows": 24, "examples": ["0", "1"]}
    renamed = (copied[0], copied[1], np.r_[b[2], a[2][:24] + 5000])
    shared = checks(a, renamed)["shared-rows"]
    assert shared.values["rows"] == 24
    narrow = (b[0][:, :3], b[1], b[2])
    assert checks(a, narrow, severity="broken").keys() == {"split-features"}


def test_splits_are_matched_by_name_as_rankers_match_them():
    (X, y, qid), names = healthy(), list("abcdefgh")
    names = names[: X.shape[1]]
    a = mcrank.Dataset(X, y, qid, feature_names=names)
    turned = mcrank.Dataset(np.c_[X[:, ::-1], np.zeros(len(X))], y, qid, feature_names=[*names[::-1], "more"])
    found = checks(a, turned)
    assert "split-features" not in found
    assert "feature-drift" not in found
    assert found["leakage"].values["rows"] == len(X)
    lacking = mcrank.Dataset(X[:, 1:], y, qid, feature_names=names[1:])
    assert f"lacks 1 of {len(names)} features" in checks(a, lacking)["split-features"].found
    assert checks(lacking, a).keys().isdisjoint({"split-features"})


def test_drift_between_splits():
    a, b = healthy(queries=200), healthy(queries=200, seed=1)
    b[0][:, 1] += 1.5
    found = checks(a, b)
    assert list(found["feature-drift"].values["features"]) == ["f2"]
    graded = (healthy(queries=200, seed=2)[0], np.minimum(b[1], 1), b[2] + 5000)
    assert checks(a, graded)["grade-drift"].values["total_variation"] == pytest.approx(1 / 3)


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, np.nan]),
    ),
    st.data(),
)
def test_equal_rows_and_columns(X, data):
    group = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))))

    def equal(a, b):
        return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())

    first = first_equal_rows(X, group)
    for i in range(len(X)):
        assert first[i] == next(j for j in range(i + 1) if group[j] == group[i] and equal(X[i], X[j]))
    pairs = []
    for b in range(X.shape[1]):
        a = next(j for j in range(b + 1) if equal(X[:, j], X[:, b]))
        if a < b:
            pairs.append((a, b))
    assert duplicate_columns(X) == pairs


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_single_features_by_hand(seed):
    stream = np.random.default_rng(seed)
    sizes = stream.integers(2, 15, 4)
    y = np.concatenate([np.r_[1, stream.integers(0, 4, n - 1)] for n in sizes])
    X = stream.integers(0, 4, (len(y), 2)).astype(float)
    X[stream.random(X.shape) < 0.1] = np.nan
    data = mcrank.Dataset(X, y, np.repeat(np.arange(4), sizes))
    for falling, values in enumerate(feature_values(data)):
        for j, value in enumerate(values):
            total = 0.0
            for q in range(4):
                rows = range(data.offsets[q], data.offsets[q + 1])

                def worst_first(i, j=j, falling=falling):
                    x = data.X[i, j]
                    return (np.inf if np.isnan(x) else x if falling else -x, data.y[i])

                def dcg(order):
                    return sum(
                        (2 ** data.y[i] - 1) / math.log2(rank + 2)
                        for rank, i in enumerate(order)
                        if rank < 10
                    )

                total += dcg(sorted(rows, key=worst_first)) / dcg(sorted(rows, key=lambda i: -data.y[i]))
            assert value == pytest.approx(total / 4)


@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), min_size=1))
def test_distribution_gap_by_hand(a, b):
    expected = max(abs(sum(v <= t for v in a) / len(a) - sum(v <= t for v in b) / len(b)) for t in range(6))
    assert distribution_gap(np.float32(a), np.float32(b)) == pytest.approx(expected)


def test_the_report():
    X, y, qid = healthy()
    y[:12] = 0
    diagnosis = mcrank.diagnose(mcrank.Dataset(X, y, qid), names=["mine"])
    text = str(diagnosis)
    assert "mine: 360 rows, 30 queries, 4 features" in text
    assert "WARNING empty-queries" in text
    assert text.endswith("0 broken, 1 warnings, 0 notes.")
    told = json.loads(json.dumps(diagnosis.to_dict()))
    assert told["summaries"]["mine"]["rows_per_query"] == {"min": 12, "median": 12.0, "mean": 12.0, "max": 12}
    assert sum(told["summaries"]["mine"]["grade_shares"].values()) == pytest.approx(1)
    with pytest.raises(mcrank.DataError, match="nothing to look at"):
        mcrank.diagnose()
    with pytest.raises(mcrank.DataError, match="names of diagnose"):
        mcrank.diagnose(mcrank.Dataset(X, y, qid), names=["a", "b"])


def test_the_worst_comes_first(tmp_path):
    (path := tmp_path / "data.txt").write_text("0 qid:1 1:1\n0 qid:1 1:1\n")
    severities = [f.severity for f in mcrank.diagnose(path, path).findings]
    assert severities == sorted(severities, key=["broken", "warning", "note"].index)
