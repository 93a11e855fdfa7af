// Plays a recording from a word to the end of its segment, with the browser's own player.
// The recording stays in this page. What the browser cannot decode is reported, not silent.

import { currentSpeech } from "./current-speech.js";

// Longer than any recording. Firefox counts in microseconds, and a much larger number does not fit.
const BEYOND_THE_END_S = 1e6;

export class ClipPlayer {
  /** The browser can play this recording. */
  playable = false;

  #audio;
  #onTime;
  #until = Infinity;
  #seeksItself = false;

  /** @param {{onTime: (seconds: number|null) => void, onChange: () => void}} listener `null`: it does not play */
  constructor(audio, { onTime, onChange }) {
    this.#audio = audio;
    this.#onTime = onTime;
    const become = (playable) => { this.playable = playable; onChange(); };
    audio.addEventListener("loadedmetadata", () => { this.#findLength(); become(true); });
    audio.addEventListener("durationchange", onChange);
    audio.addEventListener("error", () => become(false));
    audio.addEventListener("play", () => { currentSpeech()?.stop(); this.#follow(); });
    // In a hidden page there are no frames.
    audio.addEventListener("timeupdate", () => this.#tick());
    audio.addEventListener("seeking", () => this.#onSeek());
    audio.addEventListener("pause", () => { this.#until = Infinity; onTime(null); });
  }

  get failed() {
    return this.#audio.error !== null;
  }

  get playing() {
    return !this.#audio.paused;
  }

  /** Seconds, or null while they are not known. */
  get lengthS() {
    return this.playable && Number.isFinite(this.#audio.duration) ? this.#audio.duration : null;
  }

  load(file) {
    URL.revokeObjectURL(this.#audio.src);
    this.playable = false;
    this.#audio.src = URL.createObjectURL(file);
  }

  playFrom(start, until) {
    this.#seeksItself = true;
    this.#audio.currentTime = start;
    this.#until = until;
    // A recording that cannot be played has an `error` event.
    this.#audio.play().catch(() => {});
  }

  pause() {
    this.#audio.pause();
  }

  /** The file of a MediaRecorder has no length in its header. The browser finds it on the way to the end. */
  #findLength() {
    if (this.#audio.duration !== Infinity) return;
    this.#seeksItself = true;
    const back = () => {
      if (this.#audio.duration === Infinity) return;
      this.#audio.removeEventListener("durationchange", back);
      this.#seeksItself = true;
      this.#audio.currentTime = 0;
    };
    this.#audio.addEventListener("durationchange", back);
    this.#audio.currentTime = BEYOND_THE_END_S;
  }

  /** A person who moves the player wants to hear on. */
  #onSeek() {
    if (!this.#seeksItself) this.#until = Infinity;
    this.#seeksItself = false;
  }

  #follow() {
    if (!this.playing) return;
    this.#tick();
    requestAnimationFrame(() => this.#follow());
  }

  #tick() {
    if (!this.playing) return;
    if (this.#audio.currentTime >= this.#until && !this.#audio.seeking) return this.pause();
    this.#onTime(this.#audio.currentTime);
  }
}
