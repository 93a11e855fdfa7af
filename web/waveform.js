// Draws the sound as it arrives: heard, still ahead, and the length that is expected.
// Holds peaks only, and a bounded number of them; colours come from the style sheet, so both themes work.

import { SAMPLE_RATE_HZ } from "./pcm.js";

const BAR_PX = 2;
const GAP_PX = 1;
const FINEST_PEAK_SAMPLES = 240; // 10 ms
// Twice as wide as any canvas needs; beyond it, neighbours are merged and each peak covers twice the time.
const PEAKS_MAX = 8192;
// While the end is unknown the picture keeps this share free on the right.
const ROOM_TO_GROW = 1.12;
// Share of the remaining way that the scale moves per frame when the length turns out different.
const EASE = 0.14;
// Speech is mostly quiet; the root brings consonants up without clipping vowels.
const LOUDNESS_EXPONENT = 0.65;
// A voice keeps some headroom that the picture has no use for.
const LOUDNESS_GAIN = 1.5;

export class Waveform {
  #canvas;
  #ink;
  #calm = matchMedia("(prefers-reduced-motion: reduce)");
  #peaks = [];
  #peakSamples = FINEST_PEAK_SAMPLES;
  #open = { peak: 0, samples: 0 };
  #receivedSeconds = 0;
  #expectedSeconds = 0;
  #shownSeconds = 0;
  #complete = false;
  #playedSeconds = 0; // as drawn last

  constructor(canvas) {
    this.#canvas = canvas;
    this.#ink = readInk(canvas);
    const redraw = () => { this.#ink = readInk(canvas); this.draw(this.#playedSeconds); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(redraw).observe(canvas);
  }

  /** A new speech of roughly this length. */
  begin(expectedSeconds) {
    this.#peaks = [];
    this.#peakSamples = FINEST_PEAK_SAMPLES;
    this.#open = { peak: 0, samples: 0 };
    this.#receivedSeconds = 0;
    this.#complete = false;
    this.#playedSeconds = 0;
    this.#expectedSeconds = expectedSeconds;
    this.#shownSeconds = expectedSeconds;
  }

  /** @param {Int16Array} samples */
  add(samples) {
    for (const sample of samples) this.#addSample(Math.abs(sample));
    this.#receivedSeconds += samples.length / SAMPLE_RATE_HZ;
  }

  /** Length without a picture: what the MP3 player knows. */
  reach(seconds) {
    this.#receivedSeconds = Math.max(this.#receivedSeconds, seconds);
  }

  /** No more comes: the whole width is what arrived. */
  complete() {
    this.#complete = true;
  }

  get expectedSeconds() {
    if (this.#complete) return this.#receivedSeconds;
    return Math.max(this.#expectedSeconds, this.#receivedSeconds * ROOM_TO_GROW);
  }

  get isComplete() {
    return this.#complete;
  }

  /** The scale has come to rest. */
  get settled() {
    return Math.abs(this.expectedSeconds - this.#shownSeconds) < 0.005 * this.expectedSeconds;
  }

  draw(playedSeconds) {
    this.#playedSeconds = playedSeconds;
    this.#ease();
    const { width, height, ratio } = this.#fit();
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const secondsPerPx = this.#shownSeconds / width;
    for (let x = 0; x + BAR_PX <= width; x += BAR_PX + GAP_PX) {
      const from = x * secondsPerPx;
      pen.fillStyle = this.#inkAt(from, playedSeconds);
      const tall = this.#barHeight(from, from + (BAR_PX + GAP_PX) * secondsPerPx, height);
      pen.fillRect(x, (height - tall) / 2, BAR_PX, tall);
    }
    this.#drawPlayhead(pen, playedSeconds, secondsPerPx, height);
  }

  #addSample(loudness) {
    this.#open.peak = Math.max(this.#open.peak, loudness);
    this.#open.samples += 1;
    if (this.#open.samples < this.#peakSamples) return;
    this.#peaks.push(this.#open.peak / 32768);
    this.#open = { peak: 0, samples: 0 };
    if (this.#peaks.length === PEAKS_MAX) this.#coarsen();
  }

  #coarsen() {
    const pairs = this.#peaks.length / 2;
    this.#peaks = Array.from({ length: pairs }, (_, i) => Math.max(this.#peaks[2 * i], this.#peaks[2 * i + 1]));
    this.#peakSamples *= 2;
  }

  #ease() {
    const goal = this.expectedSeconds;
    const jump = this.#calm.matches || this.settled;
    this.#shownSeconds = jump ? goal : this.#shownSeconds + (goal - this.#shownSeconds) * EASE;
  }

  /** The drawing surface has the screen's own pixels, whatever the zoom. */
  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== w) this.#canvas.width = w;
    if (this.#canvas.height !== h) this.#canvas.height = h;
    return { width, height, ratio };
  }

  #inkAt(seconds, playedSeconds) {
    if (seconds >= this.#receivedSeconds) return this.#ink.rest;
    return seconds < playedSeconds ? this.#ink.heard : this.#ink.ahead;
  }

  #barHeight(fromSeconds, toSeconds, height) {
    const perSecond = SAMPLE_RATE_HZ / this.#peakSamples;
    const first = Math.floor(fromSeconds * perSecond);
    const last = Math.max(first + 1, Math.ceil(toSeconds * perSecond));
    let peak = 0;
    for (let i = first; i < last && i < this.#peaks.length; i++) peak = Math.max(peak, this.#peaks[i]);
    return Math.max(BAR_PX, Math.min(1, (LOUDNESS_GAIN * peak) ** LOUDNESS_EXPONENT) * height);
  }

  #drawPlayhead(pen, playedSeconds, secondsPerPx, height) {
    if (playedSeconds <= 0 || playedSeconds >= this.#receivedSeconds) return;
    pen.fillStyle = this.#ink.head;
    pen.fillRect(playedSeconds / secondsPerPx, 0, 1, height);
  }
}

function readInk(canvas) {
  const style = getComputedStyle(canvas);
  const ink = (name) => style.getPropertyValue(`--wave-${name}`).trim();
  return { rest: ink("rest"), ahead: ink("ahead"), heard: ink("heard"), head: ink("head") };
}
