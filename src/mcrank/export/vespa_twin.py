"""A twin of how Vespa evaluates the rank profiles we write: functions of doubles, and compiled sums of trees.

Vespa's compiler keeps thresholds, leaves and the features it tests as float, and adds leaves up as double.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mcrank.arrays import Array, FloatArray
from mcrank.errors import ModelFileError

_FUNCTION = re.compile(r"function (\w+)\(([^)]*)\) \{\s*expression \{(.*?)\}\s*\}", re.DOTALL)
_PHASE = re.compile(r"first-phase \{\s*expression: (\w+)\s*\}")
_TOKEN = re.compile(r"\s*(?:(\d[\w.]*(?:(?<=[eE])[+-]?\d+)?)|([A-Za-z_]\w*)|(<|>=|==|[-+*/!(),.]))")
_BUILT_IN: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "max": np.maximum,
    "min": np.minimum,
    "isNan": lambda x: np.isnan(x).astype(np.float64),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "if": np.where,
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "<": np.less, ">=": np.greater_equal, "==": np.equal,
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip
_LEVELS = (("<", ">=", "=="), ("+", "-"), ("*", "/"))  # what binds last comes first
_FRAMES = 10  # calls a bracket takes at most: one a level of binding, and those between

Values = dict[str, Array]
Evaluator = Callable[[Values], Any]
Token = tuple[str | None, str | None, str | None]  # a number, a name or a sign


def evaluate(profile: str, features: Values, n_rows: int) -> FloatArray:
    """Return the scores a rank profile gives rows, whose features are known by their names in Vespa.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.vespa_twin import evaluate
    >>> profile = "function score() { expression { if (attribute(a) < 2.0, 1.5, -1) } } "
    >>> evaluate(profile + "first-phase { expression: score }", {"attribute(a)": np.array([1.0, np.nan])}, 2)
    array([ 1.5, -1. ])
    """
    functions = {
        name: ([p.strip() for p in parameters.split(",") if p.strip()], body)
        for name, parameters, body in _FUNCTION.findall(profile)
    }
    phase = _PHASE.search(profile)
    if phase is None:
        raise ModelFileError("the rank profile has no first-phase.")
    with _frames_for(profile), np.errstate(all="ignore"):
        found = _Scope(functions, features).call(phase[1], [])
    return np.broadcast_to(np.asarray(found, dtype=np.float64), (n_rows,)).copy()


@contextlib.contextmanager
def _frames_for(text: str) -> Iterator[None]:
    """Let Python go as deep as the brackets do: trees inside one another may be hundreds of levels deep."""
    bytes_ = np.frombuffer(text.encode(), dtype=np.uint8)
    deepest = int(np.cumsum((bytes_ == ord("(")).astype(np.int64) - (bytes_ == ord(")"))).max(initial=0))
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _FRAMES * deepest)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Scope:
    """Functions of a profile and values of features; what has no parameters is computed once."""

    def __init__(self, functions: dict[str, tuple[list[str], str]], features: Values) -> None:
        self.functions = functions
        self.features = {name: x.astype(np.float64) for name, x in features.items()}
        self.single = {name: x.astype(np.float32) for name, x in features.items()}
        self._known: dict[str, Any] = {}

    def call(self, name: str, arguments: list[Any]) -> Any:
        parameters, body = self.functions[name]
        if not parameters and name in self._known:
            return self._known[name]
        trees = name.startswith("trees_")
        parse = _Parser(body, self, trees)
        found = parse.whole()(dict(zip(parameters, arguments, strict=True)))
        if not parameters:
            self._known[name] = found
        return found


class _Parser:
    """Reads an expression by descent and returns what evaluates it on the parameters of its function."""

    def __init__(self, text: str, scope: _Scope, trees: bool) -> None:
        self.tokens: list[Token] = [(m[1], m[2], m[3]) for m in _TOKEN.finditer(text)]
        if "".join(filter(None, (token for three in self.tokens for token in three))) != "".join(
            text.split()
        ):
            raise ModelFileError(
                f"the expression {text[:60].strip()!r}... has signs that Vespa does not know."
            )
        self.at, self.scope, self.trees = 0, scope, trees

    def whole(self) -> Evaluator:
        found = self._level(0)
        if self.at < len(self.tokens):
            raise ModelFileError(f"the expression goes on after its end: {self.tokens[self.at]}.")
        return found

    def _sign(self) -> str | None:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else None

    def _take(self, sign: str) -> None:
        if self._sign() != sign:
            raise ModelFileError(f"the expression lacks a {sign!r}.")
        self.at += 1

    def _level(self, level: int) -> Evaluator:
        if level == len(_LEVELS):
            return self._single()
        first, rest = self._level(level + 1), []
        while (sign := self._sign()) in _LEVELS[level] and sign is not None:
            self.at += 1
            rest.append((_OPERATORS[sign], self._level(level + 1)))
        return _chain(first, rest) if rest else first

    def _next(self) -> Token:
        if self.at == len(self.tokens):
            raise ModelFileError("the expression ends too early.")
        self.at += 1
        return self.tokens[self.at - 1]

    def _single(self) -> Evaluator:
        number, name, sign = self._next()
        if sign in ("-", "!"):
            inner = self._single()
            negate: Callable[[Any], Any] = np.negative if sign == "-" else np.logical_not
            return lambda given: negate(inner(given))
        if sign == "(":
            inner = self._level(0)
            self._take(")")
            return inner
        if number is not None:
            value = float(np.float32(number)) if self.trees else float(number)
            return lambda given: value
        if name is None:
            raise ModelFileError(f"the expression has {sign!r} where a value should be.")
        return self._named(name)

    def _named(self, name: str) -> Evaluator:
        if name in _BUILT_IN or (self.scope.functions.get(name) and self._sign() == "("):
            arguments = self._arguments()
            if name in _BUILT_IN:
                work = _BUILT_IN[name]
                return lambda given: work(*[argument(given) for argument in arguments])
            return lambda given: self.scope.call(name, [argument(given) for argument in arguments])
        if self._sign() == "(":
            name = self._rank_feature(name)
        return lambda given: self._value(name, given)

    def _value(self, name: str, given: Values) -> Any:
        if name in given:
            return given[name]
        if name in self.scope.functions:
            found = self.scope.call(name, [])
            return found.astype(np.float32) if self.trees else found
        if name not in self.scope.features:
            raise ModelFileError(f"the rank profile asks for {name!r}, which is no feature of the model.")
        return (self.scope.single if self.trees else self.scope.features)[name]

    def _arguments(self) -> list[Evaluator]:
        self._take("(")
        found = [self._level(0)]
        while self._sign() == ",":
            self.at += 1
            found.append(self._level(0))
        self._take(")")
        return found

    def _rank_feature(self, name: str) -> str:
        """The text of a feature, such as fieldMatch(title).completeness."""
        text = [name]
        while self._sign() != ")":
            text.append(next(filter(None, self._next())))
        text.append(")")
        self.at += 1
        while self._sign() == ".":
            self.at += 1
            text += [".", self._next()[1] or ""]
        return "".join(text)


def _chain(first: Evaluator, rest: list[tuple[Callable[[Any, Any], Any], Evaluator]]) -> Evaluator:
    """From left to right, in a loop: a sum may have thousands of terms."""

    def evaluated(given: Values) -> Any:
        found = first(given)
        for work, term in rest:
            found = work(found, term(given))
        return found

    return evaluated
