// What an answer and a transcript share: one request, whose events are read until they end, are stopped or fail.
// Every time is on `performance.now()`.

import { ApiError } from "./api.js";
import { eventsOf, parseEvent } from "./sse.js";

/** Subclasses define `active`, `send(request, signal)`, `take(event)` and `end(state)`, which sets the last state. */
export class StreamedResult {
  state = "asking";
  error = null;
  askedAt = performance.now();

  #abort = new AbortController();

  /** Settles when the result has finished, stopped or failed. Never throws. */
  async run(request) {
    try {
      await this.#receive(await this.send(request, this.#abort.signal));
    } catch (error) {
      this.#fail(error);
    }
  }

  stop() {
    if (!this.active) return;
    this.end("stopped");
    this.#abort.abort();
  }

  async #receive(response) {
    for await (const data of eventsOf(response)) {
      if (!this.active) return;
      if (data === "[DONE]") return this.end("finished");
      const event = parseEvent(data);
      if (event.error) throw new ApiError(event.error.message ?? "The model failed.");
      this.take(event);
      if (!this.active) return;
    }
  }

  #fail(error) {
    if (!this.active) return;
    this.error = error;
    this.end("failed");
    this.#abort.abort(); // the server may still be working
  }
}
