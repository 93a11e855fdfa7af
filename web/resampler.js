// Changes the rate of a stream of samples with a windowed sinc. It also runs in audio worklets.
// What the new rate cannot carry is filtered out, because it would come back as noise.

// More zero crossings make a steeper filter, and more phases a finer one. These leave an error of about -60 dB.
const ZERO_CROSSINGS = 16;
const PHASES = 512;
/** Where the filter begins to fall, as a part of the highest frequency that both rates carry. */
const PASSED = 0.92;

export class Resampler {
  #step; // input samples per output sample
  #half; // taps on either side
  #phases;
  #kept;
  #at; // of the next output sample, in samples of `#kept`

  constructor(fromHz, toHz) {
    const cutoff = Math.min(1, toHz / fromHz) * PASSED;
    this.#step = fromHz / toHz;
    this.#half = Math.ceil(ZERO_CROSSINGS / cutoff);
    this.#phases = Array.from({ length: PHASES + 1 }, (_, phase) => tapsAt(phase / PHASES, this.#half, cutoff));
    // Silence before the first sample, so that the output starts with it.
    this.#kept = new Float32Array(this.#half);
    this.#at = this.#half;
  }

  /** @param {Float32Array} samples @returns {Float32Array} as many as can be computed now */
  push(samples) {
    const input = new Float32Array(this.#kept.length + samples.length);
    input.set(this.#kept);
    input.set(samples, this.#kept.length);
    const output = [];
    for (; this.#at + this.#half < input.length; this.#at += this.#step) output.push(this.#sampleAt(input));
    const used = Math.min(input.length, Math.floor(this.#at) - this.#half);
    this.#kept = input.slice(used);
    this.#at -= used;
    return Float32Array.from(output);
  }

  #sampleAt(input) {
    const whole = Math.floor(this.#at);
    const taps = this.#phases[Math.round((this.#at - whole) * PHASES)];
    const from = whole - this.#half + 1;
    let sum = 0;
    for (let i = 0; i < taps.length; i++) sum += taps[i] * input[from + i];
    return sum;
  }
}

/** Taps for an output sample that lies `fraction` after an input sample. */
function tapsAt(fraction, half, cutoff) {
  const taps = Float32Array.from({ length: 2 * half }, (_, i) => {
    const distance = i - half + 1 - fraction;
    return sinc(cutoff * distance) * window(distance / half);
  });
  const sum = taps.reduce((all, tap) => all + tap, 0);
  return taps.map((tap) => tap / sum);
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Blackman's, over -1 to 1. */
function window(x) {
  return Math.abs(x) >= 1 ? 0 : 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);
}
