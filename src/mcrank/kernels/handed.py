"""Tuples of many arrays, handed from step to step as one pointer.

Numba passes a named tuple as all it is made of, seven values and more for each array: a tree that grows is
550, which are taken apart at each call and put together again in each step, before LLVM finds most of them
unused. ``handed(tuple)`` puts a tuple where its kernel keeps it and gives its place. An attribute of that is
the place of a tuple that holds arrays, and of anything else the value itself, loaded when it is asked for.

Loops had better not ask: what they store may be the tuple itself for all that LLVM knows, so it would be
loaded again in each turn. Steps with loops are given arrays, or tuples as such: ``taken(place)``.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, register_model


class Handed(types.Type):
    """The place of a named tuple."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Handed({of.name})")

    @property
    def key(self) -> Any:
        """What makes two of these the same type."""
        return self.of

    def field(self, name: str) -> tuple[int, Any]:
        """Which field has this name, and the type of the attribute."""
        number = self.of.fields.index(name)
        kind = self.of.types[number]
        return number, Handed(kind) if _is_large(kind) else kind


def _is_large(kind: Any) -> bool:
    """Whether a type is a named tuple that holds arrays."""
    return isinstance(kind, types.BaseNamedTuple) and _holds_array(kind)


def _holds_array(kind: Any) -> bool:
    parts = kind.types if isinstance(kind, types.BaseTuple) else ()  # type: ignore[attr-defined]
    return isinstance(kind, types.Array) or any(map(_holds_array, parts))


@register_model(Handed)
class _HandedModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        place = manager.lookup(kind.of).get_value_type().as_pointer()
        super().__init__(manager, kind, place)  # type: ignore[no-untyped-call]


@infer_getattr
class _HandedAttribute(AttributeTemplate):
    key = Handed

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.field(name)[1] if name in kind.of.fields else None


@lower_getattr_generic(Handed)  # type: ignore[no-untyped-call]
def _attribute(context: Any, builder: Any, kind: Any, place: Any, name: str) -> Any:
    number, found = kind.field(name)
    inner: Any = cgutils.gep_inbounds
    at = inner(builder, place, 0, number)
    return at if isinstance(found, Handed) else _load(builder, at)


def _load(builder: Any, place: Any) -> Any:
    """What is at a place, part by part: LLVM leaves loads of whole tuples as they are."""
    kind = place.type.pointee
    if not isinstance(kind, ir.Aggregate):
        return builder.load(place)
    value = ir.Constant(kind, ir.Undefined)
    inner: Any = cgutils.gep_inbounds
    for i in range(len(kind)):
        value = builder.insert_value(value, _load(builder, inner(builder, place, 0, i)), i)
    return value


def _store(builder: Any, value: Any, place: Any) -> None:
    """Put a value at a place, part by part."""
    if not isinstance(value.type, ir.Aggregate):
        builder.store(value, place)
        return
    inner: Any = cgutils.gep_inbounds
    for i in range(len(value.type)):
        _store(builder, builder.extract_value(value, i), inner(builder, place, 0, i))


@intrinsic
def _handed(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        room: Any = cgutils.alloca_once
        place = room(builder, args[0].type)
        _store(builder, args[0], place)
        return place

    return Handed(value)(value), generate


@intrinsic
def _taken(typing_context: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, args[0]) if isinstance(place, Handed) else args[0]

    return (place.of if isinstance(place, Handed) else place)(place), generate


# Kernels call these without the typing context; Any says so.
handed: Any = _handed
taken: Any = _taken
