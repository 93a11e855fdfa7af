// The page of one run: its figures with their definitions, the command that repeats it, its doubts and raw values.

/** Requests in the list of samples. The sample file of the record has all of them. */
const LISTED_MAX = 200;

const yesNo = (value) => (value === undefined ? undefined : value ? "yes" : "no");
const withUnit = (value, unit) => (value === undefined ? undefined : `${number(value)} ${unit}`);

/** What ran where, in groups. Unknown facts are left out. */
function factGroups(run) {
  const { record } = run;
  const { engine, model, workload, host, source, harness, confidence } = record;
  const { params } = engine;
  const { accelerators: [card] } = host;
  const prompt = workload.prompt_tokens?.p50 ?? workload.prompt_tokens?.target;
  return [
    ["Engine", [["name", engine.name], ["version", engine.version], ["backend", engine.backend], ["layers on the card", params.ngl], ["threads", params.threads],
      ["batch", params.batch], ["ubatch", params.ubatch], ["flash attention", yesNo(params.flash_attn)], ["K cache type", params.kv_k], ["V cache type", params.kv_v],
      ["context", params.ctx], ["parallel", params.parallel], ["speculative decoding", params.spec]]],
    ["Model", [["family", run.family], ["released", run.released], ["parameters", withUnit(model.params_b, "B")], ["active", withUnit(model.active_b, "B")],
      ["quant", model.quant], ["bits per weight", model.bpw && number(model.bpw)], ["file", model.bytes && withUnit(model.bytes / 1e9, "GB")], ["sha256", model.sha256]]],
    ["Workload", [["shape", workload.shape], ["prompt", withUnit(prompt, "tokens")], ["longest answer", withUnit(workload.max_tokens, "tokens")],
      ["users", workload.concurrency], ["requests per second", workload.rate && number(workload.rate)], ["requests", workload.requests], ["warm-up requests", workload.warmup],
      ["reasoning", word(workload.reasoning)], ["reasoning switched by", workload.reasoning_switch], ["cache", word(workload.cache)],
      ["cache verified", yesNo(workload.cache_verified)], ["temperature", workload.temperature === undefined ? undefined : number(workload.temperature)],
      ["tools", workload.tools], ["tokens counted by", word(record.count_source)],
      ["labels", Object.entries(record.labels ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")]]],
    ["Machine", [["processor", host.cpu.model], ["cores", host.cpu.cores], ["memory", withUnit(host.ram_gb, "GB")], ["card", card?.name],
      ["memory of the card", withUnit(card?.vram_gb, "GB")], ["driver", card?.driver], ["system", host.os], ["kernel", host.kernel],
      ["processor pressure", withUnit(host.noise.psi_cpu, "%")], ["highest temperature", withUnit(host.noise.temp_max_c, "°C")], ["throttled", yesNo(host.noise.throttled)]]],
    ["Measured by", [["program", source.tool], ["version", source.version], ["commit", harness?.git], ["seed", run.seed], ["runs", confidence.runs],
      ["server starts", confidence.server_starts], ["self-test", run.selftest], ["id", record.id]]],
  ];
}

const facts = (run) => h("div.facts", factGroups(run).map(([title, all]) => {
  const known = all.filter(([, value]) => value !== undefined && value !== "");
  return known.length === 0 ? null : h("div", h("h3", title), h("dl", known.map(([name, value]) => [h("dt", name), h("dd", String(value))])));
}));

/** The search for the longest context, in the order of its attempts. */
function attempts(run) {
  const { record: { max_context: ceiling } } = run;
  if (!ceiling) return none(runLink(run), " found none.");
  const found = ceiling.usable ?? ceiling.load ?? ceiling.lo_ok;
  return [
    h("p", h("strong", found === undefined ? "none" : `${number(found)} tokens`), ceiling.usable === undefined ? " started; filling them was not tried" : "",
      " on ", machineLink(run), ", ", engineOf(run), " ", runLink(run)),
    ceiling.attempts.length > 0 ? h("ol.attempts", ceiling.attempts.map((attempt) => {
      const memory = attempt.vram_mb ?? attempt.rss_mb;
      return h(`li.${attempt.result === "ok" ? "ok" : "bad"}`, number(attempt.ctx), " ", h("span", word(attempt.result)),
        memory === undefined ? null : [" ", h("span.aside", `${number(memory)} MB`)], attempt.said ? [" ", h("span.aside", attempt.said)] : null);
    })) : null,
  ];
}

/** A place that `showDetails` fills: each run's text and samples lie in a file of their own. */
const waiting = new Map();
const seenDetails = new Map();
function withDetails(run, fill) {
  const place = h("div.details");
  const { record: { id } } = run;
  if (seenDetails.has(id)) fill(place, seenDetails.get(id));
  else if (waiting.has(id)) waiting.get(id).push([place, fill]);
  else {
    waiting.set(id, [[place, fill]]);
    const script = h("script", { src: `run/${id}.js` });
    script.addEventListener("error", () => place.append(none(`run/${id}.js cannot be read.`)));
    document.head.append(script);
  }
  return place;
}

/** The files in `run/` call this. */
function showDetails(details) { // eslint-disable-line no-unused-vars
  seenDetails.set(details.id, details);
  for (const [place, fill] of waiting.get(details.id) ?? []) fill(place, details);
  waiting.delete(details.id);
}

const SAMPLE_CHARTS = [["ttft_ms", "First token, ms"], ["ttfat_ms", "First answer token, ms"], ["ttfa_ms", "First sound, ms"], ["e2e_ms", "Whole answer, ms"]];

/** Raw values as dots, and as numbers. */
const samplesOf = (run) => withDetails(run, (place, { samples, samples_left_out: leftOut }) => {
  const sampled = (name) => samples.map((sample) => sample[name]).filter((value) => value !== undefined);
  const chart = ([metric, title]) => dots(title, sampled(metric), spreadOf(run, metric)?.p50, spreadOf(run, metric)?.ci95);
  const ms = (name) => (sample) => sample[name] !== undefined && number(sample[name]);
  const count = samples.length + leftOut;
  place.append(
    h("div.charts", SAMPLE_CHARTS.map(chart)),
    h("details", h("summary", `${count} requests`),
      plain("Requests", "samples", [
        column("run", (sample) => String(sample.run)),
        ...[["first token, ms", "ttft_ms"], ["first answer, ms", "ttfat_ms"], ["whole, ms", "e2e_ms"], ["longest gap, ms", "worst_gap_ms"]]
          .map(([title, name]) => numberColumn(title, ms(name), ms(name))),
        ...[["thinking", "reasoning"], ["answer", "content"]].map(([title, name]) => numberColumn(title, (sample) => sample[name], (sample) => sample[name])),
        column("ended", (sample) => sample.ended),
      ], samples.slice(0, LISTED_MAX)),
      count > LISTED_MAX ? none(`${count - LISTED_MAX} more are in the file.`) : null));
});

function doubtSection(run) {
  const reasons = [...run.record.invalid_reasons.map((reason) => h("li.bad", reason)), ...run.doubts.map((doubt) => h("li", DOUBTS.get(doubt)))];
  return reasons.length > 0 ? h("section.doubts", h("h2", "Reasons for doubt"), h("ul", reasons)) : null;
}

function figureSection({ record: { metrics } }) {
  const spreads = benchmarks.terms.map(({ name }) => [name, metrics[name]]).filter(([name, spread]) => spread instanceof Object && !["stall", "goodput"].includes(name));
  const value = (field) => ([name, spread]) => figure(spread[field], unitOf(name));
  const numbers = (title, show, more) => numberColumn(title, () => undefined, show, more);
  const { stall, goodput, errors, no_answer: noAnswer } = metrics;
  const worst = stall?.count > 0 ? `, the longest ${figure(stall.worst_ms, "ms")}` : "";
  return section("Figures",
    spreads.length === 0 ? none("There are no figures.") : plain("Figures", "figures", [
      column("figure", ([name]) => term(name), { head: true }),
      numbers("median", ([name, spread]) => h("strong", spreadText(spread, unitOf(name)))),
      numbers("95 % interval", ([name, { ci95 }]) => ci95 && `${figure(ci95[0], unitOf(name))} to ${figure(ci95[1], unitOf(name))}`, { term: "ci95" }),
      numbers("minimum", value("min")), numbers("maximum", value("max")), numbers("p95", value("p95")), numbers("p99", value("p99")),
      numbers("n", ([, { n }]) => n),
      column("method", ([, { method }]) => method),
    ], spreads),
    stall ? h("p", term("stall", "Stalls"), `: ${stall.count}${worst}`) : null,
    goodput ? h("p", term("goodput", "Goodput"), `: ${number(goodput.value * 100)} %`) : null,
    errors === undefined ? null : h("p", term("errors", "Errors"), `: ${errors}`),
    noAnswer > 0 ? h("p", term("no_answer", "No answer"), `: ${noAnswer}`) : null);
}

/** Latency of each of several users, against the run of one user. */
function usersSection({ record: { slowdown }, scaling }) {
  if (!(slowdown?.n > 1)) return null;
  const ratios = [["ttft_ms", slowdown.ttft_x], ["ttfa_ms", slowdown.ttfa_x], ["tpot_ms", slowdown.tpot_x]].filter(([, ratio]) => ratio !== undefined);
  const times = (ratio) => `${number(ratio)} ×`;
  return section(`${slowdown.n} users against one`,
    h("ul",
      ratios.map(([metric, ratio]) => h("li", term(metric), `: ${times(ratio)}`)),
      slowdown.ci95 ? h("li", term("ci95", "95 % interval"), ` of the first ratio: ${times(slowdown.ci95[0])} to ${times(slowdown.ci95[1])}`) : null,
      slowdown.scaling === undefined ? null : h("li", term("scaling", "scaling"), `: ${number(slowdown.scaling)}, ${scaling}`)),
    slowdown.versus ? h("p.aside", h("a", { href: addressOf("run", { id: slowdown.versus }) }, "The run of one user"), ", measured alternately with this one") : null);
}

/** A command as a shell takes it. */
const shellCommand = (argv) => argv.map((part) => (/^[\w\-./:=,@%+]+$/.test(part) ? part : `'${part.replaceAll("'", "'\\''")}'`)).join(" ");

function copyable(command) {
  const copy = h("button.copy", { type: "button", hidden: !navigator.clipboard }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard.writeText(command).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Not allowed"; }));
  return h("div.command", h("pre", { tabindex: 0 }, h("code", command)), copy);
}

function repeatSection({ origin, record: { engine, harness, source } }) {
  const origins = origin === "published" ? "Published by others, and not measured here."
    : ["Measured by ", source.tool, "; the original file has the SHA-256 ", h("code", source.sha256 ?? "unknown"), "."];
  return section("Repeat this run",
    engine.argv.length > 0 ? [h("p.aside", "The server"), copyable(shellCommand(engine.argv))] : null,
    harness?.argv.length > 0 ? [h("p.aside", "The benchmark"), copyable(shellCommand(harness.argv))] : h("p", origins));
}

/** A link to the comparison with the run before, or with any other run. */
function compareLink({ record: { id }, before }) {
  const base = RUN_BY_ID.get(before);
  if (!base) return h("p.aside", h("a", { href: addressOf("compare", { new: id }) }, "Compare with another run"));
  return h("p.aside", h("a", { href: addressOf("compare", { base: before, new: id }) }, "Compare with the run before"), ", ", runLink(base), dayOf(base) ? ` of ${dayOf(base)}` : "");
}

function samplesSection(run) {
  const { record: { samples: file } } = run;
  if (run.has_samples) return section("Raw samples", samplesOf(run));
  return file ? section("Raw samples", none(`${file.n} requests in `, h("code", file.file), ", which is not here.")) : null;
}

function runPage() {
  const run = RUN_BY_ID.get(readAddress().id);
  if (!run) return unknownPage("run");
  const { record } = run;
  document.title = `${record.model.name}, ${record.kind} · hob benchmarks`;
  const yaml = withDetails(run, (place, details) => place.append(h("pre", { tabindex: 0 }, h("code", details.yaml))));
  return [
    titled([modelLink(run), h("span", ` ${record.kind} ${shapeOf(run)}`)], badge(run), " on ", machineLink(run), dayOf(run) ? `, ${dayOf(run)}` : ""),
    compareLink(run),
    doubtSection(run),
    figureSection(run),
    usersSection(run),
    productionSection([run]),
    record.kind === "max_context" ? section("Attempts", attempts(run)) : null,
    itemsSection(run),
    samplesSection(run),
    repeatSection(run),
    section("What ran where", facts(run)),
    record.source.lossy.length > 0 ? section("What the record could not keep", h("ul", record.source.lossy.map((lost) => h("li", lost)))) : null,
    h("section", h("details.yaml", h("summary", "The record as a file"), yaml)),
  ];
}
