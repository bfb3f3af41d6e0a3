"""Every target against its consumer by the certificate; names of features that mean something to somebody."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mcrank
from mcrank.errors import OptionError
from mcrank.export.certificate import certify
from mcrank.export.hard_rows import hard_rows
from mcrank.export.registry import TARGETS, target_class
from mcrank.export.write import export
from mcrank.models.imports.outcome import linear_scorer
from mcrank.scorers.heads import Head
from tests.export import bed

QUIET = [
    pytest.mark.filterwarnings("ignore:.*within 1e-35", "ignore:.*takes a (missing value|feature whose)"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),
]
pytestmark = [pytest.mark.consumer, *QUIET]
HOSTILE = (
    "*/ /* // ", "back\\slash", 'quo"te', "quo'te", "a;\nb", "@NAMES@", "@FEATURES@", "</script>",
    "__proto__", "x=y", "tab\tx", "ünï", "%s %d", "${x}", "b`tick", "??/", "-- x", "{{keywords}}",
    "a\u2028b", "#",
)  # fmt: skip


def place(target, folder):
    return folder / f"model{target.suffixes[0]}" if target.suffixes else folder / "model"


@pytest.mark.parametrize("name", ["mcrank", "ordinal", "regression", "ranksvm", "lambdarank", "blend"])
@pytest.mark.parametrize("to", TARGETS)
def test_every_export_holds_its_certificate(tmp_path, to, name):
    model, target = bed.model(name), target_class(to)()
    try:
        target.check(model)
    except OptionError as error:
        assert f"the {model.ranker} model cannot be exported to {to}: " in str(error)  # noqa: PT017
        return
    export(model, target, place(target, tmp_path))
    found = certify(model, target, place(target, tmp_path), bed.data(10), n_hard=300)
    assert found.holds, (found.data, found.hard)
    assert found.hard.rows >= 300


@pytest.mark.parametrize("objective", ["lambdarank", "multiclass", "multiclassova", "binary", "poisson"])
def test_an_imported_model_goes_out_as_any_other(tmp_path, objective):
    import lightgbm

    data = bed.data(20)
    grades = np.minimum(data.y, 1) if objective == "binary" else data.y
    settings = {"objective": objective, "num_leaves": 5, "verbose": -1, "num_threads": 1}
    if objective.startswith("multi"):
        settings["num_class"] = 5
    rows = lightgbm.Dataset(np.asarray(data.X), grades, group=data.sizes)
    lightgbm.train(settings, rows, 4).save_model(tmp_path / "given.txt")
    model = mcrank.from_lightgbm(tmp_path / "given.txt").exportable()
    X = hard_rows(model.scorer, 200)
    for to in ("lightgbm", "c", "python", "sql", "onnx"):
        target = target_class(to)()
        path = export(model, target, tmp_path / f"made{target.suffixes[0]}")[0]
        found, seen = target.consume(model, path, target.seen(X, model)), target.seen(X, model)
        want = model.scores(seen)
        assert (np.abs(found.scores - want) <= 1e-13 * np.maximum(1.0, np.abs(want))).all()


@pytest.mark.parametrize("head", [Head("exp"), Head("cumulative", np.array([0.0, 2.5]))], ids=["exp", "odds"])
@pytest.mark.parametrize("to", TARGETS)
def test_a_linear_model_of_logs_or_of_two_classes_holds_its_certificate(tmp_path, to, head):
    given, target = bed.data(10), target_class(to)()
    scorer = linear_scorer([0.5, -2.0, 1e-3, 0.0, 7.0, 0.1, 3.0, 0.25], -0.5, "here")
    model = bed.exportable(scorer, head)
    try:
        target.check(model)
    except OptionError:
        return
    data = mcrank.Dataset(given.X, given.y, given.qid)
    export(model, target, place(target, tmp_path))
    found = certify(model, target, place(target, tmp_path), data, n_hard=500)
    assert found.holds, (found.data, found.hard)
    assert not found.swaps.swapped


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_a_linear_model_whose_grades_are_worth_the_same_is_refused(to):
    head = Head("cumulative", np.array([0.0, 1.0]))
    model = bed.exportable(linear_scorer([0.5, 1.0], 0.0, "here"), head)
    with pytest.raises(OptionError, match="every grade is worth the same"):
        target_class(to)().check(dataclasses.replace(model, values=np.zeros(2)))


def hostile_model():
    stream = np.random.default_rng(1)
    builder = bed.ForestBuilder(len(HOSTILE), [0.0])
    for _ in range(12):
        bed.append_random(builder, stream, len(HOSTILE), 8)
    return dataclasses.replace(bed.exportable(builder.build()), feature_names=HOSTILE)


@pytest.mark.parametrize("to", TARGETS)
def test_names_that_mean_something_elsewhere_are_harmless(tmp_path, to):
    model, target = hostile_model(), target_class(to)()
    try:
        target.check(model)
    except OptionError:
        return
    export(model, target, place(target, tmp_path))
    X = hard_rows(model.scorer, 200)
    found = target.consume(model, place(target, tmp_path), target.seen(X, model))
    assert np.abs(found.scores - model.scores(target.seen(X, model))).max() < 1e-5
