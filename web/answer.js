// One answer of a chat model: asks, reads the stream, and keeps what came and when.
// Every time is on `performance.now()`; nothing here draws.

import { ApiError, requestChat } from "./api.js";
import { SseReader } from "./sse.js";

// Thinking included. A model that repeats itself for ever would otherwise fill the tab's memory.
const ANSWER_MAX_CHARACTERS = 500_000;

export class Answer {
  /** asking → thinking → answering → finished | stopped | failed */
  state = "asking";
  text = "";
  thinking = "";
  error = null;
  /** Why the model ended: `stop`, `length`, … */
  finish = null;
  usage = null;
  timings = null;
  askedAt = performance.now();
  firstTokenAt = null;
  thinkingFrom = null;
  thinkingUntil = null;
  /** Changes whenever something came. */
  version = 0;

  #abort = new AbortController();

  get active() {
    return this.state === "asking" || this.state === "thinking" || this.state === "answering";
  }

  get characters() {
    return this.text.length + this.thinking.length;
  }

  /** Settles when the answer has ended, however it did. Never throws. */
  async run(request) {
    try {
      const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
      const response = await requestChat(streamed, this.#abort.signal);
      await this.#receive(response.body.getReader());
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

  async #receive(reader) {
    const events = new SseReader();
    for (;;) {
      const { done, value } = await reader.read().catch(brokenOff);
      if (!this.active) return;
      if (done) return brokenOff();
      for (const event of events.push(value)) {
        if (event === "[DONE]") return;
        this.#take(parse(event));
      }
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
      throw new Error(`The answer grew beyond ${ANSWER_MAX_CHARACTERS.toLocaleString("en")} characters, so the page ended it.`);
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
    this.#abort.abort(); // what failed in our hands may still be running at the server
  }
}

function brokenOff() {
  throw new ApiError("The answer broke off: the connection ended before the answer did.");
}

function parse(event) {
  try {
    return JSON.parse(event);
  } catch {
    throw new Error("The server sent an event that is not JSON.");
  }
}
