// The table of models: families that fold, columns that sort, filters that the address keeps.

const isMany = (group) => group.length > 1;
const overGroup = (group, pick) => overAll(group.filter((run) => !isFailed(run)).map(pick));
const labelOf = (group) => {
  if (group.every(isFailed)) return "failed";
  return group.every((run) => run.label === "verified") ? "verified" : "unverified";
};
const productionOf = (group) => group.find((run) => run.production)?.production;
const gapOf = ({ served, warm_ms: warmMs }) => served.first_p50_ms / warmMs;

/** How many times longer real requests wait than the bench says. */
function gapText(production) {
  if (!production) return null;
  const { served, metric, warm_ms: warmMs } = production;
  const write = (value) => figure(value, unitOf(metric));
  const p95 = served.first_p95_ms === undefined ? "" : `, p95 ${write(served.first_p95_ms)}`;
  const title = `Median wait of ${served.requests} real requests: ${write(served.first_p50_ms)}${p95}. The bench measured ${write(warmMs)}.`;
  return h("span.gap", { title, tabindex: 0 }, `${number(gapOf(production))}×`);
}

/** The engine with its version, without what the backend says already. */
function engineBeside(run) {
  const [engine, backend] = [engineOf(run), backendOf(run)];
  return engine === backend || engine.startsWith(`${backend} `) ? engine.slice(backend.length).trim() : engine;
}

const wordColumn = (key, title, text, show, more) => column(title, ([run]) => show?.(run) ?? text(run), { key, sort: ([run]) => text(run).toLowerCase(), ...more });

function figureColumn(key, title, metric, pick) {
  const first = isMoreBetter(metric) ? "desc" : "asc";
  const sort = (group) => overGroup(group, pick)?.[first === "desc" ? 1 : 0];
  return numberColumn(title, sort, (group) => rangeText(overGroup(group, pick), unitOf(metric)), { key, term: metric, first });
}

/** A row of the table is a group of runs that differ only in their shape. */
const MODEL_COLUMNS = [
  column("variant", (group) => [modelLink(group[0]), isMany(group) ? [" ", h("span.shapes", `${group.length} shapes`)] : null],
    { key: "model", sort: ([run]) => run.record.model.name.toLowerCase() }),
  wordColumn("kind", "kind", (run) => run.record.kind, (run) => [run.record.kind, promptOf(run) ? [" ", h("span.aside", promptOf(run))] : null]),
  wordColumn("quant", "quant", quantOf, undefined, { term: "quant" }),
  wordColumn("hw", "hardware", (run) => run.hardware, machineLink),
  wordColumn("backend", "backend", backendOf, (run) => [backendOf(run), " ", h("span.aside", engineBeside(run))], { term: "backend" }),
  numberColumn("conc.", ([run]) => usersOf(run), ([run]) => usersOf(run), { key: "conc", term: "concurrency" }),
  figureColumn("gen", "gen tok/s", "decode_tok_s", speedOf),
  figureColumn("ttft", "ttft", "ttft_ms", (run) => figureRange(run, "ttft_ms")),
  figureColumn("ttfat", "ttfat", "ttfat_ms", (run) => figureRange(run, "ttfat_ms")),
  figureColumn("mem", "memory", "memory", (run) => (run.memory_gb === undefined ? null : [run.memory_gb, run.memory_gb])),
  column("verified", (group) => badge(group[0], labelOf(group)), { key: "badge", sort: labelOf, term: "verified" }),
  numberColumn("production gap", (group) => productionOf(group) && gapOf(productionOf(group)), (group) => gapText(productionOf(group)), { key: "gap", term: "gap" }),
  column("date", (group) => group.map(dayOf).sort().at(-1), { key: "date", first: "desc" }),
];

/** Filters: the key in the address, the title, the option for all, and the value of a run. */
const FILTERS = [
  ["hw", "Hardware", "any", (run) => run.hardware],
  ["quant", "Quant", "any", quantOf],
  ["backend", "Backend", "any", backendOf],
  ["shape", "Shape", "range over all", shapeOf],
  ["conc", "Users", "any", (run) => String(usersOf(run) ?? "")],
  ["kind", "Kind", "any", (run) => run.record.kind],
  ["badge", "Verified", "any", (run) => run.label],
  ["source", "Source", "any", (run) => run.origin],
];
const SETUP_FILTERS = SETUP_LABELS.map(([name, title]) => [name, title, "any", (run) => labelOfRun(run, name)]);

function filterForm(runs) {
  const option = (value, text) => h("option", { value }, text);
  const choice = ([key, title, any, pick]) => {
    const values = [...groupBy(runs.filter(pick), pick)].sort(([one], [other]) => (one < other ? -1 : 1));
    return h("label", h("span", title), h("select", { name: key }, option("", any),
      values.map(([value, all]) => option(value.toLowerCase(), `${value} (${all.length})`))));
  };
  return h("form.filters", { "aria-label": "Filters" },
    h("label", h("span", "Search"), h("input", { type: "search", name: "q", placeholder: "model, machine" })),
    FILTERS.map(choice),
    SETUP_FILTERS.filter(([, , , pick]) => runs.some(pick)).map(choice),
    h("label.sorting", h("span", "Sort by"), h("select", { name: "sort" }, option("", "family, then speed"),
      MODEL_COLUMNS.map(({ key, title }) => option(key, title)))),
    h("button", { type: "button", name: "fold", "aria-pressed": "false" }, "Fold all"),
    h("button", { type: "reset" }, "Clear"),
    h("output", { "aria-live": "polite" }));
}

/** Families, the latest release first. Models without a family come last. */
function familiesOf(runs) {
  const families = [...groupBy(runs, (run) => run.family ?? "")].map(([name, all]) => ({
    name: name || "Others",
    isNone: name === "",
    released: all.map((run) => run.released ?? "").sort().at(-1),
    runs: all,
  }));
  return families.sort((one, other) => one.isNone - other.isNone || (one.released < other.released ? 1 : one.released > other.released ? -1 : 0)
    || (one.name < other.name ? -1 : 1));
}

const countText = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
const speedOfGroup = (group) => overGroup(group, speedOf)?.[1] ?? 0;

function modelRow(group, shape) {
  const attributes = { "data-source": group[0].origin, "data-shape": shape || undefined };
  for (const [name, , , pick] of SETUP_FILTERS) attributes[`data-${name}`] = pick(group[0]).toLowerCase() || undefined;
  return h(`tr.${labelOf(group)}`, attributes, MODEL_COLUMNS.map((one) => cell(group, one)));
}

/** A family's part of the table. Rows are made when they are first shown. */
function familyBody(family) {
  const count = h("span.count");
  const button = h("button.fold", { type: "button", "aria-expanded": "true" },
    h("span.name", family.name), family.released ? [" ", h("span.released", `released ${family.released}`)] : null, " ", count);
  const head = h("tr.family", h("th", { colspan: MODEL_COLUMNS.length, scope: "rowgroup" }, button));
  const body = h("tbody", { "data-family": family.name });
  const byGroup = overShapes(family.runs).sort((one, other) => speedOfGroup(other) - speedOfGroup(one)).map((group) => modelRow(group));
  const byRun = new Map();
  const rowOf = (run) => byRun.get(run) ?? byRun.set(run, modelRow([run], shapeOf(run))).get(run);
  const fold = (isFolded) => {
    button.setAttribute("aria-expanded", String(!isFolded));
    body.classList.toggle("folded", isFolded);
  };
  button.addEventListener("click", () => fold(!body.classList.contains("folded")));
  const rowsOf = (shape) => (shape ? family.runs.filter((run) => shapeOf(run).toLowerCase() === shape).map(rowOf) : byGroup);
  const show = (rows) => {
    count.textContent = countText(rows.length, "row");
    body.hidden = rows.length === 0;
    body.replaceChildren(head, ...rows);
  };
  return { name: family.name, body, fold, rowsOf, show };
}

/** Why one model has several speeds, with the model and machine that have the most shapes as the example. */
function severalSpeeds(runs) {
  const alone = runs.filter((run) => run.record.kind === "llm" && usersOf(run) === 1 && !isFailed(run) && speedOf(run) && shapeOf(run));
  const byModel = [...groupBy(alone, (run) => JSON.stringify([run.model_slug, run.machine_slug, quantOf(run)])).values()];
  const shapes = byModel.map((all) => [...new Map(all.toReversed().map((run) => [shapeOf(run), run])).values()]);
  const most = shapes.sort((one, other) => other.length - one.length)[0] ?? [];
  return h("details.explain", h("summary", "Why one model has several speeds"),
    h("p", "The speed depends on the request. For each new token, the engine reads all active weights and the ", term("cached", "cache"),
      " of all earlier tokens from memory. So a longer context is slower, and memory bandwidth is the limit. A prompt is read many tokens at a time: ",
      term("prefill_tok_s", "prefill"), " is limited by arithmetic, and its cost is in the ", term("ttft_ms", "first token"),
      ". A thinking model writes before it answers: a reader waits for the ", term("ttfat_ms", "first answer token"),
      ". Several users share the machine. Each of them is slower, and the total is higher only if the engine computes their tokens in one step."),
    h("p", "So a speed needs its ", term("shape", "shape"), " and its number of users. Until you choose a shape, the table shows the ", term("range", "range"), " over all measured shapes."),
    most.length > 1 ? [h("p.aside", `Measured: ${most[0].record.model.name} on ${most[0].hardware}, one user.`), speedBars(most, shapeOf)] : null);
}

/** The definitions as text: a phone shows no table heads, and touch screens have no tooltips. */
const columnMeanings = () => h("details.explain", h("summary", "What the columns mean"),
  h("dl", MODEL_COLUMNS.filter((one) => TERMS.has(one.term)).map((one) => [h("dt", one.title), h("dd", meaningOf(one.term))])));

function modelsPage() {
  const runs = RUNS.filter((run) => !isSpeech(run));
  const top = [titled("Models", "Speed of each model on each machine, and whether the figure can be relied on."), severalSpeeds(runs), columnMeanings()];
  if (runs.length === 0) {
    return [top, none("Nothing was measured yet. ", h("code", "hob bench llm"), " measures a server, and ", h("code", "hob bench import"), " reads results of other tools.")];
  }
  const form = filterForm(runs);
  const families = familiesOf(runs).map(familyBody);
  let state = {};
  const table = h("table.models", heads(MODEL_COLUMNS, (one) => {
    state.way = nextWay(state.sort === one.key, state.way || one.first || "asc", one);
    state.sort = one.key;
    form.elements.sort.value = one.key;
    change();
  }), families.map(({ body }) => body));
  const all = h("button", { type: "button" }, "Show all");
  const nothing = h("p.none", { id: "nothing" }, "No run fits these filters. ", all);

  const places = new Map(MODEL_COLUMNS.map(({ key }, place) => [key, place]));
  const fits = (row, isNamed) => [...FILTERS, ...SETUP_FILTERS].every(([key]) => {
    if (!state[key] || key === "shape") return true;
    return (places.has(key) ? sortValue(row, places.get(key)) : row.dataset[key]) === state[key];
  }) && (!state.q || isNamed || row.textContent.toLowerCase().includes(state.q.toLowerCase()));

  function draw() {
    const place = places.get(state.sort) ?? -1;
    const way = state.way || MODEL_COLUMNS[place]?.first || "asc";
    let shown = 0;
    const ordered = families.map((family) => {
      const isNamed = state.q && family.name.toLowerCase().includes(state.q.toLowerCase());
      const fitting = family.rowsOf(state.shape).filter((row) => fits(row, isNamed));
      const rows = place < 0 ? fitting : sortRows(fitting, place, way);
      family.show(rows);
      shown += rows.length;
      return [place < 0 || rows.length === 0 ? null : sortValue(rows[0], place), family.body];
    });
    if (place >= 0) ordered.sort(([one], [other]) => order(one, other, way));
    table.append(...ordered.map(([, body]) => body));
    markSorted(table, place, way);
    find("output", form).textContent = countText(shown, "row");
    nothing.hidden = shown > 0;
  }
  function change() {
    writeAddress(Object.fromEntries(Object.entries(state).sort()));
    draw();
  }
  function read() {
    state = readAddress();
    for (const field of form.elements) if (field.name && field.name !== "fold") field.value = state[field.name] ?? "";
    draw();
  }
  form.addEventListener("input", ({ target }) => {
    state[target.name] = target.value;
    if (target.name === "sort") state.way = "";
    change();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    state = {};
    setTimeout(change, 0);
  });
  all.addEventListener("click", () => form.reset());
  form.elements.fold.addEventListener("click", ({ target }) => {
    const isFolded = target.getAttribute("aria-pressed") !== "true";
    target.setAttribute("aria-pressed", String(isFolded));
    target.textContent = isFolded ? "Unfold all" : "Fold all";
    families.forEach((family) => family.fold(isFolded));
  });
  addEventListener("hashchange", read);
  read();
  return [top, form, wide("Models", table), nothing];
}
