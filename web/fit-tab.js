// The Fit tab: choose a model and a machine, drag the context, see memory fill and speed fall.
// Every figure is the server's; what is chosen is in the address, so that the view can be shared.

import { askForKey } from "./api-key.js";
import { fit, fitMachines, fitModels } from "./api.js";
import { make, setText } from "./dom.js";
import { FlagsRow, InsteadRow, WarningRow, WayRow } from "./fit-advice.js";
import { drawChart } from "./fit-chart.js";
import { addressOf, choiceOf, contextSteps, nearestStep, queryOf } from "./fit-choice.js";
import { PoolRow } from "./fit-memory.js";
import { UNKNOWN, basisText, kvText, pace, range, tokens, wait } from "./fit-text.js";
import { Rows } from "./rows.js";

// As long as a slider rests before it is asked about.
const PAUSE_MS = 120;
const CONTEXT_TOKENS = 8_192;
// Of a model whose header says nothing yet.
const TRAINED_TOKENS = 131_072;

const page = Object.fromEntries(
  ["model", "quant", "machine", "kv", "context", "context-text", "longest", "trouble", "answer", "verdict", "pools", "speeds", "chart",
    "chart-none", "decode", "times", "first", "prompt", "pace", "pace-range", "sure", "basis", "most", "limit", "warnings", "warnings-box", "flags", "flags-box",
    "instead", "instead-box", "ways", "ways-box", "constants", "state", "state-text"].map((name) => [name, document.getElementById(`fit-${name}`)]),
);
const lists = {
  pools: new Rows(page.pools, ({ pool }) => pool.pool, () => new PoolRow()),
  warnings: new Rows(page.warnings, ({ code }) => code, () => new WarningRow()),
  flags: new Rows(page.flags, ({ engine }) => engine, () => new FlagsRow()),
  instead: new Rows(page.instead, ({ toward }) => toward, () => new InsteadRow()),
  ways: new Rows(page.ways, ({ place }) => place, () => new WayRow()),
};

let models = [];
let steps = contextSteps(TRAINED_TOKENS);
let shown = false;
let answered = null;
let asked = {}; // what was chosen when the server was asked last
let asking = null; // the latest question's; an older one is given up
let timer = 0;

/** The tab was chosen, or another one was. */
export function showFit(isShown) {
  shown = isShown;
  if (shown) begin();
}

/** What may be chosen is asked for once, and again if that failed. */
async function begin() {
  if (models.length > 0) return takeChoice();
  try {
    const [known, machines] = await Promise.all([fitModels(), fitMachines()]);
    fill(page.machine, machines.map(({ name }) => new Option(name, name)));
    const group = (label, of) => Object.assign(make("optgroup", { label }, of.map(({ name }) => new Option(name, name))));
    const [here, elsewhere] = [known.filter(({ installed }) => installed), known.filter(({ installed }) => !installed)];
    fill(page.model, [...(here.length > 0 ? [group("Here", here)] : []), group("Known", elsewhere)]);
    models = known;
    takeChoice();
  } catch (error) {
    showTrouble(error);
  }
}

function fill(select, options) {
  select.replaceChildren(...options);
  select.disabled = options.length === 0;
}

function chosenModel() {
  return models.find(({ name }) => name === page.model.value);
}

/** What the address says; of what it does not, what is chosen already. */
function takeChoice() {
  if (!shown || models.length === 0) return;
  const written = choiceOf(location.hash);
  // Another model need not come in the same quants.
  const kept = written.model && written.model !== asked.model ? { ...asked, quant: undefined } : asked;
  const said = { ...kept, ...written };
  choose(page.model, said.model);
  showQuants(said.quant);
  choose(page.machine, said.machine);
  choose(page.kv, said.kv ?? "");
  showContext(Number.parseInt(said.context, 10) || CONTEXT_TOKENS);
  ask();
}

/** A name that the lists do not have stays: the server says what is wrong with it. */
function choose(select, value) {
  if (value === undefined) return;
  if (![...select.options].some((option) => option.value === value)) select.add(new Option(value, value));
  select.value = value;
}

function showQuants(wanted) {
  const model = chosenModel();
  fill(page.quant, (model?.quants ?? []).map((name) => new Option(name, name)));
  choose(page.quant, wanted ?? model?.quant);
  steps = contextSteps(model?.trained_context ?? TRAINED_TOKENS);
}

function showContext(wanted) {
  page.context.max = steps.length - 1;
  page.context.value = nearestStep(steps, wanted);
  sayContext();
}

function contextTokens() {
  return steps[Number(page.context.value)] ?? CONTEXT_TOKENS;
}

function sayContext() {
  const said = `${tokens(contextTokens())} tokens`;
  setText(page["context-text"], said);
  page.context.setAttribute("aria-valuetext", said);
}

function choice() {
  const { model, quant, machine, kv } = page;
  return { model: model.value, quant: quant.value, machine: machine.value, context: String(contextTokens()), kv: kv.value };
}

/** Now, and with what is chosen now; whoever was asked before is not listened to any more. */
async function ask() {
  clearTimeout(timer);
  asking?.abort();
  // The address is another tab's by now.
  if (!shown) return;
  asking = new AbortController();
  const { signal } = asking;
  asked = choice();
  history.replaceState(history.state, "", addressOf(asked));
  try {
    const answer = await fit(queryOf(asked), signal);
    if (!signal.aborted) show(answer);
  } catch (error) {
    if (!signal.aborted) showTrouble(error);
  }
}

function askSoon() {
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE_MS);
}

function show(answer) {
  answered = answer;
  settle(answer.model);
  const [plan] = answer.plans;
  page.trouble.hidden = true;
  delete page.answer.dataset.stale;
  page.answer.hidden = false;
  say(answer.fits ? "ready" : "down", `${answer.model.name} ${answer.fits ? "fits" : "does not fit"}`);
  setText(page.verdict, answer.verdict);
  page.verdict.dataset.fits = String(answer.fits);
  const longest = answer.longest.map((one) => `${kvText(one)}: ${one.max === null ? "none" : tokens(one.max)}`);
  setText(page.longest, `Longest context that fits, by type of the cache. ${longest.join(" · ")}`);
  lists.pools.show(plan.memory.pools.map((pool) => ({ pool, terms: plan.memory.terms.filter((term) => term.pool === pool.pool) })));
  showSpeed(plan);
  showList("warnings", plan.warnings);
  showList("flags", plan.flags);
  showList("instead", answer.alternatives.map((one) => ({ ...one, address: addressOfOther(one) })));
  showList("ways", answer.plans.length > 1 ? answer.plans.map((way, place) => ({ place, ...way })) : []);
  page.constants.replaceChildren(...answer.constants.map(constantRow));
}

/** None of a quant that its file is not in. */
function addressOfOther({ quant, kv_k, kv_v }) {
  if (!chosenModel()?.quants.includes(quant)) return null;
  return addressOf({ ...asked, quant, kv: kvText({ kv_k, kv_v }) });
}

/** A model that was asked for by another of its names is found in the menu. */
function settle({ name, quant }) {
  if (chosenModel() || !models.some((model) => model.name === name)) return;
  const wanted = contextTokens();
  page.model.value = name;
  showQuants(quant);
  showContext(wanted);
  asked = choice();
  history.replaceState(history.state, "", addressOf(asked));
}

function showList(name, entries) {
  lists[name].show(entries);
  page[`${name}-box`].hidden = entries.length === 0;
}

function showSpeed({ decode, decode_wished: wished, prefill: [prompt], context }) {
  const known = wished.tok_s !== null;
  page.speeds.hidden = !known;
  page["chart-none"].hidden = known;
  setText(page.pace, known ? `${pace(wished.tok_s)} tokens/s` : UNKNOWN);
  setText(page["pace-range"], known ? `it may be ${range(wished)}` : "");
  setText(page.first, wait(prompt.first_token_ms));
  setText(page.prompt, `of a prompt of ${tokens(prompt.context)}`);
  setText(page.most, context.max === null ? "none" : tokens(context.max));
  setText(page.limit, context.limited_by === "trained" ? "as it was trained with" : `then ${context.limited_by} is full`);
  setText(page.sure, wished.confidence ?? UNKNOWN);
  setText(page.basis, known ? basisText(wished.basis) : "");
  page.decode.replaceChildren(...decode.map(speedRow));
  page.times.replaceChildren(...wished.terms.map(timeRow));
  drawSpeed();
}

/** Again when the page becomes wider or narrower. */
function drawSpeed() {
  if (answered === null || page.speeds.hidden || !shown) return;
  drawChart(page.chart, { plan: answered.plans[0], trained: answered.model.trained_context });
}

function speedRow(rate) {
  return row(tokens(rate.context), pace(rate.tok_s), range(rate));
}

function timeRow({ name, us }) {
  return row(name, us < 1_000 ? `${us.toPrecision(2)} µs` : `${(us / 1_000).toFixed(2)} ms`);
}

function constantRow({ name, device, value, unit, basis, source }) {
  const known = value === null ? UNKNOWN : `${scaled(value)} ${unit === "us" ? "µs" : unit}`;
  return row(`${device}: ${name}`, known, [basisText(basis), source].filter(Boolean).join(", "));
}

function scaled(value) {
  for (const [power, letter] of [[1e12, "T"], [1e9, "G"]]) if (value >= power) return `${(value / power).toPrecision(3)} ${letter}`;
  return String(value);
}

function row(head, ...cells) {
  return make("tr", {}, [make("th", { scope: "row", textContent: head }), ...cells.map((textContent) => make("td", { textContent }))]);
}

/** What is on the screen stays there, and is of another question. */
function showTrouble(error) {
  const isKey = error.status === 401;
  say(isKey ? "unknown" : "away", isKey ? "A key is wanted" : "No answer");
  const missing = error.status === 404 && models.length === 0;
  setText(page.trouble, missing ? "This hob does not say what fits." : error.message);
  page.trouble.hidden = false;
  page.answer.dataset.stale = "";
  if (isKey) askForKey();
}

function say(dot, text) {
  page.state.dataset.state = dot;
  setText(page["state-text"], text);
}

page.model.addEventListener("change", () => {
  const [wanted, quant] = [contextTokens(), page.quant.value];
  showQuants(chosenModel()?.quants.includes(quant) ? quant : undefined);
  showContext(wanted);
  ask();
});
for (const select of [page.quant, page.machine, page.kv]) select.addEventListener("change", ask);
page.context.addEventListener("input", () => {
  sayContext();
  askSoon();
});
addEventListener("hashchange", () => {
  if (Object.keys(choiceOf(location.hash)).length > 0) takeChoice();
});
document.getElementById("key").addEventListener("change", () => shown && begin());
new ResizeObserver(drawSpeed).observe(page.chart.parentElement);
