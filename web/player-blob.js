// The last player: collects everything, then plays it as one file. Every browser with <audio> can.
// It asks for PCM and makes the WAV itself, so no decoder is needed and the waveform still fills.

import { SAMPLE_RATE_HZ } from "./pcm.js";
import { wavBlob } from "./wav.js";

// Nothing is heard before all of it is here, so a very long text is refused instead of kept.
const COLLECTED_MAX_S = 3600;

export class BlobPlayer {
  kind = "blob";
  format = "pcm";
  underruns = 0;
  firstScheduledAt = null;
  firstAudibleAt = null;

  #audio = new Audio();
  #pieces = [];
  #samples = 0;
  #url = null;
  #blocked = false;
  #over = false;
  #end;
  ended = new Promise((resolve, reject) => (this.#end = { resolve, reject }));

  constructor() {
    this.#audio.addEventListener("playing", () => this.#notePlaying());
    this.#audio.addEventListener("ended", () => this.#close());
    this.#audio.addEventListener("error", () => this.#fail());
  }

  /** @param {Int16Array} samples */
  feed(samples) {
    if (this.#samples > COLLECTED_MAX_S * SAMPLE_RATE_HZ) {
      throw new Error("This browser cannot play while it receives, and the speech is longer than an hour.");
    }
    this.#pieces.push(samples);
    this.#samples += samples.length;
  }

  finish() {
    if (this.#samples === 0) return this.#close();
    this.#url = URL.createObjectURL(wavBlob(this.#pieces));
    this.#audio.src = this.#url;
    this.#audio.play().catch((error) => (this.#blocked = error.name === "NotAllowedError"));
  }

  /** The whole file is wanted, so there is nothing to wait for; `feed` bounds it. */
  room() {
    return Promise.resolve();
  }

  stop() {
    this.#audio.pause();
    this.#close();
  }

  get scheduledSeconds() {
    return this.firstScheduledAt === null ? 0 : this.#samples / SAMPLE_RATE_HZ;
  }

  get playedSeconds() {
    return this.#audio.currentTime;
  }

  get bufferedSeconds() {
    return this.#over ? 0 : Math.max(0, this.#samples / SAMPLE_RATE_HZ - this.playedSeconds);
  }

  get heldBack() {
    return this.#blocked;
  }

  #notePlaying() {
    this.firstScheduledAt ??= performance.now();
    this.firstAudibleAt ??= this.firstScheduledAt;
  }

  #fail() {
    this.#end.reject(new Error(`The browser could not play the sound: ${this.#audio.error.message || "unknown format"}.`));
    this.#close();
  }

  #close() {
    this.#over = true;
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#end.resolve();
  }
}
