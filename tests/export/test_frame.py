"""What every export does the same way: refusing, warning, writing whole files, and the command line."""

from __future__ import annotations

import json

import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import NotFittedError, OptionError
from mcrank.export.registry import TARGETS, target_class
from mcrank.export.target import HEADS, SCORERS
from mcrank.export.write import check_path, write
from tests.export import bed


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_says_what_it_does(name):
    target = target_class(name)
    assert target.name == name
    assert target.exactness
    assert target.missing
    assert target.scorers
    assert set(target.scorers) <= set(SCORERS)
    assert target.heads
    assert set(target.heads) <= set(HEADS)
    assert all(suffix.startswith(".") for suffix in target.suffixes)


def test_what_a_target_cannot_take_is_refused_with_its_reason(tmp_path):
    with pytest.raises(OptionError, match=r"ranksvm model cannot be exported to lightgbm: it takes trees"):
        bed.ranker("ranksvm").export(tmp_path / "m.txt", to="lightgbm")
    with pytest.raises(OptionError, match="did you mean lightgbm"):
        bed.ranker("gbrank").export(tmp_path / "m.txt", to="lightgmb")
    with pytest.raises(OptionError, match="has no option 'leaves'"):
        bed.ranker("gbrank").export(tmp_path / "m.txt", to="lightgbm", leaves=3)
    with pytest.raises(OptionError, match=r"relevance of GBRank.export is for rankers with probabilities"):
        bed.ranker("gbrank").export(tmp_path / "m.txt", to="lightgbm", relevance="gain")
    with pytest.raises(OptionError, match=r"relevance of McRank.export must be 'grade', 'gain' or 5 numbers"):
        bed.ranker("mcrank").export(tmp_path / "m.txt", to="lightgbm", relevance=[1, 2])
    with pytest.raises(NotFittedError):
        mcrank.GBRank().export(tmp_path / "m.txt", to="lightgbm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["m.mcrank", "m.onnx", "m.json", "m.PNG"])
def test_a_name_that_promises_another_format_is_refused(tmp_path, name):
    with pytest.raises(OptionError, match=r"name it .*m\.txt"):
        check_path(target_class("lightgbm")(), tmp_path / name)


@pytest.mark.parametrize("name", ["file", "file/below", "file/far/below"])
def test_a_file_is_no_folder(model_file, tmp_path, capsys, name):
    (tmp_path / "file").write_text("mine")
    assert main(["export", str(model_file), "--to", "solr", "--out", str(tmp_path / name)]) == 2
    assert f"{tmp_path / 'file'} is not a folder; name another." in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(("module", "wrong", "right"), [("es", "cjs", "mjs"), ("commonjs", "mjs", "cjs")])
def test_a_module_has_the_suffix_that_node_knows_it_by(module, wrong, right):
    target = target_class("javascript")(module=module)
    with pytest.raises(OptionError, match=rf"name it m\.{right}"):
        check_path(target, f"m.{wrong}")
    for suffix in (right, "js"):
        check_path(target, f"m.{suffix}")


def test_data_that_cannot_be_read_leaves_nothing_behind(model_file, tmp_path, capsys):
    (tmp_path / "data.txt").write_text("1 qid:1 1:x\n")
    out = tmp_path / "out" / "model.py"
    out.parent.mkdir()
    line = ["export", str(model_file), "--to", "python", "--out", str(out)]
    assert main([*line, "--verify", str(tmp_path / "data.txt")]) == 3
    assert "data.txt, line 1" in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []


def test_a_folder_of_files_is_written_file_by_file(tmp_path):
    files = write(tmp_path / "new" / "folder", {"a.json": b"1", "b/c.txt": b"2"})
    assert [file.read_bytes() for file in files] == [b"1", b"2"]
    assert files[1] == tmp_path / "new" / "folder" / "b" / "c.txt"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "mcrank.mcrank"
    bed.ranker("mcrank").save(path)
    return path


def test_a_full_disk_leaves_no_part_of_a_folder(tmp_path, monkeypatch):
    from mcrank.export import write as module

    target = target_class("elasticsearch").owned
    write(tmp_path, {"featureset.json": b"old"}, target)
    real = module.replace_file

    def fails(path, content):
        if path.name == "2":
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(module, "replace_file", fails)
    content = {"featureset.json": b"new", "model_1.json": b"1", "query.json": b"2"}
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, content, target)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("featureset.json", b"old")]


def test_models_of_an_earlier_export_do_not_stay(tmp_path):
    target = target_class("elasticsearch").owned
    write(tmp_path, {f"model_{k}.json": b"x" for k in range(1, 5)}, target)
    (tmp_path / "model_of_mine.json").write_bytes(b"y")
    write(tmp_path, {"model_1.json": b"z", "model_2.json": b"z"}, target)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model_1.json", "model_2.json", "model_of_mine.json",
    ]  # fmt: skip
    write(tmp_path, {"model.json": b"z"}, target)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.json", "model_of_mine.json"]


def test_names_beside_a_model_without_are_told(tmp_path, capsys):
    train = mcrank.make_artificial(5, 1, 1, docs_per_query=10, n_features=2).train
    mcrank.RegressionRanker(n_estimators=2, n_jobs=1).fit(train).save(tmp_path / "m.mcrank")
    rows = "".join(f"1,0,{a},{b}\n" for a, b in train.X[:5].tolist())
    (tmp_path / "d.csv").write_text("qid,label,price,age\n" + rows)
    line = ["export", str(tmp_path / "m.mcrank"), "--to", "python", "--out", str(tmp_path / "m.py")]
    assert main([*line, "--verify", str(tmp_path / "d.csv")]) == 0
    assert "they go by their place" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*within 1e-35", "ignore:.*rows may change places")
def test_the_command_writes_what_the_method_writes(model_file, tmp_path, capfdbinary):
    out = tmp_path / "command.txt"
    line = ["export", str(model_file), "--to", "lightgbm", "--relevance", "gain"]
    assert main([*line, "--out", str(out), "--json"]) == 0
    facts = json.loads(capfdbinary.readouterr().out)
    assert facts["files"] == [str(out)]
    assert facts["bytes"] == out.stat().st_size
    bed.ranker("mcrank").export(tmp_path / "method.txt", to="lightgbm", relevance="gain")
    assert out.read_bytes() == (tmp_path / "method.txt").read_bytes()
    assert main([*line, "--out", "-"]) == 0
    assert capfdbinary.readouterr().out == out.read_bytes()


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["MODEL"], 2, "Missing option '--to'"),
        (["--to", "lightgbm", "--out", "x"], 2, "Missing argument"),
        (["MODEL", "--to", "lightgbm"], 2, "Missing option '--out'"),
        (["MODEL", "--to", "lightgb", "--out", "x"], 2, "did you mean lightgbm?"),
        (["MODEL", "--to", "lightgbm", "--out", "no/such/x"], 2, "folder 'no/such' does not exist"),
        (["MODEL", "--to", "lightgbm", "--out", "x.onnx"], 2, "name it x.txt"),
        (["MODEL", "--to", "lightgbm", "--relevance", "a,b", "--out", "x"], 2, "must be grade, gain or"),
        (["missing", "--to", "lightgbm", "--out", "x"], 3, "missing does not exist"),
        (["MODEL", "--to", "lightgbm", "--out", "-", "--json"], 2, "both want standard output"),
        (["MODEL", "--to", "javascript", "--out", "x.cjs"], 2, "(--module commonjs), or name it x.mjs"),
        (["MODEL", "--to", "solr", "--out", ""], 2, "name a folder, not nothing"),
        (["MODEL", "--to", "python", "--out", "x.py", "--verify", "missing"], 3, "missing does not exist"),
    ],
)
def test_wrong_lines_are_answered(model_file, tmp_path, monkeypatch, capsys, line, code, words):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *(str(model_file) if word == "MODEL" else word for word in line)]) == code
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_list_tells_every_target(capsys):
    assert main(["export", "--list"]) == 0
    shown = capsys.readouterr().out
    assert main(["export", "--list", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [fact["target"] for fact in facts] == list(TARGETS)
    for fact in facts:
        assert f"\n{fact['target']} " in shown
        assert all(fact[word] for word in ("file", "takes", "exactness", "missing values"))


def test_one_grade_only_is_a_model_that_says_its_worth():
    model = bed.model("one grade", "gain")
    assert (model.head.kind, model.values, model.forest.n_trees) == ("identity", None, 0)
    assert model.scores(bed.data().X[:2]).tolist() == [7.0, 7.0]
