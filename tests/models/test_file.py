"""Saving and loading rankers: the same model back, the same bytes again, one clear error for all else."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.cli.describe import describe
from mcrank.container import pack, unpack
from mcrank.errors import ModelFileError, NotFittedError
from mcrank.models.file import load
from mcrank.rankers.registry import RANKERS, from_bytes, ranker_class, to_bytes
from mcrank.writing import replace_file

RANKER_CLASSES = [ranker_class(name) for name in RANKERS]
DATA = mcrank.make_artificial(n_train=12, n_valid=4, n_test=4, docs_per_query=15, n_features=4, seed=3)


def trained(ranker_class: type[Any], **options: Any) -> Any:
    small = {"n_estimators": 3, "num_leaves": 4, "epochs": 3, "hidden": "3", "n_jobs": 1}
    small["members"] = "ranksvm,best-feature"
    declared = ranker_class.declared_options
    settings = {name: value for name, value in small.items() if name in declared} | options
    return ranker_class(**settings).fit(DATA.train, valid=DATA.valid)


MODELS = {ranker_class.name: trained(ranker_class) for ranker_class in RANKER_CLASSES}
CONTENTS = {name: to_bytes(ranker) for name, ranker in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_ranker_is_the_one_saved(name, tmp_path):
    path = tmp_path / "m.mcrank"
    ranker = MODELS[name]
    ranker.save(path)
    loaded = mcrank.load(path)
    assert type(loaded) is type(ranker)
    np.testing.assert_array_equal(loaded.predict(DATA.test), ranker.predict(DATA.test))
    if hasattr(ranker, "feature_importances_"):
        np.testing.assert_array_equal(loaded.feature_importances_, ranker.feature_importances_)
    assert loaded.history_ == ranker.history_
    assert loaded.feature_names_ == ranker.feature_names_
    assert (loaded.best_round_, loaded.n_rounds_) == (ranker.best_round_, ranker.n_rounds_)
    given = {k: v for k, v in ranker.get_params().items() if k not in ("n_jobs", "measure")}
    assert {k: v for k, v in loaded.get_params().items() if k not in ("n_jobs", "measure")} == given
    if hasattr(ranker, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(DATA.test), ranker.predict_proba(DATA.test))
        np.testing.assert_array_equal(loaded.grades_, ranker.grades_)


@pytest.mark.parametrize("name", MODELS)
def test_saving_what_was_loaded_gives_the_same_bytes(name, tmp_path):
    path = tmp_path / "m.mcrank"
    path.write_bytes(CONTENTS[name])
    load(path).save(tmp_path / "again.mcrank")
    assert (tmp_path / "again.mcrank").read_bytes() == CONTENTS[name]


@pytest.mark.parametrize("ranker_class", RANKER_CLASSES)
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_bytes_do_not_depend_on_threads_or_runs(ranker_class, n_jobs):
    assert to_bytes(trained(ranker_class, n_jobs=n_jobs)) == CONTENTS[ranker_class.name]


def test_the_bytes_depend_on_the_options():
    assert to_bytes(trained(mcrank.McRank, learning_rate=0.06)) != CONTENTS["mcrank"]


def test_an_unfitted_ranker_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        mcrank.McRank().save(tmp_path / "m.mcrank")
    assert list(tmp_path.iterdir()) == []


class TestWriting:
    def test_replaces_a_file_and_leaves_nothing_else(self, tmp_path):
        path = tmp_path / "m.mcrank"
        path.write_bytes(b"old")
        MODELS["mcrank"].save(path)
        assert path.read_bytes() == CONTENTS["mcrank"]
        assert [p.name for p in tmp_path.iterdir()] == ["m.mcrank"]

    def test_a_failed_write_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "m.mcrank"
        path.write_bytes(b"old")

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            MODELS["mcrank"].save(path)
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["m.mcrank"]

    def test_a_missing_folder_is_named_and_not_made(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            MODELS["mcrank"].save(tmp_path / "no" / "m.mcrank")
        assert caught.value.filename == str(tmp_path / "no" / "m.mcrank")
        assert list(tmp_path.iterdir()) == []

    def test_what_is_not_a_regular_file_is_never_replaced(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for place in (tmp_path, tmp_path / "pipe", os.devnull):
            with pytest.raises(ModelFileError, match="not a regular file"):
                replace_file(place, b"")

    def test_the_file_has_the_permissions_of_any_new_file(self, tmp_path):
        (tmp_path / "plain").write_bytes(b"")
        MODELS["mcrank"].save(tmp_path / "m.mcrank")
        assert (tmp_path / "m.mcrank").stat().st_mode == (tmp_path / "plain").stat().st_mode


class TestReading:
    def test_missing_file_folder_and_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="No such file"):
            load(tmp_path / "missing")
        with pytest.raises(ModelFileError, match="not a regular file"):
            load(tmp_path)
        with pytest.raises(ModelFileError, match="not a regular file"):
            load(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="cannot be read"):
            load("a\0b")

    def test_a_huge_empty_file_costs_nothing(self, tmp_path):
        path = tmp_path / "sparse"
        with open(path, "wb") as file:
            file.truncate(2**40)
        with pytest.raises(ModelFileError, match="does not start with"):
            load(path)

    def test_other_files(self, tmp_path):
        path = tmp_path / "data.txt"
        path.write_text("1 qid:1 1:0.5\n")
        with pytest.raises(ModelFileError, match=r"data\.txt is not a mcrank model file"):
            load(path)


@pytest.mark.parametrize("name", MODELS)
def test_every_flipped_byte_and_every_truncation_is_refused(name):
    content = CONTENTS[name]
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(ModelFileError):
            from_bytes(damaged)
        with pytest.raises(ModelFileError):
            from_bytes(content[:position])


def check_accepted(content: bytes) -> None:
    """What a hostile file may do at most: be another valid model, one that `save` would write like that."""
    try:
        ranker = from_bytes(content, "it")
    except ModelFileError:
        return
    again, arrays = unpack(to_bytes(ranker), "it")
    header, _ = unpack(content, "it")
    again["meta"]["options"] = {name: again["meta"]["options"][name] for name in header["meta"]["options"]}
    assert pack(again, arrays) == content
    json.dumps(describe(ranker))
    assert np.isfinite(ranker.predict(DATA.test)).all()
    if hasattr(ranker, "predict_proba"):
        np.testing.assert_allclose(ranker.predict_proba(DATA.test).sum(axis=1), 1, rtol=1e-9)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside nested JSON values."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += paths(value[key], (*path, key))
    elif isinstance(value, list):
        for position in range(min(len(value), 3)):
            found += paths(value[position], (*path, position))
    return found


REMOVED = object()
ODD_VALUES = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 10**40, -0.5, 1e308, "", "mcrank", "gain", [], {}, [[]],
    ["f1", "f1"], {"a": 1}, [0, 1], [2.0, 1.0], [1e308, -1e308], REMOVED,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_any_odd_value_anywhere_in_the_header_is_refused_or_harmless(name):
    header, arrays = unpack(CONTENTS[name], "it")
    for path in paths(header)[1:]:
        for odd in ODD_VALUES:
            changed = copy.deepcopy(header)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            if odd is REMOVED:
                del parent[path[-1]]
            else:
                parent[path[-1]] = odd
            check_accepted(pack(changed, arrays))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_odd_number_anywhere_in_the_arrays_is_refused_or_harmless(name, data):
    header, arrays = unpack(bytearray(CONTENTS[name]), "it")
    victim = data.draw(st.sampled_from(sorted(k for k in arrays if arrays[k].size)))
    array = arrays[victim]
    for _ in range(data.draw(st.integers(1, 2))):
        position = data.draw(st.integers(0, array.size - 1))
        if array.dtype.kind == "f":
            number = data.draw(st.floats(width=32, allow_nan=False, allow_infinity=False))
        else:
            info = np.iinfo(array.dtype)
            near = st.integers(max(-3, int(info.min)), 20)
            number = data.draw(near | st.sampled_from([int(info.min), int(info.max)]))
        array[position] = number
    check_accepted(pack(header, arrays))


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_other_lengths_types_and_dimensions_are_refused(name):
    header, arrays = unpack(CONTENTS[name], "it")
    for victim, array in arrays.items():
        others = [
            array[:0],
            array[:-1],
            np.concatenate([array, array[-1:]]),
            array.reshape(1, -1),
            array.astype(np.float64 if array.dtype.kind != "f" else np.int64) + 0,
        ]
        for other in others:
            if other.shape == array.shape and other.dtype == array.dtype:
                continue
            with pytest.raises(ModelFileError):
                from_bytes(pack(header, {**arrays, victim: other}))
        with pytest.raises(ModelFileError):
            from_bytes(pack(header, {k: v for k, v in arrays.items() if k != victim}))
    with pytest.raises(ModelFileError, match="its array 'zzz'"):
        from_bytes(pack(header, {**arrays, "zzz": np.zeros(1)}))


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if hasattr(model, "forest_")])
def test_leaves_whose_sums_overflow_are_refused(name):
    header, arrays = unpack(bytearray(CONTENTS[name]), "it")
    arrays["value"][arrays["feature"] < 0] = 1.7e308
    with pytest.raises(ModelFileError, match="sums are not finite"):
        from_bytes(pack(header, arrays))


def test_an_unknown_ranker_is_named():
    header, arrays = unpack(CONTENTS["mcrank"], "it")
    with pytest.raises(ModelFileError, match="There is no ranker 'mcrnk'; did you mean mcrank"):
        from_bytes(pack({**header, "ranker": "mcrnk"}, arrays))
    for ranker in ("os:system", "../x", ""):
        with pytest.raises(ModelFileError, match="There is no ranker"):
            from_bytes(pack({**header, "ranker": ranker}, arrays))


def test_one_rankers_file_under_anothers_name_is_refused_or_harmless():
    for name in MODELS:
        header, arrays = unpack(CONTENTS[name], "it")
        for other in MODELS:
            check_accepted(pack({**header, "ranker": other}, arrays))
