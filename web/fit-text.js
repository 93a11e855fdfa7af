// Figures of the Fit tab as text. An unknown figure is a dash and never 0.

export const UNKNOWN = "–";

/** In units of 10^9 bytes, with two decimals below 10; below 0.1 in units of 10^6, and at least 1 of them. */
export function gigabytes(bytes) {
  return bytes < 1e8 ? `${Math.max(1, Math.round(bytes / 1e6))} MB` : `${(bytes / 1e9).toFixed(bytes < 1e10 ? 2 : 1)} GB`;
}

/** Tokens per second, with more decimals for smaller values. */
export function pace(tokS) {
  if (tokS === null) return UNKNOWN;
  return tokS.toFixed(tokS >= 10 ? 0 : tokS >= 1 ? 1 : 2);
}

export function range({ low, high }) {
  return low === null ? UNKNOWN : `${pace(low)} to ${pace(high)}`;
}

export function tokens(count) {
  return count.toLocaleString("en");
}

/** On an axis: `512`, `4 k`, `128 k`. */
export function shortTokens(count) {
  return count < 1_024 ? String(count) : `${Math.round(count / 1_024)} k`;
}

/** Until the first token: `180 ms`, `1.2 s`, `2:05 min`. */
export function wait(ms) {
  if (ms === null) return UNKNOWN;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}

const BASES = {
  measured: "measured",
  calibrated: "calibrated here",
  published: "from published runs",
  stated: "from the data sheet",
  prior: "typical for such devices",
  assumed: "assumed",
};

/** The source of a figure. */
export function basisText(basis) {
  return basis === null ? UNKNOWN : BASES[basis] ?? basis;
}

export function kvText({ kv_k: keys, kv_v: values }) {
  return keys === values ? keys : `${keys}/${values}`;
}
