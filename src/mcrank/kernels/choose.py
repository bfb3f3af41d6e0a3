"""Choices by the comparison of bytes, for many rows at once: the steps by which trees are folded.

All steps compare keys with a number and say where that is *above* them: of the two sides of this comparison
processors load the second one from memory and compare it in one instruction, and keys are loaded for every
step. Numbers are given four times each, as a uint32: such are loaded into all lanes in one instruction.

With AVX-512 comparisons would be made in its widest registers and answered by a bit for each lane. In
registers of half that width, with answers of a byte for each lane by which ``vpternlog`` chooses, one of four
took a fifth less time on a Zen 4, and a single node as long as before. LLVM does not choose that by itself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.kernels.memory import BYTE, LONG, WORD, load_at, place_of
from mcrank.kernels.processor import has_features
from mcrank.kernels.vectors import splat

_PIECE = 32  # lanes of a register of AVX2
# Tables of vpternlog for operands a, b, c: a bit of the result for each of the eight triples of their bits.
_B_IF_A_ELSE_C, _A_OR_B_IF_NOT_C = 0xCA, 0xF4


def select_below(lanes: int) -> Any:
    """Make ``select(slots, keys, left, right, column, number, out)`` for ``lanes`` bytes at once.

    In every lane: ``slots[out] = slots[left] if number > keys[column] else slots[right]``; keys are int8.
    """

    @intrinsic
    def select(
        typing_context: Any, slots: Any, keys: Any, left: Any, right: Any, column: Any, number: Any, out: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            slots, keys, left, right, column, number, out = args
            of_slots, of_keys = signature.args[:2]
            code = _Code(context, builder, lanes)
            above = code.above(code.spread(number), code.loaded(of_keys, keys, column))
            sides = (code.loaded(of_slots, slots, side) for side in (left, right))
            code.store(code.chosen(above, *sides), of_slots, slots, out)
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(slots, keys, u64, u64, u64, types.uint32, u64), generate

    return select


def one_of_four(lanes: int) -> Any:
    """Make ``choose(slots, keys, (c0, c1, c2), numbers, at, out)`` for ``lanes`` bytes at once.

    In every lane, with ``right(i)`` for ``numbers[at + i] <= keys[ci]``: ``slots[out]`` becomes
    ``numbers[at + 3]``, a multiple of 4, plus 2 if right(0), plus 1 if right(2), or where not right(0), if
    right(1).
    """

    @intrinsic
    def choose(
        typing_context: Any, slots: Any, keys: Any, columns: Any, numbers: Any, at: Any, out: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            slots, keys, columns, numbers, at, out = args
            of_slots, of_keys, of_numbers = (signature.args[i] for i in (0, 1, 3))
            code = _Code(context, builder, lanes)
            given = []
            for i in range(4):
                place = place_of(context, builder, of_numbers, numbers, builder.add(at, LONG(i)))
                given.append(code.spread(builder.load(place)))
            above = [
                code.above(given[i], code.loaded(of_keys, keys, builder.extract_value(columns, i)))
                for i in range(3)
            ]
            half = code.with_bit(given[3], 2, above[0])
            found = code.with_bit(half, 1, code.chosen(*above))
            code.store(found, of_slots, slots, out)
            return context.get_dummy_value()

        u64 = types.uint64
        three = types.UniTuple(u64, 3)  # type: ignore[no-untyped-call]
        return types.void(slots, keys, three, numbers, u64, u64), generate

    return choose


def leaf_of_tree(lanes: int, depth: int, step: int) -> Any:
    """Make ``find(slots, keys, columns, numbers, at, out)`` for ``lanes`` bytes at once, and trees whose
    leaves are all ``depth`` (at least 2) below the root.

    Nodes are counted from the root, level by level, each level from the left. In every lane node n goes right
    where ``numbers[at + n] <= keys[step columns[at + n]]``; ``slots[out]`` becomes the number of the leaf,
    counted from the left. Nothing but keys is loaded, and nothing else stored: what the nodes of a tree leave
    for those above them stays in registers.
    """

    @intrinsic
    def find(
        typing_context: Any, slots: Any, keys: Any, columns: Any, numbers: Any, at: Any, out: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            slots, keys, columns, numbers, at, out = args
            of_slots, of_keys, of_columns, of_numbers = signature.args[:4]
            code = _Code(context, builder, lanes)

            def goes_left(node: int) -> Any:
                here = builder.add(at, LONG(node))
                column = builder.load(place_of(context, builder, of_columns, columns, here))
                number = builder.load(place_of(context, builder, of_numbers, numbers, here))
                place = builder.mul(builder.zext(column, LONG), LONG(step))
                return code.above(code.spread(number), code.loaded(of_keys, keys, place))

            def leaf(node: int, levels: int, first: int) -> Any:
                """The leaf below a node, which has some levels below it, and whose first leaf is given."""
                if levels > 2:
                    half = 1 << (levels - 1)
                    left, right = (leaf(2 * node + 1 + k, levels - 1, first + k * half) for k in range(2))
                    return code.chosen(goes_left(node), left, right)
                answers = [goes_left(n) for n in (node, 2 * node + 1, 2 * node + 2)]
                return code.with_bit(
                    code.with_bit(code.constant(first), 2, answers[0]), 1, code.chosen(*answers)
                )

            code.store(leaf(0, depth, 0), of_slots, slots, out)
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(slots, keys, columns, numbers, u64, u64), generate

    return find


class _Code:
    """Operations on ``lanes`` bytes, as lists of registers; answers are bits or, ``in_bytes``, -1 and 0."""

    def __init__(self, context: Any, builder: Any, lanes: int) -> None:
        self.context, self.builder = context, builder
        self.in_bytes = has_features(context, "avx512f", "avx512vl", "avx512bw")
        self.width = min(lanes, _PIECE) if self.in_bytes else lanes
        self.kind = ir.VectorType(BYTE, self.width)
        self.offsets = [LONG(first) for first in range(0, lanes, self.width)]

    def loaded(self, kind: Any, array: Any, at: Any) -> list[Any]:
        """What lies in an array from a place on."""
        builder = self.builder
        places = (
            place_of(self.context, builder, kind, array, builder.add(at, offset)) for offset in self.offsets
        )
        return [load_at(builder, place, self.kind)[1] for place in places]

    def store(self, values: list[Any], kind: Any, array: Any, at: Any) -> None:
        """Put bytes into an array from a place on."""
        builder = self.builder
        for offset, value in zip(self.offsets, values, strict=True):
            place = place_of(self.context, builder, kind, array, builder.add(at, offset))
            builder.store(value, builder.bitcast(place, self.kind.as_pointer())).align = 1

    def spread(self, number: Any) -> list[Any]:
        """Four bytes, again and again, in all lanes."""
        one = splat(self.builder, number, ir.VectorType(WORD, self.width // 4))
        return [self.builder.bitcast(one, self.kind)] * len(self.offsets)

    def constant(self, number: int) -> list[Any]:
        """A number known when compiling in all lanes."""
        return [ir.Constant(self.kind, [number] * self.width)] * len(self.offsets)

    def above(self, numbers: list[Any], keys: list[Any]) -> list[Any]:
        """Whether numbers are above keys."""
        found = [self.builder.icmp_signed(">", *both) for both in zip(numbers, keys, strict=True)]
        return [self.builder.sext(one, self.kind) for one in found] if self.in_bytes else found

    def chosen(self, answers: list[Any], yes: list[Any], no: list[Any]) -> list[Any]:
        """One of two, bytes or answers."""
        if self.in_bytes:
            return self._ternary(_B_IF_A_ELSE_C, answers, yes, no)
        return [self.builder.select(*three) for three in zip(answers, yes, no, strict=True)]

    def with_bit(self, values: list[Any], bit: int, answers: list[Any]) -> list[Any]:
        """Values, of which a bit is 0, with that bit where the answer is no."""
        bits = self.constant(bit)
        if self.in_bytes:
            return self._ternary(_A_OR_B_IF_NOT_C, values, bits, answers)
        more = [self.builder.or_(*both) for both in zip(values, bits, strict=True)]
        return self.chosen(answers, values, more)

    def _ternary(self, table: int, *operands: list[Any]) -> list[Any]:
        builder, words = self.builder, ir.VectorType(WORD, self.width // 4)
        insert: Any = cgutils.get_or_insert_function
        name = f"llvm.x86.avx512.pternlog.d.{8 * self.width}"
        function = insert(builder.module, ir.FunctionType(words, [words, words, words, WORD]), name)
        found = []
        for three in zip(*operands, strict=True):
            as_words = (builder.bitcast(one, words) for one in three)
            found.append(builder.bitcast(builder.call(function, [*as_words, WORD(table)]), self.kind))
        return found
