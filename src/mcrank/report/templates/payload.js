// The data inside the page: unpacked, and numbers as they are shown.
"use strict";
const payload = (() => {
  const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array, float32: Float32Array };
  const values = new Map();

  async function unpack(content) {
    const text = atob(content.trim());
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const whole = await new Response(stream).arrayBuffer();
    const length = new DataView(whole).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
    const arrays = {};
    for (const [name, [type, at, count]] of Object.entries(head.arrays)) {
      arrays[name] = new TYPES[type](whole, 4 + length + at, count);
    }
    return { facts: head.facts, arrays };
  }

  // Values of a measure, systems x queries, as whole numbers of 10^-decimals; NaN where there is none.
  function valuesOf(arrays, queries, measure) {
    if (!values.has(measure)) {
      const cells = arrays["values " + measure];
      if (!cells) return null;
      const n = cells.length / 2, found = new Float64Array(n), last = new Float64Array(queries);
      for (let i = 0; i < n; i++) {
        const folded = cells[i] | (cells[n + i] << 8);
        if (folded === 65535) { found[i] = NaN; continue; }
        last[i % queries] += folded % 2 ? -(folded + 1) / 2 : folded / 2;
        found[i] = last[i % queries];
      }
      values.set(measure, found);
    }
    return values.get(measure);
  }

  const minus = (text) => text.replace("-", "−");
  function shown(value, decimals, sign = false) {
    if (Number.isNaN(value)) return "–";
    const text = (value / 10 ** decimals).toFixed(Math.max(decimals, 0));
    return minus(sign && value > 0 ? "+" + text : text);
  }

  // A number of single precision in the fewest digits that mean it: 0.1, not 0.10000000149011612.
  function single(value) {
    for (let digits = 1; digits < 9; digits++) {
      const text = String(Number(value.toPrecision(digits)));
      if (Math.fround(Number(text)) === value) return text;
    }
    return String(Number(value.toPrecision(9)));
  }

  return { minus, shown, single, unpack, valuesOf };
})();
