// The page of one model, the page of one machine, and the list of machines.

/** Columns of figures that fit next to each other. */
const FIGURES_MAX = 8;
/** Figures of a table of runs, in the order in which readers ask for them. */
const FIGURES = ["decode_tok_s", "gen_tok_s", "ttft_ms", "ttfat_ms", "prefill_tok_s", "throughput_tok_s", "content_tok_s", "reasoning_tok_s", "ttfa_ms",
  "wall_ms", "rtf", "real_time_x", "chars_s", "e2e_ms", "tpot_ms", "prompt_ttft_tok_s", "cold_first_ms", "swap_ms", "wer"];

/** Half the width of the 95 % interval, behind its figure. */
function intervalText(spread, unit) {
  if (!spread?.ci95) return null;
  const [low, high] = spread.ci95;
  return [" ", h("span.interval", { title: `95 % interval: ${figure(low, unit)} to ${figure(high, unit)}` }, `±${number((high - low) / 2)}`)];
}

function metricColumn(metric) {
  const unit = unitOf(metric);
  return numberColumn(titleOf(metric), (run) => figureRange(run, metric)?.[0],
    (run) => [rangeText(figureRange(run, metric), unit), intervalText(spreadOf(run, metric), unit)], { term: metric, first: isMoreBetter(metric) ? "desc" : "asc" });
}

/** Every run of a model or machine, with the figures that any of them has. `subject` is the column that tells them apart. */
function runTable(runs, subject) {
  const figures = FIGURES.filter((metric) => runs.some((run) => figureRange(run, metric))).slice(0, FIGURES_MAX);
  const key = (run) => [run.record.model.name, run.hardware, quantOf(run), run.record.kind, String(usersOf(run) ?? "").padStart(6)].join("\n");
  const sorted = runs.map((run) => [key(run), run]).sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)).map(([, run]) => run);
  return sortable("Runs", "runs", [
    column("run", runLink),
    subject,
    column("kind", (run) => run.record.kind),
    column("shape", (run) => [shapeOf(run), promptOf(run) ? [" ", h("span.aside", promptOf(run))] : null]),
    column("quant", quantOf),
    column("engine", engineOf),
    numberColumn("conc.", usersOf, usersOf, { meaning: "Users at the same time" }),
    ...figures.map(metricColumn),
    column("verified", (run) => badge(run)),
    column("date", dayOf, { first: "desc" }),
  ], sorted);
}

/** The newest run of each place. Sweeps are drawn over the context instead. */
function latestSpeeds(runs) {
  const measured = runs.filter((run) => run.record.kind !== "ctx_sweep" && !isFailed(run) && speedOf(run));
  return [...groupBy(measured, (run) => JSON.stringify(partsOf(run))).values()].map(([newest]) => newest);
}

/** Curves over the context: one line for each engine, machine, quant and state of the cache. */
function contextSeries(runs, metric) {
  const stackOf = (run) => [quantOf(run), engineOf(run), run.hardware, run.record.workload.cache ?? ""];
  const sweeps = runs.filter((run) => run.record.kind === "ctx_sweep" && !isFailed(run) && valueOf(spreadOf(run, metric)) !== undefined);
  const tokensOf = ({ record: { workload: { prompt_tokens: tokens } } }) => tokens?.target ?? tokens?.p50;
  const lines = [...groupBy(sweeps.filter((run) => tokensOf(run) !== undefined), (run) => JSON.stringify(stackOf(run))).values()].map((all) => {
    const newest = [...groupBy(all, tokensOf).values()].map(([run]) => run).sort((one, other) => tokensOf(one) - tokensOf(other));
    return { stack: stackOf(all[0]), points: newest.map((run) => ({ x: tokensOf(run), y: valueOf(spreadOf(run, metric)), interval: spreadOf(run, metric).ci95 })) };
  }).filter(({ points }) => points.length > 1);
  return lines.map(({ stack, points }) => ({ name: differing(stack, lines.map((line) => line.stack)), points }));
}

function overContext(runs) {
  const drawn = [
    curves("Decode speed by tokens in the context", "tok/s", contextSeries(runs, "decode_tok_s"), ACROSS_TOKENS),
    curves("Prefill speed by tokens of the prompt", "tok/s", contextSeries(runs, "prefill_tok_s"), ACROSS_TOKENS),
  ].filter((chart) => chart);
  return drawn.length > 0 ? section("Over the context", h("div.charts", drawn)) : null;
}

const OVER_TIME = [["decode_tok_s", "Decode speed over time"], ["ttft_ms", "First token over time"], ["ttfa_ms", "First sound over time"],
  ["throughput_tok_s", "Throughput over time"]];

/** What tells a cell from the others: cache, reasoning and voice only where nothing else does. */
function cellName(run, among) {
  const own = differingOf(run, among);
  if (!among.some((other) => other !== run && differingOf(other, among) === own)) return own;
  const more = ["cache", "reasoning", "voice"].map((what) => aspectOf(run, what) && `${what} ${aspectOf(run, what)}`);
  return joined([own, ...more]);
}

/** Cells that were measured more than once, those that ran last first. */
function overTime(runs) {
  const again = runs.filter((run) => run.cell !== undefined && run.record.kind !== "ctx_sweep");
  const cells = [...groupBy(again, (run) => run.cell).values()];
  const newest = cells.map(([run]) => run);
  const point = (run, metric) => ({ x: Date.parse(run.record.time.started) / 1000, y: valueOf(spreadOf(run, metric)), interval: spreadOf(run, metric).ci95 });
  const drawn = OVER_TIME.map(([metric, title]) => {
    const series = cells.map((all) => ({
      name: cellName(all[0], newest),
      points: all.filter((run) => valueOf(spreadOf(run, metric)) !== undefined).map((run) => point(run, metric)).reverse(),
    }));
    return curves(title, unitOf(metric), series.filter(({ points }) => points.length > 1), ACROSS_DAYS);
  }).filter((chart) => chart);
  return drawn.length > 0 ? section("Over time", h("p.aside", "The same workload, measured again on the same machine. Whiskers are 95 % intervals."), h("div.charts", drawn)) : null;
}

/** What the bench measured, and how long real requests waited. */
function productionSection(runs) {
  const run = runs.find((one) => one.production);
  if (!run) return null;
  const { production: { served, metric, warm_ms: warmMs } } = run;
  const bar = (label, value, look) => ({ label, value, shown: figure(value, unitOf(metric)), look });
  const p95 = served.first_p95_ms;
  return section("Bench and production",
    h("p", "Until the ", term(metric), ", real requests waited ", h("strong", `${number(gapOf(run.production))}×`), " as long as the bench measured (",
      term("gap", "production gap"), `, ${served.requests} requests of the last 30 days).`),
    bars([bar("bench, warm, median", warmMs, run.label), bar("production, median", served.first_p50_ms, "other"),
      ...(p95 === undefined ? [] : [bar("production, 95th percentile", p95, "other")])]));
}

const inBillions = (value, unit) => value !== undefined && `${number(value)} ${unit}`;
const firstOf = (runs, pick) => runs.map(pick).find((value) => value);

function aboutModel(runs) {
  const quants = [...new Set(runs.map(quantOf))].filter((quant) => quant).sort();
  const released = firstOf(runs, (run) => run.released);
  return joined([
    firstOf(runs, (run) => run.family),
    released && `released ${released}`,
    firstOf(runs, ({ record: { model } }) => inBillions(model.params_b, "B parameters")),
    firstOf(runs, ({ record: { model } }) => inBillions(model.active_b, "B active")),
    quants.join(", "),
  ]);
}

/** Sample charts of a model's page. Each run has a page of its own. */
const SAMPLED_MAX = 4;

/** The runs of the model or machine in the address, or null with a note for the reader. */
function chosenRuns(slugOf) {
  const { name } = readAddress();
  const runs = RUNS.filter((run) => slugOf(run) === name);
  return runs.length > 0 ? runs : null;
}
const unknownPage = (what) => [titled("Not found", `There is no ${what} at this address. `, h("a", { href: "index.html" }, "All models"))];

function modelPage() {
  const runs = chosenRuns((run) => run.model_slug);
  if (!runs) return unknownPage("model");
  const latest = latestSpeeds(runs);
  const ceilings = runs.filter((run) => run.record.kind === "max_context");
  const sampled = runs.filter((run) => run.has_samples).slice(0, SAMPLED_MAX);
  document.title = `${runs[0].record.model.name} · hob benchmarks`;
  return [
    titled(runs[0].record.model.name, aboutModel(runs)),
    productionSection(runs),
    latest.length > 0 ? section("Speed", speedBars(latest, (run) => differingOf(run, latest))) : null,
    overContext(runs),
    overTime(runs),
    ceilings.length > 0 ? section(term("max_context", "Longest context"), ceilings.map(attempts)) : null,
    section("Every run", runTable(runs, column("hardware", machineLink))),
    sampled.length > 0 ? section("Raw samples", sampled.map((run) => [h("h3", placeOf(run), " ", runLink(run)), samplesOf(run)])) : null,
  ];
}

function aboutMachine(runs) {
  const host = (pick) => firstOf(runs, (run) => pick(run.record.host));
  const card = (pick) => host(({ accelerators: [first] }) => first && pick(first));
  const withUnit = (value, unit) => value && `${typeof value === "number" ? number(value) : value} ${unit}`;
  return joined([
    host(({ cpu }) => cpu.model),
    withUnit(host(({ cpu }) => cpu.cores), "cores"),
    withUnit(host(({ ram_gb: gb }) => gb), "GB of memory"),
    withUnit(host(({ ram_mt_s: speed }) => speed && String(speed)), "MT/s"),
    withUnit(card(({ vram_gb: gb }) => gb), "GB on the card"),
    card(({ driver }) => driver),
    host(({ os }) => os),
  ]);
}

function machinePage() {
  const runs = chosenRuns((run) => run.machine_slug);
  if (!runs) return unknownPage("machine");
  document.title = `${runs[0].hardware} · hob benchmarks`;
  return [
    titled(runs[0].hardware, aboutMachine(runs)),
    section("Speed", speedBars(runs, (run) => [modelLink(run), " ", h("span.aside", joined([shapeOf(run), promptOf(run), quantOf(run), manyUsers(run)], " "))])),
    section("Every run", runTable(runs, column("model", modelLink))),
  ];
}

function machinesPage() {
  const machines = [...groupBy(RUNS, (run) => run.hardware)].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, runs]) => ({
    name, runs, models: new Set(runs.map((run) => run.record.model.name)).size,
    engines: [...new Set(runs.map((run) => run.record.engine.name).filter((engine) => engine))].sort(),
  }));
  return [
    titled("Machines", "Every machine on which something was measured."),
    sortable("Machines", "machines", [
      column("machine", ({ runs }) => machineLink(runs[0]), { sort: ({ name }) => name.toLowerCase() }),
      numberColumn("models", ({ models }) => models, ({ models }) => models, { first: "desc" }),
      numberColumn("runs", ({ runs }) => runs.length, ({ runs }) => runs.length, { first: "desc" }),
      column("engines", ({ engines }) => engines.join(", ")),
      column("last measured", ({ runs }) => runs.map(dayOf).filter((day) => day).sort().at(-1), { first: "desc" }),
    ], machines),
  ];
}
