"""mcrank: learning to rank by the probability of every grade, and evaluation that every tool would sign.

Names are imported when first used, so that ``import mcrank`` and ``mcrank --help`` stay instant.
"""

from __future__ import annotations

import importlib

import mcrank.forks as _forks  # noqa: F401 - from now on forks wait for imports and compilations of others

__version__ = "0.2.0.dev0"  # the one place that says it

# Public name -> module that holds it. One line each; `__getattr__` does the rest.
_HOMES = {
    "Dataset": "mcrank.data.dataset",
    "read": "mcrank.data.read",
    "scan": "mcrank.data.scan",
    "write_bins": "mcrank.boosting.store",
    "open_bins": "mcrank.boosting.store",
    "write": "mcrank.data.write",
    "read_folds": "mcrank.data.folds",
    "split": "mcrank.data.folds",
    "kfold": "mcrank.data.folds",
    "diagnose": "mcrank.doctor.diagnose",
    "join_trec": "mcrank.data.join",
    "datasets": "mcrank.datasets",
    "stats": "mcrank.stats",
    "make_artificial": "mcrank.data.artificial",
    "McRank": "mcrank.rankers.mcrank",
    "OrdinalMcRank": "mcrank.rankers.mcrank",
    "RegressionRanker": "mcrank.rankers.regression",
    "GBRank": "mcrank.rankers.gbrank",
    "LambdaMART": "mcrank.rankers.lambdamart",
    "BestFeature": "mcrank.rankers.best_feature",
    "AdaRank": "mcrank.rankers.adarank",
    "RankSVM": "mcrank.rankers.ranksvm",
    "RankNet": "mcrank.rankers.nets",
    "LambdaRank": "mcrank.rankers.nets",
    "RankBoost": "mcrank.rankers.rankboost",
    "CoordinateAscent": "mcrank.rankers.coordinate_ascent",
    "Blend": "mcrank.rankers.blend",
    "FRank": "mcrank.rankers.frank",
    "CustomRanker": "mcrank.rankers.custom",
    "check_gradient": "mcrank.losses.custom",
    "ImportedRanker": "mcrank.rankers.imported",
    "distil": "mcrank.rankers.distil",
    "load": "mcrank.models.file",
    "from_lightgbm": "mcrank.models.imports.lightgbm",
    "from_xgboost": "mcrank.models.imports.xgboost",
    "from_catboost": "mcrank.models.imports.catboost",
    "from_sklearn": "mcrank.models.imports.sklearn",
    "from_ranklib": "mcrank.models.imports.ranklib",
    "compare": "mcrank.experiments.compare",
    "analyze": "mcrank.analysis.analysis",
    "tune": "mcrank.tuning.tune",
    "TuneSearchCV": "mcrank.tuning.search_cv",
    "learning_curve": "mcrank.tuning.learning_curve",
    "Comparison": "mcrank.experiments.comparison",
    "NDCG": "mcrank.metrics.dcg",
    "evaluate": "mcrank.metrics.evaluate",
    "DCG": "mcrank.metrics.dcg",
    "MeanNDCG": "mcrank.metrics.dcg",
    "Precision": "mcrank.metrics.precision",
    "Recall": "mcrank.metrics.precision",
    "MAP": "mcrank.metrics.precision",
    "MRR": "mcrank.metrics.cascade",
    "ERR": "mcrank.metrics.cascade",
    "RBP": "mcrank.metrics.precision",
    "Success": "mcrank.metrics.cascade",
    "Kendall": "mcrank.metrics.kendall",
    "PFound": "mcrank.metrics.cascade",
    "Best": "mcrank.metrics.best",
    "CustomMeasure": "mcrank.metrics.custom",
    "Measure": "mcrank.metrics.measure",
    "parse_measure": "mcrank.metrics.measure",
    "Dialect": "mcrank.metrics.dialect",
    "define_dialect": "mcrank.metrics.tools",
    "Grades": "mcrank.data.grades",
    "Qrels": "mcrank.data.trec",
    "Run": "mcrank.data.trec",
    "reproduce": "mcrank.papers.reproduce",
    "rosetta": "mcrank.metrics.rosetta",
    "rank_biased_overlap": "mcrank.metrics.overlap",
    "trec_report": "mcrank.metrics.trec_eval",
    "McrankError": "mcrank.errors",
    "OptionError": "mcrank.errors",
    "DataError": "mcrank.errors",
    "LossError": "mcrank.errors",
    "ClusterError": "mcrank.errors",
    "Cluster": "mcrank.scale.cluster",
    "MeasureError": "mcrank.errors",
    "ModelFileError": "mcrank.errors",
    "NotFittedError": "mcrank.errors",
}

__all__ = ["__version__", *_HOMES]

TYPE_CHECKING = False  # as type checkers read it; `typing` takes longer to load than all of this package
if TYPE_CHECKING:
    from typing import Any

    from mcrank import datasets as datasets
    from mcrank import stats as stats
    from mcrank.analysis.analysis import analyze as analyze
    from mcrank.boosting.store import open_bins as open_bins
    from mcrank.boosting.store import write_bins as write_bins
    from mcrank.data.artificial import make_artificial as make_artificial
    from mcrank.data.dataset import Dataset as Dataset
    from mcrank.data.folds import kfold as kfold
    from mcrank.data.folds import read_folds as read_folds
    from mcrank.data.folds import split as split
    from mcrank.data.grades import Grades as Grades
    from mcrank.data.join import join_trec as join_trec
    from mcrank.data.read import read as read
    from mcrank.data.scan import scan as scan
    from mcrank.data.trec import Qrels as Qrels
    from mcrank.data.trec import Run as Run
    from mcrank.data.write import write as write
    from mcrank.doctor.diagnose import diagnose as diagnose
    from mcrank.errors import ClusterError as ClusterError
    from mcrank.errors import DataError as DataError
    from mcrank.errors import LossError as LossError
    from mcrank.errors import McrankError as McrankError
    from mcrank.errors import MeasureError as MeasureError
    from mcrank.errors import ModelFileError as ModelFileError
    from mcrank.errors import NotFittedError as NotFittedError
    from mcrank.errors import OptionError as OptionError
    from mcrank.experiments.compare import compare as compare
    from mcrank.experiments.comparison import Comparison as Comparison
    from mcrank.losses.custom import check_gradient as check_gradient
    from mcrank.metrics.best import Best as Best
    from mcrank.metrics.cascade import ERR as ERR
    from mcrank.metrics.cascade import MRR as MRR
    from mcrank.metrics.cascade import PFound as PFound
    from mcrank.metrics.cascade import Success as Success
    from mcrank.metrics.custom import CustomMeasure as CustomMeasure
    from mcrank.metrics.dcg import DCG as DCG
    from mcrank.metrics.dcg import NDCG as NDCG
    from mcrank.metrics.dcg import MeanNDCG as MeanNDCG
    from mcrank.metrics.dialect import Dialect as Dialect
    from mcrank.metrics.evaluate import evaluate as evaluate
    from mcrank.metrics.kendall import Kendall as Kendall
    from mcrank.metrics.measure import Measure as Measure
    from mcrank.metrics.measure import parse_measure as parse_measure
    from mcrank.metrics.overlap import rank_biased_overlap as rank_biased_overlap
    from mcrank.metrics.precision import MAP as MAP
    from mcrank.metrics.precision import RBP as RBP
    from mcrank.metrics.precision import Precision as Precision
    from mcrank.metrics.precision import Recall as Recall
    from mcrank.metrics.rosetta import rosetta as rosetta
    from mcrank.metrics.tools import define_dialect as define_dialect
    from mcrank.metrics.trec_eval import trec_report as trec_report
    from mcrank.models.file import load as load
    from mcrank.models.imports.catboost import from_catboost as from_catboost
    from mcrank.models.imports.lightgbm import from_lightgbm as from_lightgbm
    from mcrank.models.imports.ranklib import from_ranklib as from_ranklib
    from mcrank.models.imports.sklearn import from_sklearn as from_sklearn
    from mcrank.models.imports.xgboost import from_xgboost as from_xgboost
    from mcrank.papers.reproduce import reproduce as reproduce
    from mcrank.rankers.adarank import AdaRank as AdaRank
    from mcrank.rankers.best_feature import BestFeature as BestFeature
    from mcrank.rankers.blend import Blend as Blend
    from mcrank.rankers.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from mcrank.rankers.custom import CustomRanker as CustomRanker
    from mcrank.rankers.distil import distil as distil
    from mcrank.rankers.frank import FRank as FRank
    from mcrank.rankers.gbrank import GBRank as GBRank
    from mcrank.rankers.imported import ImportedRanker as ImportedRanker
    from mcrank.rankers.lambdamart import LambdaMART as LambdaMART
    from mcrank.rankers.mcrank import McRank as McRank
    from mcrank.rankers.mcrank import OrdinalMcRank as OrdinalMcRank
    from mcrank.rankers.nets import LambdaRank as LambdaRank
    from mcrank.rankers.nets import RankNet as RankNet
    from mcrank.rankers.rankboost import RankBoost as RankBoost
    from mcrank.rankers.ranksvm import RankSVM as RankSVM
    from mcrank.rankers.regression import RegressionRanker as RegressionRanker
    from mcrank.scale.cluster import Cluster as Cluster
    from mcrank.tuning.learning_curve import learning_curve as learning_curve
    from mcrank.tuning.search_cv import TuneSearchCV as TuneSearchCV
    from mcrank.tuning.tune import tune as tune


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mcrank' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if home == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
