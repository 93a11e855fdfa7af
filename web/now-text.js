// Numbers and failures of the Now tab in words. Widths hold still: digits are tabular, and units stay put.

/** What a target did instead of answering; the words follow its name. */
const FAILURES = {
  unreachable: "could not be reached",
  connect_timeout: "took no connection",
  first_token_timeout: "said nothing in time",
  idle_timeout: "fell silent",
  total_timeout: "took too long",
  overloaded: "was overloaded",
  rate_limited: "takes no more for now",
  failed: "failed",
  key_refused: "refused the key",
  no_credit: "has no credit left",
  no_such_model: "does not have the model",
  too_long: "holds no prompt of that length",
  unknown_parameter: "does not know a parameter",
  refused: "refused",
  reported: "reported an error",
  cut_off: "broke off",
  empty_answer: "answered with nothing",
  nonsense: "answered nonsense",
  queue_full: "was full",
  model_loading: "was still loading",
  worker_lost: "lost its engine",
  engine_failed: "had an engine that failed",
  out_of_memory: "had no memory for it",
};

export function failureText(reason) {
  return FAILURES[reason] ?? `failed (${reason.replaceAll("_", " ")})`;
}

/** `0.4 ms`, `180 ms`, `1.20 s`, `83 s`. */
export function msText(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : ms < 60_000 ? 1 : 0)} s`;
}

/** Of something that may go on: tenths of seconds, then minutes. */
export function secondsText(ms) {
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}

export function soundText(ms) {
  return `${(ms / 1_000).toFixed(1)} s of sound`;
}

export function tokensText(tokens) {
  return `${tokens.toLocaleString("en")} ${tokens === 1 ? "token" : "tokens"}`;
}

/** Powers of 1,000, as `hob ps` has them. */
export function bytesText(bytes) {
  return bytes < 1e9 ? `${Math.ceil(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
