"""Good requests: answers are those of `predict`, `predict_proba` and `explain_pair`, to the last bit."""

from __future__ import annotations

import io

import numpy as np
import pytest

import mcrank
from mcrank.serve.rows import ARROW, NPY
from tests.serve.conftest import NAMES
from tests.serve.service import Client


def by_name(X):
    return [dict(zip(NAMES, row, strict=True)) for row in np.asarray(X, dtype=float).tolist()]


def npy(X, **options):
    stream = io.BytesIO()
    np.save(stream, X, **options)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["web", "ordinal", "lambda", "plain"])
def test_scores_are_those_of_predict(client, made, name):
    found = client.post("/score", {"model": name, "rows": made.X.astype(float).tolist()})
    assert found.status == 200
    assert found.json["scores"] == made.rankers[name].predict(made.X).tolist()
    assert found.json["model"] == name


def test_the_rows_of_a_request_are_one_query_to_a_blend_that_standardises_by_query(made, tmp_path):
    members = [mcrank.BestFeature(), mcrank.RegressionRanker(n_estimators=3, num_leaves=4, n_jobs=1)]
    blend = mcrank.Blend(members=members, method="equal", standard="query").fit(made.test)
    blend.save(tmp_path / "blend.mcrank")
    client = Client(tmp_path / "blend.mcrank")
    for X in (made.X, made.X[:7], made.X[:1]):
        one = mcrank.Dataset(X, np.zeros(len(X)), np.zeros(len(X), dtype=int))
        found = client.post("/score", {"rows": X.astype(float).tolist()})
        assert (found.status, found.json["scores"]) == (200, blend.predict(one).tolist())
    why = client.post("/explain", {"rows": made.X[:7].astype(float).tolist()}).json
    scores = client.post("/score", {"rows": made.X[:7].astype(float).tolist()}).json["scores"]
    assert why["scores"] == pytest.approx(scores[:2], abs=1e-12)


def test_every_form_of_rows_gives_the_same(client, made):
    import pyarrow as pa

    X = made.X.copy()
    X[3, 1] = np.nan
    expected = made.rankers["web"].predict(X).tolist()
    rows = [[None if np.isnan(v) else float(v) for v in row] for row in X]
    named = [dict(zip(NAMES, row, strict=True)) for row in rows]
    shuffled = [dict(reversed(row.items())) for row in named]
    mixed = [row if place % 2 else dict(reversed(row.items())) for place, row in enumerate(named)]
    more = [row | {"color": "red", "nested": [1]} for row in named]
    columns = {name: [row[k] for row in rows] for k, name in reversed(list(enumerate(NAMES)))}
    for body in (
        {"rows": rows}, {"rows": named}, {"rows": shuffled}, {"rows": mixed}, {"rows": more},
        {"columns": columns}, {"columns": columns | {"other": ["x"] * len(X)}},
    ):  # fmt: skip
        found = client.post("/score", body)
        assert (found.status, found.json["scores"]) == (200, expected)
    table = pa.table({name: X[:, k] for k, name in reversed(list(enumerate(NAMES)))})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    assert client.post("/score", sink.getvalue(), ARROW).json["scores"] == expected
    for matrix in (X, X.astype(np.float64), np.asfortranarray(X)):
        assert client.post("/score", npy(matrix), NPY).json["scores"] == expected


def test_true_and_false_are_numbers_as_in_tables(client, made):
    rows = [[True, 1, False, 2.5]]
    assert client.post("/score", {"rows": rows}).json["scores"] == made.rankers["web"].predict(rows).tolist()


def test_a_ranking_is_the_order_of_the_scores_and_echoes_ids(client, made):
    ids = [f"doc {row}" if row % 2 else row for row in range(len(made.X))]
    found = client.post("/rank", {"rows": by_name(made.X), "ids": ids, "probabilities": True}).json
    scores, chances = made.rankers["web"].predict(made.X), made.rankers["web"].predict_proba(made.X)
    order = np.argsort(-scores, kind="stable").tolist()
    assert [entry["row"] for entry in found["ranking"]] == order
    assert [entry["rank"] for entry in found["ranking"]] == list(range(1, len(order) + 1))
    for entry in found["ranking"]:
        assert entry["id"] == ids[entry["row"]]
        assert entry["score"] == scores[entry["row"]]
        assert entry["probabilities"] == chances[entry["row"]].tolist()
    assert found["grades"] == [0, 1, 2, 3, 4]
    first = client.post("/rank", {"rows": by_name(made.X), "top": 3}).json["ranking"]
    assert [entry["row"] for entry in first] == order[:3]
    assert set(first[0]) == {"rank", "row", "score"}


def test_equal_scores_stay_in_order(client):
    found = client.post("/rank", {"rows": [[1, 2, 3, 4]] * 5}).json["ranking"]
    assert [entry["row"] for entry in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("relevance", ["grade", "gain", [0, 0, 0, 1, 1], [-1.5, 0, 2, 2, 1e6]])
@pytest.mark.parametrize("name", ["web", "ordinal"])
def test_relevance_is_that_of_predict(client, made, name, relevance):
    expected = made.rankers[name].predict(made.X, relevance=relevance).tolist()
    body = {"model": name, "rows": made.X.astype(float).tolist(), "relevance": relevance}
    assert client.post("/score", body).json["scores"] == expected
    words = relevance if isinstance(relevance, str) else ",".join(map(str, relevance))
    assert client.post(f"/score?model={name}&relevance={words}", npy(made.X), NPY).json["scores"] == expected


def test_parameters_beside_a_matrix(client, made):
    found = client.post("/rank?probabilities=true&top=2&model=ordinal", npy(made.X), NPY).json
    assert len(found["ranking"]) == 2
    assert found["model"] == "ordinal"
    assert len(found["ranking"][0]["probabilities"]) == 5


def test_ids_of_rows_by_name_come_from_doc_id(client, made):
    rows = [row | {"doc_id": f"D{n}"} for n, row in enumerate(by_name(made.X[:3]))]
    found = client.post("/rank", {"rows": rows}).json["ranking"]
    assert sorted(entry["id"] for entry in found) == ["D0", "D1", "D2"]
    assert all(entry["id"] == f"D{entry['row']}" for entry in found)


@pytest.mark.parametrize("rows", [[], {"columns": {name: [] for name in NAMES}}])
def test_a_query_that_found_nothing(client, rows):
    body = rows if isinstance(rows, dict) else {"rows": rows}
    assert client.post("/rank", body | {"probabilities": True}).json["ranking"] == []
    assert client.post("/score", body).json["scores"] == []


def test_a_pair_is_explained_as_in_python(client, made):
    body = {"rows": by_name(made.X[:5]), "ids": ["p", "q", "r", "s", "t"], "a": "r", "b": 4}
    found = client.post("/explain", body).json
    why = made.rankers["web"].explain_pair(made.X[2], made.X[4], names=("r", "t"))
    assert found["scores"] == list(why.scores)
    assert found["sentence"] == why.sentence()
    assert [part["contribution"] for part in found["contributions"]] == list(why.contributions.values())
    assert found["rows"] == [2, 4]


@pytest.mark.parametrize("relevance", ["gain", [0, 0, 1, 5, 5]])
def test_an_explanation_adds_up_under_any_relevance(client, made, relevance):
    body = {"rows": by_name(made.X), "a": 3, "b": 9, "relevance": relevance}
    found = client.post("/explain", body).json
    scores = made.rankers["web"].predict(made.X, relevance=relevance)
    assert found["scores"] == [scores[3], scores[9]]
    total = sum(part["contribution"] for part in found["contributions"])
    assert total == pytest.approx(scores[3] - scores[9], abs=1e-12)
    assert found["unit"] == "score"


def test_queries_of_the_data(client, made):
    listed = client.get("/queries").json
    assert listed["found"] == 6
    assert [entry["rows"] for entry in listed["queries"]] == [12] * 6
    query = listed["queries"][2]["query"]
    assert client.get(f"/queries?find={query}&start=0").json["queries"][0]["query"] == query
    found = client.post("/rank", {"query": query, "model": "lambda"}).json["ranking"]
    rows = np.flatnonzero(made.test.qid.astype(str) == query)
    scores = made.rankers["lambda"].predict(made.X[rows])
    assert [entry["score"] for entry in found] == sorted(scores.tolist(), reverse=True)
    assert all(entry["grade"] == made.test.y[rows[entry["row"]]] for entry in found)
    assert all(entry["id"] == f"D{rows[entry['row']]}" for entry in found)
    pair = client.post("/explain", {"query": query, "a": found[0]["id"], "b": found[1]["id"]}).json
    assert pair["names"] == [found[0]["id"], found[1]["id"]]


def test_versions_of_a_name(made):
    from tests.serve.service import Client

    one = Client(f"shop@1={made.paths['web']}", f"shop@2={made.paths['ordinal']}", made.paths["lambda"])
    rows = {"rows": made.X[:3].astype(float).tolist()}
    asked = {
        key: one.post("/score", rows | {"model": key}).json["model"] for key in ("shop", "shop@1", "shop@2")
    }
    assert asked == {"shop": "shop@2", "shop@1": "shop@1", "shop@2": "shop@2"}
    assert one.post("/score", rows).json["model"] == "shop@1"
    facts = one.get("/models").json
    assert facts["default"] == "shop@1"
    assert [model["grades"] for model in facts["models"]] == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], None]
    assert facts["models"][0]["features"] == list(NAMES)


def test_large_requests_go_another_way_to_the_same_answer(client, made):
    X = np.tile(made.X, (700, 1)).astype(float)
    found = client.post("/score", {"rows": X.tolist()})
    assert found.json["scores"] == made.rankers["web"].predict(X).tolist()
    assert client.app._budget.used == 0


@pytest.fixture(scope="module")
def categorical(made):
    """A model with a feature of categories, served."""
    import mcrank
    from tests.serve.service import Client

    random = np.random.default_rng(0)
    colour = random.choice(["red", "green", "blue"], 300)
    table = {"colour": colour.tolist(), "size": random.random(300)}
    ranker = mcrank.McRank(n_estimators=4, num_leaves=4, min_samples_leaf=5, n_jobs=1)
    ranker.fit(table, (colour == "red") + random.integers(0, 2, 300), qid=np.arange(300) // 20)
    assert list(ranker.categories_) == [0]
    ranker.save(made.folder / "shop.mcrank")
    return ranker, Client(made.folder / "shop.mcrank")


def test_categories_are_texts(categorical):
    ranker, one = categorical
    table = {"colour": ["red", "blue", "violet", None, "green"], "size": [0.5, 0.25, 0.5, 1.0, None]}
    expected = ranker.predict(table).tolist()
    rows = [list(row) for row in zip(*table.values(), strict=True)]
    for body in (
        {"rows": rows},
        {"rows": [dict(zip(("size", "colour"), row[::-1], strict=True)) for row in rows]},
        {"columns": table},
    ):
        assert one.post("/score", body).json["scores"] == expected
    found = one.post("/explain", {"rows": rows, "a": 0, "b": 1}).json
    assert found["scores"] == expected[:2]
    assert one.get("/models").json["models"][0]["categorical"] == ["colour"]
    refused = one.post("/score", {"rows": [["red", "small"]]})
    assert (refused.status, "'size'" in refused.detail) == (400, True)
    assert one.post("/score", {"rows": [[1, 0.5]]}).status == 400
    for example in ("by place", "by name", "columns"):
        document = one.get("/openapi.json").json
        body = document["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]
        assert one.post("/score", body["examples"][example]["value"]).status == 200
