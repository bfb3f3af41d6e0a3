"""Workers that train one system each, driven over pipes, so that systems can be timed in alternation.

Every worker is a process of its own: no system's threads, allocator or caches stay behind in another's
process.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """A multiclass training job, the same for every system.

    ``rate`` multiplies the paper's leaf (K-1)/K Σg/Σp(1-p), as mcrank and LightGBM do. scikit-learn has no
    factor and XGBoost takes twice the curvature, so they get the rate that makes their steps as long.
    """

    folder: str  # with train_X.npy, train_y.npy, test_X.npy
    threads: int
    leaves: int = 10
    bins: int = 255
    rate: float = 0.05
    min_rows: int = 10


def load(job: Job, name: str) -> Any:
    return np.load(os.path.join(job.folder, f"{name}.npy"), mmap_mode="r")


def clock(job: Job) -> Callable[[], float]:
    """CPU time for one thread (what others do on the machine does not count), wall time for more."""
    return time.process_time if job.threads == 1 else time.perf_counter


# Each system: prepare(job) -> run(rounds, predict) -> (seconds a round, its answer for the test rows or None)
Run = Callable[[int, bool], tuple[float, Any]]


def by_slope(job: Job, made: Callable[[int], Any], data: tuple[Any, ...], answer: str) -> Run:
    """Time per round where there is no hook: the slope between two lengths leaves binning out.

    ``made`` is the model of so many rounds, ``answer`` what its method for the test rows is called.
    """

    def fit(rounds: int) -> tuple[float, Any]:
        model = made(rounds)
        began = clock(job)()
        model.fit(*data)
        return clock(job)() - began, model

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        few = max(2, rounds // 5)
        fit(few)  # the first of a turn pays for memory the system took back
        short, _ = fit(few)
        long, model = fit(rounds)
        found = getattr(model, answer)(np.asarray(load(job, "test_X"))) if predict else None
        return (long - short) / (rounds - few), found

    return run


def lightgbm(job: Job, **extra: Any) -> Run:
    import lightgbm as lgb

    params = {
        "objective": "multiclass", "num_class": 5, "num_leaves": job.leaves, "max_bin": job.bins,
        "learning_rate": job.rate, "min_data_in_leaf": job.min_rows, "num_threads": job.threads,
        "verbose": -1, "feature_pre_filter": False, **extra,
    }  # fmt: skip
    data = lgb.Dataset(load(job, "train_X"), load(job, "train_y"), params=params, free_raw_data=False)
    data.construct()

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        booster = lgb.Booster(params, data)
        times = []
        for _ in range(rounds):
            began = clock(job)()
            booster.update()
            times.append(clock(job)() - began)
        return float(np.median(times[2:])), booster.predict(load(job, "test_X")) if predict else None

    return run


def xgboost(job: Job) -> Run:
    import xgboost as xgb

    params = {
        "objective": "multi:softprob", "num_class": 5, "tree_method": "hist", "grow_policy": "lossguide",
        "max_leaves": job.leaves, "max_depth": 0, "max_bin": job.bins, "eta": 2 * 0.8 * job.rate,
        "nthread": job.threads, "min_child_weight": 0, "lambda": 0,
    }  # fmt: skip
    X, y = np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y"))
    data = xgb.QuantileDMatrix(X, y, max_bin=job.bins, nthread=job.threads)

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        booster = xgb.Booster(params, [data])
        times = []
        for i in range(rounds):
            began = clock(job)()
            booster.update(data, i)
            times.append(clock(job)() - began)
        scores = booster.predict(xgb.DMatrix(np.asarray(load(job, "test_X")))) if predict else None
        return float(np.median(times[2:])), scores

    return run


def sklearn(job: Job) -> Run:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y"))

    def made(rounds: int) -> Any:
        return HistGradientBoostingClassifier(
            max_iter=rounds, max_leaf_nodes=job.leaves, max_bins=job.bins, learning_rate=0.8 * job.rate,
            min_samples_leaf=job.min_rows, early_stopping=False,
        )  # fmt: skip

    return by_slope(job, made, (X, y), "predict_proba")


def catboost(job: Job) -> Run:
    from catboost import CatBoostClassifier, Pool

    pool = Pool(np.asarray(load(job, "train_X")), np.asarray(load(job, "train_y")))
    pool.quantize(border_count=min(254, job.bins - 1))

    def made(rounds: int) -> Any:
        return CatBoostClassifier(
            iterations=rounds, loss_function="MultiClass", grow_policy="Lossguide", max_leaves=job.leaves,
            depth=16, learning_rate=job.rate, min_data_in_leaf=job.min_rows, bootstrap_type="No",
            thread_count=job.threads, verbose=False, allow_writing_files=False,
        )  # fmt: skip

    return by_slope(job, made, (pool,), "predict_proba")


def mcrank(job: Job, **extra: Any) -> Run:
    from mcrank import Dataset, McRank

    X = np.asarray(load(job, "train_X"))
    data = Dataset(X, np.asarray(load(job, "train_y")), np.arange(len(X)) // 50)

    def run(rounds: int, predict: bool) -> tuple[float, Any]:
        stamps: list[float] = []
        ranker = McRank(
            n_estimators=rounds, num_leaves=job.leaves, max_bins=job.bins, learning_rate=job.rate,
            min_samples_leaf=job.min_rows, n_jobs=job.threads,
            # As the others do: the gain of second order, bins of equal counts, a start from the shares.
            split="newton", binning="quantile", init="prior",
            **extra,
        )  # fmt: skip
        ranker.fit(data, callback=lambda event: stamps.append(clock(job)()))
        return float(np.median(np.diff(stamps))), (
            ranker.predict_proba(np.asarray(load(job, "test_X"))) if predict else None
        )

    return run


SYSTEMS: dict[str, Callable[[Job], Run]] = {
    "mcrank": mcrank,
    "LightGBM column-wise": lambda job: lightgbm(job, force_col_wise=True),
    "LightGBM row-wise": lambda job: lightgbm(job, force_row_wise=True),
    "LightGBM quantized": lambda job: lightgbm(
        job, use_quantized_grad=True, num_grad_quant_bins=4, quant_train_renew_leaf=True
    ),
    "XGBoost hist": xgboost,
    "scikit-learn HistGB": sklearn,
    "CatBoost Lossguide": catboost,
}


def _serve(system: str | Callable[[Any], Any], job: Job, pipe: Any) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(job.threads)
    warnings.simplefilter("ignore")
    run = (SYSTEMS[system] if isinstance(system, str) else system)(job)
    run(3, False)  # compile, warm caches
    pipe.send("ready")
    while (request := pipe.recv()) is not None:
        pipe.send(run(*request))


class Worker:
    """One system, by its name above or as a function of its own, in a process of its own."""

    def __init__(self, system: str | Callable[[Any], Any], job: Job) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(system, job, theirs), daemon=True)
        self.process.start()
        theirs.close()  # so that a worker that dies is noticed
        if self.pipe.recv() != "ready":
            raise RuntimeError(f"{system} did not start")

    def run(self, rounds: int, predict: bool = False) -> tuple[float, Any]:
        self.pipe.send((rounds, predict))
        return self.pipe.recv()  # type: ignore[no-any-return]

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join()
