"""One C99 file that needs nothing but libm: rows in, scores out, no allocation, nothing shared is written."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.export.c_heads import FALLING, SIGMOID, SOFTMAX, head_code
from mcrank.export.c_scorers import RANKS, block_rows, scorer_code, stack_bytes
from mcrank.export.folding import fold
from mcrank.export.parts import Part, parts_of
from mcrank.export.target import SCORERS, Consumed, ConsumerMissing, Exportable, Target
from mcrank.options import option
from mcrank.scorers.blend import FARTHEST
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import STEP

_DECLARATIONS = """/*
 * A model of mcrank @VERSION@ (ranker @RANKER@, SHA-256 of the model file @FINGERPRINT@).
 *
 * A row is @FEATURES@ floats in the order of @P@_features, NaN where missing; rows lie one behind another.
 *
 *   @P@_score_row        the score of a row: higher ranks first
 *   @P@_score_rows       the same of many rows, each of them several times faster
 *   @P@_raw_row, _rows   @OUTPUTS@ raw outputs a row; of trees those of mcrank to the last bit
@ABOUT_GRADES@ *
 * Thread-safe: all data is constant. No allocation; about @BYTES@ bytes of stack.
 *
 *   cc -std=c99 -O3 -c model.c        and link with -lm
 *
 * Elsewhere, #define @U@_DECLARE and include this file for the declarations alone.
 */
#ifndef @U@_FEATURES
#define @U@_FEATURES @FEATURES@
#define @U@_OUTPUTS @OUTPUTS@
#define @U@_GRADES @GRADES@
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
extern const char *const @P@_features[];
double @P@_score_row(const float *row);
void @P@_score_rows(const float *rows, size_t n, double *scores);
void @P@_raw_row(const float *row, double *raw);
void @P@_raw_rows(const float *rows, size_t n, double *raw);
@DECLARE_GRADES@#ifdef __cplusplus
}
#endif
#endif

#ifndef @U@_DECLARE
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "missing values are NaN: not with -ffast-math or -ffinite-math-only"
#endif
#include <math.h>
#include <string.h>

#define FEATURES @FEATURES@

const char *const @P@_features[] = {
@NAMES@
};
"""
_ABOUT_GRADES = """ *   @P@_probability_row, _rows   probabilities of the @GRADES@ grades @P@_grades
"""
_DECLARE_GRADES = """extern const double @P@_grades[];
void @P@_probability_row(const float *row, double *p);
void @P@_probability_rows(const float *rows, size_t n, double *p);
"""
_SCORES = """
static void scores_@I@(const float *x, int n, double *out)
{
    double raw[@ROWS@ * @RAW@];
    int i;
    outputs_@I@(x, n, raw);
    for (i = 0; i < n; i++) out[i] = score_@I@(raw + i * @RAW@);
}
"""
_PROBABILITIES = """
const double @P@_grades[] = {@GRADE_LIST@};

static void probabilities_0(const float *x, int n, double *out)
{
    double raw[@ROWS@ * @OUTPUTS@];
    int i;
    outputs_0(x, n, raw);
    for (i = 0; i < n; i++) probability_0(raw + i * @OUTPUTS@, out + i * @GRADES@);
}
"""
_BLEND = """
static double cut(double v)
{
    return v < -@FARTHEST@ ? -@FARTHEST@ : v > @FARTHEST@ ? @FARTHEST@ : v;
}

static void blend(const float *x, int n, double *out)
{
    double member[@ROWS@];
    int i;
    for (i = 0; i < n; i++) out[i] = 0.0;
@MEMBERS@}
"""
_MEMBER = """    scores_@I@(x, n, member);
    for (i = 0; i < n; i++) out[i] += (cut(member[i]) - @SHIFT@) * @WEIGHT@;
"""
# Three rows are scored one by one: a block costs nearly as much for one row as for all of it.
_ROWS_LOOP = """
void @P@_@WHAT@_rows(const float *rows, size_t n, double *out)
{
    size_t at = 0;
    while (at < n) {
        const int count = n - at >= @ROWS@ ? @ROWS@ : n - at > 3 ? (int)(n - at) : 1;
        @BY@(rows + at * FEATURES, count, out + at * @WIDTH@);
        at += (size_t)count;
    }
}
"""
_ROW = """
void @P@_@WHAT@_row(const float *row, double *out)
{
    @BY@(row, 1, out);
}
"""
_SCORE_ROW = """
double @P@_score_row(const float *row)
{
    double score;
    @BY@(row, 1, &score);
    return score;
}
"""


class C(Target):
    """A C99 file without dependencies."""

    name: ClassVar[str] = "c"
    suffixes: ClassVar[tuple[str, ...]] = (".c", ".h", ".cc", ".cpp")
    scorers: ClassVar[tuple[str, ...]] = tuple(SCORERS)
    exactness: ClassVar[str] = (
        "trees: raw outputs equal to the last bit, scores to 2e-15; linear, nets: 1e-14 of the largest term"
    )
    categories: ClassVar[Literal["", "codes", "names"]] = "codes"
    missing: ClassVar[str] = "as here: NaN takes the side it took in training, or the training mean"

    prefix: str = option(default="mcrank", help="beginning of every name the file defines")

    def refuses(self, model: Exportable) -> str | None:
        """A prefix that C does not take."""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", self.prefix):
            return f"prefix must be a name in C of at most 64 letters, got {self.prefix!r}"
        return None

    def content(self, model: Exportable) -> bytes:
        """Return the source."""
        parts = parts_of(model)
        folded = [fold(part.scorer) if isinstance(part.scorer, Forest) else None for part in parts]
        rows = block_rows(parts, folded)
        grades = len(model.grades)
        body = ""
        for number, part in enumerate(parts):
            body += scorer_code(number, part, folded[number], rows)
            body += head_code(number, part, alone=len(parts) == 1)
            body += _SCORES.replace("@I@", str(number)).replace("@RAW@", str(part.scorer.n_outputs))
        body += _entries(model, parts)
        helpers = {"struct tree": RANKS, "sigmoid(": SIGMOID, "softmax(": SOFTMAX, "falling(": FALLING}
        body = "".join(code for word, code in helpers.items() if word in body) + body
        words: dict[str, Any] = {
            "@ABOUT_GRADES@": _ABOUT_GRADES if grades else "",
            "@DECLARE_GRADES@": _DECLARE_GRADES if grades else "",
            "@BYTES@": max(stack_bytes(p, f, rows) for p, f in zip(parts, folded, strict=True)),
            "@STEP@": STEP,
            "@VERSION@": model.version,
            "@RANKER@": model.ranker,
            "@FINGERPRINT@": model.fingerprint,
            "@FEATURES@": model.scorer.n_features,
            "@OUTPUTS@": model.scorer.n_outputs,
            "@GRADE_LIST@": ", ".join(map(repr, model.grades)),
            "@GRADES@": grades,
            "@ROWS@": rows,
            "@P@": self.prefix,
            "@U@": self.prefix.upper(),
            # Last, for they may be anything.
            "@NAMES@": ",\n".join(_quoted(name) for name in model.feature_names),
        }
        words["@CATEGORIES@"] = _about_categories(model) if model.categories else ""
        return _replaced(_DECLARATIONS + "@CATEGORIES@" + body + "#endif\n", words).encode("ascii")

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Compile with the C compiler that is there, and score by the library it makes."""
        compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if compiler is None:
            raise ConsumerMissing("there is no C compiler (gcc, cc or clang).")
        with tempfile.TemporaryDirectory() as folder:
            library = f"{folder}/model.so"
            # The language is said, as the file may have any name.
            flags = ["-std=c99", "-O2", "-shared", "-fPIC", "-o", library, "-x", "c", str(path.resolve())]
            subprocess.run([compiler, *flags, "-lm"], check=True, capture_output=True)
            loaded = ctypes.CDLL(library)
        rows = np.ascontiguousarray(X, dtype=np.float32)
        scores, raw = np.empty(len(X)), np.empty((len(X), model.scorer.n_outputs))
        start, count = ctypes.c_void_p(rows.ctypes.data), ctypes.c_size_t(len(X))
        for name, out in (("score", scores), ("raw", raw)):
            getattr(loaded, f"{self.prefix}_{name}_rows")(start, count, ctypes.c_void_p(out.ctypes.data))
        version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
        return Consumed(scores, version.splitlines()[0], raw.T)


def _about_categories(model: Exportable) -> str:
    """What codes mean, for whoever fills rows."""
    names = json.dumps(model.category_names, indent=0).replace("*/", "*\\/").replace("?", "\\u003f")
    return (
        f"/* Categories are given by code: the place in these lists, from 0; any other is NAN.\n{names}\n*/\n"
    )


def _entries(model: Exportable, parts: list[Part]) -> str:
    """The functions that others call."""
    score, raw, code = "scores_0", "outputs_0", ""
    if model.kind == "blend":
        members = ""
        for number, part in enumerate(parts):
            words = {"@I@": str(number), "@SHIFT@": part.shift.hex(), "@WEIGHT@": part.weight.hex()}
            members += _replaced(_MEMBER, words)
        code += _BLEND.replace("@MEMBERS@", members).replace("@FARTHEST@", repr(FARTHEST))
        score = raw = "blend"
    code += _SCORE_ROW.replace("@BY@", score)
    entries = [("score", score, "1"), ("raw", raw, "@OUTPUTS@")]
    if model.values is not None:
        code += _PROBABILITIES
        entries.append(("probability", "probabilities_0", "@GRADES@"))
    for what, by, width in entries:
        text = _ROWS_LOOP + (_ROW if what != "score" else "")
        code += _replaced(text, {"@WHAT@": what, "@BY@": by, "@WIDTH@": width})
    return code


def _replaced(text: str, words: Mapping[str, object]) -> str:
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


def _quoted(text: str) -> str:
    """A text of C, in ASCII; no ? either, for two of them may begin a trigraph."""
    plain = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'    "{plain}"'
