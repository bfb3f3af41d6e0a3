"""All targets by name."""

from __future__ import annotations

import importlib
import os

from tests.fuzz.bins import BinsTarget
from tests.fuzz.containers import CacheTarget, ModelTarget
from tests.fuzz.foreign import CatBoostTarget, LightGBMTarget, RankLibTarget, UbjsonTarget, XGBoostTarget
from tests.fuzz.tables import Tables
from tests.fuzz.target import Target
from tests.fuzz.texts import Letor, QrelsTarget, RunsTarget, Scores

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        ModelTarget,
        CacheTarget,
        BinsTarget,
        Letor,
        Tables,
        QrelsTarget,
        RunsTarget,
        Scores,
        LightGBMTarget,
        XGBoostTarget,
        UbjsonTarget,
        CatBoostTarget,
        RankLibTarget,
    )
}


def find_target(name: str) -> Target:
    """Return a target by its name; ``MCRANK_FUZZ_TARGET`` (module:class) is one more, to try the harness."""
    module, _, extra = os.environ.get("MCRANK_FUZZ_TARGET", "").partition(":")
    if name not in TARGETS and module:
        found: type[Target] = getattr(importlib.import_module(module), extra)
        return found()
    return TARGETS[name]()
