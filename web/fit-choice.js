// What is asked of the Fit tab: in the address, so that a view can be shared, and on the slider in steps that fit a model.

/** Names in the address, and what the server calls them. */
const FIELDS = { model: "model", quant: "quant", machine: "machine", context: "context_tokens", kv: "kv" };
const TAB = "#fit";
const SHORTEST = 512;
// The engine allots a cache in steps of so many tokens.
const STEP = 256;

/** @returns {Record<string, string>} what an address of this tab says; empty for one that says nothing */
export function choiceOf(hash) {
  const [tab, query = ""] = hash.split("?");
  if (tab !== TAB) return {};
  const said = new URLSearchParams(query);
  return Object.fromEntries(Object.keys(FIELDS).flatMap((name) => (said.get(name) ? [[name, said.get(name)]] : [])));
}

export function addressOf(choice) {
  const said = Object.entries(choice).filter(([name, value]) => name in FIELDS && value);
  // A slash may stand in a fragment, and reads better than its code.
  return `${TAB}?${new URLSearchParams(said)}`.replaceAll("%2F", "/");
}

/** As the server is asked. */
export function queryOf(choice) {
  const said = Object.entries(FIELDS).filter(([name]) => choice[name]);
  return new URLSearchParams(said.map(([name, field]) => [field, choice[name]]));
}

/** Two steps for each doubling, and the length that the model was trained with last. */
export function contextSteps(trained) {
  const steps = [];
  for (let half = 0; ; half += 1) {
    const tokens = Math.round((SHORTEST * 2 ** (half / 2)) / STEP) * STEP;
    if (tokens >= trained) return [...steps, trained];
    if (tokens !== steps.at(-1)) steps.push(tokens);
  }
}

/** The step that is nearest by its ratio. */
export function nearestStep(steps, tokens) {
  const off = (step) => Math.abs(Math.log(step / tokens));
  return steps.reduce((best, step, index) => (off(step) < off(steps[best]) ? index : best), 0);
}
