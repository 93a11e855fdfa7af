// The choice of the Fit tab: in the address, so that a view can be shared, and on the slider in steps that suit a model.

/** Names in the address, and the query parameters of the server. */
const FIELDS = { model: "model", quant: "quant", machine: "machine", context: "context_tokens", kv: "kv" };
const TAB = "#fit";
const SHORTEST = 512;
// The engine allocates a cache in steps of this many tokens.
const STEP = 256;

/** @returns {Record<string, string>} the choice in an address of this tab; empty where it names nothing */
export function choiceOf(hash) {
  const [tab, query = ""] = hash.split("?");
  if (tab !== TAB) return {};
  const params = new URLSearchParams(query);
  return Object.fromEntries(Object.keys(FIELDS).flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : [])));
}

export function addressOf(choice) {
  const chosen = Object.entries(choice).filter(([name, value]) => name in FIELDS && value);
  // A fragment may contain a slash, which is easier to read than its code.
  return `${TAB}?${new URLSearchParams(chosen)}`.replaceAll("%2F", "/");
}

/** The query for the server. */
export function queryOf(choice) {
  const chosen = Object.entries(FIELDS).filter(([name]) => choice[name]);
  return new URLSearchParams(chosen.map(([name, field]) => [field, choice[name]]));
}

/** Two steps for each doubling, and the training context as the last step. */
export function contextSteps(trained) {
  const steps = [];
  for (let half = 0; ; half += 1) {
    const tokens = Math.round((SHORTEST * 2 ** (half / 2)) / STEP) * STEP;
    if (tokens >= trained) return [...steps, trained];
    if (tokens !== steps.at(-1)) steps.push(tokens);
  }
}

/** The step with the nearest ratio. */
export function nearestStep(steps, tokens) {
  const off = (step) => Math.abs(Math.log(step / tokens));
  return steps.reduce((best, step, index) => (off(step) < off(steps[best]) ? index : best), 0);
}
