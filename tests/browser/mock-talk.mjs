// The mock's conversations: a WebSocket that tests script, with the events that hob sends.
// It hears nothing. It keeps what the page sends.

import { setTimeout as after } from "node:timers/promises";

import { WebSocketServer } from "ws";

import { refuse } from "./mock.mjs";
import { SAMPLE_RATE_HZ, bytesOf } from "./tone.mjs";

export const STAGES_MS = { endpoint: 210.4, stt: 95, llm_ttfat: 140, sentence: 60, tts_ttfa: 120, transport: 5 };

const PIECE_BYTES = SAMPLE_RATE_HZ * 2 / 10;
const PATH = "/v1/realtime";

/** Takes the WebSockets of the server. Each conversation is an event `talk` of the mock. */
export function takeConversations(mock, server) {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "realtime" });
  server.on("upgrade", (request, socket, head) => {
    const refused = !request.url.startsWith(PATH) || mock.talkRefuses || lacksKey(mock, protocolsOf(request));
    if (refused) return socket.end("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (opened) => {
      const conversation = new MockConversation(mock, opened, request);
      mock.events.emit("talk", conversation);
    });
  });
}

/** What hob answers to the same address without a WebSocket. */
export function withoutWebSocket(mock, request, response) {
  const key = request.headers.authorization?.replace("Bearer ", "openai-insecure-api-key.");
  if (lacksKey(mock, [key])) return refuse(response, 401, "This hob wants an API key.");
  return refuse(response, 426, "this address takes a WebSocket");
}

function lacksKey({ talkKey }, protocols) {
  return talkKey && !protocols.includes(`openai-insecure-api-key.${talkKey}`);
}

function protocolsOf(request) {
  return (request.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
}

export class MockConversation {
  /** Events of the page, without sound. */
  received = [];
  /** Sound of the page. */
  pieces = [];
  isClosed = false;
  url;
  protocols;

  #socket;
  #mock;
  #turns = 0;

  constructor(mock, socket, request) {
    this.#mock = mock;
    this.#socket = socket;
    this.url = request.url;
    this.protocols = protocolsOf(request);
    socket.on("message", (data) => this.#receive(JSON.parse(data)));
    socket.on("close", () => (this.isClosed = true));
    socket.on("error", () => {});
    if (!mock.talkWaits) this.begin();
  }

  begin() {
    this.send({ type: "session.created", session: { type: "realtime", recorded: this.#mock.talkRecords } });
  }

  send(event) {
    this.#socket.send(JSON.stringify({ event_id: "event_mock", ...event }));
  }

  /** Without a farewell, or with hob's code and reason. */
  close(code, reason) {
    if (code) this.#socket.close(code, reason);
    else this.#socket.terminate();
  }

  /** The first event of this type, once it is here. */
  async sent(type) {
    const find = () => this.received.find((event) => event.type === type);
    while (!find()) await after(10);
    return find();
  }

  async sentSound(pieces) {
    while (this.pieces.length < pieces) await after(10);
  }

  async closed() {
    while (!this.isClosed) await after(10);
  }

  /** The user begins to speak. @returns {string} the id of the turn's item */
  speechStarted() {
    this.#turns += 1;
    const item_id = `item_user_${this.#turns}`;
    this.send({ type: "input_audio_buffer.speech_started", item_id, audio_start_ms: 0 });
    return item_id;
  }

  /** The user's turn, with the transcript in two pieces. */
  hears(text, item_id = this.speechStarted()) {
    const half = Math.ceil(text.length / 2);
    this.send({ type: "conversation.item.input_audio_transcription.delta", item_id, content_index: 0, delta: text.slice(0, half) });
    this.send({ type: "input_audio_buffer.speech_stopped", item_id, audio_end_ms: 900 });
    this.send({ type: "input_audio_buffer.committed", item_id, previous_item_id: null });
    this.send({ type: "conversation.item.input_audio_transcription.delta", item_id, content_index: 0, delta: text.slice(half) });
    this.send({ type: "conversation.item.input_audio_transcription.completed", item_id, content_index: 0, transcript: text, usage: { type: "duration", seconds: 0.9 } });
  }

  /** The beginning of an answer, with its sound ahead of time. Odd pieces: some end inside a sample. */
  answers(text, seconds) {
    const at = this.#place();
    this.send({ type: "response.created", response: { id: at.response_id, status: "in_progress", output: [] } });
    for (const delta of text.match(/\s*\S+/g)) this.send({ type: "response.output_audio_transcript.delta", ...at, delta });
    const bytes = bytesOf(this.#mock.samples.subarray(0, seconds * SAMPLE_RATE_HZ));
    for (let from = 0; from < bytes.length; from += PIECE_BYTES - 1) {
      this.send({ type: "response.output_audio.delta", ...at, delta: bytes.subarray(from, from + PIECE_BYTES - 1).toString("base64") });
    }
    this.send({ type: "hob.turn_stages", response_id: at.response_id, stages_ms: STAGES_MS });
    return at;
  }

  endAnswer(transcript) {
    const at = this.#place();
    this.send({ type: "response.output_audio.done", ...at });
    this.send({ type: "response.output_audio_transcript.done", ...at, transcript });
    this.endResponse({ status: "completed", status_details: { type: "completed" } });
  }

  endResponse(ending) {
    const { response_id: id, item_id } = this.#place();
    this.send({ type: "response.done", response: { id, output: [{ id: item_id }], ...ending } });
  }

  #place() {
    return { response_id: `resp_${this.#turns}`, item_id: `item_hob_${this.#turns}`, output_index: 0, content_index: 0 };
  }

  #receive(event) {
    if (event.type === "input_audio_buffer.append") return this.pieces.push(Buffer.from(event.audio, "base64"));
    this.received.push(event);
    if (event.type === "session.update") this.#update(event);
  }

  #update({ event_id, session }) {
    const isRefused = this.#mock.talkJudges === false && session.audio.input.turn_detection.type === "semantic_vad";
    if (!isRefused) return this.send({ type: "session.updated", session });
    this.send({ type: "error", error: { type: "invalid_request_error", code: "turn_model_missing", message: "no turn model", param: null, event_id } });
  }
}
