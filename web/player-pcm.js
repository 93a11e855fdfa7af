// The main player, for every browser: samples, each piece started where the last one ends on the audio clock.
// Chaining on `ended` would click and gap; AudioWorklet would need HTTPS in a LAN; neither is used.

import { SAMPLE_RATE_HZ } from "./pcm.js";

// Float buffers are handed to the clock this far ahead; the rest waits as 16 bit samples.
const SCHEDULED_AHEAD_S = 20;
// Beyond this the reader pauses, so the longest text needs a bounded amount of memory.
const WAITING_MAX_S = 600;
// With a lead, small network pieces are gathered. This makes fewer audio nodes and delays no sound.
const COMFORTABLE_LEAD_S = 0.5;
const GATHERED_S = 0.25;
// After running dry, a little is gathered before going on, or the sound would stutter.
const RECOVERY_LEAD_S = 0.1;
// -50 dBFS of a 16 bit sample: what the benchmark calls audible, too.
const AUDIBLE = 104;
const STOP_FADE_S = 0.015;
// The device is let go after a while of silence; sooner would make the next first word late.
const IDLE_MS = 20_000;

let sharedContext = null;
let idleTimer = 0;

/** The page's one audio clock, at hob's own rate; null where a browser cannot. Call it in a click. */
export function openAudioClock() {
  clearTimeout(idleTimer);
  try {
    sharedContext ??= new AudioContext({ sampleRate: SAMPLE_RATE_HZ, latencyHint: "interactive" });
  } catch {
    return null; // no Web Audio, or not at this rate: another player will do
  }
  // Not awaited: without a sound device this promise stays open for ever.
  sharedContext.resume().catch(() => {});
  return sharedContext;
}

function restAudioClock() {
  clearTimeout(idleTimer);
  idleTimer = setTimeout(() => sharedContext?.suspend().catch(() => {}), IDLE_MS);
}

export class PcmPlayer {
  kind = "pcm";
  format = "pcm";
  underruns = 0;
  firstScheduledAt = null;
  /** On the page's clock: when the first audible sample sounds, without the sound card's own delay. */
  firstAudibleAt = null;

  #context;
  #output;
  #waiting = [];
  #waitingSamples = 0;
  #scheduledSamples = 0;
  #cursor = null; // where the next piece starts, in samples of the audio clock
  #audibleAtSample = null;
  #sounding = new Set();
  #finished = false;
  #stoppedAtS = null;
  #roomIsFree = null;
  #resolveEnded;
  ended = new Promise((resolve) => (this.#resolveEnded = resolve));

  /** @param {BaseAudioContext} context */
  constructor(context) {
    this.#context = context;
    this.#output = new GainNode(context);
    this.#output.connect(context.destination);
  }

  /** @param {Int16Array} samples */
  feed(samples) {
    if (samples.length === 0) return;
    this.#waiting.push(samples);
    this.#waitingSamples += samples.length;
    this.#schedule();
  }

  /** No more will come; what is here plays to its end. */
  finish() {
    this.#finished = true;
    this.#schedule();
    this.#settle();
  }

  /** Resolves when more samples are welcome. */
  room() {
    if (this.#waitingSamples < WAITING_MAX_S * SAMPLE_RATE_HZ) return Promise.resolve();
    return new Promise((resolve) => (this.#roomIsFree = resolve));
  }

  stop() {
    this.#stoppedAtS ??= this.playedSeconds;
    const now = this.#context.currentTime;
    this.#output.gain.setValueAtTime(1, now);
    this.#output.gain.linearRampToValueAtTime(0, now + STOP_FADE_S);
    for (const source of this.#sounding) source.stop(now + STOP_FADE_S);
    this.#sounding.clear(); // not waited for: a clock that is held back ends nothing
    this.#waiting = [];
    this.#waitingSamples = 0;
    this.#finished = true;
    this.#roomIsFree?.();
    this.#settle();
  }

  get scheduledSeconds() {
    return this.#scheduledSamples / SAMPLE_RATE_HZ;
  }

  get bufferedSeconds() {
    return this.#leadS() + this.#waitingSamples / SAMPLE_RATE_HZ;
  }

  get playedSeconds() {
    return this.#stoppedAtS ?? Math.max(0, this.scheduledSeconds - this.#leadS());
  }

  /** What has left the loudspeaker: without the sound that the device still holds. */
  get heardSeconds() {
    return Math.max(0, this.playedSeconds - (this.#context.outputLatency ?? 0));
  }

  /** Sound is due and the browser, or a missing device, holds it back. */
  get heldBack() {
    return this.#cursor !== null && this.#context.state !== "running" && !this.#isOver();
  }

  #leadS() {
    if (this.#cursor === null || this.#isOver()) return 0;
    return Math.max(0, this.#cursor / SAMPLE_RATE_HZ - this.#context.currentTime);
  }

  #schedule() {
    while (this.#waiting.length > 0 && this.#leadS() < SCHEDULED_AHEAD_S && this.#enoughGathered()) {
      this.#start(this.#takeWaiting());
    }
    if (this.#waitingSamples < WAITING_MAX_S * SAMPLE_RATE_HZ) this.#roomIsFree?.();
  }

  #enoughGathered() {
    const gathered = this.#waitingSamples >= GATHERED_S * SAMPLE_RATE_HZ;
    return gathered || this.#finished || this.#leadS() < COMFORTABLE_LEAD_S;
  }

  /** Whole pieces, up to about the gathered size; a large first piece is not taken apart. */
  #takeWaiting() {
    const taken = [];
    let length = 0;
    while (this.#waiting.length > 0 && length < GATHERED_S * SAMPLE_RATE_HZ) {
      taken.push(this.#waiting.shift());
      length += taken.at(-1).length;
    }
    this.#waitingSamples -= length;
    return { taken, length };
  }

  #start({ taken, length }) {
    const source = new AudioBufferSourceNode(this.#context, { buffer: this.#toBuffer(taken, length) });
    source.connect(this.#output);
    this.#placeCursor();
    this.#noteFirst(taken);
    // A whole number of samples: a start between two samples would be interpolated, and click.
    source.start(this.#cursor / SAMPLE_RATE_HZ);
    this.#cursor += length;
    this.#scheduledSamples += length;
    this.#sounding.add(source);
    source.onended = () => this.#onSourceEnded(source);
  }

  #toBuffer(pieces, length) {
    const buffer = new AudioBuffer({ length, sampleRate: SAMPLE_RATE_HZ });
    const channel = buffer.getChannelData(0);
    let at = 0;
    for (const piece of pieces) {
      for (let i = 0; i < piece.length; i++) channel[at + i] = piece[i] / 32768;
      at += piece.length;
    }
    return buffer;
  }

  #placeCursor() {
    const now = this.#context.currentTime;
    if (this.#cursor === null) {
      this.firstScheduledAt = performance.now();
      this.#cursor = Math.ceil((now + this.#firstLeadS()) * SAMPLE_RATE_HZ);
    } else if (this.#cursor < now * SAMPLE_RATE_HZ) {
      this.underruns += 1;
      this.#cursor = Math.ceil((now + RECOVERY_LEAD_S) * SAMPLE_RATE_HZ);
    }
  }

  /** Just beyond what the device is already being handed; an offline clock has no such delay. */
  #firstLeadS() {
    if (this.#context.baseLatency === undefined) return 0;
    return Math.min(0.06, Math.max(0.015, 2 * this.#context.baseLatency));
  }

  #noteFirst(pieces) {
    if (this.#audibleAtSample !== null) return;
    let at = this.#cursor;
    for (const piece of pieces) {
      const index = piece.findIndex((sample) => Math.abs(sample) >= AUDIBLE);
      if (index >= 0) return this.#noteAudible(at + index);
      at += piece.length;
    }
  }

  #noteAudible(sample) {
    this.#audibleAtSample = sample;
    this.#readAudibleTime();
  }

  /** While the clock is still starting, its time says nothing about ours. */
  #readAudibleTime() {
    if (this.#context.state !== "running") {
      this.#context.addEventListener("statechange", () => this.#readAudibleTime(), { once: true });
      return;
    }
    const inS = this.#audibleAtSample / SAMPLE_RATE_HZ - this.#context.currentTime;
    this.firstAudibleAt = performance.now() + Math.max(0, inS) * 1000;
  }

  #onSourceEnded(source) {
    source.disconnect();
    // After `stop`, nothing is left to do. Another speech may use the clock by now, and it must not be put to rest.
    if (!this.#sounding.delete(source)) return;
    this.#schedule();
    this.#settle();
  }

  #isOver() {
    return this.#finished && this.#waiting.length === 0 && this.#sounding.size === 0;
  }

  #settle() {
    if (!this.#isOver()) return;
    restAudioClock();
    this.#resolveEnded();
  }
}
