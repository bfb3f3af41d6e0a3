"""One JavaScript file without dependencies, for Node, Deno, bundlers and browsers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.export.arrays import part_arrays
from mcrank.export.parts import parts_of
from mcrank.export.target import SCORERS, Consumed, ConsumerMissing, Exportable, Target
from mcrank.export.templates import common_words, filled
from mcrank.options import option

_CODE = """// A model of mcrank @VERSION@ (ranker @RANKER@).
//
//   score(row)           higher ranks first
//   raw(row)             @OUTPUTS@ raw outputs; of trees those of mcrank to the last bit
//   probabilities(row)   of each of GRADES; models without grades have none
//   scores(rows)
//
// A row is an array of numbers in the order of FEATURES, or an object by their names. null, undefined, NaN
// and a name that is not there are missing values. Numbers are rounded to float32, as mcrank does. Features
// in CATEGORIES take names; one that is not listed is as good as missing.
"use strict";

const FINGERPRINT = "@FINGERPRINT@";
const FEATURES = @FEATURES@;
const GRADES = @GRADES@;
const RELEVANCE = @RELEVANCE@; // what each grade is worth in a score
const CATEGORIES = @CATEGORIES@;

function score(row) {
  return scoreOf(floats(row));
}

function scores(rows) {
  return Array.from(rows, score);
}

function raw(row) {
  const x = floats(row);
  return BLEND ? [scoreOf(x)] : Array.from(SCORERS[PARTS[0].scorer](PARTS[0], x));
}

function probabilities(row) {
  if (GRADES.length === 0) throw new Error("this model has no grades, and so no probabilities.");
  return probabilitiesOf(PARTS[0], raw(row));
}

function floats(row) {
  const list = Array.isArray(row) || ArrayBuffer.isView(row);
  if (list && row.length !== FEATURES.length) {
    throw new Error(`the row has ${row.length} numbers; the model takes ${FEATURES.length}.`);
  }
  if (!list) {
    const kind = Object.prototype.toString.call(row);
    if (kind !== "[object Object]") {
      throw new Error(`a row is an array of numbers, or an object by their names, got ${kind}.`);
    }
    const unknown = Object.keys(row).filter((name) => !NAMES.has(name));
    if (unknown.length > 0) throw new Error(`the row has ${unknown[0]}, which is no feature of the model.`);
  }
  const x = new Float32Array(FEATURES.length);
  for (let f = 0; f < x.length; f++) {
    const v = list ? row[f] : Object.hasOwn(row, FEATURES[f]) ? row[FEATURES[f]] : null;
    if (v === null || v === undefined || v !== v) {
      x[f] = NaN;
    } else if (CODES[f] !== undefined) {
      x[f] = CODES[f].get(called(v, DIGITS[f])) ?? NaN;
    } else {
      x[f] = v;
      const blank = typeof v === "string" && v.trim() === ""; // to JavaScript that is 0, as is []
      if (x[f] !== x[f] || blank || typeof v === "object") {
        throw new Error(`the row has ${JSON.stringify(v)} for ${FEATURES[f]}, which is no number.`);
      }
      if (Math.abs(x[f]) === Infinity) throw new Error("the row has a number beyond float32 (3.4e38).");
    }
  }
  return x;
}

// What a category is called: a whole number by its digits, also 007 where all are such.
function called(v, digits) {
  if (v === true || v === false) return v ? "True" : "False";
  const name = String(v);
  return digits && /^[ \\t-\\r]*[+-]?[0-9]{1,18}[ \\t-\\r]*$/.test(name) ? String(BigInt(name.trim())) : name;
}

function scoreOf(x) {
  if (!BLEND) return rank(PARTS[0], SCORERS[PARTS[0].scorer](PARTS[0], x));
  let total = 0;
  for (const part of PARTS) {
    const s = rank(part, SCORERS[part.scorer](part, x));
    total += (Math.min(Math.max(s, -1e140), 1e140) - part.shift) * part.weight;
  }
  return total;
}

function forest(part, x) {
  const { test, next, threshold, value, root, output } = part;
  const out = Float64Array.from(part.base);
  for (let i = 0; i < root.length; i++) {
    let node = root[i];
    let t = test[node];
    while (t >= 0) {
      const v = x[t >> 1];
      node = next[node] + (v <= threshold[node] ? 0 : v === v ? 1 : 1 - (t & 1));
      t = test[node];
    }
    out[output[i]] += value[next[node]];
  }
  return out;
}

function scaled(part, x) {
  return Float64Array.from(part.columns, (c, j) => {
    const v = x[c];
    if (v !== v) return part.fill[j];
    return ((part.log ? Math.sign(v) * Math.log1p(Math.abs(v)) : v) - part.mean[j]) * part.factor[j];
  });
}

function linear(part, x) {
  return [scaled(part, x).reduce((total, v, j) => total + v * part.weights[j], 0)];
}

function net(part, x) {
  const { sizes, weights, activation } = part;
  let units = scaled(part, x);
  let at = 0;
  for (let layer = 0; layer + 1 < sizes.length; layer++) {
    const a = sizes[layer];
    const b = sizes[layer + 1];
    const sums = weights.slice(at + a * b, at + a * b + b);
    for (let j = 0; j < a; j++) {
      for (let h = 0; h < b; h++) sums[h] += units[j] * weights[at + j * b + h];
    }
    units = layer + 2 < sizes.length ? sums.map(ACTIVATIONS[activation]) : sums;
    at += (a + 1) * b;
  }
  return units;
}

function rank(part, outputs) {
  if (part.head === "identity") return outputs[0];
  if (part.head === "exp") return Math.exp(Math.min(outputs[0], 709.782712893384));
  const worth = part.relevance;
  const above = aboveOf(part, outputs);
  let s = worth[0];
  for (let k = 0; k + 1 < worth.length; k++) s += (worth[k + 1] - worth[k]) * above[k];
  return s;
}

function probabilitiesOf(part, outputs) {
  return part.cuts ? between(aboveOf(part, outputs)) : learnedOf(part, outputs);
}

// How likely a grade above each but the highest is.
function aboveOf(part, outputs) {
  const above = learnedAbove(part, outputs);
  if (!part.cuts) return above;
  const { learned } = part;
  return byScore(part, above).map((chance, k) => learned * above[k] + (1 - learned) * chance);
}

function learnedAbove(part, outputs) {
  if (part.head === "cumulative") return Array.from(outputs, sigmoid);
  const p = learnedOf(part, outputs);
  for (let k = p.length - 2; k > 0; k--) p[k] += p[k + 1];
  return p.slice(1);
}

// The probability of each grade, of those of being above.
function between(above) {
  return [...above, 0].map((v, k) => (k > 0 ? above[k - 1] : 1) - v);
}

function learnedOf(part, outputs) {
  const { head } = part;
  if (head === "cumulative") return between(falling(learnedAbove(part, outputs)));
  let sums = Array.from(outputs);
  if (head === "one-each") {
    sums = sums.map((r) => (r < 0 ? r - Math.log1p(Math.exp(r)) : -Math.log1p(Math.exp(-r))));
  } else if (head === "base-pairs") {
    const n = Math.round((1 + Math.sqrt(1 + 4 * outputs.length)) / 2);
    sums = new Array(n).fill(0);
    for (let i = 0; i < outputs.length; i++) sums[Math.floor(i / (n - 1))] += outputs[i];
    for (let i = 0; i < outputs.length; i++) {
      const k = Math.floor(i / (n - 1));
      const j = i % (n - 1);
      sums[j >= k ? j + 1 : j] -= outputs[i];
    }
  }
  const top = Math.max(...sums);
  const powers = sums.map((r) => Math.exp(r - top));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

// How likely rows with such a score were to be above each grade: a bent line, and cuts.
function byScore(part, above) {
  let share = 0; // of the way from the lowest to the highest grade
  for (let k = 0; k < above.length; k++) share += part.steps[k] * above[k];
  share = Math.min(Math.max(share, @SHARE@), 1 - @SHARE@);
  const odds = Math.log(share / (1 - share));
  const { bends, knots, strayed } = part;
  let line = part.slope * odds;
  for (let k = 0; k < knots.length; k++) line += bends[k] * Math.max(odds - knots[k], 0);
  return Array.from(part.cuts, (cut, k) => (1 - strayed[0]) * sigmoid(line + cut) + strayed[k + 1]);
}

// The nearest values that do not rise, and steps between them: boundaries are learned apart and may cross.
function falling(values) {
  const n = values.length;
  if (n === 1) return values;
  const sums = [0];
  for (const v of values) sums.push(sums[sums.length - 1] + v);
  const made = [];
  for (let k = 0; k < n; k++) {
    const doubt = k > 0 && Math.min(...values.slice(0, k)) < Math.max(...values.slice(k));
    let least = k > 0 ? (doubt ? @STEP@ : 1) * made[k - 1] : 1;
    for (let i = 0; i <= k; i++) {
      let most = 0;
      for (let j = k; j < n; j++) most = Math.max(most, (sums[j + 1] - sums[i]) / (j + 1 - i));
      least = Math.min(least, most);
    }
    made.push(least);
  }
  return made;
}

function sigmoid(v) {
  const e = Math.exp(-Math.abs(v));
  return (v >= 0 ? 1 : e) / (1 + e);
}

const SCORERS = { forest, linear, net };
const ACTIVATIONS = { tanh: Math.tanh, relu: (v) => Math.max(v, 0), sigmoid };
const NAMES = new Set(FEATURES);
const CODES = FEATURES.map((name) =>
  Object.hasOwn(CATEGORIES, name) ? new Map(CATEGORIES[name].map((v, code) => [v, code])) : undefined);
const DIGITS = CODES.map((codes) =>
  codes !== undefined && [...codes.keys()].every((name) => /^-?(0|[1-9][0-9]*)$/.test(name)));
const BLEND = @BLEND@;
const PARTS = [
@PARTS@];

@EXPORTS@
"""
_NAMES = "CATEGORIES, FEATURES, FINGERPRINT, GRADES, RELEVANCE, probabilities, raw, score, scores"
_TYPES = {"f": "Float32Array", "d": "Float64Array", "i": "Int32Array"}
_RUN = """
const fs = require("fs");
import(require("url").pathToFileURL(process.argv[2])).then((found) => {
  const model = found.score ? found : found.default;
  const out = [];
  const rows = JSON.parse(fs.readFileSync(process.argv[3]));
  for (const row of rows) out.push(model.score(row), ...model.raw(row));
  fs.writeFileSync(process.argv[4], Buffer.from(Float64Array.from(out).buffer));
});
"""


class JavaScript(Target):
    """A JavaScript file without dependencies."""

    name: ClassVar[str] = "javascript"
    suffixes: ClassVar[tuple[str, ...]] = (".mjs", ".cjs", ".js")
    scorers: ClassVar[tuple[str, ...]] = tuple(SCORERS)
    exactness: ClassVar[str] = (
        "trees: raw outputs equal to the last bit, scores to 2e-15; linear, nets: 1e-14 of the largest term"
    )
    categories: ClassVar[Literal["", "codes", "names"]] = "names"
    missing: ClassVar[str] = "as here: null, undefined, NaN and names left out take the side of training"

    module: str = option(
        default="es", choices=("es", "commonjs"), help="import { score } (es) or require (commonjs)"
    )

    def misnamed(self, suffix: str) -> str | None:
        """Node takes .cjs for the one kind of module and .mjs for the other, whatever is in the file."""
        other = ".mjs" if self.module == "commonjs" else ".cjs"
        if suffix != other:
            return None
        kind = "commonjs" if other == ".cjs" else "es"
        return f"{suffix} is a module of the other kind; set module to {kind} (--module {kind}), or"

    def content(self, model: Exportable) -> bytes:
        """Return the source."""
        exports = "export { %s };" if self.module == "es" else "module.exports = { %s };"
        words = common_words(model) | {
            "GRADES": json.dumps(model.grades),
            "RELEVANCE": json.dumps([] if model.values is None else model.values.tolist()),
            "BLEND": json.dumps(model.kind == "blend"),
            "EXPORTS": exports % _NAMES,
            "PARTS": "".join(_part(part_arrays(part)) for part in parts_of(model)),
            "CATEGORIES": _by_name(model.category_names),
            "FEATURES": json.dumps(model.feature_names, indent=2),
        }
        return filled(_CODE, words).encode("ascii")

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with Node."""
        node = shutil.which("node") or shutil.which("nodejs")
        if node is None:
            raise ConsumerMissing("there is no Node (node or nodejs).")
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            # By its suffix Node knows which kind of module it is.
            code = place / ("model.mjs" if self.module == "es" else "model.cjs")
            code.write_bytes(path.read_bytes())
            (place / "run.cjs").write_text(_RUN)
            (place / "rows").write_text(json.dumps(model.named_rows(X)))
            files = [place / "run.cjs", code, place / "rows", place / "out"]
            subprocess.run([node, *map(str, files)], check=True, capture_output=True)
            out = np.fromfile(place / "out", dtype="<f8").reshape(len(X), -1)
        version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
        return Consumed(out[:, 0], f"Node {version.strip().removeprefix('v')}", out[:, 1:].T)


def _by_name(lists: dict[str, list[str]]) -> str:
    """An object of lists. Keys in brackets are keys, whatever they are: __proto__ alone would be none."""
    lines = [f"  [{json.dumps(name)}]: {json.dumps(values)},\n" for name, values in lists.items()]
    return "{\n" + "".join(lines) + "}" if lines else "{}"


def _part(arrays: dict[str, Any]) -> str:
    lines = []
    for name, value in arrays.items():
        if isinstance(value, np.ndarray):
            numbers = ",".join(repr(v).removesuffix(".0") for v in value.tolist())
            body = "\n".join(textwrap.wrap(numbers.replace(",", ", "), 110, break_on_hyphens=False))
            lines.append(f"    {name}: new {_TYPES[value.dtype.char]}([\n{body}\n    ]),")
        else:
            lines.append(f"    {name}: {json.dumps(value)},")
    return "  {\n" + "\n".join(lines) + "\n  },\n"
