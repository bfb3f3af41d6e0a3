"""Areas of kernels, and how each is compiled.

Kernels compile when they are first called, so each area is used once, through its public names, on as little
data as reaches all of its kernels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

# Threads would be longer in starting than in working.
_SMALL: dict[str, Any] = {"n_estimators": 2, "num_leaves": 3, "min_samples_leaf": 2, "n_jobs": 1}


def use_readers() -> None:
    """Read LETOR text with everything it may contain."""
    from mcrank.data.read import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        path.write_text(
            "1 qid:1 1:0.5 2:NULL #docid = A\n0 qid:b 2:1e-3\n2 qid:1 1:-7 # B\n", encoding="ascii"
        )
        read(path)
        read(path, absent="missing")


def use_serving() -> None:
    """Read rows of JSON, as the service does."""
    import numpy as np

    from mcrank.serve.json_kernels import PADDING, read_table, room_for

    read_table(np.zeros(PADDING, dtype=np.uint8), 0, False, *room_for(0))


def _rows_for_trees() -> Any:
    from mcrank import make_artificial

    return make_artificial(n_train=20, n_valid=1, n_test=1, docs_per_query=10, n_features=3).train


def use_bins() -> None:
    """Cut features into bins, and load what all trees need: much of it is compiled when it is imported."""
    from mcrank import RegressionRanker  # noqa: F401 - some kernels are compiled when it is imported
    from mcrank.boosting.binning import bin_dataset, find_bins

    data = _rows_for_trees()
    for binning in ("adaptive", "quantile"):
        bin_dataset(data, find_bins(data.X, 256, binning))


def use_trees() -> None:
    """Train each ranker of grades, classes and grade boundaries in each of its ways.

    Without validation data: measures are compiled beside it, and so are roots, which later rankers need.
    """
    from mcrank import (
        Dataset,
        McRank,
        OrdinalMcRank,
        RegressionRanker,
        make_artificial,
        open_bins,
        write_bins,
    )

    train = _rows_for_trees()
    weighted = Dataset(train.X, train.y, train.qid, weight=train.y + 1)
    ways: list[dict[str, Any]] = [{}, {"split": "newton"}, {"binning": "quantile"}]
    for ranker_class in (RegressionRanker, McRank, OrdinalMcRank):
        for way in ways:
            ranker_class(**_SMALL, **way).fit(train)
        ranker_class(**_SMALL, subsample=0.5, colsample=0.5).fit(weighted)
    McRank(**_SMALL, sequential=True).fit(train)
    adaptive = McRank(**_SMALL, base_class="adaptive").fit(weighted)
    McRank(**_SMALL, base_class="adaptive").fit(weighted, init_model=adaptive)
    RegressionRanker(**_SMALL, loss="lad").fit(train).refit(train)
    # As many rows as it takes for a root to follow from the leaves before.
    RegressionRanker(**_SMALL).fit(make_artificial(n_train=160, n_valid=1, n_test=1, docs_per_query=10).train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.bins")
        write_bins(train, path)
        RegressionRanker(**_SMALL, subsample=0.5).fit(open_bins(path))
        RegressionRanker(**_SMALL, dart=True, skip_drop=0.0).fit(open_bins(path))


def use_limits() -> None:
    """Train with limits on splits, and in bins of 16 bits: one kernel grows both, and trees on categories."""
    from mcrank import McRank, RegressionRanker, open_bins, write_bins

    train = _rows_for_trees()
    RegressionRanker(**_SMALL, l2=1.0, monotone=[1, 0, 0]).fit(train)
    McRank(**_SMALL, max_bins=300).fit(train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.bins")
        write_bins(train, path, max_bins=300)
        RegressionRanker(**_SMALL, max_bins=300, subsample=0.5).fit(open_bins(path))
        RegressionRanker(**_SMALL, max_bins=300, dart=True, skip_drop=0.0).fit(open_bins(path))


def _sum_roots(rows: int, children: bool) -> None:
    """Sum the roots of five trees on so many rows, perhaps with their smaller children."""
    import numpy as np

    from mcrank import Dataset
    from mcrank.boosting.binning import bin_dataset, find_bins
    from mcrank.boosting.packing import Packing
    from mcrank.boosting.roots import SharedRoots
    from mcrank.boosting.rules import Rules
    from mcrank.boosting.workspace import BinnedArrays
    from mcrank.losses.quantize import GRADIENT_BITS, Gradients
    from mcrank.threads import run_all

    side = np.arange(rows) % 2  # children have half of the rows
    data = Dataset(side[:, None].astype(np.float32), side, side)
    binned = BinnedArrays.of(bin_dataset(data, find_bins(data.X, 256, "adaptive")))
    packing = Packing.of(len(side), derived=True)
    roots = SharedRoots(binned.columns, packing, 5, balanced=True)
    if children:
        roots.count_children(binned, Rules(3, 1, packing))
    half = (1 << GRADIENT_BITS) // 2
    gradients = np.repeat(np.where(data.X[:, 0] > 0, half, -half)[None], 5, axis=0).astype(np.int32)
    roots.fill(Gradients(gradients), 1, partial(run_all, n_jobs=1))


def use_roots() -> None:
    """Sum the roots of several trees, of more rows of a bin than counters of five outputs take."""
    _sum_roots(2_000, children=False)


def use_large() -> None:
    """Count the smaller children of the roots, of as many rows as are enough for a pass."""
    _sum_roots(60_000, children=True)


def use_vectors() -> None:
    """Grow trees that share their splits."""
    from mcrank import McRank

    McRank(**_SMALL, multi_output="tree").fit(_rows_for_trees())


def use_places() -> None:
    """Train at two places that talk to each other, as workers of a cluster do."""
    from concurrent.futures import ThreadPoolExecutor

    from mcrank import LambdaMART, McRank, make_artificial
    from mcrank.rankers.cluster import Training
    from mcrank.rankers.stored import measure_of
    from mcrank.scale.mesh import Mesh
    from mcrank.scale.sockets import pairs
    from mcrank.scale.worker import Orders, train_place

    train, _, _ = make_artificial(n_train=20, n_valid=1, n_test=1, docs_per_query=10, n_features=3)
    halves = [train.select(range(10)), train.select(range(10, 20))]
    ways: list[dict[str, Any]] = [{}, {"split": "newton"}, {"max_bins": 300, "subsample": 0.5}]
    rankers = [McRank(**_SMALL, **way) for way in ways] + [LambdaMART(**_SMALL)]
    for ranker in rankers:
        options = ranker.checked_options()
        job = Training(ranker, options | {"measure": measure_of(options), "memory": None}, None)
        meshes = [Mesh(carrier) for carrier in pairs(2)]
        with ThreadPoolExecutor(2) as pool:
            orders = Orders(job, False, None, [], 1)
            list(pool.map(lambda mesh, o=orders: train_place(o, halves[mesh.rank], None, mesh), meshes))
        for mesh in meshes:
            mesh.close()


def use_pairwise_trees() -> None:
    """Grow trees on pairs of documents."""
    from mcrank import FRank, GBRank, LambdaMART, make_artificial

    train, valid, _ = make_artificial(n_train=20, n_valid=5, n_test=1, docs_per_query=10, n_features=3)
    FRank(**_SMALL, scorer="trees").fit(train)
    LambdaMART(**_SMALL).fit(train, valid=valid)
    GBRank(**_SMALL).fit(train)


def use_linear() -> None:
    """Train the rankers whose scorer is linear."""
    from mcrank import CoordinateAscent, RankSVM, make_artificial

    train, valid, _ = make_artificial(n_train=5, n_valid=5, n_test=1, docs_per_query=10, n_features=3)
    RankSVM().fit(train, valid=valid)
    CoordinateAscent(restarts=1).fit(train, valid=valid)


def use_stumps() -> None:
    """Boost stumps on each loss."""
    from mcrank import FRank, RankBoost, make_artificial

    train, valid, _ = make_artificial(n_train=4, n_valid=2, n_test=1, docs_per_query=10, n_features=2)
    RankBoost(n_estimators=1).fit(train, valid=valid)
    FRank(n_estimators=1).fit(train, valid=valid)


def use_long_queries() -> None:
    """Sum the pairs of a query so long that it is done in boxes."""
    import numpy as np

    from mcrank import FRank
    from mcrank.losses.boxes import LONG

    rows = np.arange(LONG)
    FRank(n_estimators=1).fit(rows[:, None] % 7, rows % 3, qid=np.zeros(LONG))


def use_nets() -> None:
    """Train nets for an epoch."""
    from mcrank import LambdaRank, RankNet, make_artificial

    train, valid, _ = make_artificial(n_train=4, n_valid=2, n_test=1, docs_per_query=10, n_features=3)
    for ranker_class in (RankNet, LambdaRank):
        ranker_class(epochs=1).fit(train, valid=valid)


def use_scorers() -> None:
    """Load what models of trees take, and score a few rows and many, with one output and with several."""
    import numpy as np

    from mcrank import LambdaMART, McRank  # noqa: F401 - some kernels are compiled when they are imported
    from mcrank.scorers.forest.forest import ForestBuilder
    from mcrank.scorers.forest.predict import predict_raw

    for outputs in (1, 2):
        builder = ForestBuilder(n_features=1, base=np.zeros(outputs))
        for tree in range(4):
            builder.append(
                feature=[0, -1, -1],
                threshold=[float(tree), 0.0, 0.0],
                left=[1, -1, -1],
                right=[2, -1, -1],
                value=[0.0, -1.0, 1.0],
                output=tree % outputs,
            )
        for rows in (1, 8, 40, 1000):
            predict_raw(builder.build(), np.zeros((rows, 1), dtype=np.float32))


def use_explanations() -> None:
    """Take contributions of rows, and explain a pair."""
    import numpy as np

    import mcrank.explain.contributions  # noqa: F401 - some kernels are compiled when it is imported
    from mcrank.explain.between import forest_between
    from mcrank.explain.forest import forest_contributions
    from mcrank.explain.profile import forest_profiles, steps_of
    from mcrank.scorers.forest.forest import ForestBuilder

    builder = ForestBuilder(n_features=2, base=[0.0])
    builder.append(
        feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0.0, -1.0, 1.0], rows=[2, 1, 1]
    )
    forest, X = builder.build(), np.zeros((2, 2), dtype=np.float32)
    forest_contributions(forest, X)
    forest_between(forest, X, X[0])
    forest_profiles(forest, X[0], steps_of(forest))


def use_measures() -> None:
    """Take every measure, under each rule for ties, and those that count rows in other ways."""
    import numpy as np

    from mcrank import NDCG, Dataset, Dialect
    from mcrank.metrics.evaluate import evaluate
    from mcrank.metrics.measure import MEASURES, find_measure

    rows = 100
    data = Dataset(np.zeros((rows, 1)), y=np.arange(rows) % 2, qid=np.arange(rows) // 50)
    scores = np.arange(rows) % 7.0
    for label in MEASURES:
        for ties in ("file", "expected"):
            evaluate(scores, data, [find_measure(label)(dialect=Dialect("any", ties=ties))], band=True)
    evaluate(scores, data, [NDCG(k=1)])
    evaluate(scores, data, ["ndcg@1", "map"])
    evaluate(scores, data, ["num_ret"])
    # More grades than most data have: some, and so many that counting them per query does not pay.
    some = Dataset(data.X, y=np.arange(rows) % 12, qid=data.qid)
    many = Dataset(data.X, y=np.arange(rows) * 2, qid=np.arange(rows))
    for graded in (some, many):
        evaluate(scores, graded, ["map"])


def use_pairs() -> None:
    """Take the gradients of pairs, which trees and nets share."""
    import numpy as np

    from mcrank import NDCG, Dataset
    from mcrank.losses.lambdas import lambda_gradients
    from mcrank.losses.pairwise import FidelityLoss, PairwiseLogistic

    def run(task: Callable[[int], Any], items: Sequence[int]) -> None:
        for item in items:
            task(item)

    data = Dataset(np.zeros((4, 1)), y=[0, 1, 2, 1], qid=[1, 1, 1, 1])
    lambda_gradients(NDCG().on(data), np.zeros(4))
    for kind in (PairwiseLogistic, FidelityLoss):
        loss = kind(data.y, data.offsets)
        gradients = loss.allocate("newton")
        loss.fill(np.zeros((1, 4)), gradients, run)


def use_general_lambdas() -> None:
    """Take the lambdas of a measure that is no sum over ranks."""
    import numpy as np

    from mcrank import MAP, Dataset
    from mcrank.losses.lambdas import lambda_gradients

    data = Dataset(np.zeros((2, 1)), y=[0, 1], qid=[1, 1])
    lambda_gradients(MAP().on(data), np.zeros(2))


class Area(NamedTuple):
    """A part of the package, and the areas whose kernels it uses: compiled before, they are in the cache."""

    use: Callable[[], None]
    needs: frozenset[str] = frozenset()


# The longest first, so that the others run beside it: trees take a third of all. What trees and roots both
# import is compiled when it is imported, so that comes before either.
AREAS = {
    "bins": Area(use_bins),
    "trees": Area(use_trees, frozenset({"bins"})),
    "measuring": Area(use_measures),
    "roots": Area(use_roots, frozenset({"bins"})),
    "pairs": Area(use_pairs),
    "stumps": Area(use_stumps, frozenset({"measuring", "pairs"})),
    "scoring": Area(use_scorers, frozenset({"bins"})),
    "linear": Area(use_linear, frozenset({"measuring"})),
    "nets": Area(use_nets, frozenset({"measuring", "pairs"})),
    "reading": Area(use_readers),
    "pairwise": Area(use_pairwise_trees, frozenset({"trees", "measuring", "pairs", "stumps"})),
}
ON_DEMAND = {
    # For trainings of four trees a round and more on 58,000 rows and more.
    "large": Area(use_large, frozenset({"roots", "trees"})),
    # What some ask of a model later, and what only the service needs.
    "explaining": Area(use_explanations),
    "serving": Area(use_serving),
    # The larger kernel of trees, for options that are off by default (`mcrank.boosting.plain`).
    "limits": Area(use_limits, frozenset({"trees"})),
    # An eighth of all compiling, for one option that is off by default.
    "vectors": Area(use_vectors, frozenset({"trees"})),
    # A sixteenth, for queries of 4,096 rows and more in training on pairs.
    "long": Area(use_long_queries, frozenset({"stumps"})),
    # A twentieth, for lambdas of MAP, ERR and others that are no sums over ranks, or of scores far apart.
    "general": Area(use_general_lambdas, frozenset({"measuring", "pairs"})),
}
FOR_CLUSTER = {"cluster": Area(use_places, frozenset({"trees", "pairwise"}))}
