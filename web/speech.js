// One spoken answer: requests it, feeds player, waveform and recording, and keeps the times that the page shows.
// Every time is on `performance.now()`; this object is also what the browser tests read.

import { requestSpeech } from "./api.js";
import { SAMPLE_RATE_HZ, SampleReader } from "./pcm.js";

// For "play again" and "download": about two hours. A longer answer plays to its end, and its recording is dropped.
const RECORDED_MAX_BYTES = 2 * 3600 * SAMPLE_RATE_HZ * 2;

export class Speech {
  /** asking → speaking → finished | stopped | failed */
  state = "asking";
  /** Every byte of the answer has arrived. */
  complete = false;
  /** Plays the recording, without a request. */
  replayed = false;
  error = null;
  clickedAt;
  responseEndedAt = null;

  #player;
  #waveform;
  #abort = new AbortController();
  #recording = [];
  #recordedBytes = 0;
  #receivedSamples = 0;

  constructor(player, waveform, clickedAt) {
    this.#player = player;
    this.#waveform = waveform;
    this.clickedAt = clickedAt;
  }

  /** For PCM only. The length of an MP3 is known to its player. */
  get receivedSeconds() { return this.#receivedSamples / SAMPLE_RATE_HZ; }
  get player() { return this.#player.kind; }
  get format() { return this.#player.format; }
  get firstScheduledAt() { return this.#player.firstScheduledAt; }
  get firstAudibleAt() { return this.#player.firstAudibleAt; }
  get scheduledSeconds() { return this.#player.scheduledSeconds; }
  get playedSeconds() { return this.#player.playedSeconds; }
  get bufferedSeconds() { return this.#player.bufferedSeconds; }
  get underruns() { return this.#player.underruns; }
  get heldBack() { return this.#player.heldBack; }

  get active() {
    return this.state === "asking" || this.state === "speaking";
  }

  /** From the click to the first audible sample. */
  get ttfaMs() {
    return this.firstAudibleAt === null ? null : this.firstAudibleAt - this.clickedAt;
  }

  /** The received pieces, or null when they grew beyond what a page should keep. */
  get recording() {
    return this.#recording.length > 0 ? this.#recording : null;
  }

  /** Settles when the last sample was played, or the speech stopped or failed. Never throws. */
  async run(request) {
    try {
      const response = await requestSpeech({ ...request, format: this.format, signal: this.#abort.signal });
      await this.#receive(response.body.getReader());
      this.complete = true;
    } catch (error) {
      this.#fail(error);
    }
    await this.#playOut();
  }

  /** The same sound again, from the recording. */
  async replay(recording) {
    this.replayed = true;
    this.responseEndedAt = this.clickedAt;
    this.complete = true;
    for (const piece of recording) await this.#take(piece);
    await this.#playOut();
  }

  stop() {
    if (!this.active) return;
    this.state = "stopped";
    this.#abort.abort();
    this.#player.stop();
  }

  async #receive(reader) {
    const samples = this.format === "pcm" ? new SampleReader() : null;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await this.#take(samples ? samples.push(value) : value);
    }
    if (samples?.endsInsideSample) throw new TypeError("cut inside a sample");
    this.responseEndedAt = performance.now();
  }

  async #take(piece) {
    if (!this.active) return;
    this.state = "speaking";
    this.#record(piece);
    if (this.format === "pcm") {
      this.#receivedSamples += piece.length;
      this.#waveform.add(piece);
    }
    this.#player.feed(piece);
    await this.#player.room();
  }

  #record(piece) {
    this.#recordedBytes += piece.byteLength;
    if (this.#recordedBytes <= RECORDED_MAX_BYTES) this.#recording.push(piece);
    else this.#recording = [];
  }

  #fail(error) {
    this.responseEndedAt = performance.now();
    if (this.state === "stopped") return;
    // The stream broke: report it, and play what has arrived.
    this.error = error instanceof TypeError ? new Error("The speech was cut off: the connection broke before the end.") : error;
    this.#abort.abort();
  }

  async #playOut() {
    if (this.active) this.#player.finish();
    await this.#player.ended.catch((error) => (this.error ??= error));
    // A complete but empty answer would otherwise look like a very short success.
    if (this.active && this.scheduledSeconds === 0) this.error ??= new Error("The answer contains no sound.");
    if (this.active) this.state = this.error ? "failed" : "finished";
  }
}
