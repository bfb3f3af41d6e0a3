"""Shortcuts through Numba for a process that does nothing but compile (`mcrank warmup`).

More than half of compile time is Numba's own work in Python, and a good part of that is done again or thrown
away: types of ``a + b`` looked for among forty candidates at each plus sign, options compared one by one, the
code of an inlined function copied twice though it was made to be inlined, lifetimes of variables worked out
after each pass though only the last one needs them, sixty modules imported again whenever a function is
looked up, every statement handed around for each variable that is assigned twice. What is here leaves that
out and changes nothing in what is compiled: the same instructions (of 88 kernels, 80 were the same to the
last byte, and 8 but for names of symbols, which have addresses in them). See docs/engineering/engine.md.

It changes Numba's classes, so it is for processes of our own, which end when they have compiled; where mcrank
is imported Numba stays as it is. And only the releases it was tried with are changed.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import signature
from typing import Any

import numba
from numba.core import event, inline_closurecall, ir, ssa, transforms, utils
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.inline_closurecall import InlineWorker
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types.functions import BaseFunction
from numba.core.typing.context import BaseContext as BaseTypingContext
from numba.core.typing.context import Context

from mcrank.kernels.tested import was_tried

_OPTIONS_THAT_DIFFER = ("nrt", "no_cpython_wrapper", "error_model")  # as `kernel` and `step` set them
_NO_VARIABLES = (str, int, float, bool, type(None), ir.Loc, ir.Const, ir.Global, ir.FreeVar, ir.Arg)


def take_shortcuts(version: str = numba.__version__) -> bool:
    """Have Numba compile faster from now on; return whether this release is one it was tried with."""
    if not was_tried(version):
        return False
    for kind, shortcuts in _SHORTCUTS.items():
        for name, shortcut in shortcuts.items():
            setattr(kind, name, shortcut)
    return True


def _same_options(self: Any, other: Any) -> Any:
    """Whether two sets of options are equal: Numba makes dictionaries of all forty options of both."""
    if not isinstance(other, TargetConfig):
        return NotImplemented
    mine, others = self._values, other._values
    if mine == others:
        return True
    return all(getattr(self, name) == getattr(other, name) for name in mine.keys() | others.keys())


def _hash_of_options(self: Any) -> int:
    """Numba's own is one of the names alone, the same for all, and sorts them each time."""
    return hash((type(self), *(getattr(self, name, None) for name in _OPTIONS_THAT_DIFFER)))


_find_call_type: Any = BaseFunction.get_call_type
_options_in_force: Any = ConfigStack.top_or_none


def _call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Types of a call of what Numba implements, found once for the same arguments and options."""
    known = self.__dict__.setdefault("_mcrank_call_types", {})
    key = (context, tuple(args), tuple(kws.items()), _options_in_force(), len(self.templates))
    if key in known:
        signature, implementation = known[key]
        self._impl_keys[signature.args] = implementation  # another, if it was found for other options since
        return signature
    signature = _find_call_type(self, context, args, kws)
    known[key] = signature, self._impl_keys[signature.args]
    return signature


class _Copies:
    """Stands for the module ``copy`` where functions are inlined."""

    needed = True

    @classmethod
    def deepcopy(cls, block: Any) -> Any:
        """Return a copy of a block, or itself if nobody else has it."""
        return deepcopy(block) if cls.needed else block


def _inline_function(self: Any, caller: Any, block: Any, i: int, function: Any, arg_typs: Any = None) -> Any:
    """Inline a function, whose code was made for that and is needed no more."""
    code = self.run_untyped_passes(function)
    _Copies.needed = False
    try:
        return self.inline_ir(caller, block, i, code, function.__code__.co_freevars, arg_typs=arg_typs)
    finally:
        _Copies.needed = True


_post_process: Any = PostProcessor.run


def _post_process_lazily(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Leave out what only generators and code for Python objects ask for: what is alive in each block."""
    code = self.func_ir
    if code.is_generator:
        _post_process(self, emit_dels, extend_lifetimes)
        return
    code.blocks = transforms.canonicalize_cfg(code.blocks)  # type: ignore[no-untyped-call]
    code.variable_lifetime = VariableLifetime(code.blocks)  # type: ignore[no-untyped-call]
    code.generator_info = None
    if emit_dels:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)


def _variables_in(self: Any, value: Any) -> list[Any]:
    """Variables of an instruction; Numba asks this function about every place and number as well."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return value.list_vars()  # type: ignore[no-any-return, no-untyped-call]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    found: list[Any] = []
    for each in value:
        if type(each) is ir.Var:
            found.append(each)
        elif type(each) not in _NO_VARIABLES:
            found += self._rec_list_vars(each)
    return found


def _optimize_functions(self: Any, module: Any) -> None:
    """Optimise functions one by one, but not those that are only declared, most of all."""
    module.data_layout = self._codegen._data_layout
    for function in module.functions:
        if not function.is_declaration:
            passes, builder = self._codegen._function_pass_manager()
            passes.run(function, builder)


_sizes: dict[str, int] = {}


def _size_of(self: Any, kind: Any) -> int:
    """Bytes of a type; Numba has LLVM read a module with one variable of it, each time."""
    name = str(kind)
    if name not in _sizes:
        _sizes[name] = kind.get_abi_size(self.target_data)
    return _sizes[name]


def _once_imported(load: Any) -> Any:
    """Return the loading of registries without the imports before it, which have to be done once."""
    registries: dict[Any, None] = {}  # in order

    def load_again(self: Any) -> None:
        for registry in registries:
            self.install_registry(registry)
        if registries:
            return
        install = self.install_registry

        def note(registry: Any) -> None:
            registries[registry] = None
            install(registry)

        self.install_registry = note
        try:
            load(self)
        finally:
            del self.install_registry

    return load_again


def _installed_once(install: Any) -> Any:
    """Return the installing of a registry without looking through one that has nothing new."""

    def install_new(self: Any, registry: Any) -> None:
        known = self.__dict__.setdefault("_mcrank_registries", {})
        found = sum(len(held) for held in vars(registry).values() if isinstance(held, list))
        if known.get(registry) != found:
            install(self, registry)
            known[registry] = found

    return install_new


_LOCKS = frozenset({"numba:compiler_lock", "numba:llvm_lock"})
_start_event: Any = event.start_event
_end_event: Any = event.end_event


def _start_unless_lock(kind: str, data: Any = None) -> None:
    """Tell listeners of what begins, but not of locks, which are taken at every call of LLVM."""
    if kind not in _LOCKS:
        _start_event(kind, data)


def _end_unless_lock(kind: str, data: Any = None, exc_details: Any = None) -> None:
    if kind not in _LOCKS:
        _end_event(kind, data, exc_details)


_signatures: dict[Any, Any] = {}


def _signature_of(function: Any) -> Any:
    """Return the signature of a Python function, found once."""
    try:
        if function not in _signatures:
            _signatures[function] = signature(function)
        return _signatures[function]
    except TypeError:  # it has no hash
        return signature(function)


def _rewrite_blocks(blocks: Any, states: Any, handler: Any) -> Any:
    """Rewrite the statements of one variable; Numba hands every other statement to the handler as well."""
    variable = states["varname"]
    new_block: Any = ir.Block
    of_definitions = type(handler) is ssa._FreshVarHandler  # who leaves all but assignments alone
    rewritten = {}
    for label, block in blocks.items():
        states["label"], states["block"] = label, block
        copied = rewritten[label] = new_block(scope=block.scope, loc=block.loc)
        body = copied.body = list(block.body)
        for i, statement in enumerate(body):
            if isinstance(statement, ir.Assign):
                if _concerns(statement, variable, handler):
                    body[i] = handler.on_assign(states, statement)
            elif not of_definitions:
                body[i] = handler.on_other(states, statement)
    return rewritten


def _concerns(assign: Any, variable: str, handler: Any) -> bool:
    """Whether a handler, of definitions or of uses, does anything to an assignment."""
    if type(handler) is ssa._FreshVarHandler:
        return bool(assign.target.name == variable)
    value = assign.value
    if isinstance(value, ir.Var):
        return bool(value.name == variable)
    if not isinstance(value, ir.Inst):
        return False
    return any(used.name == variable for used in handler._cache_list_vars.get(value))


_SHORTCUTS: dict[Any, dict[str, Any]] = {
    TargetConfig: {"__eq__": _same_options, "__hash__": _hash_of_options},
    BaseFunction: {"get_call_type": _call_type},
    inline_closurecall: {"copy": _Copies},
    InlineWorker: {"inline_function": _inline_function},
    PostProcessor: {"run": _post_process_lazily},
    ir.Inst: {"_rec_list_vars": _variables_in},
    BaseContext: {
        "get_abi_sizeof": _size_of,
        "install_registry": _installed_once(BaseContext.install_registry),
    },
    CPUCodeLibrary: {"_optimize_functions": _optimize_functions},
    BaseTypingContext: {"install_registry": _installed_once(BaseTypingContext.install_registry)},
    CPUContext: {"load_additional_registries": _once_imported(CPUContext.load_additional_registries)},
    Context: {"load_additional_registries": _once_imported(Context.load_additional_registries)},
    event: {"start_event": _start_unless_lock, "end_event": _end_unless_lock},
    utils: {"pysignature": _signature_of},
    ssa: {"_run_block_rewrite": _rewrite_blocks},
}
