"""The few errors mcrank raises on purpose.

Every message has one form: what, where, what was found, what to do.
"""

from __future__ import annotations


class McrankError(Exception):
    """Base of every error mcrank raises on purpose."""


class OptionError(McrankError, ValueError, TypeError):
    """An option is unknown or out of its bounds."""


class DataError(McrankError, ValueError):
    """Data cannot be used as given: wrong shape, wrong value, unreadable file."""


class MeasureError(McrankError, ValueError):
    """A measure or dialect is unknown, or cannot be computed on this data."""


class ModelFileError(McrankError, ValueError):
    """A model file is damaged, hostile, or written by a newer version."""


class NotFittedError(McrankError, ValueError, AttributeError):
    """A ranker was asked for what only a fitted ranker has."""


class KernelError(McrankError, RuntimeError):
    """Compiled code cannot be had here; neither the data nor the model is at fault."""
