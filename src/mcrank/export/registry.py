"""Every export target by name. A new target is its file and one line here."""

from __future__ import annotations

import importlib

from mcrank.errors import OptionError, did_you_mean
from mcrank.export.target import Target

TARGETS: dict[str, str] = {
    "onnx": "mcrank.export.onnx:ONNX",
    "lightgbm": "mcrank.export.lightgbm:LightGBM",
    "xgboost": "mcrank.export.xgboost:XGBoost",
    "c": "mcrank.export.c:C",
    "javascript": "mcrank.export.javascript:JavaScript",
    "python": "mcrank.export.python:Python",
    "sql": "mcrank.export.sql:SQL",
    "shap": "mcrank.export.shap:Shap",
    "elasticsearch": "mcrank.export.elasticsearch:Elasticsearch",
    "opensearch": "mcrank.export.elasticsearch:OpenSearch",
    "solr": "mcrank.export.solr:Solr",
    "vespa": "mcrank.export.vespa:Vespa",
    "ranklib": "mcrank.export.ranklib:RankLib",
}


def target_class(name: str) -> type[Target]:
    """Return the target called ``name``.

    Examples
    --------
    >>> from mcrank.export.registry import target_class
    >>> target_class("lightgbm").suffixes
    ('.txt', '.lgb', '.model')
    >>> target_class("lightgmb")
    Traceback (most recent call last):
    mcrank.errors.OptionError: there is no export target 'lightgmb'; did you mean lightgbm?
    """
    if name not in TARGETS:
        raise OptionError(f"there is no export target {name!r}; {did_you_mean(name, TARGETS, 'targets:')}")
    module, _, class_name = TARGETS[name].partition(":")
    found: type[Target] = getattr(importlib.import_module(module), class_name)
    return found
