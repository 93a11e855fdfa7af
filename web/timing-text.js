// Timings of an answer in one line. This page measures the first token, network included. The server measures the rest.
// Unknown values are left out.

import { tokensText } from "./now-text.js";

// Shorter waits are not shown.
const WORTH_SAYING_MS = 50;

export function timingText({ askedAt, firstTokenAt, usage, timings }) {
  const tokens = usage?.completion_tokens ?? timings?.predicted_n;
  return [
    firstTokenAt !== null && `first token ${secondsText(firstTokenAt - askedAt)}`,
    tokens !== undefined && tokensText(tokens),
    timings?.predicted_per_second > 0 && `${rateText(timings.predicted_per_second)} tokens/s`,
    promptText(usage, timings),
    timings?.load_ms >= WORTH_SAYING_MS && `loading ${secondsText(timings.load_ms)}`,
    timings?.queue_ms >= WORTH_SAYING_MS && `queue ${secondsText(timings.queue_ms)}`,
  ].filter(Boolean).join(" · ");
}

/** The title of folded thinking: seconds while the model thinks, and tokens once they are known. */
export function thinkingText({ state, thinkingFrom, thinkingUntil, usage }, now) {
  const tokens = usage?.completion_tokens_details?.reasoning_tokens;
  return [
    state === "thinking" ? "Thinking…" : "Thinking",
    `${(((thinkingUntil ?? now) - thinkingFrom) / 1000).toFixed(1)} s`,
    tokens > 0 && tokensText(tokens),
  ].filter(Boolean).join(" · ");
}

function promptText(usage, timings) {
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? timings?.cache_n;
  // `prompt_n` of the timings leaves out cached tokens.
  const all = usage?.prompt_tokens ?? (timings && timings.prompt_n + (timings.cache_n ?? 0));
  if (all === undefined || all === null) return null;
  return `prompt ${all.toLocaleString("en")}${cached > 0 ? ` (${cached.toLocaleString("en")} cached)` : ""}`;
}

function rateText(perSecond) {
  return perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString("en");
}

function secondsText(ms) {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}
