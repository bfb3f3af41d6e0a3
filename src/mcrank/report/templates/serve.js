// The page of the service: asks for rankings and explanations, and draws them. It computes no result of its own.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { element, named, scrollHints, themes } = labels;
  const LISTED = 12, CHANGES = 3;
  const state = { models: [], query: null, picks: [], worth: null, preset: "grade", token: "", before: new Map(), found: [] };
  const minus = (text) => text.replace("-", "−");
  const number = (value, digits = 4) => minus(Number(value.toPrecision(digits)).toString());
  const graded = () => chosen().find((model) => model.grades);

  // ---- asking ------------------------------------------------------------------------------------------
  async function ask(path, body, tries = 0) {
    const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" });
    const found = await answer.json();
    if (answer.status === 503 && tries < 100) { // still loading, or busy
      await new Promise((done) => setTimeout(done, 500));
      return ask(path, body, tries + 1);
    }
    if (!answer.ok) throw Object.assign(new Error(found.detail), { status: answer.status });
    return found;
  }

  function tell(error) {
    const asks = error && error.status === 401;
    $("ask-token").hidden = !asks;
    if (asks) { $("verdict").textContent = "This service needs a token."; $("token").focus(); }
    $("problem").hidden = !error || (asks && !state.token);
    $("problem").textContent = error ? (error.status ? error.message : "The service does not answer: " + error.message) : "";
  }

  // Of questions that come faster than their answers, the last one counts.
  function latest(work) {
    let running = false, again = false;
    return async function run() {
      if (running) { again = true; return; }
      running = true;
      try { await work(); tell(null); } catch (error) { tell(error); }
      running = false;
      if (again) { again = false; run(); }
    };
  }

  // ---- queries -----------------------------------------------------------------------------------------
  const listQueries = latest(async () => fillQueries(await ask("/queries?find=" + encodeURIComponent($("find").value)), true));

  function fillQueries(found, anew) {
    const more = $("list").querySelector(".more");
    if (more) more.remove();
    const options = found.queries.map(({ query, rows }) => {
      const option = element("div", { role: "option", "aria-selected": String(query === state.query) },
        element("span", { title: query }, element("bdi", {}, query)), element("span", { "aria-label": `${rows} documents` }, String(rows)));
      option.dataset.query = query;
      return option;
    });
    if (anew) $("list").replaceChildren(...options); else $("list").append(...options);
    const listed = $("list").querySelectorAll("[role=option]").length;
    if (listed < found.found) {
      const button = element("button", { type: "button", class: "more" }, "More");
      button.addEventListener("click", async () => {
        try { fillQueries(await ask(`/queries?start=${listed}&find=` + encodeURIComponent($("find").value)), false); } catch (error) { tell(error); }
      });
      $("list").append(button);
    }
    $("shown").textContent = `${listed.toLocaleString("en")} of ${found.found.toLocaleString("en")} queries`;
    if (state.query === null && found.queries.length) openQuery(found.queries[0].query);
  }

  function openQuery(query) {
    state.query = query;
    state.picks = [];
    for (const option of $("list").querySelectorAll("[role=option]")) {
      const open = option.dataset.query === query;
      option.setAttribute("aria-selected", String(open));
      if (open) option.scrollIntoView({ block: "nearest" });
    }
    $("query-name").replaceChildren("Query ", element("bdi", {}, query));
    state.before = new Map();
    showRankings();
  }

  function listKeys(event) {
    const options = [...$("list").querySelectorAll("[role=option]")];
    const at = options.findIndex((option) => option.dataset.query === state.query);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: options.length - 1 }[event.key];
    if (to === undefined || !options.length) return;
    event.preventDefault();
    openQuery(options[Math.max(0, Math.min(options.length - 1, to))].dataset.query);
  }

  // ---- models ------------------------------------------------------------------------------------------
  const modelOf = (key) => state.models.find((model) => model.model === key);
  const chosen = () => [modelOf($("first").value), modelOf($("second").value)].filter(Boolean);

  function fillModels(found) {
    state.models = found.models;
    const option = (model) => element("option", { value: model.model }, model.model);
    $("first").replaceChildren(...state.models.map(option));
    $("second").replaceChildren(element("option", { value: "" }, "no other"), ...state.models.map(option));
    $("first").value = found.default;
    if (state.models.length > 1) $("second").value = state.models.find((model) => model.model !== found.default).model;
    $("model-rows").replaceChildren(...state.models.map((model) => element("tr", {},
      element("th", { scope: "row" }, element("bdi", {}, model.model), ...(model.stale ? [element("span", { class: "tag" }, "its file cannot be read")] : [])),
      element("td", {}, model.ranker), element("td", { class: "number" }, model.features.length.toLocaleString("en")),
      element("td", {}, model.grades ? model.grades.join(" ") : "none"),
      element("td", {}, new Date(model.loaded * 1000).toLocaleString("en-GB")), element("td", {}, element("code", {}, model.fingerprint.slice(0, 12))))));
  }

  // ---- T -----------------------------------------------------------------------------------------------
  const shade = (place, count) => `color-mix(in srgb, var(--plus) ${Math.round((100 * place) / Math.max(1, count - 1))}%, var(--line))`;

  function fillWorth() {
    const model = graded();
    $("worth").hidden = $("legend").hidden = !model;
    if (!model) { state.worth = null; return; }
    const grades = model.grades, top = Math.max(1, 2 ** Math.min(grades[grades.length - 1], 40) - 1);
    if (!state.worth || state.worth.length !== grades.length) { state.worth = [...grades]; state.preset = "grade"; }
    $("sliders").replaceChildren(...grades.map((grade, place) => {
      const name = `T(${grade})`, swatch = element("i", { style: `--g:${shade(place, grades.length)}` });
      const range = element("input", { type: "range", min: 0, max: top, step: top / 300, "aria-label": name });
      const exact = element("input", { type: "number", step: "any", "aria-label": `${name} as a number` });
      range.addEventListener("input", () => setWorth(place, Number(range.value)));
      exact.addEventListener("change", () => { if (exact.value !== "" && Number.isFinite(Number(exact.value))) setWorth(place, Number(exact.value)); else showWorth(); });
      return element("div", { class: "slider" }, swatch, element("span", {}, name), range, exact);
    }));
    $("legend").replaceChildren("Probability of grade", ...grades.map((grade, place) => element("span", {}, element("i", { style: `--g:${shade(place, grades.length)}` }), String(grade))));
    showWorth();
  }

  function showWorth() {
    [...$("sliders").children].forEach((line, place) => {
      const [range, exact] = line.querySelectorAll("input");
      range.value = state.worth[place];
      exact.value = Number(state.worth[place].toPrecision(6));
    });
    $("as-grade").setAttribute("aria-pressed", String(state.preset === "grade"));
    $("as-gain").setAttribute("aria-pressed", String(state.preset === "gain"));
    $("worth-words").textContent = state.preset ? "" : "your own";
  }

  // T does not fall: whoever raises one takes those above it along, whoever lowers one those below.
  function setWorth(place, value) {
    state.preset = "";
    state.worth = state.worth.map((own, k) => (k === place ? value : k < place ? Math.min(own, value) : Math.max(own, value)));
    showWorth();
    showRankings();
  }

  function setPreset(name) {
    state.preset = name;
    state.worth = graded().grades.map((grade) => (name === "gain" ? 2 ** grade - 1 : grade));
    showWorth();
    showRankings();
  }

  const relevanceOf = (model) => (model.grades && state.worth && model.grades.length === state.worth.length ? { relevance: state.preset || state.worth } : {});

  // ---- rankings ----------------------------------------------------------------------------------------
  const showRankings = latest(async () => {
    if (state.query === null) return;
    const query = state.query, models = chosen();
    const asks = models.map((model) => ask("/rank", { model: model.model, query, probabilities: Boolean(model.grades), ...relevanceOf(model) }));
    // Where each document is when a grade is worth itself: what moved is told against it.
    const usual = models.map((model) => (state.before.has(model.model) ? null : ask("/rank", { model: model.model, query })));
    const all = await Promise.all([...asks, ...usual]), found = all.slice(0, models.length);
    all.slice(models.length).forEach((one, at) => { if (one) state.before.set(models[at].model, new Map(one.ranking.map((entry) => [entry.row, entry.rank]))); });
    if (query !== state.query) return;
    state.found = found;
    drawRankings(models, found);
    showPairs();
  });

  function drawRankings(models, found) {
    const places = new Map([...$("rankings").querySelectorAll("tr[data-row]")].map((row) => [row.dataset.key, row.getBoundingClientRect().top]));
    const held = document.activeElement && document.activeElement.closest("#rankings tr[data-row]");
    const focused = held && held.dataset.key;
    const known = new Set(found[0].ranking.map((entry) => entry.row));
    state.picks = state.picks.filter((row) => known.has(row));
    if (!state.picks.length) state.picks = found[0].ranking.slice(0, 2).map((entry) => entry.row);
    $("rankings").replaceChildren(...found.map((one, at) => ranking(models[at], one, found[1 - at])));
    const top = found[0].ranking[0];
    $("verdict").replaceChildren(...(top ? [element("bdi", {}, models[0].model), " puts ", element("bdi", {}, top.id), ` first of ${found[0].ranking.length} documents of query `, element("bdi", {}, state.query), "."] : ["No documents."]));
    markPicks();
    if (focused) { const row = [...$("rankings").querySelectorAll("tr[data-row]")].find((one) => one.dataset.key === focused); if (row) row.querySelector("button").focus({ preventScroll: true }); }
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const row of $("rankings").querySelectorAll("tr[data-row]")) {
      const from = places.get(row.dataset.key), to = row.getBoundingClientRect().top;
      if (from !== undefined && Math.abs(from - to) > 1) row.animate([{ transform: `translateY(${from - to}px)` }, { transform: "none" }], { duration: 220, easing: "ease-out" });
    }
  }

  function ranking(model, found, other) {
    const before = state.before.get(model.model), theirs = other && new Map(other.ranking.map((entry) => [entry.row, entry.rank]));
    const top = Math.max(1, ...found.ranking.map((entry) => entry.grade));
    const heads = [["#", "number"], ["Document", "doc"], ["Grade", ""], ["Score", "number"]];
    if (model.grades) heads.push(["Probabilities", "chances"], ["Moved", "number"]);
    const largest = Math.max(...found.ranking.map((entry) => Math.abs(entry.score)), 1e-9);
    const decimals = Math.max(0, Math.min(8, 3 - Math.floor(Math.log10(largest))));
    if (theirs) heads.push(["Other", "number other"]);
    const rows = found.ranking.map((entry) => {
      const pick = element("button", { type: "button", class: "pick", title: entry.id }, element("bdi", {}, entry.id));
      const cells = [element("td", { class: "number" }, String(entry.rank)), element("th", { scope: "row", class: "doc" }, pick),
        element("td", {}, element("span", { class: "grade", style: `--level:${entry.grade / top}` }, String(entry.grade))),
        element("td", { class: "number" }, minus(entry.score.toFixed(decimals)))];
      if (model.grades) cells.push(element("td", { class: "chances" }, stack(model.grades, entry.probabilities)), moved(before && before.get(entry.row), entry.rank));
      if (theirs) cells.push(element("td", { class: "number other" }, String(theirs.get(entry.row))));
      const row = element("tr", {}, ...cells);
      row.dataset.row = entry.row;
      row.dataset.key = `${model.model} ${entry.row}`;
      return row;
    });
    const head = element("tr", {}, ...heads.map(([name, css]) => element("th", { scope: "col", class: css }, name)));
    const table = element("table", {}, named(model.model, 300, 13, "caption"), element("thead", {}, head), element("tbody", {}, ...rows));
    table.dataset.model = model.model;
    return element("div", {}, table);
  }

  function stack(grades, chances) {
    const words = grades.map((grade, k) => `${grade}: ${(100 * chances[k]).toFixed(1)}%`).join(", ");
    return element("div", { class: "stack", role: "img", "aria-label": words, title: words },
      ...chances.map((chance, k) => element("i", { style: `width:${100 * chance}%;--g:${shade(k, grades.length)}` })));
  }

  function moved(before, now) {
    const by = before === undefined ? 0 : before - now;
    return element("td", { class: "number " + (by > 0 ? "up" : by < 0 ? "down" : "quiet") }, by > 0 ? `▲ ${by}` : by < 0 ? `▼ ${-by}` : "=");
  }

  // ---- two documents -----------------------------------------------------------------------------------
  function pick(row) {
    if (state.picks.includes(row)) state.picks = state.picks.filter((other) => other !== row);
    else state.picks = [...state.picks, row].slice(-2);
    markPicks();
    showPairs();
  }

  function markPicks() {
    for (const row of $("rankings").querySelectorAll("tr[data-row]")) {
      const at = state.picks.indexOf(Number(row.dataset.row)), button = row.querySelector(".pick");
      row.classList.toggle("a", at === 0);
      row.classList.toggle("b", at === 1);
      button.setAttribute("aria-pressed", String(at >= 0));
      const badge = button.querySelector(".badge");
      if (badge) badge.remove();
      if (at >= 0) button.prepend(element("span", { class: "badge" }, "AB"[at]));
    }
  }

  const showPairs = latest(async () => {
    const query = state.query, models = chosen(), [a, b] = state.picks;
    if (query === null) return;
    if (b === undefined) { $("pairs").replaceChildren(element("p", { class: "note" }, "Choose two documents in the ranking.")); return; }
    const found = await Promise.all(models.map((model) => ask("/explain", { model: model.model, query, a, b, ...relevanceOf(model) }).catch((error) => error)));
    $("pairs").replaceChildren(...found.map((one, at) => pair(models[at], one)));
    document.documentElement.dataset.pair = `${a} ${b}`;
  });

  function pair(model, found) {
    const title = named(model.model, 300, 15, "h3");
    if (found instanceof Error) return element("div", {}, title, element("p", { class: "note" }, found.message));
    const parts = found.contributions.filter((part) => part.contribution !== 0), listed = parts.slice(0, LISTED), rest = parts.slice(LISTED);
    const lines = listed.map((part) => [part.feature, part.values.map((value) => (value === null ? "missing" : number(value))), part.contribution]);
    if (rest.length) lines.push([`${rest.length} others`, ["", ""], rest.reduce((sum, part) => sum + part.contribution, 0)]);
    const widest = Math.max(...lines.map((line) => Math.abs(line[2])), 1e-300);
    const rows = lines.map(([name, values, value]) => {
      const share = (Math.abs(value) / widest) * 50;
      const bar = element("i", { class: value > 0 ? "plus" : "minus", style: `width:${share}%;left:${value > 0 ? 50 : 50 - share}%` });
      return element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, name)), ...values.map((one) => element("td", { class: "number" }, one)),
        element("td", { class: "number" }, (value > 0 ? "+" : "") + number(value, 3)), element("td", { class: "bar" }, element("div", { class: "track", "aria-hidden": "true" }, bar)));
    });
    const badge = (at) => element("span", { class: `badge ${"ab"[at]}` }, "AB"[at]);
    const head = element("tr", {}, element("th", { scope: "col" }, "Feature"), element("th", { scope: "col", class: "number" }, badge(0)), element("th", { scope: "col", class: "number" }, badge(1)),
      element("th", { scope: "col", class: "number" }, found.unit === "grades" ? "grades" : "score"), element("th", { class: "bar" }));
    const all = element("tr", {}, element("th", { scope: "row" }, "All"), ...found.scores.map((score) => element("td", { class: "number" }, number(score))),
      element("td", { class: "number" }, (found.difference > 0 ? "+" : "") + number(found.difference, 3)), element("td", { class: "bar" }));
    const table = element("table", { class: "differ" }, element("thead", {}, head), element("tbody", {}, ...rows), element("tfoot", {}, all));
    table.dataset.difference = found.difference;
    table.dataset.sum = found.contributions.reduce((sum, part) => sum + part.contribution, 0);
    return element("div", {}, title, element("p", { class: "pair-words" }, found.sentence), table, ...changes(found));
  }

  function changes(found) {
    const listed = found.changes.slice(0, CHANGES);
    if (!listed.length) return [];
    const words = ({ before, after }) => (typeof after === "string" || typeof before === "string"
      ? ` becomes ${after} instead of ${before}` : ` ${after > before ? "rises" : "falls"} from ${number(before, 9)} to ${number(after, 9)}`);
    const one = (change) => element("li", {}, element("bdi", {}, change.feature), " of ", element("bdi", {}, change.name), words(change));
    return [element("p", { class: "note" }, "What would swap them, alone:"), element("ul", {}, ...listed.map(one))];
  }

  // ---- the page ----------------------------------------------------------------------------------------
  function listen() {
    $("find").addEventListener("input", listQueries);
    $("list").addEventListener("keydown", listKeys);
    $("list").addEventListener("click", (event) => { const option = event.target.closest("[role=option]"); if (option) openQuery(option.dataset.query); });
    for (const id of ["first", "second"]) $(id).addEventListener("change", () => { fillWorth(); showRankings(); });
    $("as-grade").addEventListener("click", () => setPreset("grade"));
    $("as-gain").addEventListener("click", () => setPreset("gain"));
    $("rankings").addEventListener("click", (event) => { const row = event.target.closest("tr[data-row]"); if (row) pick(Number(row.dataset.row)); });
    $("ask-token").addEventListener("submit", (event) => { event.preventDefault(); state.token = $("token").value.trim(); start(); });
    addEventListener("resize", scrollHints);
  }

  const start = latest(async () => {
    fillModels(await ask("/models"));
    $("models").hidden = false;
    fillWorth();
    try {
      fillQueries(await ask("/queries"), true);
      $("ranking").hidden = $("why").hidden = false;
    } catch (error) {
      if (error.status !== 404) throw error;
      $("verdict").textContent = "This service has no data to show: start it with --data FILE to see rankings here.";
    }
    scrollHints();
    document.documentElement.dataset.ready = "yes";
  });

  themes();
  listen();
  start();
})();
