"""Scaling and centring of rows, one feature and one query at a time."""

from __future__ import annotations

import numpy as np


def curved(column, kind):
    column = column.astype(np.float64)
    return np.sign(column) * np.log1p(np.abs(column)) if kind == "log" else column


def scaled(X, kind, fitted_on=None):
    """Rows scaled as `Scaling` promises, learned from ``fitted_on`` (themselves, if not said)."""
    learned = X if fitted_on is None else fitted_on
    out = np.zeros(X.shape)
    for f in range(X.shape[1]):
        known = curved(learned[:, f], kind)
        known = known[~np.isnan(known)]
        if len(known) == 0 or known.min() == known.max():
            continue  # it says nothing
        column = curved(X[:, f], kind)
        column = np.where(np.isnan(column), known.mean(), column)
        if kind == "minmax":
            out[:, f] = (column - known.min()) / (known.max() - known.min())
        elif kind == "none":
            out[:, f] = column
        else:
            out[:, f] = (column - known.mean()) / known.std()
    return out


def centred(rows, qid):
    """Rows minus the mean of their query."""
    out = np.empty_like(rows)
    for q in np.unique(qid):
        out[qid == q] = rows[qid == q] - rows[qid == q].mean(axis=0)
    return out
