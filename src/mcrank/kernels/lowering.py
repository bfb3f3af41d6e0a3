"""How kernels and steps become LLVM's code: as values, where Numba writes what goes through memory.

Numba keeps every variable that two blocks know in memory: it makes room for it, loads what was there before
(to count one reference less), stores, loads it at each use, and clears it at the end. An element of an array
is reached by a copy of the array's nine numbers in memory. LLVM takes all that out again, which takes time.
Here a variable that is assigned once, in a block that all its uses have to pass, is the value that was
assigned; nothing is loaded or cleared where no references are counted (`mcrank.kernels.declare`); and an
element is a pointer into the array's data.

Kernels take the time they did, and models are the same (docs/engineering/engine.md). It is done in every
process, so there is one machine code of a kernel. Releases of Numba that this was not tried with go their
own way.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numba
from numba.core import analysis, compiler_machinery, ir, ir_utils, lowering, postproc, rewrites, typed_passes
from numba.core import types as numba_types
from numba.np import arrayobj

from mcrank.kernels.tested import was_tried

# Numba's have no types.
_flow: Any = analysis
_checks: Any = ir_utils
_rewrites: Any = rewrites
_array: Any = arrayobj
types: Any = numba_types
_post_processor: Any = postproc.PostProcessor
_registered: Any = compiler_machinery.register_pass
_Lower: Any = lowering.Lower
_Lowering: Any = typed_passes.NativeLowering
_Legalization: Any = typed_passes.IRLegalization
_Rewrites: Any = typed_passes.NopythonRewrites

_PARTS = ("getattr", "static_getitem", "getitem")  # expressions that take an array out of something


class ValueLower(_Lower):  # type: ignore[misc]
    """Numba's lowering, with values for variables and pointers for elements."""

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if self.func_ir.func_id.is_generator or self._disable_sroa_like_opt:
            return
        blocks = self.func_ir.blocks
        in_memory = _flow.must_use_alloca(blocks)
        assigned: Counter[str] = Counter()
        home: dict[str, int] = {}
        for label, block in blocks.items():
            for statement in block.find_insts(ir.Assign):
                assigned[statement.target.name] += 1
                home[statement.target.name] = label
        users: dict[str, list[int]] = {}
        for label, names in _flow.compute_use_defs(blocks).usemap.items():
            for name in names:
                users.setdefault(name, []).append(label)
        before = _flow.compute_cfg_from_blocks(blocks).dominators()
        for name, label in home.items():
            once = assigned[name] == 1 and name not in in_memory and not self._is_counted(name)
            # Blocks are lowered by their numbers.
            if once and all(label < user and label in before[user] for user in users.get(name, ())):
                self._singly_assigned_vars.add(name)

    def _is_counted(self, name: str) -> bool:
        """Whether references to what a variable holds are counted."""
        if not self.context.enable_nrt:
            return False
        return bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a value into a variable, whatever it held."""
        if self._disable_sroa_like_opt or name in self._singly_assigned_vars or self._is_counted(name):
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Forget a variable: nothing, unless references to it are counted."""
        if self._disable_sroa_like_opt or self._is_counted(name):
            super().delvar(name)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Read an element of an array, or anything else as Numba does."""
        array = self.typeof(value.name)
        if signature.args[0] == array and not isinstance(signature.return_type, types.Buffer):
            pointer = self._element(array, value, index, signature.args[1])
            if pointer is not None:
                found = _array.load_item(self.context, self.builder, array, pointer)
                return self.context.cast(self.builder, found, signature.return_type, resty)
        return super().lower_getitem(resty, expr, value, index, signature)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element of an array, or anything else as Numba does."""
        array, given = self.typeof(target_var.name), signature.args[2]
        if signature.args[0] == array and isinstance(given, types.Number | types.Boolean):
            pointer = self._element(array, target_var, index_var, signature.args[1])
            if pointer is not None:
                value = self.context.cast(
                    self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), given
                )
                value = self.context.cast(self.builder, value, given, array.dtype)
                _array.store_item(self.context, self.builder, array, value, pointer)
                return None
        return super().lower_setitem(target_var, index_var, value_var, signature)

    def _element(self, array: Any, base: Any, index: Any, index_type: Any) -> Any:
        """Return a pointer to an element; None if the index is not one of integers, one for each axis of an
        array whose rows lie one after the other.
        """
        if type(array) is not types.Array or array.layout != "C" or self.context.enable_boundscheck:
            return None
        kinds = index_type.types if isinstance(index_type, types.BaseTuple) else (index_type,)
        if len(kinds) != array.ndim or not all(isinstance(kind, types.Integer) for kind in kinds):
            return None
        context, builder = self.context, self.builder
        numbers = self.loadvar(base.name)
        given = context.cast(builder, self.loadvar(index.name), self.typeof(index.name), index_type)
        if isinstance(index_type, types.BaseTuple):
            each = [builder.extract_value(given, axis) for axis in range(len(kinds))]
        else:
            each = [given]
        model = context.data_model_manager[array]
        shape, place = model.get_field_position("shape"), None
        for axis, (kind, number) in enumerate(zip(kinds, each, strict=True)):
            at = context.cast(builder, number, kind, types.intp if kind.signed else types.uintp)
            if kind.signed:  # below zero it counts from the end
                from_end = builder.add(at, builder.extract_value(numbers, [shape, axis]))
                at = builder.select(builder.icmp_signed("<", at, at.type(0)), from_end, at)
            if place is None:
                place = at
            else:
                rows_before = builder.mul(place, builder.extract_value(numbers, [shape, axis]))
                place = builder.add(rows_before, at)
        data = builder.extract_value(numbers, model.get_field_position("data"))
        return builder.gep(data, [place])


@_registered(mutates_CFG=True, analysis_only=False)
class ValueLowering(_Lowering):  # type: ignore[misc]
    """The pass in which that is done."""

    _name = "mcrank_lowering"

    @property
    def lowering_class(self) -> Any:
        """The class that lowers."""
        return ValueLower


@_registered(mutates_CFG=False, analysis_only=True)
class Legalization(_Legalization):  # type: ignore[misc]
    """Numba's last checks; where references are counted, with where variables end."""

    _name = "mcrank_legalization"

    def run_pass(self, state: Any) -> bool:
        """Check."""
        if state.flags.nrt:
            return bool(super().run_pass(state))
        _checks.enforce_no_phis(state.func_ir)
        _checks.enforce_no_dels(state.func_ir)
        _post_processor(state.func_ir).run()
        return True


@_registered(mutates_CFG=True, analysis_only=False)
class Rewrites(_Rewrites):  # type: ignore[misc]
    """Numba's rewriting of expressions of whole arrays, which needs to know where variables end, only in
    functions that have some.
    """

    _name = "mcrank_rewrites"

    def run_pass(self, state: Any) -> bool:
        """Rewrite."""
        blocks = state.func_ir.blocks.values()
        for block in blocks:
            for statement in block.find_insts(ir.Assign):
                made = isinstance(statement.value, ir.Expr) and statement.value.op not in _PARTS
                if made and isinstance(state.typemap.get(statement.target.name), types.Array):
                    return bool(super().run_pass(state))
        _rewrites.rewrite_registry.apply("after-inference", state)
        return True


WAYS = (ValueLower, ValueLowering, Legalization, Rewrites)  # on which machine code depends
_INSTEAD = {_Lowering: ValueLowering, _Legalization: Legalization, _Rewrites: Rewrites}


def by_values(pipelines: Any, version: str = numba.__version__) -> Any:
    """Return Numba's passes with those above in the places of theirs."""
    if was_tried(version):
        for pipeline in pipelines:
            pipeline.passes = [(_INSTEAD.get(kind, kind), said) for kind, said in pipeline.passes]
            pipeline.finalize()
    return pipelines
