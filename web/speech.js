// One spoken answer: asks, feeds player, waveform and recording, and keeps the times that the page shows.
// Every time is on `performance.now()`; this object is also what the browser tests read.

import { requestSpeech } from "./api.js";
import { SAMPLE_RATE_HZ, SampleReader } from "./pcm.js";

// For "play again" and "download": about two hours. A longer answer plays on and is not kept.
const RECORDED_MAX_BYTES = 2 * 3600 * SAMPLE_RATE_HZ * 2;

export class Speech {
  /** asking → speaking → finished | stopped | failed */
  state = "asking";
  /** Every byte of the answer has come. */
  complete = false;
  /** Sounds from the recording: nobody was asked. */
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

  /** Of PCM; an MP3's length is only known to its player. */
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

  /** Click to first audible sample, the figure this page is about. */
  get ttfaMs() {
    return this.firstAudibleAt === null ? null : this.firstAudibleAt - this.clickedAt;
  }

  /** What came, or null when it grew beyond what a page should keep. */
  get recording() {
    return this.#recording.length > 0 ? this.#recording : null;
  }

  /** Settles when the last sample was heard, or the speech stopped or failed. Never throws. */
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
    // A broken stream after the start: say so, and let what came be heard.
    const cut = this.state === "speaking" && error instanceof TypeError;
    this.error = cut ? new Error("The speech was cut off: the connection broke before the end.") : error;
    this.#abort.abort();
  }

  async #playOut() {
    if (this.active) this.#player.finish();
    await this.#player.ended.catch((error) => (this.error ??= error));
    // A whole answer with nothing in it would otherwise look like a very short success.
    if (this.active && this.scheduledSeconds === 0) this.error ??= new Error("The answer held no sound.");
    if (this.active) this.state = this.error ? "failed" : "finished";
  }
}
