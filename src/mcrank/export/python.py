"""One Python file that needs the standard library and nothing else."""

from __future__ import annotations

import platform
import runpy
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.export.arrays import part_arrays
from mcrank.export.parts import parts_of
from mcrank.export.target import SCORERS, Consumed, Exportable, Target
from mcrank.export.templates import common_words, filled, packed

_CODE = '''"""A model of mcrank @VERSION@ (ranker @RANKER@).

Needs Python 3.8 or newer, and nothing else.

    import model
    model.score(row)            # higher ranks first
    model.raw(row)              # @OUTPUTS@ raw outputs; of trees those of mcrank to the last bit
    model.probabilities(row)    # of each of GRADES; models without grades have none
    model.scores(rows)

A row is a list of numbers in the order of FEATURES, or a dictionary by their names. None, NaN and a name that
is not there are missing values. Features in CATEGORIES take names; one that is not listed is as good as
missing.
"""

import base64 as _base64
import math as _math
import re as _re
import struct as _struct
import zlib as _zlib

FINGERPRINT = "@FINGERPRINT@"
FEATURES = @FEATURES@
GRADES = @GRADES@
RELEVANCE = @RELEVANCE@  # what each grade is worth in a score
CATEGORIES = @CATEGORIES@


def score(row):
    """Return the score of a row."""
    return _score(_floats(row))


def scores(rows):
    """Return the score of each row."""
    return [_score(_floats(row)) for row in rows]


def raw(row):
    """Return the raw outputs of a row."""
    x = _floats(row)
    return [_score(x)] if _BLEND else _SCORERS[_PARTS[0]["scorer"]](_PARTS[0], x)


def probabilities(row):
    """Return the probability of each grade; they add up to 1."""
    if not GRADES:
        raise ValueError("this model has no grades, and so no probabilities.")
    return _probabilities(_PARTS[0], raw(row))


def _floats(row):
    """Return a row as mcrank sees it: rounded to float32."""
    if hasattr(row, "keys"):
        named = {name: row[name] for name in row.keys()}  # rows of sqlite3 and pandas are no dictionaries
        unknown = [name for name in named if name not in _COLUMN]
        if unknown:
            raise ValueError(f"the row has {unknown[0]!r}, which is no feature of the model.")
        row = [named.get(name) for name in FEATURES]
    if isinstance(row, (str, bytes)):
        raise ValueError("a row is numbers in the order of FEATURES, or by their names, and no text.")
    if len(row) != len(FEATURES):
        raise ValueError(f"the row has {len(row)} numbers; the model takes {len(FEATURES)}.")
    x = [_math.nan if v is None else v for v in row]
    try:
        for column, codes in _CODES.items():
            x[column] = codes.get(_called(x[column], column in _DIGITS), _math.nan)
        x = _struct.unpack(_FORMAT, _struct.pack(_FORMAT, *[float(v) for v in x]))
    except OverflowError:
        x = [_math.inf]
    if _math.inf in x or -_math.inf in x:
        raise ValueError("the row has a number beyond float32 (3.4e38).")
    return x


def _called(v, digits):
    """Return what a category is called: a whole number by its digits, also 007 where all are such."""
    if isinstance(v, str):
        return str(int(v)) if digits and _re.fullmatch(r"\\s*[+-]?[0-9]{1,18}\\s*", v, _re.ASCII) else v
    if isinstance(v, bool):
        return str(v)
    return None if v != v else str(int(v)) if v == int(v) else repr(v)


def _score(x):
    if not _BLEND:
        return _rank(_PARTS[0], _SCORERS[_PARTS[0]["scorer"]](_PARTS[0], x))
    total = 0.0
    for part in _PARTS:
        s = _rank(part, _SCORERS[part["scorer"]](part, x))
        total += (min(max(s, -1e140), 1e140) - part["shift"]) * part["weight"]
    return total


def _forest(part, x):
    out = list(part["base"])
    test, following, threshold, value = part["test"], part["next"], part["threshold"], part["value"]
    for node, output in zip(part["root"], part["output"]):
        t = test[node]
        while t >= 0:
            v = x[t >> 1]
            if v <= threshold[node]:
                node = following[node]
            elif v == v:
                node = following[node] + 1
            else:
                node = following[node] + 1 - (t & 1)
            t = test[node]
        out[output] += value[following[node]]
    return out


def _scaled(part, x):
    for c, mean, factor, fill in zip(part["columns"], part["mean"], part["factor"], part["fill"]):
        v = x[c]
        if v != v:
            yield fill
        else:
            yield ((_math.copysign(_math.log1p(abs(v)), v) if part["log"] else v) - mean) * factor


def _linear(part, x):
    total = 0.0
    for v, weight in zip(_scaled(part, x), part["weights"]):
        total += v * weight
    return [total]


def _net(part, x):
    units, weights, at, sizes = list(_scaled(part, x)), part["weights"], 0, part["sizes"]
    for layer in range(len(sizes) - 1):
        a, b = sizes[layer], sizes[layer + 1]
        sums = list(weights[at + a * b : at + a * b + b])
        for j, u in enumerate(units):
            for h, w in enumerate(weights[at + j * b : at + j * b + b]):
                sums[h] += u * w
        units = [_ACTIVATIONS[part["activation"]](s) for s in sums] if layer < len(sizes) - 2 else sums
        at += (a + 1) * b
    return units


def _rank(part, outputs):
    head = part["head"]
    if head == "identity":
        return outputs[0]
    if head == "exp":
        return _math.exp(min(outputs[0], 709.782712893384))
    worth = part["relevance"]
    s = worth[0]
    for k, chance in enumerate(_above(part, outputs)):
        s += (worth[k + 1] - worth[k]) * chance
    return s


def _above(part, outputs):
    """Return how likely a grade above each but the highest is."""
    above = _learned_above(part, outputs)
    if "cuts" not in part:
        return above
    share = part["learned"]
    return [share * own + (1.0 - share) * other for own, other in zip(above, _by_score(part, above))]


def _learned_above(part, outputs):
    if part["head"] == "cumulative":
        return [_sigmoid(r) for r in outputs]
    p, total, above = _learned(part, outputs), 0.0, []
    for k in range(len(p) - 1, 0, -1):
        total += p[k]
        above.insert(0, total)
    return above


def _probabilities(part, outputs):
    return _between(_above(part, outputs)) if "cuts" in part else _learned(part, outputs)


def _between(above):
    """Return the probability of each grade, of those of being above."""
    above = [1.0, *above, 0.0]
    return [above[k] - above[k + 1] for k in range(len(above) - 1)]


def _learned(part, outputs):
    head = part["head"]
    if head == "cumulative":
        return _between(_falling(_learned_above(part, outputs)))
    if head == "one-each":
        outputs = [r - _math.log1p(_math.exp(r)) if r < 0 else -_math.log1p(_math.exp(-r)) for r in outputs]
    elif head == "base-pairs":
        n = round((1 + _math.sqrt(1 + 4 * len(outputs))) / 2)
        sums = []
        for k in range(n):
            total = 0.0
            for r in outputs[k * (n - 1) : (k + 1) * (n - 1)]:
                total += r
            sums.append(total)
        for k in range(n):
            for j in range(n - 1):
                sums[j + (j >= k)] -= outputs[k * (n - 1) + j]
        outputs = sums
    top = max(outputs)
    powers = [_math.exp(r - top) for r in outputs]
    total = _math.fsum(powers)
    return [power / total for power in powers]


def _by_score(part, above):
    """Return how likely rows with such a score were to be above each grade: a bent line, and cuts."""
    share = 0.0  # of the way from the lowest to the highest grade
    for step, chance in zip(part["steps"], above):
        share += step * chance
    share = min(max(share, @SHARE@), 1.0 - @SHARE@)
    odds = _math.log(share / (1.0 - share))
    line = part["slope"] * odds
    for knot, bend in zip(part["knots"], part["bends"]):
        line += bend * max(odds - knot, 0.0)
    stray, *higher = part["strayed"]
    return [(1.0 - stray) * _sigmoid(line + cut) + h for cut, h in zip(part["cuts"], higher)]


def _falling(values):
    """Return the nearest values that fall, by steps: boundaries are learned apart and may cross."""
    n, sums = len(values), [0.0]
    if n == 1:
        return values
    for v in values:
        sums.append(sums[-1] + v)
    made = []
    for k in range(n):
        largest = [max((sums[j + 1] - sums[i]) / (j + 1 - i) for j in range(k, n)) for i in range(k + 1)]
        share = @STEP@ if k and min(values[:k]) < max(values[k:]) else 1.0
        made.append(min(max(min(largest), 0.0), *(share * m for m in made[-1:]), 1.0))
    return made


def _sigmoid(v):
    e = _math.exp(-abs(v))
    return (1.0 if v >= 0 else e) / (1.0 + e)


def _unpack(kind, text):
    content = _zlib.decompress(_base64.b85decode(text))
    return _struct.unpack(f"<{len(content) // _struct.calcsize(kind)}{kind}", content)


_COLUMN = {name: column for column, name in enumerate(FEATURES)}
_CODES = {_COLUMN[f]: {name: code for code, name in enumerate(names)} for f, names in CATEGORIES.items()}
_DIGITS = {f for f, names in _CODES.items() if all(_re.fullmatch("-?(0|[1-9][0-9]*)", n) for n in names)}
_FORMAT = f"<{len(FEATURES)}f"
_SCORERS = {"forest": _forest, "linear": _linear, "net": _net}
_ACTIVATIONS = {"tanh": _math.tanh, "relu": lambda v: max(v, 0.0), "sigmoid": _sigmoid}
_BLEND = @BLEND@
_PARTS = [
@PARTS@]
'''


class Python(Target):
    """A Python file without dependencies."""

    name: ClassVar[str] = "python"
    suffixes: ClassVar[tuple[str, ...]] = (".py",)
    scorers: ClassVar[tuple[str, ...]] = tuple(SCORERS)
    exactness: ClassVar[str] = (
        "trees: raw outputs equal to the last bit, scores to 2e-15; linear, nets: 1e-14 of the largest term"
    )
    categories: ClassVar[Literal["", "codes", "names"]] = "names"
    missing: ClassVar[str] = "as here: None, NaN and names left out take the side they took in training"

    def content(self, model: Exportable) -> bytes:
        """Return the source."""
        words = common_words(model) | {
            "GRADES": _tuple(model.grades),
            "RELEVANCE": _tuple([] if model.values is None else model.values.tolist()),
            "BLEND": model.kind == "blend",
            "PARTS": "".join(_part(part_arrays(part)) for part in parts_of(model)),
            "CATEGORIES": ascii(model.category_names),
            "FEATURES": _tuple(model.feature_names),
        }
        return filled(_CODE, words).encode("ascii")

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score by the file itself, which is ours."""
        module = runpy.run_path(str(path))
        rows = model.named_rows(X)
        raw = np.array([module["raw"](row) for row in rows])
        return Consumed(np.array(module["scores"](rows)), f"Python {platform.python_version()}", raw.T)


def _tuple(values: Any) -> str:
    if not len(values):
        return "()"
    lines = [f"    {value!a}," for value in values]
    return "(\n" + "\n".join(lines) + "\n)"


def _part(arrays: dict[str, Any]) -> str:
    lines = []
    for name, value in arrays.items():
        if isinstance(value, np.ndarray):
            kind = {"f": "f", "d": "d", "i": "i"}[value.dtype.char]
            body = packed(value, indent=12)
            lines.append(f'        "{name}": _unpack(\n            "{kind}",\n{body},\n        ),')
        else:
            lines.append(f'        "{name}": {value!r},')
    return "    {\n" + "\n".join(lines) + "\n    },\n"
