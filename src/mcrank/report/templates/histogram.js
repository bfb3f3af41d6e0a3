// The histogram of differences between two systems.
"use strict";
const histogram = (() => {
  function niceStep(raw) {
    const magnitude = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find((m) => m * magnitude >= raw * 0.999) * magnitude;
  }

  // The drawing is Python's; only heights and the numbers on the axis change.
  function show(svg, columns, edge, label, whole) {
    const bars = [...svg.querySelectorAll(".column")], axis = svg.querySelector(".axis");
    const bottom = Number(axis.getAttribute("y1")), room = bottom - 26, most = Math.max(1, ...columns);
    bars.forEach((bar, at) => {
      const height = (columns[at] / most) * room;
      bar.setAttribute("y", bottom - height);
      bar.setAttribute("height", height);
    });
    const left = Number(axis.getAttribute("x1")), right = Number(axis.getAttribute("x2"));
    svg.querySelectorAll(".tick, .grid").forEach((old) => old.remove());
    const add = (tag, attributes, words = "") => {
      const made = document.createElementNS(svg.namespaceURI, tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.textContent = words;
      if (tag === "line") svg.insertBefore(made, bars[0]); else svg.append(made);
    };
    const step = niceStep(edge / 4);
    for (let at = -Math.floor(edge / step); at * step <= edge; at++) {
      const x = left + ((at * step + edge) / (2 * edge)) * (right - left);
      add("text", { x, y: bottom + 17, "text-anchor": "middle", class: "tick" }, payload.minus(String(Number((at * step).toPrecision(6)))));
    }
    const rise = Math.max(1, niceStep(most / 4));
    for (let count = 0; count <= most; count += rise) {
      const y = bottom - (count / most) * room;
      add("line", { x1: left, x2: right, y1: y, y2: y, class: "grid" });
      add("text", { x: left - 6, y: y + 4, "text-anchor": "end", class: "tick count" }, count.toLocaleString("en"));
    }
    const titles = svg.querySelectorAll(".axis-title");
    labels.setLabel(titles[titles.length - 1], label, whole);
    svg.querySelector("title").textContent = whole;
  }

  return { show };
})();
