"""Operations on vectors of fixed width, where LLVM does not find them by itself; see `mcrank.kernels.memory`.

`vector_add2`, `vector_add4`, `vector_copy2`, `product_of_chosen`, `count_below`, `rank_lanes`, and
`match_any`, `match_range` and `match_byte` for characters.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.kernels.memory import BYTE, LONG, WORD, load_at, place_of


def splat(builder: Any, number: Any, vector: Any) -> Any:
    """A number in all lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(WORD, 0))
    return builder.shuffle_vector(
        one, undefined, ir.Constant(ir.VectorType(WORD, vector.count), [0] * vector.count)
    )


def _vector_add(lanes: int) -> Any:
    """Make ``add(counters, places, values, start)``: to each of some arrays, at a place of its own, add the
    same values[start:start + L], int64. They are loaded once, and NumPy promises an alignment of 8, no more.
    """
    vector = ir.VectorType(LONG, lanes)

    @intrinsic
    def add(typing_context: Any, counters: Any, places: Any, values: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            counters, places, values, start = args
            _, new = load_at(builder, place_of(context, builder, signature.args[2], values, start), vector, 8)
            for k in range(len(signature.args[0])):
                array, at = (builder.extract_value(of, k) for of in (counters, places))
                to = place_of(context, builder, signature.args[0].dtype, array, at)
                pointer, old = load_at(builder, to, vector, align=8)
                builder.store(builder.add(old, new), pointer).align = 8
            return context.get_dummy_value()

        return types.void(counters, places, values, types.uint64), generate

    return add


@intrinsic
def _vector_copy2(typing_context: Any, values: Any, start: Any, out: Any, to: Any) -> Any:
    """``copy(values, start, out, to)``: two numbers of 64 bits from one place to another, with one load and
    one store.
    """
    vector = ir.VectorType(LONG, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, start, out, to = args
        _, both = load_at(builder, place_of(context, builder, signature.args[0], values, start), vector, 8)
        place = place_of(context, builder, signature.args[2], out, to)
        builder.store(both, builder.bitcast(place, vector.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(values, types.uint64, out, types.uint64), generate


def product_of_chosen(lanes: int, add: bool) -> Any:
    """Make ``multiply(values, masks, at, (first, second), factors, place, out, to)`` for ``lanes`` float64.

    In every lane: ``out[to]`` becomes (or grows by, if ``add``) ``values[at]`` times one of three factors:
    ``factors[place]`` where ``masks[first]`` is not 0, else ``factors[place + 1]`` where ``masks[second]`` is
    not 0, else ``factors[place + 2]``. Masks are int64.
    """
    vector, integers = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(LONG, lanes)
    none = ir.Constant(integers, [0] * lanes)

    @intrinsic
    def multiply(
        typing_context: Any, values: Any, masks: Any, at: Any, pair: Any, factors: Any, place: Any, out: Any,
        to: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, masks, at, pair, factors, place, out, to = args
            of_values, of_masks, of_factors, of_out = (signature.args[i] for i in (0, 1, 4, 6))
            first, second = (builder.extract_value(pair, k) for k in range(2))
            _, value = load_at(builder, place_of(context, builder, of_values, values, at), vector, 8)
            chosen = None
            for number, line in ((2, None), (1, second), (0, first)):
                number = builder.add(place, LONG(number))
                factor = splat(
                    builder, builder.load(place_of(context, builder, of_factors, factors, number)), vector
                )
                if line is not None:
                    _, mask = load_at(builder, place_of(context, builder, of_masks, masks, line), integers, 8)
                    factor = builder.select(builder.icmp_signed("!=", mask, none), factor, chosen)
                chosen = factor
            pointer, old = load_at(builder, place_of(context, builder, of_out, out, to), vector, 8)
            product = builder.fmul(value, chosen)
            builder.store(builder.fadd(old, product) if add else product, pointer).align = 8
            return context.get_dummy_value()

        u64 = types.uint64
        both = types.UniTuple(u64, 2)  # type: ignore[no-untyped-call]
        return types.void(values, masks, u64, both, factors, u64, out, u64), generate

    return multiply


def count_below(size: int) -> Any:
    """Make ``count(values, start, x)``: how many of ``size`` float32 from ``start`` on are below ``x``.

    None are below NaN. ``size`` is 8 (one register of 32 bytes) or a multiple of it.
    """
    eight = ir.VectorType(ir.FloatType(), 8)

    @intrinsic
    def count(typing_context: Any, values: Any, start: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, start, x = args
            spread = splat(builder, x, eight)
            total = LONG(0)
            for first in range(0, size, 8):
                at = builder.add(start, LONG(first))
                _, part = load_at(builder, place_of(context, builder, signature.args[0], values, at), eight)
                below = builder.bitcast(builder.fcmp_ordered("<", part, spread), BYTE)
                total = builder.add(total, builder.zext(builder.ctpop(below), LONG))
            return total

        return types.uint64(values, types.uint64, types.float32), generate

    return count


def gather(builder: Any, base: Any, index: Any, element: Any, unit: Any = None) -> Any:
    """Elements at some places behind ``base``, counted in elements or in another ``unit``; single loads where
    the machine has no better.
    """
    count = index.type.count
    pointers, vector = ir.VectorType(ir.PointerType(), count), ir.VectorType(element, count)
    mask = ir.VectorType(ir.IntType(1), count)
    kind = "f32" if isinstance(element, ir.FloatType) else f"i{element.width}"
    name = f"llvm.masked.gather.v{count}{kind}.v{count}p0"
    insert: Any = cgutils.get_or_insert_function
    function = insert(builder.module, ir.FunctionType(vector, [pointers, WORD, mask, vector]), name)
    start = builder.bitcast(base, ir.PointerType())
    places = builder.gep(start, [index], source_etype=element if unit is None else unit)
    places.type = pointers  # of an index of vectors llvmlite does not know
    every = ir.Constant(mask, [1] * count)
    return builder.call(function, [places, WORD(1), every, ir.Constant(vector, ir.Undefined)])


def rank_lanes(lanes: int, buckets: int) -> Any:
    """Make ``rank(values, numbers, line, first, thresholds, ranks)`` for ``lanes`` float32 at once.

    ``numbers`` are (start, at, by_bits, steps, bucket_at, threshold_at, low, high). For each i of
    start : start + lanes, with x = values[at + i]: z is x or, ``by_bits``, the number its bits make in
    the order of floats, as float32; ``line`` = (origin, scale) puts it into bucket (z - origin) scale, one of
    ``buckets``; ``first[bucket_at + bucket]`` thresholds are below it for sure, and at most ``steps`` more
    are to be compared. ranks[low + i] becomes that number less 128, or -128 for NaN; so does ranks[high + i],
    or 127 for NaN.
    """
    words = ir.VectorType(WORD, lanes)
    floats, bytes_ = ir.VectorType(ir.FloatType(), lanes), ir.VectorType(BYTE, lanes)

    @intrinsic
    def rank(
        typing_context: Any, values: Any, numbers: Any, line: Any, first: Any, thresholds: Any, ranks: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, numbers, line, first, thresholds, ranks = args
            kinds = signature.args
            number = [builder.extract_value(numbers, k) for k in range(8)]
            start, at, by_bits, steps, bucket_at, threshold_at, low, high = number
            place = place_of(context, builder, kinds[0], values, builder.add(at, start))
            _, x = load_at(builder, place, floats, 4)
            bits = builder.bitcast(x, words)
            mask = builder.and_(builder.ashr(bits, constants(bits, 31)), constants(bits, 0x7FFFFFFF))
            z = builder.sitofp(builder.xor(bits, mask), floats)
            z = builder.select(builder.icmp_unsigned("!=", by_bits, LONG(0)), z, x)
            origin, scale = (splat(builder, builder.extract_value(line, k), floats) for k in range(2))
            y = builder.fmul(builder.fsub(z, origin), scale)
            least, most = constants(y, 0.0), constants(y, buckets - 1.0)
            y = builder.select(builder.fcmp_ordered(">", y, least), y, least)  # NaN becomes 0
            y = builder.select(builder.fcmp_ordered("<", y, most), y, most)
            base = place_of(context, builder, kinds[3], first, bucket_at)
            # One byte of each four that are loaded.
            loaded = gather(builder, base, builder.fptosi(y, words), WORD, BYTE)
            below = builder.and_(loaded, constants(bits, 255))
            room: Any = cgutils.alloca_once_value
            kept = room(builder, below)
            base = place_of(context, builder, kinds[4], thresholds, threshold_at)
            loop: Any = cgutils.for_range
            with loop(builder, steps):
                now = builder.load(kept)
                threshold = gather(builder, base, now, ir.FloatType())
                more = builder.zext(builder.fcmp_ordered("<", threshold, x), words)
                builder.store(builder.add(now, more), kept)
            below = builder.load(kept)
            is_known = builder.fcmp_ordered("ord", x, x)
            known = builder.xor(below, constants(below, 128))
            for missing, to in ((128, low), (127, high)):
                found = builder.trunc(builder.select(is_known, known, constants(known, missing)), bytes_)
                place = place_of(context, builder, kinds[5], ranks, builder.add(to, start))
                builder.store(found, builder.bitcast(place, bytes_.as_pointer())).align = 1
            return context.get_dummy_value()

        eight = types.UniTuple(types.uint64, 8)  # type: ignore[no-untyped-call]
        two = types.UniTuple(types.float32, 2)  # type: ignore[no-untyped-call]
        return types.void(values, eight, two, first, thresholds, ranks), generate

    return rank


def match_any(size: int, characters: bytes) -> Any:
    """Make ``match(text, at)``: which of ``size`` bytes from ``at`` on are one of a few, a bit for each."""

    def test(builder: Any, vector: Any) -> Any:
        found = None
        for character in characters:
            same = builder.icmp_unsigned("==", vector, constants(vector, character))
            found = same if found is None else builder.or_(found, same)
        return found

    return _matcher(size, test)


def match_range(size: int, first: int, last: int) -> Any:
    """Make ``match(text, at)``: which of ``size`` bytes from ``at`` on lie in a range, a bit for each."""

    def test(builder: Any, vector: Any) -> Any:
        above = builder.sub(vector, constants(vector, first))
        return builder.icmp_unsigned("<=", above, constants(vector, last - first))

    return _matcher(size, test)


def match_byte(size: int) -> Any:
    """Make ``match(text, at, byte)``: which of ``size`` bytes from ``at`` on are a byte, a bit for each."""
    bytes_, bits = ir.VectorType(BYTE, size), ir.IntType(size)

    @intrinsic
    def match(typing_context: Any, text: Any, at: Any, byte: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, vector = load_at(builder, place_of(context, builder, signature.args[0], *args[:2]), bytes_)
            same = builder.icmp_unsigned("==", vector, splat(builder, args[2], bytes_))
            return builder.bitcast(same, bits)

        return types.uint64(text, types.uint64, types.uint8), generate

    return match


def _matcher(size: int, test: Any) -> Any:
    bytes_, bits = ir.VectorType(BYTE, size), ir.IntType(size)

    @intrinsic
    def match(typing_context: Any, text: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, vector = load_at(builder, place_of(context, builder, signature.args[0], *args), bytes_)
            return builder.zext(builder.bitcast(test(builder, vector), bits), LONG)

        return types.uint64(text, types.uint64), generate

    return match


def joined(builder: Any, parts: list[Any]) -> Any:
    """Vectors, a power of two of them, as one."""
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        every = ir.Constant(ir.VectorType(WORD, count), list(range(count)))
        parts = [builder.shuffle_vector(*parts[k : k + 2], every) for k in range(0, len(parts), 2)]
    return parts[0]


def constants(vector: Any, number: float) -> Any:
    """A number known when compiling, in all lanes."""
    return ir.Constant(vector.type, [number] * vector.type.count)


# Kernels call these without the typing context; Any says so.
vector_add2: Any = _vector_add(2)
vector_add4: Any = _vector_add(4)
vector_copy2: Any = _vector_copy2
