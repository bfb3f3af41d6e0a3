"""The report: its numbers are those of `mcrank.evaluate` and `mcrank.stats`, and nothing in it can hurt."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import re

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.experiments.comparison import Comparison
from mcrank.report.drilldown import choose_documents
from mcrank.report.page import render_report, write_report
from tests.experiments.made_up import made_up
from tests.experiments.small import small_comparison
from tests.reference.payload import restore, unpack
from tests.report.page import read_page


@pytest.fixture(scope="module")
def comparison():
    return small_comparison()


@pytest.fixture(scope="module")
def text(comparison):
    return render_report(comparison)


@pytest.fixture(scope="module")
def page(text):
    return read_page(text)


@pytest.fixture(scope="module")
def inside(page):
    return unpack(page.one("script", id="payload").text)


def leaderboard_of(table):
    return {row.attributes["data-system"]: row for row in table.one("tbody").all("tr")}


def check_board(rows, comparison, measure):
    """Numbers of a leaderboard against `evaluate` and `stats`."""
    values = {
        key: mcrank.evaluate(scores, comparison.rows, measure).by_query(measure)
        for key, scores in zip(comparison.keys, comparison.scores, strict=True)
    }
    means = {
        key: mcrank.evaluate(scores, comparison.rows, measure).mean[measure]
        for key, scores in zip(comparison.keys, comparison.scores, strict=True)
    }
    best = max(means, key=means.get)
    others = [key for key in comparison.keys if key != best]
    corrected = dict(
        zip(others, stats.holm([stats.paired_t(values[k], values[best]).p for k in others]), strict=True)
    )
    assert set(rows) == set(means)
    for key, row in rows.items():
        cells = row.children
        mean, interval = cells[2], cells[3]
        assert float(mean.attributes["data-value"]) == pytest.approx(means[key], rel=1e-12)
        assert mean.text == f"{means[key]:.4f}"
        bounds = stats.bootstrap_interval(values[key])
        assert float(interval.attributes["data-low"]) == pytest.approx(bounds.low, rel=1e-12)
        assert float(interval.attributes["data-high"]) == pytest.approx(bounds.high, rel=1e-12)
        if key == best:
            assert "best" in cells[1].text
            continue
        difference = stats.paired_t(values[key], values[best]).difference
        assert float(cells[4].attributes["data-value"]) == pytest.approx(difference, rel=1e-9, abs=1e-15)
        assert float(cells[5].attributes["data-value"]) == pytest.approx(corrected[key], rel=1e-9)
        counts = [int(cells[6].attributes[f"data-{word}"]) for word in ("wins", "ties", "losses")]
        pairs = [(values[key][q], values[best][q]) for q in values[key]]
        assert counts == [
            sum(a > b for a, b in pairs),
            sum(a == b for a, b in pairs),
            sum(a < b for a, b in pairs),
        ]


def test_leaderboard_in_the_page(page, comparison):
    check_board(leaderboard_of(page.one("table", id="board")), comparison, comparison.measures[0])


def test_leaderboard_of_every_other_measure(inside, comparison):
    facts, _ = inside
    assert list(facts["measures"]) == list(comparison.measures)
    for measure, found in facts["measures"].items():
        table = read_page(f"<table><tbody>{found['board']}</tbody></table>")
        check_board(leaderboard_of(table.one("table")), comparison, measure)
        assert found["verdict"] == comparison.verdict(measure)


def test_the_definition_ends_before_what_the_queries_could_show(page):
    definition, shown = page.one("span", id="definition").text.split(". ", 1)
    assert definition.endswith("empty query scores 0")
    assert shown.startswith("These ")


def test_verdict_and_numbers(page, comparison):
    assert page.one("p", id="verdict").text == comparison.verdict()
    facts = {div.one("dt").text: div.one("dd").text for div in page.one("section", id="top").all("div")}
    assert facts["Systems"] == str(len(comparison.systems))
    assert facts["Test queries"] == f"{comparison.n_queries:,}"
    assert facts["Main measure"] == comparison.measures[0]


def test_cutoffs_in_the_page(page, comparison):
    rows = page.one("table", id="table-cutoffs").one("tbody").all("tr")
    for row, scores in zip(rows, comparison.scores, strict=True):
        for k in range(1, 11):
            result = mcrank.evaluate(scores, comparison.rows, f"ndcg@{k}")
            cells = row.children[1 + 2 * (k - 1) : 3 + 2 * (k - 1)]
            assert float(cells[0].attributes["data-value"]) == pytest.approx(
                result.mean[f"ndcg@{k}"], rel=1e-12
            )
            deviation = result.per_query[f"ndcg@{k}"].std(ddof=1)
            assert float(cells[1].attributes["data-value"]) == pytest.approx(deviation, rel=1e-12)


def test_folds_in_the_page(page, comparison):
    rows = page.one("table", id="table-folds").one("tbody").all("tr")
    for row, scores in zip(rows, comparison.scores, strict=True):
        values = mcrank.evaluate(scores, comparison.rows, "ndcg@10").per_query["ndcg@10"]
        folds = [values[comparison.fold_of_query == fold].mean() for fold in range(3)]
        shown = [float(cell.attributes["data-value"]) for cell in row.children[1:]]
        assert shown == pytest.approx([*folds, np.mean(folds), values.mean()], rel=1e-12)


def test_dialects_in_the_page(page, comparison):
    rows = page.one("table", id="table-dialects").one("tbody").all("tr")
    for place, scores in enumerate(comparison.scores):
        readings = mcrank.rosetta(scores, comparison.rows, "ndcg@10").readings
        assert [row.children[0].text for row in rows] == [r.dialect.split(";")[0] for r in readings]
        shown = [float(row.children[1 + place].attributes["data-value"]) for row in rows]
        assert shown == [reading.value for reading in readings]


def test_values_of_queries_are_rounded_and_no_more(inside, comparison):
    facts, found = inside
    for measure in comparison.measures:
        decimals = facts["measures"][measure]["decimals"]
        shown = restore(found[f"values {measure}"], len(comparison.systems), decimals)
        for a, b in zip(shown.ravel(), comparison.per_query(measure).ravel(), strict=True):
            assert f"{a:.{decimals}f}" == f"{b:.{decimals}f}"


def test_pairs(inside, comparison):
    facts, _ = inside
    keys = comparison.keys
    for measure in comparison.measures:
        found = facts["measures"][measure]["pairs"]
        values = {
            key: mcrank.evaluate(scores, comparison.rows, measure).by_query(measure)
            for key, scores in zip(keys, comparison.scores, strict=True)
        }
        names = [tuple(map(int, name.split(","))) for name in found]
        p_values = [stats.paired_t(values[keys[a]], values[keys[b]]).p for a, b in names]
        for (a, b), pair, p in zip(names, found.values(), stats.holm(p_values), strict=True):
            difference = stats.paired_t(values[keys[a]], values[keys[b]]).difference
            assert float(pair["difference"].replace("−", "-")) == pytest.approx(difference, abs=5.1e-5)
            words = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
            assert f"{words} over all {len(names)} pairs" in pair["test"]
            unequal = sum(values[keys[a]][q] != values[keys[b]][q] for q in values[keys[a]])
            assert sum(pair["columns"]) == unequal == pair["counts"][0] + pair["counts"][2]


def test_documents_of_queries_that_differ_most(comparison, inside):
    facts, found = inside
    documents = choose_documents(comparison, "ndcg@10", 5, 10_000)
    values = comparison.per_query("ndcg@10")
    ranges = values.max(axis=0) - values.min(axis=0)
    assert sorted(ranges[documents.queries]) == sorted(np.sort(ranges)[-5:])
    rows = len(facts["documents"]["names"])
    positions = found["doc_positions"].reshape(len(comparison.systems), rows)
    # Query 0 of the page: its documents near the top of the first system, in order, have falling scores.
    query, stop = int(found["doc_queries"][0]), int(found["doc_offsets"][1])
    start_row, end_row = comparison.offsets[query : query + 2]
    scores = comparison.scores[0, start_row:end_row]
    grades = comparison.grades[start_row:end_row]
    order = np.argsort(-scores, kind="stable")[:10]
    shown = [row for row in np.argsort(positions[0, :stop], kind="stable") if positions[0, row] < 10]
    assert found["doc_grades"][shown].tolist() == grades[order].tolist()
    assert found["doc_scores"].reshape(len(comparison.systems), rows)[0, shown] == pytest.approx(
        scores[order]
    )
    assert [facts["documents"]["names"][row] for row in shown] == [f"row {row + 1}" for row in order]


def test_features_that_differ(comparison, inside):
    facts, found = inside
    features = np.asarray(comparison.features, dtype=np.float64)
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    shape = (len(found["doc_queries"]), len(comparison.systems), len(comparison.feature_names))
    shown = found["doc_features"].reshape(shape) / facts["documents"]["fine"]
    query = int(found["doc_queries"][1])
    start, stop = comparison.offsets[query : query + 2]
    discount = 1 / np.log2(np.arange(2, 12))
    for system, scores in enumerate(comparison.scores[:, start:stop]):
        top = standard[start:stop][np.argsort(-scores, kind="stable")[:10]]
        expected = (discount[: len(top), None] * top).sum(axis=0) / discount[: len(top)].sum()
        assert shown[1, system] == pytest.approx(expected, abs=0.0051)


def test_same_bytes(comparison, text, tmp_path):
    assert render_report(comparison) == text
    comparison.save(tmp_path / "saved")
    again = Comparison.load(tmp_path / "saved")
    path = write_report(again, tmp_path / "report.html", times=False)
    slower = {
        cell: dataclasses.replace(t, train_seconds=9.0, train_cpu_seconds=7.0)
        for cell, t in comparison.timings.items()
    }
    assert path.read_text() == render_report(dataclasses.replace(comparison, timings=slower), times=False)
    assert "Train s" not in path.read_text()
    assert "Train s" in text


def test_nothing_comes_from_elsewhere(page, text):
    assert not page.all("img")
    assert not page.all("iframe")
    assert [link.attributes["href"] for link in page.all("link")] == ["data:,"]
    assert all("src" not in script.attributes for script in page.all("script"))
    assert all(a.attributes["href"].startswith("#") for a in page.all("a"))
    without_namespace = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\(", without_namespace)
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    script = next(s for s in page.all("script") if "id" not in s.attributes)
    digest = base64.b64encode(hashlib.sha256("".join(script.texts).encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_structure(page):
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for element in page.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= set(ids)
    assert [len(page.all(tag)) for tag in ("main", "nav", "header", "footer", "h1")] == [1, 1, 1, 1, 1]
    targets = [a.attributes["href"][1:] for a in page.all("a")]
    assert set(targets) <= set(ids)
    for table in page.all("table"):
        assert table.all("caption")
        assert all("scope" in th.attributes for th in table.all("th"))
    for svg in page.all("svg"):
        assert svg.attributes["role"] == "img"
        assert svg.children[0].tag == "title"
        assert svg.children[1].tag == "desc"
        assert svg.children[1].text
    for control in (*page.all("select"), *page.all("input")):
        assert any(control in label.all() for label in page.all("label"))
    levels = [int(e.tag[1]) for e in page.all() if re.fullmatch("h[1-6]", e.tag)]
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "{{ 7 * 7 }}", "a\"b'c&amp;"]


def test_hostile_names_stay_text():
    comparison = made_up(
        4, keys=HOSTILE, qids=[f"q{n}{name}" for n, name in enumerate(HOSTILE)], measures=("ndcg@10", "map")
    )
    comparison = dataclasses.replace(
        comparison,
        feature_names=tuple(f"{name}{n}" for n in range(3) for name in HOSTILE),
        notes=(HOSTILE[0],),
    )
    text = render_report(comparison, title=HOSTILE[0])
    page = read_page(text)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    assert all(not name.startswith("on") for e in page.all() for name in e.attributes)
    assert set(leaderboard_of(page.one("table", id="board"))) == set(HOSTILE)
    assert "{{ 7 * 7 }}" in page.one("table", id="board").text
    facts, _ = unpack(page.one("script", id="payload").text)
    assert facts["systems"] == HOSTILE
    board = read_page(f"<table>{facts['measures']['map']['board']}</table>")
    assert not board.all("script")
    assert not board.all("img")


def test_progress_of_the_page(comparison, text):
    told = []
    assert render_report(comparison, callback=told.append) == text
    assert [step.done for step in told] == list(range(told[0].of))
    assert {f"leaderboard of {name}" for name in comparison.measures} <= {step.words for step in told}


def test_one_system_alone():
    text = render_report(made_up(6, systems=1))
    page = read_page(text)
    assert not page.all("section", id="pair")
    assert len(leaderboard_of(page.one("table", id="board"))) == 1


def test_refusals_and_missing_values():
    # letor3 counts short queries 0 without giving them a value; torchmetrics and others have no such rule.
    comparison = made_up(10, systems=2, rows=6, measures=("ndcg@10",), dialects=("letor3;outside=zero",))
    name = comparison.measures[1]
    assert np.isnan(comparison.per_query(name)).all()
    facts, found = unpack(read_page(render_report(comparison)).one("script", id="payload").text)
    assert np.isnan(restore(found[f"values {name}"], 2, facts["measures"][name]["decimals"])).all()


def test_without_features(comparison):
    text = render_report(dataclasses.replace(comparison, features=None))
    assert "too large to keep" in text
    facts, found = unpack(read_page(text).one("script", id="payload").text)
    assert facts["documents"]["features"] == []
    assert "doc_features" not in found


@pytest.mark.slow
def test_two_thousand_queries_stay_below_a_megabyte():
    measures = ("ndcg@10", "ndcg@5", "map", "err", "mrr", "precision@10")
    comparison = made_up(
        2000, systems=8, rows=15, measures=measures, dialects=("yahoo", "lightgbm", "sklearn")
    )
    comparison._standings.update({(m, None): _quick_standings(comparison, m) for m in comparison.measures})
    text = render_report(comparison)
    assert len(text.encode()) < 1_000_000
    page = read_page(text)
    _, found = unpack(page.one("script", id="payload").text)
    with_values = [m for m in comparison.measures if f"values {m}" in found]
    assert comparison.measures[0] in with_values
    assert len(found["doc_queries"]) == 200
    left_out = [m for m in comparison.measures if m not in with_values]
    note = page.one("section", id="queries").text
    assert f"{len(with_values)} of {len(comparison.measures)} measures" in note
    assert all(name in note for name in left_out)
    assert "200 of 2,000 queries" in note


def _quick_standings(comparison, measure):
    """A leaderboard without its bootstrap, which is not what this test is about."""
    from mcrank.experiments.leaderboard import Standing

    means = comparison.mean(measure)
    order = np.argsort(-means, kind="stable")
    best = means[order[0]]
    return [
        Standing(
            n + 1, comparison.keys[s], float(means[s]), float(means[s]) - 0.01, float(means[s]) + 0.01,
            *((None,) * 4 if n == 0 else (float(means[s] - best), 0.1, 0.01, 0.02)),
            "best" if n == 0 else "*", *((None,) * 3 if n == 0 else (1, 2, 3)), None, None, None,
        )
        for n, s in enumerate(order.tolist())
    ]  # fmt: skip
