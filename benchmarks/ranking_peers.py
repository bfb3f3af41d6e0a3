"""Systems that train boosted trees on NDCG, for `benchmarks/rankers.py`: each runs in a process of its own.

prepare(job) -> run(rounds, predict) -> (seconds a round, scores of the test rows or None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers import Job, clock, load


@dataclass(frozen=True)
class RankingJob(Job):
    """Train on NDCG, pairs of the first ranks only: the same for every system."""

    leaves: int = 31
    rate: float = 0.1
    min_rows: int = 50
    cut: int = 10


Run = Callable[[int, bool], tuple[float, Any]]
_SKIPPED = 2  # first rounds, in which memory is touched for the first time


def per_round(stamps: list[float]) -> float:
    """Slope of the time over the rounds after the first ones."""
    first = min(_SKIPPED, len(stamps) - 2)
    return (stamps[-1] - stamps[first]) / (len(stamps) - 1 - first)


def lightgbm(job: RankingJob, **extra: Any) -> Run:
    import lightgbm as lgb

    params = {
        "objective": "lambdarank", "lambdarank_truncation_level": job.cut, "lambdarank_norm": False,
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


def lightgbm_by_columns(job: RankingJob) -> Run:
    return lightgbm(job, force_col_wise=True)


def lightgbm_by_rows(job: RankingJob) -> Run:
    return lightgbm(job, force_row_wise=True)


def xgboost(job: RankingJob) -> Run:
    import xgboost as xgb

    params = {
        "objective": "rank:ndcg", "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": job.cut, "tree_method": "hist", "grow_policy": "lossguide",
        "max_leaves": job.leaves, "max_depth": 0, "max_bin": job.bins, "eta": job.rate,
        "nthread": job.threads, "min_child_weight": 0, "lambda": 0,
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


def mcrank(job: RankingJob, **extra: Any) -> Run:
    from mcrank import Dataset, LambdaMART

    offsets = np.asarray(load(job, "train_offsets"))
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    data = Dataset(np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y")), queries)

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        ranker = LambdaMART(
            n_estimators=rounds, num_leaves=job.leaves, max_bins=job.bins, learning_rate=job.rate,
            min_samples_leaf=job.min_rows, n_jobs=job.threads, measure=f"ndcg@{job.cut}",
            binning="adaptive-refined",  # as many bins as the others have
            **extra,
        )  # fmt: skip
        stamps: list[float] = []
        ranker.fit(data, callback=lambda event: stamps.append(clock(job)()))
        return per_round(stamps), ranker.predict(np.asarray(load(job, "test_X"))) if predict else None

    return run


def mcrank_least_squares(job: RankingJob) -> Run:
    return mcrank(job, split="mse")


SYSTEMS: dict[str, Callable[[RankingJob], Run]] = {
    "mcrank LambdaMART": mcrank,
    "mcrank LambdaMART, least-squares splits": mcrank_least_squares,
    "LightGBM lambdarank, column-wise": lightgbm_by_columns,
    "LightGBM lambdarank, row-wise": lightgbm_by_rows,
    "XGBoost rank:ndcg": xgboost,
}
