// Runs on the audio thread: turns the microphone's samples into pieces of PCM as hob takes them.

import { SAMPLE_RATE_HZ } from "./pcm.js";
import { Resampler } from "./resampler.js";

// 40 ms: shorter pieces make more events, and longer ones make hob hear later.
const PIECE_SAMPLES = 0.04 * SAMPLE_RATE_HZ;

class VoiceInputProcessor extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, SAMPLE_RATE_HZ);
  #piece = new Int16Array(PIECE_SAMPLES);
  #filled = 0;

  process([[samples]]) {
    if (samples) for (const sample of this.#resampler.push(samples)) this.#add(sample);
    return true;
  }

  #add(sample) {
    this.#piece[this.#filled++] = Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
    if (this.#filled < PIECE_SAMPLES) return;
    this.port.postMessage(this.#piece.buffer, [this.#piece.buffer]);
    this.#piece = new Int16Array(PIECE_SAMPLES);
    this.#filled = 0;
  }
}

registerProcessor("voice-input", VoiceInputProcessor);
