// How loud a sound is, as a meter shows it.

const QUIETEST_DB = -60;
const WINDOW_SAMPLES = 1024;

export class LevelMeter {
  #analyser;
  #window = new Float32Array(WINDOW_SAMPLES);

  /** @param {AudioNode} source */
  constructor(source) {
    this.#analyser = new AnalyserNode(source.context, { fftSize: WINDOW_SAMPLES });
    source.connect(this.#analyser);
  }

  /** From 0 to 1. */
  get level() {
    this.#analyser.getFloatTimeDomainData(this.#window);
    const power = this.#window.reduce((sum, sample) => sum + sample * sample, 0) / WINDOW_SAMPLES;
    return Math.min(1, Math.max(0, 1 - (10 * Math.log10(power)) / QUIETEST_DB));
  }
}
