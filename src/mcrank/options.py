"""Declared options: name, type, bounds, default and help in one place.

A class that takes options lists them as annotated attributes::

    class McRank(Ranker):
        num_leaves: int = option(default=10, low=2, help="leaves of each tree (J)")

The keyword-only constructor, its checks, ``get_params``, the class's docstring, the command line, the model
file and the reference pages are all derived from that line; no option is ever described twice.
"""

from __future__ import annotations

import inspect
import json
import math
import numbers
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, dataclass_transform, get_type_hints

import numpy as np

from mcrank.errors import OptionError, did_you_mean
from mcrank.ranges import Search

# What an option is about: the model (kept in its file), the run (threads: not kept), or the run as only a
# caller in Python sees it (not kept, and no flag of the command line).
Scope = Literal["model", "run", "python"]

Options = dict[str, Any]  # by name, checked

# Bounds from here on only keep numbers within what a kernel counts in; nobody needs to read them.
_FAR = 2**31 - 1


@dataclass(frozen=True)
class Option:
    """One declared option.

    Examples
    --------
    >>> from mcrank.options import Option
    >>> Option(10, "leaves", name="num_leaves", kind=int, low=2).requirement
    'an integer >= 2'
    """

    default: Any
    help: str
    name: str = ""
    kind: type = object
    optional: bool = False
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    choices: tuple[str, ...] = ()
    scope: Scope = "model"
    hint: Any = object  # the annotation as written
    takes_bool: bool = False  # True counts as 1: the annotation is ``int | bool``
    parse: Callable[[str], Any] | None = None  # what the command line makes of a text
    judge: Callable[[Any], Any] | None = (
        None  # returns a good value as plain ones, raises ValueError of others
    )
    tacit: bool = False  # a model file does not mention the default: it had no such option once
    search: Search = None  # what tuning tries; None for the value it has

    def written(self, value: Any) -> bool:
        """Whether a model file says this value."""
        return not (self.tacit and value == self.default)

    @property
    def words(self) -> str:
        """The option as a docstring lists it: name, type, default, meaning and bounds.

        Examples
        --------
        >>> from mcrank.options import Option
        >>> print(Option(10, "leaves of each tree", name="num_leaves", kind=int, hint=int, low=2).words)
        num_leaves : int, default 10
            leaves of each tree; at least 2
        """
        kind = "{" + ", ".join(map(repr, self.choices)) + "}" if self.choices else _type_words(self.hint)
        about = "; ".join(filter(None, [self.help, self._bounds()]))
        body = textwrap.fill(about, 100, initial_indent="    ", subsequent_indent="    ")
        return f"{self.name} : {kind}, default {self.default!r}\n{body}"

    def _bounds(self) -> str:
        """Bounds in words, where they are near enough to matter."""
        found = []
        if self.low is not None:
            found.append(f"{'above' if self.open_low else 'at least'} {_short(self.low)}")
        if self.high is not None and self.high < _FAR:
            found.append(f"at most {_short(self.high)}")
        return ", ".join(found)

    @property
    def requirement(self) -> str:
        """What a good value is, as the words of an error message."""
        if self.choices:
            words = " or ".join(repr(choice) for choice in self.choices)
        else:
            words = {int: "an integer", float: "a number", bool: "True or False", str: "a text"}.get(
                self.kind, "a value"
            )
            bounds = []
            if self.low is not None:
                bounds.append(f"{'>' if self.open_low else '>='} {_short(self.low)}")
            if self.high is not None:
                bounds.append(f"<= {_short(self.high)}")
            words = " ".join(filter(None, [words, " and ".join(bounds)]))
        return f"{words} or None" if self.optional else words

    def from_text(self, text: str) -> Any:
        """Return the value that a text of the command line or of an entry stands for, as yet unchecked.

        Examples
        --------
        >>> from mcrank.options import Option
        >>> [Option(None, "cost", kind=float, optional=True).from_text(text) for text in ("none", "1e-3")]
        [None, 0.001]
        """
        if self.optional and text.lower() == "none":
            return None
        if self.parse is not None:
            return self.parse(text)
        try:
            if self.kind in (int, float, str):
                return self.kind(text)
            return json.loads(text.lower() if self.kind is bool else text)
        except ValueError:
            return text  # the check says what is wrong with it

    def check(self, value: Any, owner: str) -> Any:
        """Return ``value`` as this option's plain Python type, or raise `OptionError`."""
        if value is None and self.optional:
            return None
        if self.takes_bool and isinstance(value, (bool, np.bool_)):
            value = int(value)
        if self.judge is not None:
            try:
                return self.judge(value)
            except ValueError as error:
                raise OptionError(f"{self.name} of {owner} must be {error}, got {value!r}.") from None
        plain = self._plain(value)
        if plain is None or not self._in_bounds(plain):
            raise OptionError(f"{self.name} of {owner} must be {self.requirement}, got {value!r}.")
        return plain

    def _plain(self, value: Any) -> Any:
        if self.kind is bool:
            return bool(value) if isinstance(value, (bool, np.bool_)) else None
        if isinstance(value, (bool, np.bool_)):
            return None
        if self.kind is int:
            return int(value) if isinstance(value, numbers.Integral) else None
        if self.kind is float:
            return self._finite(value) if isinstance(value, numbers.Real) else None
        if self.kind is str:
            return str(value) if isinstance(value, str) else None
        return value

    @staticmethod
    def _finite(value: Any) -> float | None:
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None

    def _in_bounds(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.low is not None and (value < self.low or (self.open_low and value == self.low)):
            return False
        return self.high is None or value <= self.high


def checked(value: Any, name: str, where: str, kind: type = int, **bounds: Any) -> Any:
    """Return an argument of a function as an `Option` of its name and bounds checks it.

    Examples
    --------
    >>> from mcrank.options import checked
    >>> checked(1, "folds", "tune", low=2)
    Traceback (most recent call last):
    mcrank.errors.OptionError: folds of tune must be an integer >= 2, got 1.
    """
    return Option(None, "", name, kind, **bounds).check(value, where)


def _type_words(hint: Any) -> str:
    """An annotation as readers say it."""
    kinds = getattr(hint, "__args__", None) if not isinstance(hint, type) else None
    names = [
        "None" if k is type(None) else k.__name__ if isinstance(k, type) else str(k) for k in kinds or (hint,)
    ]
    return " or ".join(re.sub(r"\w+(\.\w+)*\.|\[.*\]", "", name) for name in names)


def _short(bound: float) -> str:
    """A bound as people write it: integers in full."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def option(
    *,
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    choices: tuple[str, ...] = (),
    scope: Scope = "model",
    tacit: bool = False,
    parse: Callable[[str], Any] | None = None,
    judge: Callable[[Any], Any] | None = None,
    search: Search = None,
) -> Any:
    """Declare one option of an `Optioned` class; see `mcrank.options`.

    Examples
    --------
    >>> from mcrank.options import Optioned, option
    >>> class Example(Optioned):
    ...     depth: int = option(default=3, low=1, help="how deep")
    >>> Example(depth=5).get_params()
    {'depth': 5}
    """
    return Option(
        default,
        help,
        low=low,
        high=high,
        open_low=open_low,
        choices=choices,
        scope=scope,
        tacit=tacit,
        parse=parse,
        judge=judge,
        search=search,
    )


class _Fitted:
    """Marks an attribute that only a fitted object has."""


def fitted(*, init: Literal[False] = False) -> Any:
    """Declare (for readers and type checkers) an attribute that fitting sets; until then there is none.

    Examples
    --------
    >>> from mcrank.options import Optioned, fitted
    >>> class Example(Optioned):
    ...     mean_: float = fitted()
    >>> hasattr(Example(), "mean_")
    False
    """
    return _Fitted()


@dataclass_transform(kw_only_default=True, field_specifiers=(option, fitted))
class Optioned:
    """Base of classes with declared options, following scikit-learn's parameter protocol.

    The constructor stores what it is given; `checked_options` tests it, when it is about to be used.

    Examples
    --------
    >>> from mcrank.options import Optioned, option
    >>> class Example(Optioned):
    ...     depth: int = option(default=3, low=1, help="how deep")
    >>> Example(depth=0).checked_options()
    Traceback (most recent call last):
    mcrank.errors.OptionError: depth of Example must be an integer >= 1, got 0.
    """

    declared_options: dict[str, Option] = {}  # noqa: RUF012 - replaced, never changed, by each subclass
    presets: ClassVar[dict[str, dict[str, Any]]] = {}  # words for several options, in the option `preset`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in [name for name, value in vars(cls).items() if isinstance(value, _Fitted)]:
            delattr(cls, name)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Option)}
        hints = get_type_hints(cls) if own else {}
        options = dict(cls.declared_options)
        for name, declared in own.items():
            options[name] = _with_hint(replace(declared, name=name), hints[name])
            delattr(cls, name)
        cls.declared_options = options
        if "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        if cls.__doc__ is not None and "__doc__" in vars(cls):
            cls.__doc__ = _with_parameters(cls.__doc__, options)

    def __init__(self, **params: Any) -> None:
        self._reject_unknown(params)
        given = self._preset(params.get("preset")) | params
        for name, declared in self.declared_options.items():
            setattr(self, name, given.get(name, declared.default))

    @classmethod
    def _preset(cls, word: Any) -> dict[str, Any]:
        """What a preset sets; options given beside it win. A wrong word is for `checked_options` to find."""
        return cls.presets.get(word, {}) if isinstance(word, str) else {}

    @classmethod
    def _reject_unknown(cls, params: dict[str, Any]) -> None:
        for name in params:
            if name not in cls.declared_options:
                from mcrank.synonyms import word_for  # a table that only errors need

                ours = word_for(name, cls.declared_options)
                hint = f"here it is {ours}." if ours else did_you_mean(name, cls.declared_options, "options:")
                raise OptionError(f"{cls.__name__} has no option {name!r}; {hint}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options as given, in declaration order (scikit-learn's protocol)."""
        return {name: getattr(self, name) for name in self.declared_options}

    def set_params(self, **params: Any) -> Self:
        """Change options; unknown names are errors (scikit-learn's protocol)."""
        self._reject_unknown(params)
        for name, value in (self._preset(params.get("preset")) | params).items():
            setattr(self, name, value)
        return self

    def checked_options(self) -> dict[str, Any]:
        """Return every option as a plain Python value, or raise `OptionError` naming the first bad one."""
        owner = type(self).__name__
        return {name: o.check(getattr(self, name), owner) for name, o in self.declared_options.items()}

    def __repr__(self) -> str:
        defaults = {name: o.default for name, o in self.declared_options.items()}
        defaults |= self._preset(getattr(self, "preset", None))
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if not same(v, defaults[n])]
        return f"{type(self).__name__}({', '.join(changed)})"


def same(value: Any, default: Any) -> bool:
    """Whether a value is a default: by what it is, as an object that was pickled or loaded has the same
    numbers and texts in other objects.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.options import same
    >>> same(10, 10), same(10, None), same(np.ones(2), None)
    (True, False, False)
    """
    try:
        return bool(value == default)
    except (TypeError, ValueError):  # an array or a frame, which no default is
        return False


def _with_hint(declared: Option, hint: Any) -> Option:
    """Take from an annotation what an option may be."""
    kinds = [k for k in getattr(hint, "__args__", (hint,)) if k is not type(None)]
    optional = len(kinds) < len(getattr(hint, "__args__", (None,)))
    takes_bool = set(kinds) == {int, bool}
    kind = int if takes_bool else kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) else object
    return replace(declared, kind=kind, optional=optional, hint=hint, takes_bool=takes_bool)


def _constructor(cls: type[Optioned]) -> Callable[..., None]:
    """Return an ``__init__`` whose signature names every option, as readers and scikit-learn look for it."""

    def __init__(self: Any, **params: Any) -> None:
        Optioned.__init__(self, **params)

    keyword, itself = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [
        inspect.Parameter(o.name, keyword, default=o.default, annotation=o.hint)
        for o in cls.declared_options.values()
    ]
    __init__.__signature__ = inspect.Signature([inspect.Parameter("self", itself), *options])  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    __init__.__doc__ = "Take the options; they are checked when they are used."
    return __init__


def _with_parameters(doc: str, options: dict[str, Option]) -> str:
    """Return a class's docstring with its options as the section Parameters, before any other section."""
    text = inspect.cleandoc(doc)
    heading = re.search(r"^\w+( \w+)?\n-{3,}$", text, flags=re.MULTILINE)
    at = len(text) if heading is None else heading.start()
    listed = "\n".join(o.words for o in options.values())
    parts = [text[:at].rstrip(), f"Parameters\n----------\n{listed}" if options else "", text[at:]]
    return "\n\n".join(part for part in parts if part) + "\n"
