// hob's API as the page uses it: models, voices, readiness, speech, transcripts, chat, conversations, teams, fit, and current activity.
// Addresses are relative to the page, so it also works behind a proxy's path.

/** An error that the server reported, or a failure to reach it. */
export class ApiError extends Error {
  constructor(message, { status = 0, code = null, retryAfterS = null } = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.retryAfterS = retryAfterS;
  }
}

// For this tab only: permanent storage would keep a key longer than the user needs it.
const KEY_ITEM = "hob.apiKey";
let typedKey = null;

export function rememberApiKey(key) {
  typedKey = key.trim();
  try {
    sessionStorage.setItem(KEY_ITEM, typedKey);
  } catch {
    // Storage is not allowed: the key holds until the page is closed or reloaded.
  }
}

function apiKey() {
  try {
    return typedKey ?? sessionStorage.getItem(KEY_ITEM);
  } catch {
    return null;
  }
}

/** @returns {Promise<{id: string, name: string, language: string, gender: string}[]>} */
export async function listVoices() {
  const response = await send("v1/audio/voices");
  return (await response.json()).voices;
}

/** @returns {Promise<{id: string, name: string, kind: string, state: string, capabilities: string[], languages: string[]}[]>} */
export async function listModels() {
  const response = await send("v1/models", { cache: "no-store" });
  const { data } = await response.json();
  return data.map(({ id, name = id, hob: { kind, state, capabilities = [], languages = [] } = {} }) => ({ id, name, kind, state, capabilities, languages }));
}

/** Requests that run, requests that ended, and times of the last hour. Fails after `timeoutMs`. */
export async function listActivity(timeoutMs) {
  const response = await send("api/hob/now", { cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
  return response.json();
}

/** The teams, and the newest runs. Fails after `timeoutMs`. */
export async function listTeamsAndRuns(timeoutMs) {
  const options = { cache: "no-store", signal: AbortSignal.timeout(timeoutMs) };
  const [teams, runs] = await Promise.all([send("v1/teams", options), send("v1/runs", options)]);
  return { ...(await teams.json()), ...(await runs.json()) };
}

/** @returns {Promise<object>} the run as a row of the list */
export async function startRun(team, task) {
  return (await post("v1/runs", { team, task })).json();
}

export async function showRun(id, signal) {
  return (await send(runPath(id), { cache: "no-store", signal })).json();
}

/** @param {"cancel"|"resume"} action @returns {Promise<object>} the run after it */
export async function actOnRun(id, action) {
  return (await send(`${runPath(id)}/${action}`, { method: "POST" })).json();
}

/** @param {"approve"|"deny"} decision @returns {Promise<object>} the run after it */
export async function decideApproval(id, approval, decision) {
  return (await post(`${runPath(id)}/approvals/${encodeURIComponent(approval)}`, { decision })).json();
}

/** The stream of events after the one with the number `seen`. */
export function requestRunEvents(id, seen, signal) {
  return send(`${runPath(id)}/events`, { headers: { "Last-Event-ID": String(seen) }, cache: "no-store", signal });
}

/** @returns {Promise<Blob>} */
export async function runFile(id, path) {
  const parts = path.split("/").map(encodeURIComponent);
  return (await send(`${runPath(id)}/files/${parts.join("/")}`, { cache: "no-store" })).blob();
}

function runPath(id) {
  return `v1/runs/${encodeURIComponent(id)}`;
}

/** @returns {Promise<{name: string, installed: boolean, quant: string, quants: string[], trained_context: number|null}[]>} */
export async function fitModels() {
  const response = await send("api/fit/models", { cache: "no-store" });
  return (await response.json()).models;
}

/** @returns {Promise<{name: string}[]>} hob's own machine first */
export async function fitMachines() {
  const response = await send("api/fit/machines", { cache: "no-store" });
  return (await response.json()).machines;
}

/** In which memory a model would be, and how fast it would be. See the API reference. */
export async function fit(query, signal) {
  const response = await send(`api/fit?${query}`, { cache: "no-store", signal });
  return response.json();
}

/** @returns {Promise<{status: "ready"|"loading"|"cold"|"down", readyInS: number|null, message: string}>} */
export async function readiness() {
  const response = await reach(new URL("ready", document.baseURI), { cache: "no-store" });
  const body = await response.json().catch(() => ({}));
  return {
    // A proxy may answer in hob's place, without hob's body. Then the status code decides.
    status: body.status ?? (response.ok ? "ready" : "down"),
    readyInS: body.ready_in_s ?? null,
    message: body.error?.message ?? "",
  };
}

/**
 * The answer, once the server has started to speak. Throws an ApiError if it refuses.
 * `tts-1` is OpenAI's name for "the default voice model" in every hob.
 */
export function requestSpeech({ text, voice, speed, format, stream = true, signal }) {
  const body = { model: "tts-1", input: text, voice, speed, response_format: format, stream };
  return post("v1/audio/speech", body, signal);
}

/**
 * The events of a transcript with the times of segments and words. Throws an ApiError if the server refuses.
 * @param {{file: File, model: string, language: string, isTranslated: boolean}} request an empty language is detected
 */
export function requestTranscript({ file, model, language, isTranslated }, signal) {
  const body = new FormData();
  body.append("file", file);
  body.append("model", model);
  body.append("language", language);
  body.append("stream", "true");
  for (const granularity of ["segment", "word"]) body.append("timestamp_granularities[]", granularity);
  return send(`v1/audio/${isTranslated ? "translations" : "transcriptions"}`, { method: "POST", body, signal });
}

/** The stream of the answer, once the server has accepted the request. Throws an ApiError if it refuses. */
export function requestChat(body, signal) {
  return post("v1/chat/completions", body, signal);
}

const NOT_OPENED = 'hob did not open the conversation. It may already run as many conversations as it allows ("sessions_max" in hob.toml), '
  + "or a proxy between this browser and hob may not forward WebSockets.";
const UPGRADE_REQUIRED = 426;

/** The WebSocket of a spoken conversation. Throws an ApiError if a browser cannot send the key. */
export function openConversation(model) {
  const url = new URL(conversationPath(model), document.baseURI);
  url.protocol = url.protocol.replace("http", "ws");
  const key = apiKey();
  try {
    // A page cannot send a header with a WebSocket, so a subprotocol carries the key.
    return new WebSocket(url, key ? ["realtime", `openai-insecure-api-key.${key}`] : ["realtime"]);
  } catch {
    throw new ApiError("This API key has a character that a browser cannot send with a WebSocket. Letters, digits, - and _ work.", { status: 401 });
  }
}

/** Why a conversation did not open. The browser hides the status, so this asks again without a WebSocket. @returns {Promise<ApiError>} */
export async function whyNoConversation(model) {
  try {
    await send(conversationPath(model), { cache: "no-store" });
  } catch (error) {
    if (error.status !== UPGRADE_REQUIRED) return error;
  }
  return new ApiError(NOT_OPENED);
}

function conversationPath(model) {
  return `v1/realtime?${new URLSearchParams({ model })}`;
}

function post(path, body, signal) {
  return send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

async function send(path, options = {}) {
  const url = new URL(path, document.baseURI);
  const headers = new Headers(options.headers);
  const key = apiKey();
  // A header holds bytes, and a browser takes each character for one. Other characters would make every request fail.
  if (key) headers.set("Authorization", `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}`);
  const response = await reach(url, { ...options, headers });
  if (response.ok) return response;
  // A list needs no key, but a wrong key is refused.
  const open = response.status === 401 && key && !options.method ? await reach(url, options) : null;
  if (open?.ok) return open;
  throw await refusal(response);
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("hob does not answer. Is it still running?");
  }
}

async function refusal(response) {
  const envelope = await response.json().catch(() => null);
  const message = envelope?.error?.message ?? `The server answered ${response.status}.`;
  return new ApiError(message, { status: response.status, code: envelope?.error?.code, retryAfterS: retryAfter(response) });
}

function retryAfter(response) {
  const seconds = Number.parseFloat(response.headers.get("Retry-After") ?? "");
  return Number.isFinite(seconds) ? seconds : null;
}
