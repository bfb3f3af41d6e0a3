"""Models that change while they are served, metrics, and settings that are refused."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from mcrank.cli.main import main
from mcrank.errors import OptionError
from mcrank.serve.settings import TOKEN_VARIABLE, digest, model_files, read_token
from tests.serve.service import Client

ROWS = {"rows": [[1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 2.0, 0.0]]}


@pytest.fixture
def served(made, tmp_path):
    path = tmp_path / "shop.mcrank"
    shutil.copy(made.paths["web"], path)
    return path


def put(source, target):
    new = target.with_suffix(".new")
    shutil.copy(source, new)
    os.replace(new, target)


def test_a_changed_file_is_taken_and_a_damaged_one_is_not(made, served, caplog):
    one = Client(served)
    assert one.app.models.changed() == []
    scores = {name: made.rankers[name].predict(ROWS["rows"]).tolist() for name in ("web", "ordinal")}
    assert one.post("/score", ROWS).json["scores"] == scores["web"]
    put(made.paths["ordinal"], served)
    assert one.app.models.changed() == ["shop"]
    assert one.app.models.reload("shop")
    assert one.post("/score", ROWS).json["scores"] == scores["ordinal"]
    for content in (b"", b"no model", made.paths["web"].read_bytes()[:-1]):
        served.write_bytes(content)
        assert one.app.models.changed() == ["shop"]
        assert not one.app.models.reload("shop")
        assert one.app.models.changed() == []
        assert one.post("/score", ROWS).json["scores"] == scores["ordinal"]
        assert one.get("/models").json["models"][0]["stale"] is True
        assert b'mcrank_model_stale{model="shop"} 1' in one.get("/metrics").body
    assert "is not replaced" in caplog.text
    assert str(served).encode() not in one.get("/models").body
    served.unlink()
    assert not one.app.models.reload("shop")
    put(made.paths["web"], served)
    assert one.app.models.changed() == ["shop"]
    assert one.app.models.reload("shop")
    assert one.post("/score", ROWS).json["scores"] == scores["web"]
    assert one.get("/models").json["models"][0]["stale"] is False


def test_nothing_is_answered_before_models_are_warm(made):
    one = Client(made.paths["web"], warm=False)
    assert one.get("/health").status == 200
    for reply in (one.get("/ready"), one.post("/score", ROWS)):
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
    one.app.models.warm()
    assert one.get("/ready").status == 200
    assert one.post("/score", ROWS).status == 200


LINE = re.compile(r'^([a-z_]+)(\{([a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (-?[0-9.e+-]+|\+Inf)$')


def test_metrics_are_as_prometheus_reads_them(made):
    one = Client(f'a "quoted" name={made.paths["web"]}', made.paths["lambda"])
    for _ in range(3):
        one.post("/rank", ROWS | {"model": "lambda"})
    one.post("/rank", {})
    one.get("/nowhere")
    lines = one.get("/metrics").body.decode().splitlines()
    values, typed = {}, set()
    for line in lines:
        if line.startswith("# TYPE "):
            assert line.split()[2] not in typed
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            assert LINE.match(line), line
            name, _, value = line.rpartition(" ")
            assert name not in values
            values[name] = float(value)
            base = re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0])
            assert {base, name.partition("{")[0]} & typed
    assert values['mcrank_requests_total{endpoint="/rank",status="200"}'] == 3
    assert values['mcrank_requests_total{endpoint="/rank",status="400"}'] == 1
    assert values['mcrank_requests_total{endpoint="other",status="404"}'] == 1
    assert values['mcrank_model_rows_total{model="lambda"}'] == 6
    assert values['mcrank_request_seconds_count{endpoint="/rank"}'] == 4
    assert values['mcrank_request_seconds_bucket{endpoint="/rank",le="+Inf"}'] == 4
    assert values["mcrank_requests_in_flight"] == 1  # this one


def test_names_of_models():
    assert [m.key for m in model_files(["a/b.mcrank", "x@1=c.mcrank", "x@2=d.mcrank"])] == ["b", "x@1", "x@2"]
    for texts in (["a.mcrank", "b/a.mcrank"], ["=x"], ["@1=x"], ["a@=x"], ["a="]):
        with pytest.raises(OptionError):
            model_files(texts)


def test_tokens(tmp_path):
    path = tmp_path / "token"
    path.write_text("a" * 20 + "\n")
    assert read_token(str(path), {}) == digest("a" * 20)
    assert read_token(None, {TOKEN_VARIABLE: "b" * 20}) == digest("b" * 20)
    assert read_token(None, {}) is None
    for text in ("", "short", "ä" * 20, "a" * 20 + "\x07"):
        path.write_text(text)
        with pytest.raises(OptionError):
            read_token(str(path), {})


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--host", "0.0.0.0"], 2, "can be reached from other machines"),
        (["--host", "::"], 2, "can be reached from other machines"),
        (["--host", "no such host"], 2, "is no address"),
        (["--port", "70000"], 2, "70000"),
        (["--token-file", "/dev/null"], 2, "must have 16 or more"),
        (["--data", "no-such-file"], 3, "does not exist"),
    ],
)
def test_what_is_refused_before_it_starts(made, capsys, monkeypatch, arguments, code, words):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert main(["serve", str(made.paths["web"]), *arguments]) == code
    assert words in capsys.readouterr().err


def test_a_model_or_data_that_cannot_be_used(made, capsys, tmp_path):
    assert main(["serve", str(tmp_path / "no.mcrank"), "--port", "0"]) == 3
    told = capsys.readouterr()
    assert "cannot be read" in told.err
    assert "serving" not in told.out + told.err  # which nobody can ask
    other = tmp_path / "other.csv"
    other.write_text("qid,label,bm25\n1,0,2.5\n")
    for more in ([], ["--json"], ["--workers", "2"]):
        assert main(["serve", str(made.paths["web"]), "--data", str(other), "--port", "0", *more]) == 3
        told = capsys.readouterr()
        assert "has no column" in told.err
        assert (told.out, "serving" in told.err) == ("", False)  # nothing is served, nor was
    text = tmp_path / "wide.txt"
    text.write_text("".join(f"1 qid:1 {' '.join(f'{j}:1' for j in range(1, 6))}\n"))
    assert main(["serve", str(made.paths["plain"]), "--data", str(text), "--port", "0"]) == 3
    assert f"error: {text} has 5 features, but RegressionRanker is expecting 4" in capsys.readouterr().err
