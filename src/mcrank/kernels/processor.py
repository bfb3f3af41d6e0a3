"""What the processor can do that code is compiled for."""

from __future__ import annotations

from typing import Any


def has_features(context: Any, *names: str) -> bool:
    """Whether the processor of one of Numba's target contexts is an x86 with all of some features.

    Examples
    --------
    >>> from numba.core.registry import cpu_target
    >>> from mcrank.kernels.processor import has_features
    >>> has_features(cpu_target.target_context, "no such feature")
    False
    """
    triple, _, features = context.codegen().magic_tuple()
    return triple.startswith("x86_64") and {f"+{name}" for name in names} <= set(features.split(","))
