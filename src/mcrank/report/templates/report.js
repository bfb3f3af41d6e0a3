// The page's script: chooses, sorts and draws what is in the page. It computes no result of its own.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { element, fitLabels, named, scrollHints, shortened, themes } = labels;
  const { minus, shown, single } = payload;
  const ROW = 30, HEAD = 34;
  const state = { measure: "", first: 0, second: 0, active: 0, open: -1, shown: [] };
  let facts = null;
  let arrays = null;
  const valuesOf = (measure) => payload.valuesOf(arrays, facts.qids.length, measure);
  const valueAt = (table, system, query) => table[system * facts.qids.length + query];

  // ---- leaderboard -------------------------------------------------------------------------------------
  function sortBoard(header, direction) {
    const table = $("board"), column = [...header.parentNode.children].indexOf(header);
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const numeric = header.dataset.kind === "number", sign = direction === "ascending" ? 1 : -1;
    const key = (row) => {
      const text = row.children[column].dataset.value;
      return numeric ? (text === undefined ? Infinity * sign : Number(text)) : (text || "").toLowerCase();
    };
    const rows = [...table.tBodies[0].rows].map((row, at) => [key(row), at, row]);
    rows.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] - b[1]));
    table.tBodies[0].append(...rows.map((entry) => entry[2]));
  }

  // The first click on a heading puts the best on top: which way that is, Python says.
  function bestFirst(header) {
    const best = header.dataset.best;
    if (best !== "measure") return best;
    return facts && !facts.measures[state.measure].higher ? "ascending" : "descending";
  }

  function sortable() {
    for (const header of $("board").tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => {
        const now = header.getAttribute("aria-sort");
        sortBoard(header, now === null ? bestFirst(header) : now === "ascending" ? "descending" : "ascending");
      });
    }
  }

  // ---- measure and dialect -----------------------------------------------------------------------------
  function dialectsOf(base) {
    return Object.keys(facts.measures).filter((name) => name.replace(/\[.*\]$/, "") === base);
  }

  function fillDialects() {
    const names = dialectsOf($("measure").value);
    const options = names.map((name) => {
      const dialect = (name.match(/\[(.*)\]$/) || [0, "standard"])[1];
      return element("option", { value: name }, dialect);
    });
    $("dialect").replaceChildren(...options);
    $("dialect").disabled = names.length < 2;
  }

  function showMeasure() {
    state.measure = $("dialect").value;
    const found = facts.measures[state.measure];
    $("board").tBodies[0].innerHTML = found.board;
    const sorted = document.querySelector("#board th[aria-sort]");
    if (sorted) sortBoard(sorted, sorted.getAttribute("aria-sort"));
    $("verdict").replaceChildren(...withNames(found.verdict));
    $("definition").textContent = found.definition;
    $("board-measure").textContent = state.measure;
    if (!$("pair")) return;
    $("wins").tBodies[0].innerHTML = found.wins;
    $("wins-measure").textContent = state.measure;
    showPair();
  }

  // ---- two systems -------------------------------------------------------------------------------------
  function showPair() {
    const { first, second, measure } = state;
    const found = facts.measures[measure], forward = first < second;
    const names = facts.systems;
    const words = $("pair-words");
    if (first === second) {
      words.textContent = "Choose two different systems.";
    } else {
      const pair = found.pairs[forward ? `${first},${second}` : `${second},${first}`];
      const counts = forward ? pair.counts : [...pair.counts].reverse();
      words.replaceChildren(
        element("b", {}, element("bdi", {}, names[first])), " minus ", element("b", {}, element("bdi", {}, names[second])),
        `: ${forward ? pair.difference : pair.reverse} ${measure} on average, ${pair.test}. ` +
        `It wins ${counts[0]}, ties ${counts[1]} and loses ${counts[2]} of ${facts.qids.length} queries.`,
      );
      const label = (most) => `${shortened(names[first], most)} minus ${shortened(names[second], most)}, ${measure}`;
      histogram.show($("histogram").querySelector("svg"), forward ? pair.columns : [...pair.columns].reverse(), found.edge, label(24), label(Infinity));
    }
    showHeads();
    chooseQueries();
    if (state.open >= 0) showQuery(state.open);
  }

  function showHeads() {
    for (const [id, system] of [["head-first", state.first], ["head-second", state.second]]) {
      $(id).replaceChildren(element("bdi", {}, facts.systems[system]));
      $(id).title = facts.systems[system];
    }
  }

  // Sentences with names in them: a name keeps its own direction of writing.
  function withNames(text) {
    const turned = facts.systems.filter((name) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(name));
    if (!turned.length) return [text];
    const names = turned.sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return text.split(new RegExp(`(${names.join("|")})`)).map((part) => (turned.includes(part) ? element("bdi", {}, part) : part));
  }

  // ---- list of queries: only the rows in sight exist ---------------------------------------------------
  function chooseQueries() {
    const table = valuesOf(state.measure);
    const find = $("find").value.trim().toLowerCase(), show = $("show").value, order = $("order").value;
    state.shown = [];
    if (table) {
      const differences = new Float64Array(facts.qids.length);
      for (let q = 0; q < differences.length; q++) {
        const d = valueAt(table, state.first, q) - valueAt(table, state.second, q);
        differences[q] = Number.isNaN(d) ? 0 : d;
      }
      const keep = {
        all: () => true, first: (q) => differences[q] > 0, second: (q) => differences[q] < 0,
        differ: (q) => differences[q] !== 0, equal: (q) => differences[q] === 0, documents: (q) => documentsOf(q) >= 0,
      }[show];
      for (let q = 0; q < differences.length; q++) {
        if (keep(q) && (!find || facts.qids[q].toLowerCase().includes(find))) state.shown.push(q);
      }
      const key = {
        spread: (q) => -Math.abs(differences[q]), first: (q) => -differences[q], second: (q) => differences[q], file: () => 0,
      }[order];
      state.shown.sort((a, b) => key(a) - key(b) || a - b);
    }
    state.active = 0;
    $("list").setAttribute("aria-rowcount", state.shown.length + 1);
    $("list").scrollTop = 0;
    $("list-body").style.height = state.shown.length * ROW + "px";
    const left = state.shown.length.toLocaleString("en"), all = facts.qids.length.toLocaleString("en");
    $("shown").textContent = table ? `${left} of ${all} queries` : `The values of ${state.measure} by query are not in this page.`;
    drawList();
  }

  function drawList() {
    const list = $("list"), table = valuesOf(state.measure);
    const decimals = facts.measures[state.measure].decimals;
    const from = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
    const to = Math.min(state.shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 4);
    const room = $("list").querySelector(".list-head span").clientWidth - 2;
    const rows = [];
    for (let at = from; at < to; at++) {
      const q = state.shown[at], a = valueAt(table, state.first, q), b = valueAt(table, state.second, q), d = a - b;
      const cell = (text, css = "") => element("span", { role: "gridcell", class: css }, text);
      const row = element("div", {
        role: "row", id: "q" + at, class: "list-row" + (at === state.active ? " active" : "") + (q === state.open ? " open" : ""),
        "aria-rowindex": at + 2, "aria-selected": String(q === state.open), style: `top:${at * ROW}px`, "data-at": at,
      },
      named(facts.qids[q], room, 13, "span", { role: "gridcell" }), cell(String(arrays.sizes[q]), "number"),
      cell(shown(a, decimals), "number"), cell(shown(b, decimals), "number"),
      cell(shown(d, decimals, true), "number " + (d > 0 ? "plus" : d < 0 ? "minus" : "")));
      row.dataset.query = facts.qids[q];
      rows.push(row);
    }
    $("list-body").replaceChildren(...rows);
    if (state.shown.length) list.setAttribute("aria-activedescendant", "q" + state.active);
    else list.removeAttribute("aria-activedescendant");
  }

  function moveTo(at) {
    const list = $("list"), last = state.shown.length - 1;
    state.active = Math.max(0, Math.min(last, at));
    const top = state.active * ROW, room = list.clientHeight - HEAD;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + room) list.scrollTop = top + ROW - room;
    drawList();
  }

  function listKeys(event) {
    const page = Math.floor(($("list").clientHeight - HEAD) / ROW) - 1;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) moveTo(state.active + moves[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && state.shown.length) showQuery(state.shown[state.active]);
    else return;
    event.preventDefault();
  }

  // ---- one query ---------------------------------------------------------------------------------------
  function documentsOf(query) {
    const all = arrays.doc_queries;
    let low = 0, high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[middle] < query) low = middle + 1; else high = middle;
    }
    return all[low] === query ? low : -1;
  }

  function showQuery(query) {
    state.open = query;
    drawList();
    const table = valuesOf(state.measure), measure = facts.measures[state.measure];
    const parts = [element("h3", {}, `Query ${facts.qids[query]}`)];
    if (table) {
      const systems = facts.systems.flatMap((name, s) => [s ? ", " : "", named(name, 300, 15), ` ${shown(valueAt(table, s, query), measure.decimals)}`]);
      parts.push(element("p", { class: "quiet" }, `${facts.folds[arrays.folds[query]]}, ${arrays.sizes[query]} rows. ${state.measure}: `, ...systems, "."));
    }
    const place = documentsOf(query);
    if (place < 0) {
      parts.push(element("p", { class: "note" }, "The documents of this query are not in this page: it holds those of the queries on which the systems differ most."));
    } else {
      parts.push(element("div", { class: "rankings" }, ranking(place, state.first, state.second), ranking(place, state.second, state.first)));
      const apart = disagreement(place, state.first, state.second);
      const one = (system) => (apart.length && facts.documents.explained[system] < 0 ? [] : explained(place, system));
      const why = [...apart, ...[...new Set([state.first, state.second])].flatMap(one)];
      if (why.length) parts.push(...why);
      else if (facts.documents.features.length && state.first !== state.second) parts.push(...differing(place));
    }
    $("query").replaceChildren(...parts);
    scrollHints();
  }

  function ranking(place, system, other) {
    const { names, levels, depth } = facts.documents, total = arrays.doc_grades.length;
    const start = arrays.doc_offsets[place], stop = arrays.doc_offsets[place + 1];
    const positionOf = (s, row) => arrays.doc_positions[s * total + row];
    const rows = [];
    for (let row = start; row < stop; row++) if (positionOf(system, row) < depth) rows.push(row);
    rows.sort((a, b) => positionOf(system, a) - positionOf(system, b));
    const block = facts.documents.probabilities.indexOf(system);
    const heads = ["#", "Document", "Grade", "Score", "Other"];
    if (block >= 0) heads.push(`P(${levels.join(" ")}) %`);
    const top = Math.max(1, ...arrays.doc_grades);
    const body = rows.map((row) => {
      const mine = positionOf(system, row), theirs = positionOf(other, row), grade = arrays.doc_grades[row];
      const moved = theirs > mine ? ["up", "▲"] : theirs < mine ? ["down", "▼"] : ["", "="];
      const cells = [
        element("td", { class: "number" }, String(mine + 1)),
        named(names[row], 118, 12.5, "th", { scope: "row", class: "doc" }),
        element("td", {}, element("span", { class: "grade", style: `--level:${grade / top}` }, single(grade))),
        element("td", { class: "number" }, minus(Number(arrays.doc_scores[system * total + row].toPrecision(4)).toString())),
        element("td", { class: "number " + moved[0] }, `${moved[1]} ${theirs + 1}`),
      ];
      if (block >= 0) {
        const at = (block * total + row) * levels.length;
        const shares = levels.map((_, k) => Math.round(arrays.doc_probabilities[at + k] / 10));
        cells.push(element("td", { class: "number" }, shares.join(" ")));
      }
      return element("tr", { "data-row": row }, ...cells);
    });
    const head = element("tr", {}, ...heads.map((name, at) => element("th", { scope: "col", class: at === 1 || at === 2 ? "" : "number" }, name)));
    return element("div", { class: "scroll" }, element("table", {}, named(facts.systems[system], 300, 13, "caption"), element("thead", {}, head), element("tbody", {}, ...body)));
  }

  const smallTitle = (...words) => element("h3", { style: "font-size:14px;margin-top:24px" }, ...words);
  const unexplained = "There are scores of this system and no model: what they were made of cannot be explained.";

  // The features and contributions of one explained pair, with the sum of all others; all of it is Python's.
  function partsOf(kind, at) {
    const systems = facts.documents.explained.length, count = arrays.swap_features.length / (arrays.doc_queries.length * systems);
    const none = 65535, parts = [];
    for (let k = 0; k < count; k++) {
      const feature = arrays[`${kind}_features`][at * count + k];
      if (feature !== none) parts.push([facts.documents.features[feature], arrays[`${kind}_parts`][at * (count + 1) + k]]);
    }
    parts.push(["all others", arrays[`${kind}_parts`][at * (count + 1) + count]]);
    // What rounds to nothing is not worth a bar; that of a feature alone is told even so.
    return { parts: parts.filter(([name, value]) => (name === "all others" ? Math.abs(value) >= 0.0005 : value !== 0)), total: parts.reduce((sum, part) => sum + part[1], 0) };
  }

  // Whether a system gives two documents the same score, to the digits the page has.
  function tied(system, a, b) {
    const first = system * arrays.doc_grades.length;
    return arrays.doc_scores[first + a] === arrays.doc_scores[first + b];
  }

  // Two documents that the two systems order differently, and what the features make of it in each.
  function disagreement(place, first, second) {
    const kinds = facts.documents.explained, none = 65535, names = facts.documents.names;
    if (first === second || !kinds.length || (kinds[first] < 0 && kinds[second] < 0)) return [];
    const total = arrays.doc_grades.length, pairs = arrays.apart_rows.length / (2 * arrays.doc_queries.length);
    for (let pair = place * pairs; pair < (place + 1) * pairs; pair++) {
      const [better, worse] = [arrays.apart_rows[2 * pair], arrays.apart_rows[2 * pair + 1]];
      if (better === none) continue;
      const ahead = (system) => arrays.doc_positions[system * total + better] < arrays.doc_positions[system * total + worse];
      if (ahead(first) === ahead(second)) continue;
      const told = (row) => `${names[row]} (grade ${single(arrays.doc_grades[row])})`;
      const [right, wrong] = ahead(first) ? [first, second] : [second, first];
      const words = [named(facts.systems[right], 300, 15), ` has ${told(better)} above ${told(worse)}; `,
        named(facts.systems[wrong], 300, 15), " has them the other way round. What each feature makes of it: to the right for the better one, to the left for the other."];
      const sides = [first, second].map((system) => {
        const heading = element("h4", {}, named(facts.systems[system], 300, 13));
        if (kinds[system] < 0) return element("div", {}, heading, element("p", { class: "note" }, unexplained));
        const { parts, total: sum } = partsOf("apart", pair * kinds.length + system);
        if (tied(system, better, worse)) {
          return element("div", {}, heading, element("p", { class: "quiet" }, "They are tied here: the order of the file decides."), ...(parts.length ? [bars(parts, 3, "", 130)] : []));
        }
        const by = `${names[sum > 0 ? better : worse]} is ahead by ${Math.abs(sum).toPrecision(3)}${kinds[system] ? " grades" : ""}`;
        return element("div", {}, heading, element("p", { class: "quiet" }, by + ":"), bars(parts, 3, "", 130));
      });
      return [smallTitle("Why the two disagree"), element("p", { class: "quiet" }, ...words), element("div", { class: "sides" }, ...sides)];
    }
    return [];
  }

  // Why a system puts a document above a better one.
  function explained(place, system) {
    const kinds = facts.documents.explained, none = 65535;
    if (!kinds.length || kinds.every((kind) => kind < 0)) return [];
    if (kinds[system] < 0) return [smallTitle(named(facts.systems[system], 300, 14)), element("p", { class: "note" }, unexplained)];
    const at = place * kinds.length + system;
    const [above, below] = [arrays.swap_rows[2 * at], arrays.swap_rows[2 * at + 1]], names = facts.documents.names;
    if (above === none) return [];
    const { parts, total } = partsOf("swap", at), unit = kinds[system] ? " grades" : "";
    const by = tied(system, above, below) ? ", tied with it: the order of the file decides" : ` by ${minus(total.toPrecision(3))}${unit}`;
    const words = `${names[above]} (grade ${single(arrays.doc_grades[above])}) above ${names[below]} (grade ${single(arrays.doc_grades[below])})${by}${parts.length ? "; what each feature makes of it:" : "."}`;
    return [smallTitle("Why ", named(facts.systems[system], 300, 14), " has a document above a better one"), element("p", { class: "quiet" }, words),
      ...(parts.length ? [bars(parts, 3, "")] : [])];
  }

  // Which features are higher on top of the one ranking than of the other; the means are Python's.
  function differing(place) {
    const { features, fine } = facts.documents, systems = facts.systems.length, d = features.length;
    const mean = (s, j) => arrays.doc_features[(place * systems + s) * d + j];
    const found = features.map((name, j) => [name, (mean(state.first, j) - mean(state.second, j)) / fine]);
    found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const top = found.slice(0, 6).filter((entry) => entry[1] !== 0);
    if (!top.length) return [];
    const caption = `Mean over the first ${facts.documents.depth} positions, weighted by their discounts: ${shortened(facts.systems[state.first], 40)} minus ${shortened(facts.systems[state.second], 40)}, in standard deviations of the feature.`;
    return [element("h3", { style: "font-size:14px;margin-top:24px" }, "Features that differ most"),
      bars(top, 2, caption)];
  }

  // Names, numbers and bars to either side; the first number is not always the largest.
  function bars(entries, digits, caption, width = innerWidth < 500 ? 130 : 240) {
    const widest = Math.max(...entries.map((entry) => Math.abs(entry[1])), 1e-300);
    const rows = entries.map(([name, value]) => {
      const share = (Math.abs(value) / widest) * 50, css = value > 0 ? "plus" : "minus";
      const bar = element("i", { class: css, style: `width:${share}%;left:${value > 0 ? 50 : 50 - share}%` });
      return element("tr", {}, named(name, width, 12.5, "th", { scope: "row" }),
        element("td", { class: "number" }, minus((value > 0 ? "+" : "") + value.toFixed(digits))), element("td", {}, element("div", { class: "track", "aria-hidden": "true" }, bar)));
    });
    return element("table", { class: "differ" }, ...(caption ? [element("caption", {}, caption)] : []), element("tbody", {}, ...rows));
  }

  function markSame(event) {
    const row = event.target.closest("tr[data-row]");
    for (const other of $("query").querySelectorAll("tr[data-row]")) {
      other.classList.toggle("same", Boolean(row) && other.dataset.row === row.dataset.row);
    }
  }

  // ---- the page ----------------------------------------------------------------------------------------
  function printing() {
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = [...document.querySelectorAll("details[data-print]:not([open])")];
      closed.forEach((details) => (details.open = true));
    });
    addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)));
  }

  function listen() {
    $("measure").addEventListener("change", () => { fillDialects(); showMeasure(); });
    $("dialect").addEventListener("change", showMeasure);
    if (!$("pair")) return;
    const chosen = () => { state.first = Number($("first").value); state.second = Number($("second").value); showPair(); };
    $("first").addEventListener("change", chosen);
    $("second").addEventListener("change", chosen);
    $("swap").addEventListener("click", () => { [$("first").value, $("second").value] = [$("second").value, $("first").value]; chosen(); });
    for (const id of ["find", "show", "order"]) $(id).addEventListener("input", chooseQueries);
    $("list").addEventListener("scroll", drawList);
    $("list").addEventListener("keydown", listKeys);
    $("list-body").addEventListener("click", (event) => {
      const row = event.target.closest(".list-row");
      if (row) { state.active = Number(row.dataset.at); showQuery(state.shown[state.active]); }
    });
    $("query").addEventListener("mouseover", markSame);
    $("query").addEventListener("mouseleave", markSame);
  }

  async function start() {
    themes();
    printing();
    sortable();
    try {
      ({ facts, arrays } = await payload.unpack($("payload").textContent));
    } catch (error) {
      $("failed").hidden = false;
      return;
    }
    document.documentElement.classList.add("has-js");
    state.measure = Object.keys(facts.measures)[0];
    fillDialects();
    $("dialect").value = state.measure;
    if ($("pair")) {
      state.first = Number($("first").value);
      state.second = Number($("second").value);
      showHeads();
    }
    listen();
    $("verdict").replaceChildren(...withNames(facts.measures[state.measure].verdict));
    if ($("pair")) chooseQueries();
    fitLabels();
    scrollHints();
    addEventListener("resize", scrollHints);
    for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", scrollHints);
    document.documentElement.dataset.ready = "yes";
  }
  start();
})();
