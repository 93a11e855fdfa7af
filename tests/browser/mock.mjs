// A hob without an engine: serves web/ under the strict policy and streams a tone at a pace the tests choose.
// The text of a request says how the mock behaves: `[cut]`, `[busy]`, `[stall]`, …

import { EventEmitter, once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { MODELS, chat } from "./mock-chat.mjs";
import { FIT_MACHINES, FIT_MODELS, fitFor } from "./mock-fit.mjs";
import { hear } from "./mock-hear.mjs";
import { EMPTY, nowFor } from "./mock-now.mjs";
import { takeConversations, withoutWebSocket } from "./mock-talk.mjs";
import { answerTeam, teamState } from "./mock-team.mjs";
import { bytesOf, mp3Of, tone } from "./tone.mjs";

const WEB = fileURLToPath(new URL("../../web/", import.meta.url));
// What hob-server sends with the page; a page that works under less would not show it.
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
  + "media-src 'self' blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
// Odd on purpose: most pieces end inside a sample. A quarter of a second each.
const PIECE_BYTES = 12_001;
const PACE_MS = 60;
const SPEECH_S = 3;
const LANGUAGES = { a: "en-US", b: "en-GB", f: "fr" };
const VOICES = ["af_heart", "af_bella", "am_michael", "bf_emma", "bm_george", "ff_siwis"].map((id) => ({
  id,
  name: id[3].toUpperCase() + id.slice(4),
  language: LANGUAGES[id[0]],
  gender: id[1] === "f" ? "female" : "male",
}));

const NO_VOICES = "this hob has no speech model; get one with `hob pull`";

/** @returns {Promise<{url: string, samples: Int16Array, events: EventEmitter, requests: object[], close: () => void}>} */
export async function startMock() {
  const samples = tone(SPEECH_S);
  const mock = {
    samples,
    sound: { pcm: bytesOf(samples), mp3: mp3Of(samples) },
    requests: [],
    chats: [], // bodies of chat requests
    heard: [], // files to transcribe, with the other fields
    busyTimes: 0, // so many requests for chat or a transcript are still refused
    models: MODELS,
    voices: VOICES, // null: it has no voice model
    now: EMPTY, // what runs
    nowKey: false, // whether seeing it takes a key
    team: teamState(), // teams and their runs
    fits: true, // whether it says what fits
    fitModels: FIT_MODELS, // models that it says that of
    fitKey: false, // whether hearing it takes a key
    fitAsked: [], // questions of that
    talkRefuses: false, // whether no conversation opens
    talkKey: null, // the key that a conversation takes
    talkWaits: false, // whether the test says when the models are loaded
    talkJudges: true, // whether it has a model for the end of a turn
    talkRecords: false, // whether a conversation says that it is recorded
    states: [], // what `/ready` says, until a test takes it away; then ready
    events: new EventEmitter(),
  };
  const server = http.createServer((request, response) => {
    answer(mock, request, response).catch((error) => response.destroy(error));
  });
  takeConversations(mock, server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  mock.url = `http://127.0.0.1:${server.address().port}/`;
  mock.close = () => { server.closeAllConnections(); server.close(); };
  return mock;
}

async function answer(mock, request, response) {
  response.setHeader("Content-Security-Policy", POLICY);
  const { pathname, searchParams } = new URL(request.url, "http://mock");
  const isList = ["/v1/audio/voices", "/v1/models"].includes(pathname);
  if (isList && request.headers.authorization === "Bearer wrong") return refuse(response, 401, "the API key is not valid");
  if (pathname === "/v1/audio/voices" && mock.voices === null) return refuse(response, 503, NO_VOICES, "no_target");
  if (pathname === "/v1/audio/voices") return json(response, 200, { object: "list", voices: mock.voices });
  if (pathname === "/ready") return ready(mock, response);
  if (pathname === "/v1/models") return json(response, 200, { object: "list", data: mock.models });
  if (pathname === "/v1/audio/speech") return speech(mock, request, response);
  if (/^\/v1\/audio\/(transcriptions|translations)$/.test(pathname)) return hear(mock, request, response);
  if (pathname === "/v1/chat/completions") return chat(mock, request, response);
  if (pathname === "/v1/realtime") return withoutWebSocket(mock, request, response);
  if (/^\/v1\/(teams|runs)(\/|$)/.test(pathname)) return answerTeam(mock, { request, pathname }, response);
  if (pathname === "/api/hob/now") return now(mock, request, response);
  if (pathname.startsWith("/api/fit") && mock.fits) return fit(mock, { request, pathname, query: searchParams }, response);
  return file(pathname === "/" ? "/index.html" : pathname, response);
}

function ready({ states }, response) {
  const state = states[0] ?? { status: "ready", ready_in_s: null };
  json(response, state.status === "ready" ? 200 : 503, { model: "kokoro", ...state });
}

function now(mock, request, response) {
  const said = nowFor(mock, request.headers.authorization);
  if (said === null) return request.socket.destroy();
  return said === 401 ? refuse(response, 401, "This hob wants an API key.") : json(response, 200, said);
}

async function fit(mock, { request, pathname, query }, response) {
  if (mock.fitKey && request.headers.authorization !== "Bearer sesame") return refuse(response, 401, "This hob wants an API key.");
  if (pathname === "/api/fit/models") return json(response, 200, { models: mock.fitModels });
  if (pathname === "/api/fit/machines") return json(response, 200, { machines: FIT_MACHINES });
  mock.fitAsked.push(Object.fromEntries(query));
  if (query.get("model").includes("[slow]")) await stall(mock);
  const machine = query.get("machine");
  if (!FIT_MACHINES.some(({ name }) => name === machine)) return refuse(response, 404, `there is no machine '${machine}' here`);
  return json(response, 200, fitFor(query));
}

async function file(pathname, response) {
  const type = TYPES[path.extname(pathname)];
  const body = await readFile(path.join(WEB, path.normalize(pathname))).catch(() => null);
  if (!type || !body) return refuse(response, 404, `There is no ${pathname}.`);
  // The page has 60 modules, and each test opens it again.
  response.writeHead(200, { "Content-Type": type, "Cache-Control": "max-age=3600" });
  response.end(body);
}

async function speech(mock, request, response) {
  const body = JSON.parse(Buffer.concat(await request.toArray()));
  mock.requests.push({ body, authorization: request.headers.authorization });
  const { input } = body;
  if (input.includes("[refuse]")) return refuse(response, 400, "speed must be from 0.25 to 4, and is 9");
  if (input.includes("[key]") && request.headers.authorization !== "Bearer sesame") return refuse(response, 401, "This hob wants an API key.");
  if (input.includes("[busy]")) {
    response.setHeader("Retry-After", "7");
    return refuse(response, 503, "hob is busy: 4 speeches are waiting.");
  }
  if (input.includes("[gone]")) return request.socket.destroy();
  response.on("close", () => mock.events.emit("closed", { input, whole: response.writableFinished }));
  await stream(mock, body, response);
}

async function stream(mock, { input, response_format: format }, response) {
  const bytes = soundFor(mock, input, format === "mp3" ? "mp3" : "pcm");
  response.writeHead(200, { "Content-Type": format === "mp3" ? "audio/mpeg" : "audio/pcm", "Cache-Control": "no-cache" });
  const pieceBytes = format === "mp3" ? 2_001 : PIECE_BYTES;
  for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) {
    if (at === pieceBytes * 4 && /\[cut\]|\[leave\]/.test(input)) return breakOff(mock, input, response);
    if (at === pieceBytes * 2 && input.includes("[stall]")) await stall(mock);
    response.write(bytes.subarray(at, at + pieceBytes));
    // Around a stall all comes at once: a server that is late between two pieces would make gaps of its own.
    if (!input.includes("[stall]")) await after(PACE_MS);
  }
  response.end();
}

/** Once the test says so: a browser drops what it has not handed over when a connection breaks. */
async function breakOff(mock, input, response) {
  await stall(mock);
  if (input.includes("[cut]")) return response.destroy();
  // A polite goodbye of the socket in mid-body: only the missing last chunk tells.
  return response.socket.end();
}

function soundFor({ sound }, input, format) {
  if (input.includes("[half]")) return sound[format].subarray(0, -1); // ends inside a sample
  if (input.includes("[empty]")) return Buffer.alloc(0);
  // The start of a radio station's header that never ends: nonsense that a decoder refuses rather than skips.
  if (input.includes("[noise]")) return Buffer.alloc(sound[format].length, "ICY ");
  return sound[format];
}

/** Tells the test, which says when to go on. */
export async function stall({ events }) {
  const goOn = once(events, "go on");
  events.emit("stalled");
  await goOn;
}

/** A server-sent event. */
export function event(data) {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}

// Odd on purpose: most pieces end inside a line, some inside a letter. A millisecond between them.
const EVENT_PIECE_BYTES = 37;
const EVENT_PACE_MS = 1;

export async function inOddPieces(response, events) {
  const bytes = Buffer.from(events);
  for (let at = 0; at < bytes.length && !response.destroyed; at += EVENT_PIECE_BYTES) {
    response.write(bytes.subarray(at, at + EVENT_PIECE_BYTES));
    await after(EVENT_PACE_MS);
  }
}

export function refuse(response, status, message, code = null) {
  return json(response, status, { error: { message, type: "invalid_request_error", param: null, code } });
}

export function json(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}
