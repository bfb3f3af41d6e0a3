"""Systems that boost trees on NDCG or on grades, for `rankers.py`, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from peers import Job, Run, by_slope, clock, load


@dataclass(frozen=True)
class RankingJob(Job):
    """Train on NDCG, pairs of the first ranks only, or on squared errors: the same for every system."""

    leaves: int = 31
    rate: float = 0.1
    min_rows: int = 50
    cut: int = 10
    squares: bool = False


_SKIPPED = 2  # first rounds, in which memory is touched for the first time


def per_round(stamps: list[float]) -> float:
    """Slope of the time over the rounds after the first ones."""
    first = min(_SKIPPED, len(stamps) - 2)
    return (stamps[-1] - stamps[first]) / (len(stamps) - 1 - first)


def lightgbm(job: RankingJob, **extra: Any) -> Run:
    import lightgbm as lgb

    ndcg = {"objective": "lambdarank", "lambdarank_truncation_level": job.cut, "lambdarank_norm": False}
    params = {
        **({"objective": "regression"} if job.squares else ndcg),
        "num_leaves": job.leaves, "max_bin": job.bins, "learning_rate": job.rate,
        "min_data_in_leaf": job.min_rows, "min_sum_hessian_in_leaf": 0.0, "num_threads": job.threads,
        "verbose": -1, "feature_pre_filter": False, **extra,
    }  # fmt: skip
    sizes = np.diff(load(job, "train_offsets"))
    data = lgb.Dataset(load(job, "train_X"), load(job, "train_y"), group=sizes, params=params)
    data.construct()

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        booster = lgb.Booster(params, data)
        stamps = [clock(job)()]
        for _ in range(rounds):
            booster.update()
            stamps.append(clock(job)())
        return per_round(stamps), booster.predict(load(job, "test_X")) if predict else None

    return run


def xgboost(job: RankingJob) -> Run:
    import xgboost as xgb

    ndcg = {
        "objective": "rank:ndcg", "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": job.cut, "min_child_weight": 0,
    }  # fmt: skip
    # Of squared errors every row weighs 1.
    squares = {"objective": "reg:squarederror", "min_child_weight": job.min_rows}
    params = {
        **(squares if job.squares else ndcg),
        "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": job.leaves, "max_depth": 0,
        "max_bin": job.bins, "eta": job.rate, "nthread": job.threads, "lambda": 0,
    }  # fmt: skip
    offsets = np.asarray(load(job, "train_offsets"))
    data = xgb.QuantileDMatrix(
        np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y")), max_bin=job.bins,
        nthread=job.threads, group=np.diff(offsets),
    )  # fmt: skip

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        booster = xgb.Booster(params, [data])
        stamps = [clock(job)()]
        for i in range(rounds):
            booster.update(data, i)
            stamps.append(clock(job)())
        scores = booster.predict(xgb.DMatrix(np.asarray(load(job, "test_X")))) if predict else None
        return per_round(stamps), scores

    return run


def sklearn(job: RankingJob) -> Run:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y"), dtype=np.float64)

    def made(rounds: int) -> Any:
        return HistGradientBoostingRegressor(
            max_iter=rounds, max_leaf_nodes=job.leaves, max_bins=job.bins, learning_rate=job.rate,
            min_samples_leaf=job.min_rows, early_stopping=False,
        )  # fmt: skip

    return by_slope(job, made, (X, y), "predict")


def catboost(job: RankingJob) -> Run:
    from catboost import CatBoostRegressor, Pool

    pool = Pool(np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y")))
    pool.quantize(border_count=min(254, job.bins - 1))

    def made(rounds: int) -> Any:
        return CatBoostRegressor(
            iterations=rounds, loss_function="RMSE", grow_policy="Lossguide", max_leaves=job.leaves,
            depth=16, learning_rate=job.rate, min_data_in_leaf=job.min_rows, bootstrap_type="No",
            l2_leaf_reg=0, random_strength=0, thread_count=job.threads, verbose=False,
            allow_writing_files=False,
        )  # fmt: skip

    return by_slope(job, made, (pool,), "predict")


def mcrank(job: RankingJob, **extra: Any) -> Run:
    from mcrank import Dataset, LambdaMART, RegressionRanker

    offsets = np.asarray(load(job, "train_offsets"))
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    data = Dataset(np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y")), queries)
    # As many bins as the others have; regression also as they lay them.
    lambdas = {"binning": "adaptive-refined", "truncation": job.cut, "norm": False}  # as the others
    own = {"binning": "quantile"} if job.squares else lambdas

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        ranker = (RegressionRanker if job.squares else LambdaMART)(
            n_estimators=rounds, num_leaves=job.leaves, max_bins=job.bins, learning_rate=job.rate,
            min_samples_leaf=job.min_rows, n_jobs=job.threads, measure=f"ndcg@{job.cut}", **own, **extra,
        )  # fmt: skip
        stamps: list[float] = []
        ranker.fit(data, callback=lambda event: stamps.append(clock(job)()))
        return per_round(stamps), ranker.predict(np.asarray(load(job, "test_X"))) if predict else None

    return run


_BY_COLUMNS = partial(lightgbm, force_col_wise=True)
_BY_ROWS = partial(lightgbm, force_row_wise=True)
# As its authors advise for few levels: leaves are fitted again to the gradients as they were.
_QUANTIZED = partial(lightgbm, use_quantized_grad=True, num_grad_quant_bins=4, quant_train_renew_leaf=True)
LAMBDA: dict[str, Callable[[RankingJob], Run]] = {
    "mcrank LambdaMART": mcrank,
    "mcrank LambdaMART, least-squares splits": partial(mcrank, split="mse"),
    "LightGBM lambdarank, column-wise": _BY_COLUMNS,
    "LightGBM lambdarank, row-wise": _BY_ROWS,
    "LightGBM lambdarank, quantized": _QUANTIZED,
    "XGBoost rank:ndcg": xgboost,
}
SQUARES: dict[str, Callable[[RankingJob], Run]] = {
    "mcrank RegressionRanker": mcrank,
    "LightGBM L2, column-wise": _BY_COLUMNS,
    "LightGBM L2, row-wise": _BY_ROWS,
    "LightGBM L2, quantized": _QUANTIZED,
    "XGBoost L2": xgboost,
    "scikit-learn HistGB": sklearn,
    "CatBoost Lossguide": catboost,
}
