// Formats numbers and failure reasons for the Now tab.

/** Why a target did not answer. The page prints each text after the target's name. */
const FAILURES = {
  unreachable: "could not be reached",
  connect_timeout: "accepted no connection in time",
  first_token_timeout: "sent no first token in time",
  idle_timeout: "stopped sending",
  total_timeout: "took too long",
  overloaded: "was overloaded",
  rate_limited: "rejected the request because of its rate limit",
  failed: "failed",
  key_refused: "refused the key",
  no_credit: "has no credit left",
  no_such_model: "does not have the model",
  too_long: "has a context that is too short",
  unknown_parameter: "does not know a parameter",
  refused: "rejected the request",
  loop_detected: "reported a loop of servers",
  reported: "reported an error",
  cut_off: "stopped in the middle of the answer",
  empty_answer: "sent an empty answer",
  invalid_answer: "sent an invalid answer",
  // Rows of the ledger from before the kind was renamed.
  nonsense: "sent an invalid answer",
  queue_full: "had a full queue",
  model_loading: "was still loading",
  worker_lost: "lost its worker process",
  engine_failed: "had an engine error",
  out_of_memory: "had too little memory",
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

/** The duration of a running request: tenths of seconds, then minutes. */
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

/** In powers of 1,000, as in `hob ps`. */
export function bytesText(bytes) {
  return bytes < 1e9 ? `${Math.ceil(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
