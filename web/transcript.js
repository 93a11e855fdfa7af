// One transcript: sends the file, and keeps the text, segments, words and times of its events.
// Every time is on `performance.now()`; nothing here draws.

import { requestTranscript } from "./api.js";
import { StreamedResult } from "./streamed-result.js";

// A day of speech. The limit stops a server that sends text forever.
const TEXT_MAX_CHARACTERS = 1_500_000;
const LETTER = /[\p{L}\p{N}]/u;
const SPACE = /\s/;

/** States: asking → hearing → finished | stopped | failed */
export class Transcript extends StreamedResult {
  /** The text, with or without times. */
  text = "";
  /** @type {{start: number, end: number, text: string, words: {start: number, end: number, from: number, to: number}[]}[]} */
  segments = [];
  /** So many segments have all their words. */
  closed = 0;
  language = null;
  durationS = null;
  /** Which sound is missing, if the file is damaged. */
  warning = null;
  firstTextAt = null;
  endedAt = null;

  #filling = 0; // the segment of the last word
  #covered = 0; // characters of the text that closed segments contain

  get active() {
    return this.state === "asking" || this.state === "hearing";
  }

  /** Text that no closed segment contains. */
  get tail() {
    return this.text.slice(this.#covered);
  }

  /** Seconds of the recording that are text. */
  get heardS() {
    return this.segments.at(-1)?.end ?? 0;
  }

  send(file, signal) {
    return requestTranscript(file, signal);
  }

  take(event) {
    const takers = {
      "transcript.text.delta": () => this.#grow(event.delta),
      "transcript.text.segment": () => this.segments.push({ start: event.start, end: event.end, text: event.text, words: [] }),
      "transcript.text.word": () => this.#place(event),
      "transcript.text.done": () => this.#finish(event),
    };
    takers[event.type]?.();
  }

  #grow(delta) {
    this.firstTextAt ??= performance.now();
    this.state = "hearing";
    // The words of a segment come before the next text.
    this.#close(this.segments.length);
    this.text += delta;
    if (this.text.length > TEXT_MAX_CHARACTERS) {
      throw new Error(`The transcript is longer than ${TEXT_MAX_CHARACTERS.toLocaleString("en")} characters, so the page stopped it.`);
    }
  }

  /** Finds a word in the text of its segment. A word that the text does not contain stays without a time. */
  #place({ word, start, end }) {
    const at = this.#segmentOf(word, start);
    if (at === null) return;
    const { text, words } = this.segments[at];
    const from = text.indexOf(word, words.at(-1)?.to ?? 0);
    if (from < 0) return;
    this.#close(at);
    this.#filling = at;
    words.push({ start, end, from, to: from + word.length });
  }

  /** The segment whose next word this is; else the one that sounds at that time. */
  #segmentOf(word, start) {
    for (let at = this.#filling; at < this.segments.length; at += 1) {
      const { text, words, start: from, end } = this.segments[at];
      const rest = text.slice(words.at(-1)?.to ?? 0);
      const before = rest.indexOf(word);
      if (before >= 0 && !LETTER.test(rest.slice(0, before))) return at;
      if (start >= from && start < end && LETTER.test(rest)) return at;
    }
    return null;
  }

  #close(count) {
    for (; this.closed < count; this.closed += 1) this.#cover(this.segments[this.closed].text);
  }

  /** As many letters as the segment has. White space does not count: text and segments differ in it. */
  #cover(said) {
    let left = said.replace(/\s/g, "").length;
    for (; left > 0 && this.#covered < this.text.length; this.#covered += 1) if (!SPACE.test(this.text[this.#covered])) left -= 1;
  }

  #finish({ text, language = null, duration = null, warning = null }) {
    if (this.text === "") this.#grow(text);
    this.language = language;
    this.durationS = duration;
    this.warning = warning;
    this.end("finished");
  }

  end(state) {
    this.#close(this.segments.length);
    // Servers may write the text and the segments differently. The segments are complete.
    if (state === "finished" && this.segments.length > 0) this.#covered = this.text.length;
    this.endedAt = performance.now();
    this.state = state;
  }
}
