// One answer of a chat model: sends the request, reads the stream, and keeps its text and times.
// Every time is on `performance.now()`; nothing here draws.

import { ApiError, requestChat } from "./api.js";
import { eventsOf, parseEvent } from "./sse.js";

// Including thinking. The limit stops a model that repeats itself forever.
const ANSWER_MAX_CHARACTERS = 500_000;

export class Answer {
  /** asking → thinking → answering → finished | stopped | failed */
  state = "asking";
  text = "";
  thinking = "";
  error = null;
  /** The finish reason: `stop`, `length`, … */
  finish = null;
  usage = null;
  timings = null;
  askedAt = performance.now();
  firstTokenAt = null;
  thinkingFrom = null;
  thinkingUntil = null;
  /** Changes with each received piece. */
  version = 0;

  #abort = new AbortController();

  get active() {
    return this.state === "asking" || this.state === "thinking" || this.state === "answering";
  }

  get characters() {
    return this.text.length + this.thinking.length;
  }

  /** Settles when the answer has finished, stopped or failed. Never throws. */
  async run(request) {
    try {
      const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
      const response = await requestChat(streamed, this.#abort.signal);
      await this.#receive(response);
      this.#end("finished");
    } catch (error) {
      this.#fail(error);
    }
  }

  stop() {
    if (!this.active) return;
    this.#end("stopped");
    this.#abort.abort();
  }

  async #receive(response) {
    for await (const event of eventsOf(response)) {
      if (!this.active || event === "[DONE]") return;
      this.#take(parseEvent(event));
    }
  }

  #take(chunk) {
    if (chunk.error) throw new ApiError(chunk.error.message ?? "The model failed.");
    this.usage = chunk.usage ?? this.usage;
    this.timings = chunk.timings ?? this.timings;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    this.finish = choice.finish_reason ?? this.finish;
    this.#think(choice.delta?.reasoning_content);
    this.#say(choice.delta?.content);
    if (this.characters > ANSWER_MAX_CHARACTERS) {
      throw new Error(`The answer is longer than ${ANSWER_MAX_CHARACTERS.toLocaleString("en")} characters, so the page stopped it.`);
    }
  }

  #think(piece) {
    if (!piece) return;
    this.#noteToken("thinking");
    this.thinkingFrom ??= performance.now();
    this.thinking += piece;
  }

  #say(piece) {
    if (!piece) return;
    this.#noteToken("answering");
    this.#endThinking();
    this.text += piece;
  }

  #noteToken(state) {
    this.firstTokenAt ??= performance.now();
    this.state = state;
    this.version += 1;
  }

  #endThinking() {
    if (this.thinkingFrom !== null) this.thinkingUntil ??= performance.now();
  }

  #end(state) {
    if (!this.active) return;
    this.#endThinking();
    this.state = state;
  }

  #fail(error) {
    if (!this.active) return;
    this.error = error;
    this.#end("failed");
    this.#abort.abort(); // the server may still be generating
  }
}
