"""Models of every kind that an export can meet, trained on data with holes, ties and tiny values."""

from __future__ import annotations

from functools import cache

import numpy as np

import mcrank
from mcrank.export.target import Exportable
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.scorers.heads import Head

NAMES = ("bm25", "page rank", "page_rank", 'quo"te', "tïtle:len", "a,b[0]", "tiny", "const")


def data(n_queries=60, n_grades=5, seed=0):
    """5 % missing, a column of whole numbers, one of denormals, one that is constant; odd names."""
    stream = np.random.default_rng(seed)
    n = n_queries * 12
    X = stream.normal(size=(n, len(NAMES)))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.exp(3 * X[:, 2])
    truth = X[:, 0] + 0.5 * X[:, 1] + 0.1 * np.log(X[:, 2]) * X[:, 3] + 0.3 * (X[:, 4] > 0) + 0.4 * X[:, 6]
    X[:, 6] *= 1e-40
    X[:, 7] = 3.0
    X[stream.random(X.shape) < 0.05] = np.nan
    ranks = np.argsort(np.argsort(truth + stream.normal(size=n)))
    grades = (ranks * n_grades // n).astype(float)
    return mcrank.Dataset(
        X.astype(np.float32), grades, np.repeat(np.arange(n_queries), 12), feature_names=NAMES
    )


_TREES = {"n_estimators": 6, "num_leaves": 6, "n_jobs": 1}
_RANKERS = {
    "mcrank": lambda: mcrank.McRank(**_TREES),
    "mcrank prior": lambda: mcrank.McRank(init="prior", **_TREES),
    "ordinal": lambda: mcrank.OrdinalMcRank(init="prior", **_TREES),
    "ordinal alone": lambda: mcrank.OrdinalMcRank(init="prior", **_TREES),
    "abc": lambda: mcrank.McRank(base_class="adaptive", init="prior", **_TREES),
    "regression": lambda: mcrank.RegressionRanker(n_estimators=12, num_leaves=32, n_jobs=1),
    "lambdamart": lambda: mcrank.LambdaMART(n_estimators=12, num_leaves=16, n_jobs=1),
    "gbrank": lambda: mcrank.GBRank(n_estimators=8, num_leaves=6, n_jobs=1),
    "rankboost": lambda: mcrank.RankBoost(n_estimators=20, n_jobs=1),
    "adarank": lambda: mcrank.AdaRank(n_estimators=20, n_jobs=1),
    "frank": lambda: mcrank.FRank(n_estimators=6, n_jobs=1),
    "best-feature": lambda: mcrank.BestFeature(),
    "ranksvm": lambda: mcrank.RankSVM(),
    "coordinate-ascent": lambda: mcrank.CoordinateAscent(scaling="minmax", n_jobs=1),
    "ranknet": lambda: mcrank.RankNet(epochs=2, hidden="6,5", scaling="log", n_jobs=1),
    "lambdarank": lambda: mcrank.LambdaRank(epochs=2, hidden="7", activation="relu", n_jobs=1),
    "sigmoid net": lambda: mcrank.LambdaRank(epochs=2, hidden="3,4,5", activation="sigmoid", n_jobs=1),
    "blend": lambda: mcrank.Blend(
        members=[
            mcrank.McRank(n_estimators=3, n_jobs=1),
            mcrank.McRank(n_estimators=2, base_class="adaptive", n_jobs=1),
            mcrank.OrdinalMcRank(n_estimators=2, n_jobs=1),
            mcrank.RegressionRanker(n_estimators=3, n_jobs=1),
            mcrank.RankNet(epochs=1, hidden="4", n_jobs=1),
            mcrank.RankSVM(),
        ],
        method="equal",
    ),
}
_GRADES = {"two grades": 2, "one grade": 1}
FOREST_RANKERS = (
    "mcrank", "mcrank prior", "ordinal", "ordinal alone", "abc", "regression", "lambdamart", "gbrank",
    "rankboost", "frank", "two grades", "two softmax", "one grade",
)  # fmt: skip
HAND_MADE = (
    "one each",
    "exp",
    "no trees",
    "leaves only",
    "an output without trees",
    "known or missing",
    "deep",
    "many cuts",
)
FORESTS = FOREST_RANKERS + HAND_MADE
GRADED = (
    "mcrank", "mcrank prior", "ordinal", "ordinal alone", "abc", "two grades", "two softmax", "one each",
    "no trees", "an output without trees",
)  # fmt: skip
OTHERS = tuple(name for name in _RANKERS if name not in FOREST_RANKERS)


@cache
def ranker(name):
    if name == "two grades":
        return mcrank.McRank(**_TREES).fit(data(n_grades=2), valid=data(20, n_grades=2, seed=1))
    if name == "two softmax":
        return mcrank.McRank(sequential=True, **_TREES).fit(data(n_grades=2), folds=2)
    if name == "one grade":
        given = data()
        return mcrank.McRank(**_TREES).fit(given.X, np.full(given.n_rows, 3.0), qid=given.qid)
    if name in ("blend", "mcrank", "ordinal", "abc"):  # grades are corrected on validation data
        return _RANKERS[name]().fit(data(), valid=data(20, seed=1))
    if name in ("mcrank prior", "lambdamart"):
        return _RANKERS[name]().fit(data(), folds=2)
    return _RANKERS[name]().fit(data())


@cache
def model(name, relevance=None):
    if name in HAND_MADE:
        return hand_made(name)
    return ranker(name).exportable(relevance)


def exportable(forest, head=None):
    """A forest as if a ranker had trained it."""
    head = head or Head()
    names = tuple(f"f{j}" for j in range(forest.n_features))
    return Exportable(forest, head, head.values, names, "hand-made", mcrank.__version__, "0" * 64)


def hand_made(name):
    stream = np.random.default_rng(5)
    if name == "no trees":
        return exportable(ForestBuilder(3, [0.3, -0.25, 0.5]).build(), Head("softmax", np.arange(3.0)))
    if name == "leaves only":
        builder = ForestBuilder(2, [0.1])
        for value in (0.7, -0.3):
            builder.append(feature=[-1], value=[value], rows=[4])
        return exportable(builder.build())
    if name == "an output without trees":
        builder = ForestBuilder(2, [0.1, 0.2, -0.4])
        for output in (2, 0, 2):
            append_random(builder, stream, 2, 5, output)
        return exportable(builder.build(), Head("cumulative", np.array([0.0, 1.0, 2.5, 4.0])))
    if name in ("one each", "exp"):
        n_outputs = 4 if name == "one each" else 1
        builder = ForestBuilder(3, stream.normal(size=n_outputs))
        for output in range(3 * n_outputs):
            append_random(builder, stream, 3, 7, output % n_outputs)
        head = Head("one-each", np.array([0.0, 1.0, 2.0, 5.0])) if name == "one each" else Head("exp")
        return exportable(builder.build(), head)
    if name == "known or missing":
        builder = ForestBuilder(1, [0.0])
        for left in (0, 1):
            builder.append(
                feature=[0, -1, -1], threshold=[np.finfo(np.float32).max, 0, 0], left=[1, -1, -1],
                right=[2, -1, -1], value=[0, 1.5, -2.0], rows=[9, 6, 3], missing_left=left,
            )  # fmt: skip
        return exportable(builder.build())
    if name == "deep":
        builder = ForestBuilder(3, [0.5])
        for leaves in (700, 1, 300, 60):
            append_random(builder, stream, 3, leaves)
        return exportable(builder.build())
    builder = ForestBuilder(2, [0.0])
    for _ in range(60):
        append_random(builder, stream, 2, 16)
    return exportable(builder.build())


def append_random(builder, stream, n_features, n_leaves, output=0):
    """Append a tree that splits a random leaf again and again; children stand side by side in any order."""
    feature, threshold, left, right = [-1], [0.0], [-1], [-1]
    for _ in range(n_leaves - 1):
        leaf = stream.choice(np.flatnonzero(np.array(feature) < 0))
        feature[leaf], threshold[leaf] = int(stream.integers(n_features)), float(np.float32(stream.normal()))
        left[leaf], right[leaf] = len(feature), len(feature) + 1
        if stream.random() < 0.5:
            left[leaf], right[leaf] = right[leaf], left[leaf]
        feature, threshold = [*feature, -1, -1], [*threshold, 0.0, 0.0]
        left, right = [*left, -1, -1], [*right, -1, -1]
    inner = np.array(feature) >= 0
    builder.append(
        feature=feature, threshold=threshold, left=left, right=right, output=output,
        missing_left=(stream.random(len(feature)) < 0.5) * inner,
        value=np.where(inner, 0.0, stream.normal(size=len(feature))),
        rows=np.ones(len(feature), dtype=int), gain=inner * 1.0,
    )  # fmt: skip
