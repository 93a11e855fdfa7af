// Reads server-sent events. The network may cut them anywhere: in a line, between CR and LF, inside a character.
// It keeps only the data. Names, ids and comments are skipped.

import { ApiError } from "./api.js";

// An event of a chat has a few hundred bytes. A longer one is an error.
const EVENT_MAX_CHARACTERS = 1 << 20;

/** The data of each event of an answer, until the caller ends the loop. A body that ends earlier was cut off. */
export async function* eventsOf(response) {
  const reader = response.body.getReader();
  const events = new SseReader();
  for (;;) {
    const { done, value } = await reader.read().catch(throwCutOff);
    if (done) throwCutOff();
    yield* events.push(value);
  }
}

export function parseEvent(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new Error("The server sent an event that is not JSON.");
  }
}

function throwCutOff() {
  throw new ApiError("The answer was cut off: the connection closed before the end.");
}

export class SseReader {
  #decoder = new TextDecoder();
  #rest = ""; // of a line
  #data = []; // lines of the event that is still open
  #afterReturn = false;

  /** Bytes in, the data of whole events out. @param {Uint8Array} bytes @returns {string[]} */
  push(bytes) {
    const lines = this.#lines(this.#decoder.decode(bytes, { stream: true }));
    const held = this.#data.reduce((sum, line) => sum + line.length, this.#rest.length);
    if (held > EVENT_MAX_CHARACTERS) throw new Error("The server sent an event that is too long.");
    return lines.flatMap((line) => this.#take(line));
  }

  #lines(text) {
    if (text === "") return [];
    // The second half of a line end whose first half was in the piece before.
    const fresh = this.#afterReturn && text.startsWith("\n") ? text.slice(1) : text;
    this.#afterReturn = text.endsWith("\r");
    const lines = (this.#rest + fresh).split(/\r\n|[\r\n]/);
    this.#rest = lines.pop();
    return lines;
  }

  #take(line) {
    if (line.startsWith("data:")) this.#data.push(line.slice(line[5] === " " ? 6 : 5));
    if (line !== "" || this.#data.length === 0) return [];
    const event = this.#data.join("\n");
    this.#data = [];
    return [event];
  }
}
