"""Data sets put one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.data.categories import Categories, joined
from mcrank.data.columns import object_array
from mcrank.data.dataset import Dataset
from mcrank.data.ids import join_ids
from mcrank.data.tables import Features
from mcrank.errors import DataError


def merge(parts: list[Dataset], same_query: str) -> Dataset:
    """Merge as `Dataset.merge` tells."""
    if not parts:
        raise DataError("merge was given no Dataset; name at least one.")
    if same_query not in ("error", "join"):
        raise DataError(f"same_query of merge must be 'error' or 'join', got {same_query!r}.")
    model, features = _merged_features(parts)
    titles = [f"part {number} of merge" for number in range(len(parts))]
    ids = join_ids(
        [(title, part.qids) for title, part in zip(titles, parts, strict=True)], "query ids"
    ).tolist()
    if same_query == "error" and len(set(ids)) < len(ids):
        twice = _first_twice(ids)
        raise DataError(
            f"query {twice!r} is in two parts of merge; same_query='join' makes its rows one query."
        )
    weighted = any(part.weight is not None for part in parts)
    query_weighted = any(part.query_weight is not None for part in parts)
    by_query: dict[Any, float] = {}
    for part in parts if query_weighted else []:
        weights = np.ones(part.n_queries) if part.query_weight is None else part.query_weight
        for q, weight in zip(part.qids.tolist(), weights.tolist(), strict=True):
            if by_query.setdefault(q, weight) != weight:
                raise DataError(
                    f"query {q!r} has weights {by_query[q]:g} and {weight:g} in two parts of merge."
                )
    documented = any(part.doc_ids is not None for part in parts)
    matrices, categories = joined(features, model.feature_names, "merge")
    X = np.concatenate(matrices)
    X.setflags(write=False)
    data = Dataset.of_features(
        Features(X, model.feature_names, (), categories),
        np.concatenate([part.y for part in parts]),
        np.repeat(object_array(ids), np.concatenate([part.sizes for part in parts])),
        np.concatenate([np.ones(len(p)) if p.weight is None else p.weight for p in parts])
        if weighted
        else None,
        by_query if query_weighted else None,
        doc_ids=join_ids(
            [
                (title, np.full(len(p), "", object) if p.doc_ids is None else p.doc_ids)
                for title, p in zip(titles, parts, strict=True)
            ],
            "document ids",
        )
        if documented
        else None,
    )
    object.__setattr__(data, "named", model.named)
    object.__setattr__(data, "dropped_queries", sum(part.dropped_queries for part in parts))
    return data


def _merged_features(parts: list[Dataset]) -> tuple[Dataset, list[tuple[FeatureArray, Categories]]]:
    """The part that names the features, and the matrices and categories of all in its order."""
    model = next((part for part in parts if part.named), parts[0])
    features: list[tuple[FeatureArray, Categories]] = []
    for number, part in enumerate(parts):
        if part.n_features != model.n_features:
            raise DataError(
                f"part {number} of merge has other features than part 0: {part.n_features} against "
                f"{model.n_features}; parts must agree in their features."
            )
        if not part.named or part.feature_names == model.feature_names:
            features.append((part.X, part.categories))
            continue
        places = {name: j for j, name in enumerate(part.feature_names)}
        missing = [name for name in model.feature_names if name not in places]
        if missing:
            raise DataError(
                f"part {number} of merge has other features than the first: no {missing[0]!r}; parts must "
                "agree in their names."
            )
        at = [places[name] for name in model.feature_names]
        own = {j: part.categories[f] for j, f in enumerate(at) if f in part.categories}
        features.append((part.X[:, at], own))
    return model, features


def _first_twice(ids: list[Any]) -> Any:
    seen: set[Any] = set()
    return next(q for q in ids if q in seen or seen.add(q))  # type: ignore[func-returns-value]
