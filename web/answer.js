// One answer of a chat model: sends the request, and keeps the text and times of its events.
// Every time is on `performance.now()`; nothing here draws.

import { requestChat } from "./api.js";
import { StreamedResult } from "./streamed-result.js";

// Including thinking. The limit stops a model that repeats itself forever.
const ANSWER_MAX_CHARACTERS = 500_000;

/** States: asking → thinking → answering → finished | stopped | failed */
export class Answer extends StreamedResult {
  text = "";
  thinking = "";
  /** The finish reason: `stop`, `length`, … */
  finish = null;
  usage = null;
  timings = null;
  firstTokenAt = null;
  thinkingFrom = null;
  thinkingUntil = null;
  /** Changes with each received piece. */
  version = 0;

  get active() {
    return this.state === "asking" || this.state === "thinking" || this.state === "answering";
  }

  get characters() {
    return this.text.length + this.thinking.length;
  }

  send(request, signal) {
    return requestChat({ ...request, stream: true, stream_options: { include_usage: true } }, signal);
  }

  take(chunk) {
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

  end(state) {
    if (!this.active) return;
    this.#endThinking();
    this.state = state;
  }
}
