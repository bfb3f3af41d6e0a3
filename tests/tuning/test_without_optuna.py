"""Without the extra, tuning says how to get it."""

from __future__ import annotations

import builtins

import pytest

import mcrank
from mcrank.cli.main import main


@pytest.fixture
def without(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **more):
        if name.partition(".")[0] == "optuna":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_the_extra_is_named(without, tmp_path, capsys):
    data = mcrank.make_artificial(20, 1, 1, docs_per_query=4, n_features=2).train
    with pytest.raises(mcrank.McrankError, match=r"pip install 'mcrank\[tune\]'"):
        mcrank.tune(data, "regression", trials=1)
    path = tmp_path / "data.txt"
    mcrank.write(data, path)
    assert main(["tune", str(path), "--out", str(tmp_path / "out")]) != 0
    assert "mcrank[tune]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
