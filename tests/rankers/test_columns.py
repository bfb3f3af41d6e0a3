"""Columns by name, everywhere a fitted ranker or training data meets other data."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Blend, Dataset, McRank, RankSVM, RegressionRanker
from mcrank.cli.main import main
from mcrank.data.alignment import columns_of
from mcrank.errors import DataError, ModelFileError
from mcrank.rankers.registry import RANKERS, from_bytes, ranker_class, to_bytes
from tests.rankers.data import few_values
from tests.rankers.test_estimator import SMALL

pandas = pytest.importorskip("pandas")

NAMES = list("abcdef")
MIXED = ["d", "a", "f", "c", "b", "e"]


@pytest.fixture(scope="module")
def rows():
    X, y, qid = few_values(61, 200, 6, 8, 3, missing=0.05)
    return pandas.DataFrame(X, columns=NAMES), y, qid


def make(**options):
    return McRank(n_estimators=5, num_leaves=4, min_samples_leaf=5, n_jobs=1, **options)


@pytest.fixture(scope="module")
def ranker(rows):
    X, y, qid = rows
    return make().fit(X, y, qid=qid)


def forms(frame):
    """The same table in other libraries' shapes."""
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    plain = {name: frame[name].to_numpy() for name in frame}
    return [frame, plain, pyarrow.table(plain), polars.DataFrame(plain)]


def test_order_and_further_columns_do_not_matter(rows, ranker):
    X, y, qid = rows
    wanted, proba, score = ranker.predict(X), ranker.predict_proba(X), ranker.score(X, y, qid)
    for other in forms(X[MIXED].assign(url="http://x", qid=qid, label=y)):
        assert np.array_equal(ranker.predict(other), wanted)
        assert np.array_equal(ranker.predict_proba(other), proba)
        assert ranker.score(other, y, qid) == score
    data = Dataset(X[MIXED].assign(extra=1.0), y, qid)
    assert np.array_equal(ranker.predict(data), wanted)
    assert ranker.score(data) == score
    # Position would have been another ranking.
    assert not np.array_equal(ranker.predict(X[MIXED].to_numpy()), wanted)


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker(rows, name):
    X, y, qid = rows
    kind = ranker_class(name)
    options = {o: value for o, value in SMALL.items() if o in kind.declared_options}
    if name == "blend":
        options |= {"members": "regression,best-feature", "folds": 2}
    fitted = kind(**options).fit(X, y, qid=qid)
    data = Dataset(X[MIXED].assign(extra=1.0), y, qid)
    for model in (fitted, from_bytes(to_bytes(fitted))):
        assert np.array_equal(model.predict(X[MIXED]), fitted.predict(X))
        assert np.array_equal(model.predict(data), fitted.predict(X))
        assert model.feature_names_in_.tolist() == NAMES


def test_a_missing_column_is_named(rows, ranker):
    X, y, qid = rows
    for wrong in (X.drop(columns="c"), X.rename(columns={"c": "C"})):
        for ask in (
            lambda X: ranker.predict(X),
            lambda X: ranker.predict_proba(X),
            lambda X: ranker.score(X, y, qid),
            lambda X: ranker.predict(Dataset(X, y, qid)),
            lambda X: make().fit(rows[0], y, qid=qid, valid=Dataset(X, y, qid)),
            lambda X: make().fit(rows[0], y, qid=qid, valid=(X, y, qid)),
        ):
            with pytest.raises(DataError, match="has no column 'c'"):
                ask(wrong)
    long = Dataset(X.rename(columns={"a": "bm25_title"}), y, qid)
    with pytest.raises(DataError, match=r"no column 'bm25_titel'; did you mean 'bm25_title'\?"):
        make().fit(X.rename(columns={"a": "bm25_titel"}), y, qid=qid).predict(long)


def test_positions_where_names_are_absent(rows, ranker):
    X, y, qid = rows
    wanted = ranker.predict(X)
    assert np.array_equal(ranker.predict(X.to_numpy()), wanted)
    assert np.array_equal(ranker.predict(Dataset(X.to_numpy(), y, qid)), wanted)
    assert np.array_equal(ranker.predict(pandas.DataFrame(X.to_numpy())), wanted)  # columns 0, 1, ...
    with pytest.raises(DataError, match="X has 5 features, but McRank is expecting 6 features"):
        ranker.predict(X.to_numpy()[:, :5])
    nameless = make().fit(X.to_numpy(), y, qid=qid)
    assert not hasattr(nameless, "feature_names_in_")
    assert np.array_equal(nameless.predict(X), wanted)
    assert not np.array_equal(nameless.predict(X[MIXED]), wanted)
    with pytest.raises(DataError, match="X has 5 features, but McRank is expecting 6 features"):
        nameless.predict(X.drop(columns="c"))


def test_validation_data(rows):
    X, y, qid = rows
    wanted = make().fit(X, y, qid=qid, valid=(X, y, qid)).history_
    for valid in (
        (X[MIXED], y, qid),
        (X[MIXED].assign(url="http://x"), y, qid),
        Dataset(X[MIXED].assign(extra=1.0), y, qid),
        (X.to_numpy(), y, qid),
    ):
        assert make().fit(X, y, qid=qid, valid=valid).history_ == wanted
    assert make().fit(X, y, qid=qid, valid=(X[MIXED].to_numpy(), y, qid)).history_ != wanted
    with pytest.raises(DataError, match="valid of McRank has 5 features, but the ranker is expecting 6"):
        make().fit(X, y, qid=qid, valid=(X.to_numpy()[:, :5], y, qid))


def test_members_of_a_blend_find_their_columns(rows, tmp_path):
    X, y, qid = rows
    apart = RegressionRanker(n_estimators=5, num_leaves=4, n_jobs=1).fit(X[["e", "a", "b"]], y, qid=qid)
    other = RankSVM(n_jobs=1).fit(X[MIXED], y, qid=qid)
    blend = Blend(members=[apart, other], method="equal", n_jobs=1).fit(X, y, qid=qid, valid=(X, y, qid))
    standard = blend.standard_.apply(np.array([apart.predict(X), other.predict(X)]), None)
    wanted = np.einsum("m,mr->r", blend.weights_, standard)
    blend.save(tmp_path / "blend.mcrank")
    for model in (blend, mcrank.load(tmp_path / "blend.mcrank", Blend)):
        for asked in (X, X[MIXED], X.to_numpy(), Dataset(X[MIXED], y, qid), Dataset(X.to_numpy(), y, qid)):
            assert np.array_equal(model.predict(asked), wanted)
    with pytest.raises(DataError, match="The training data of Blend has no column 'e'"):
        Blend(members=[apart]).fit(X[["a", "b", "c"]], y, qid=qid, valid=(X, y, qid))


def test_model_files_remember_whether_names_were_given(rows):
    X, y, qid = rows
    numbered = [f"f{j}" for j in range(1, 7)]
    values = X.to_numpy().copy()
    starts = np.arange(0, 200, 10)
    cases = {
        "given": (X, True, False),
        "given, but they look made up": (X.set_axis(numbered, axis=1), True, True),
        "none": (values, False, False),
        "from 0, as LETOR text may count": (
            Dataset.from_runs(values, y, starts, np.arange(20), feature_names=[f"f{j}" for j in range(6)]),
            False,
            False,
        ),
    }  # fmt: skip
    for case, (given_rows, named, written) in cases.items():
        words = {} if isinstance(given_rows, Dataset) else {"y": y, "qid": qid}
        fitted = RegressionRanker(n_estimators=2, n_jobs=1).fit(given_rows, **words)
        assert ("named" in fitted.state()[0]) == written, case
        again = from_bytes(to_bytes(fitted))
        assert hasattr(again, "feature_names_in_") == named == hasattr(fitted, "feature_names_in_"), case
        assert to_bytes(again) == to_bytes(fitted)
    # A file says the same as one of the first version: names of one's own count, made-up ones do not.
    assert "named" not in RegressionRanker(n_estimators=2, n_jobs=1).fit(X, y, qid=qid).state()[0]


def test_a_file_with_a_wrong_mark_is_refused(rows):
    X, y, qid = rows
    fitted = RegressionRanker(n_estimators=2, n_jobs=1).fit(X, y, qid=qid)
    meta, arrays = fitted.state()
    from mcrank.container import pack

    for wrong in ("yes", 1, None):
        with pytest.raises(ModelFileError):
            from_bytes(pack({"meta": meta | {"named": wrong}, "ranker": fitted.name}, arrays))


def test_the_class_a_file_must_hold(rows, ranker, tmp_path):
    ranker.save(tmp_path / "m.mcrank")
    assert type(mcrank.load(tmp_path / "m.mcrank", McRank)) is McRank
    with pytest.raises(ModelFileError, match="holds a McRank, and a RankSVM was asked for"):
        mcrank.load(tmp_path / "m.mcrank", RankSVM)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_line(rows, ranker, tmp_path, capsys, suffix):
    X, y, qid = rows
    train, mixed, short = (str(tmp_path / f"{name}.{suffix}") for name in ("train", "mixed", "short"))

    def write(frame, path):
        getattr(frame, f"to_{suffix}")(path, index=False)

    write(X.assign(qid=qid, label=y), train)
    write(X[MIXED].assign(url="x", qid=qid, label=y), mixed)
    write(X.drop(columns="c").assign(qid=qid, label=y), short)
    small = ["--n-estimators", "5", "--num-leaves", "4", "--min-samples-leaf", "5", "--n-jobs", "1", "--json"]

    def run(*words):
        return main(list(words)), capsys.readouterr()

    found = []
    for valid in (train, mixed):
        code, said = run("train", train, "--valid", valid, "--out", str(tmp_path / "m.mcrank"), *small)
        assert not code, said.err
        facts = json.loads(said.out)
        found.append((facts["best_round"], facts["valid_ndcg@10"]))
    assert found[0] == found[1]
    lines = [run("predict", str(tmp_path / "m.mcrank"), path)[1].out for path in (train, mixed)]
    assert lines[0] == lines[1]
    assert len(lines[0].split()) == len(y)
    for words in (
        ("predict", str(tmp_path / "m.mcrank"), short),
        ("train", train, "--valid", short, "--out", str(tmp_path / "n.mcrank"), *small),
    ):
        code, said = run(*words)
        assert code
        assert "has no column 'c'" in said.err


def test_compare(rows, ranker, tmp_path):
    X, y, qid = rows
    ranker.save(tmp_path / "m.mcrank")
    orders = (NAMES, MIXED, list(reversed(NAMES)))
    results = []
    for order in (orders, (NAMES,) * 3):
        parts = {
            part: Dataset(X[list(columns)].assign(extra=1.0) if part == "test" else X[list(columns)], y, qid)
            for part, columns in zip(("train", "valid", "test"), order, strict=True)
        }
        entries = [make(), str(tmp_path / "m.mcrank")]
        result = mcrank.compare(entries, parts, measures=["ndcg@10"], n_jobs=1)
        results.append(result.mean("ndcg@10").tolist())
        assert result.feature_names == tuple(NAMES)
    assert results[0] == results[1]
    with pytest.raises(DataError, match=r"the test part of .* has no column 'c'"):
        mcrank.compare([make()], parts | {"test": Dataset(X.drop(columns="c"), y, qid)}, n_jobs=1)


def test_importances_of_folds_that_order_columns_differently(rows):
    X, y, qid = rows
    orders = (NAMES, MIXED, list(reversed(NAMES)))
    found = []
    for chosen in ((NAMES,) * 3, orders):
        folds = []
        for number, order in enumerate(chosen):
            parts = [(qid + number) % 3 == part for part in range(3)]
            folds.append(tuple(Dataset(X[list(order)][part], y[part], qid[part]) for part in parts))
        found.append(mcrank.compare(["best-feature"], folds, measures=["ndcg@10"], n_jobs=1))
    assert found[0].feature_names == found[1].feature_names == tuple(NAMES)
    assert np.array_equal(found[0].importances["best-feature"], found[1].importances["best-feature"])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=3), unique=True, min_size=1, max_size=8), st.randoms())
def test_columns_are_found_wherever_they_stand(names, random):
    wanted = random.sample(names, random.randint(1, len(names)))
    assert [names[place] for place in columns_of(names, wanted, "X")] == wanted


def test_columns_named_like_roles_are_told_of_once(rows):
    X, y, qid = rows
    mixed = X.assign(QID=qid, label=y)
    with pytest.warns(
        UserWarning, match=r"X of McRank has columns .* 'QID', 'label'; .*feature_names="
    ) as told:
        fitted = make().fit(mixed, y, qid=qid)
    assert [warning.filename for warning in told] == [__file__]
    assert fitted.feature_names_ == tuple(NAMES)
    # The ids came from the table itself: only the grade stands there in vain.
    with pytest.warns(UserWarning, match=r"ids or grades, 'label';") as told:
        make().fit(mixed, y)
    assert len(told) == 1
    with pytest.warns(UserWarning, match="X of Dataset has columns") as told:
        Dataset(mixed, y, qid)
    assert [warning.filename for warning in told] == [__file__]


def test_columns_named_like_roles_are_silent_where_someone_chose(rows):
    X, y, qid = rows
    mixed = X.assign(qid=qid, label=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "McRank.fit chose by the measure")  # twenty queries are few
        fitted = make().fit(mixed.drop(columns="label"), y, valid=(mixed, y, qid))
        fitted.predict(mixed)
        fitted.score(mixed, y, qid)
        make().fit(X.to_numpy(), y, qid=qid).predict(mixed)
        assert mcrank.read(mixed).feature_names == tuple(NAMES)
        kept = Dataset(mixed, y, qid, feature_names=["a", "label"])
    assert kept.feature_names == ("a", "label")
    assert make().fit(kept).feature_names_ == ("a", "label")


def test_a_blend_without_names_goes_by_position_in_every_shape(rows):
    X, y, qid = rows
    member = RegressionRanker(n_estimators=5, num_leaves=4, n_jobs=1).fit(X, y, qid=qid)
    plain = X.to_numpy()
    blend = Blend(members=[member], method="equal", n_jobs=1).fit(plain, y, qid=qid, valid=(plain, y, qid))
    asked = X[MIXED]
    wanted = blend.predict(asked.to_numpy())
    assert np.array_equal(blend.predict(asked), wanted)
    assert np.array_equal(blend.predict(Dataset(asked, y, qid)), wanted)
    other = Blend(members=[member], method="equal", n_jobs=1).fit(plain, y, qid=qid, valid=(asked, y, qid))
    place = Blend(members=[member], method="equal", n_jobs=1).fit(
        plain, y, qid=qid, valid=(asked.to_numpy(), y, qid)
    )
    assert to_bytes(other) == to_bytes(place)
