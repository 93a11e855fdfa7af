// The running requests that the mock reports: a board with something in every part, and one with nothing in any.
// Tests change `mock.now` to whatever shall be seen next; `null` closes the connection instead of answering.

const SOME = { p50: 182.4, p95: 410.9, n: 41 };
const NONE = { p50: null, p95: null, n: 0 };

export const EMPTY = {
  requests: [], recent: [], aliases: [], models: [], upstreams: [], queue: { in_flight: 0, waiting: 0, targets: [] },
};

export function job(id, more = {}) {
  return {
    id: `hob-${id}`, started_unix_ms: 1793491200000, route: "chat", alias: "fast", target: "gpu/qwen3", stage: "answering",
    ready_in_s: null, key: null, streamed: true, warm: true, total_ms: 1204.1, ttft_ms: 180.2, tokens: 42, audio_ms: null,
    attempts: 1, failed: [], ignored: [], thought_anyway: false, counted_here: false, ...more,
  };
}

const END = {
  stage: "ended", outcome: "complete", error: null, queue_ms: 0, load_ms: 0, overhead_ms: 0.6, tokens_per_s: 63.4,
  prompt_tokens: 45, cached_tokens: 30, reasoning_tokens: 0,
};
const FAILED = [{ target: "spare/qwen3-30b-a3b-instruct", reason: "overloaded", ms: 31 }, { target: "cloud/qwen3", reason: "first_token_timeout", ms: 4_003.2 }];

export const BUSY = {
  requests: [
    job(11, { key: "laptop" }),
    job(12, { stage: "asking", ttft_ms: null, tokens: 0, failed: FAILED, attempts: 3 }),
    job(13, { alias: "narrator", target: "kokoro", route: "speech", tokens: null, audio_ms: 2_250 }),
    job(14, { alias: "smol", target: "smol", stage: "loading", ready_in_s: 2.5, ttft_ms: null, tokens: 0, warm: false, total_ms: 402 }),
    job(15, { stage: "waiting", target: null, ttft_ms: null, tokens: 0, failed: FAILED.slice(0, 1), total_ms: 75_000 }),
  ],
  recent: [
    job(10, { ...END, total_ms: 2_411.7 }),
    job(9, { ...END, outcome: "failed", error: "queue_full", target: "smol", alias: "smol", tokens: 0, ttft_ms: null, tokens_per_s: null, overhead_ms: null, total_ms: 0.3 }),
    job(8, { ...END, outcome: "abandoned", failed: FAILED.slice(0, 1), thought_anyway: true }),
  ],
  aliases: [
    { name: "fast", requests: 44, more: false, failed: 2, ttft_warm: SOME, ttft_cold: { p50: 3_204, p95: null, n: 3 }, total: { p50: 2_410, p95: 12_400, n: 40 }, tokens_per_s: { p50: 63.4, n: 40 } },
    { name: "narrator", requests: 512, more: true, failed: 0, ttft_warm: { p50: 61.2, p95: 88.7, n: 512 }, ttft_cold: NONE, total: { p50: 4_800, p95: 9_900, n: 512 }, tokens_per_s: { p50: null, n: 0 } },
  ],
  models: [
    { name: "kokoro", kind: "speech", state: "warm", ready_in_s: null, resident_bytes: 325_058_560, vram_bytes: 0, in_flight: 1, expires_at: null, context_length: null, load_ms: 800 },
    { name: "qwen3-8b", kind: "chat", state: "warm", ready_in_s: null, resident_bytes: 6_200_000_000, vram_bytes: 5_100_000_000, in_flight: 0, get expires_at() { return new Date(Date.now() + 245_000).toISOString(); }, context_length: 16_384, load_ms: 2_100 },
    { name: "smol", kind: "chat", state: "loading", ready_in_s: 2.5, resident_bytes: null, vram_bytes: 0, in_flight: 1, expires_at: null, context_length: 8_192, load_ms: null },
    { name: "sleeper", kind: "chat", state: "cold", ready_in_s: null, resident_bytes: null, vram_bytes: 0, in_flight: 0, expires_at: null, context_length: 8_192, load_ms: null },
  ],
  upstreams: [
    { name: "gpu", kind: "llama-server", url: "http://gpu:8081", state: "up", asked_ago_s: 3.1, took_ms: 12.3, models: ["qwen3"], in_flight: 2, waiting: 1, slots: 4, troubled: [] },
    { name: "spare", kind: "ollama", url: "http://spare:11434", state: "up", asked_ago_s: 3, took_ms: 40, models: ["qwen3", "gemma"], in_flight: 0, waiting: 0,
      troubled: [{ name: "spare/qwen3", status: "open", open_for_s: 4.2, state: "warm", in_flight: 0, last_failure: { message: "spare/qwen3: overloaded", ago_s: 2 } }] },
    { name: "attic", kind: "openai", url: "http://attic:9000", state: "down", reason: "connection refused", asked_ago_s: 1, models: [], in_flight: 0, waiting: 0, troubled: [] },
  ],
  queue: { in_flight: 7, waiting: 3, targets: [] },
};

/** @returns {object | number} what to answer, or a status to refuse with */
export function nowFor(mock, authorization) {
  return mock.nowKey && authorization !== "Bearer sesame" ? 401 : mock.now;
}
