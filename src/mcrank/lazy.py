"""Attributes that are computed when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):
    """A property that is computed once per object and kept in its ``__dict__``.

    As `functools.cached_property`, but without the lock that one has up to Python 3.11: a process forked
    while another thread was computing would wait for it forever. Two threads that ask at the same time may
    both compute; they get one and the same value.

    Examples
    --------
    >>> from mcrank.lazy import lazy
    >>> class Circle:
    ...     @lazy
    ...     def area(self):
    ...         print("computed")
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (3.0, 3.0)
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        if instance is None:
            return self
        # Only the first time: from then on the value in the object's own dictionary comes first.
        value: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
