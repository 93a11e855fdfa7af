// The Fit tab: choose a model and a machine, drag the context, see memory fill and speed fall.
// The server computes every figure. The choice is in the address, so that the view can be shared.

import { askForKey } from "./api-key.js";
import { fit, fitMachines, fitModels } from "./api.js";
import { make, setText } from "./dom.js";
import { FlagsRow, InsteadRow, WarningRow, WayRow } from "./fit-advice.js";
import { drawChart } from "./fit-chart.js";
import { addressOf, choiceOf, contextSteps, nearestStep, queryOf } from "./fit-choice.js";
import { PoolRow } from "./fit-memory.js";
import { UNKNOWN, basisText, kvText, pace, range, tokens, wait } from "./fit-text.js";
import { Rows } from "./rows.js";

// Time for which the slider must rest before a request.
const PAUSE_MS = 120;
const CONTEXT_TOKENS = 8_192;
// For a model whose header was not read yet.
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
let requested = {}; // the choice of the last request
let request = null; // the latest request; older ones are cancelled
let timer = 0;

/** Called when this tab is shown or hidden. */
export function showFit(isShown) {
  shown = isShown;
  if (shown) begin();
}

/** Shows the known choices, and loads them again, because models may have been pulled since. */
async function begin() {
  takeChoice();
  try {
    const [known, machines] = await Promise.all([fitModels(), fitMachines()]);
    if (JSON.stringify(known) === JSON.stringify(models)) return;
    fill(page.machine, machines.map(({ name }) => new Option(name, name)));
    const group = (label, of) => make("optgroup", { label }, of.map(({ name }) => new Option(name, name)));
    const [here, elsewhere] = [known.filter(({ installed }) => installed), known.filter(({ installed }) => !installed)];
    fill(page.model, [...(here.length > 0 ? [group("Installed", here)] : []), group("Not installed", elsewhere)]);
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

/** Takes the choice from the address, and keeps the rest. */
function takeChoice() {
  if (!shown || models.length === 0) return;
  const inAddress = choiceOf(location.hash);
  // Another model may have other quants.
  const kept = inAddress.model && inAddress.model !== requested.model ? { ...requested, quant: undefined } : requested;
  const chosen = { ...kept, ...inAddress };
  choose(page.model, chosen.model);
  showQuants(chosen.quant);
  choose(page.machine, chosen.machine);
  choose(page.kv, chosen.kv ?? "");
  showContext(Number.parseInt(chosen.context, 10) || CONTEXT_TOKENS);
  sendRequest();
}

/** Keeps a name that is not in the list: the server reports what is wrong with it. */
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
  showContextText();
}

function contextTokens() {
  return steps[Number(page.context.value)] ?? CONTEXT_TOKENS;
}

function showContextText() {
  const text = `${tokens(contextTokens())} tokens`;
  setText(page["context-text"], text);
  page.context.setAttribute("aria-valuetext", text);
}

function choice() {
  const { model, quant, machine, kv } = page;
  return { model: model.value, quant: quant.value, machine: machine.value, context: String(contextTokens()), kv: kv.value };
}

/** Requests the current choice now, and cancels the request before. */
async function sendRequest() {
  clearTimeout(timer);
  request?.abort();
  // The address belongs to another tab now.
  if (!shown) return;
  request = new AbortController();
  const { signal } = request;
  requested = choice();
  history.replaceState(history.state, "", addressOf(requested));
  try {
    const answer = await fit(queryOf(requested), signal);
    if (!signal.aborted) show(answer);
  } catch (error) {
    if (!signal.aborted) showTrouble(error);
  }
}

function requestSoon() {
  clearTimeout(timer);
  timer = setTimeout(sendRequest, PAUSE_MS);
}

function show(answer) {
  answered = answer;
  settle(answer.model);
  const [plan] = answer.plans;
  page.trouble.hidden = true;
  delete page.answer.dataset.stale;
  page.answer.hidden = false;
  setState(answer.fits ? "ready" : "down", `${answer.model.name} ${answer.fits ? "fits" : "does not fit"}`);
  setText(page.verdict, answer.verdict);
  page.verdict.dataset.fits = String(answer.fits);
  const longest = answer.longest.map((one) => `${kvText(one)}: ${one.max === null ? "none" : tokens(one.max)}`);
  setText(page.longest, `Longest context that fits, by KV cache type: ${longest.join(" · ")}`);
  lists.pools.show(plan.memory.pools.map((pool) => ({ pool, terms: plan.memory.terms.filter((term) => term.pool === pool.pool) })));
  showSpeed(plan);
  showList("warnings", plan.warnings);
  showList("flags", plan.flags);
  showList("instead", answer.alternatives.map((one) => ({ ...one, address: addressOfOther(one) })));
  showList("ways", answer.plans.length > 1 ? answer.plans.map((way, place) => ({ place, ...way })) : []);
  page.constants.replaceChildren(...answer.constants.map(constantRow));
}

/** Null where the model has no file in that quant. */
function addressOfOther({ quant, kv_k, kv_v }) {
  if (!chosenModel()?.quants.includes(quant)) return null;
  return addressOf({ ...requested, quant, kv: kvText({ kv_k, kv_v }) });
}

/** Selects the model in the menu if the address has another of its names. */
function settle({ name, quant }) {
  if (chosenModel() || !models.some((model) => model.name === name)) return;
  const wanted = contextTokens();
  page.model.value = name;
  showQuants(quant);
  showContext(wanted);
  requested = choice();
  history.replaceState(history.state, "", addressOf(requested));
}

function showList(name, entries) {
  lists[name].show(entries);
  page[`${name}-box`].hidden = entries.length === 0;
}

function showSpeed({ decode, decode_requested: rate, prefill: [prompt], context }) {
  const known = rate.tok_s !== null;
  page.speeds.hidden = !known;
  page["chart-none"].hidden = known;
  setText(page.pace, known ? `${pace(rate.tok_s)} tokens/s` : UNKNOWN);
  setText(page["pace-range"], known ? `likely ${range(rate)}` : "");
  setText(page.first, wait(prompt.first_token_ms));
  setText(page.prompt, `for a prompt of ${tokens(prompt.context)} tokens`);
  setText(page.most, context.max === null ? "none" : tokens(context.max));
  setText(page.limit, context.limited_by === "trained" ? "the training context" : `then ${context.limited_by} is full`);
  setText(page.sure, rate.confidence ?? UNKNOWN);
  setText(page.basis, known ? basisText(rate.basis) : "");
  page.decode.replaceChildren(...decode.map(speedRow));
  page.times.replaceChildren(...rate.terms.map(timeRow));
  drawSpeed();
}

/** Also called when the width of the page changes. */
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

/** Keeps the last answer on the screen, and marks it as stale. */
function showTrouble(error) {
  const isKey = error.status === 401;
  setState(isKey ? "unknown" : "away", isKey ? "API key needed" : "No answer");
  const missing = error.status === 404 && models.length === 0;
  setText(page.trouble, missing ? "This hob has no fit API." : error.message);
  page.trouble.hidden = false;
  page.answer.dataset.stale = "";
  if (isKey) askForKey();
}

function setState(dot, text) {
  page.state.dataset.state = dot;
  setText(page["state-text"], text);
}

page.model.addEventListener("change", () => {
  const [wanted, quant] = [contextTokens(), page.quant.value];
  showQuants(chosenModel()?.quants.includes(quant) ? quant : undefined);
  showContext(wanted);
  sendRequest();
});
for (const select of [page.quant, page.machine, page.kv]) select.addEventListener("change", sendRequest);
page.context.addEventListener("input", () => {
  showContextText();
  requestSoon();
});
addEventListener("hashchange", () => {
  if (Object.keys(choiceOf(location.hash)).length > 0) takeChoice();
});
document.getElementById("key").addEventListener("change", () => shown && begin());
new ResizeObserver(drawSpeed).observe(page.chart.parentElement);
