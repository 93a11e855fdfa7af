// PCM as hob sends it (16 bit, little-endian, mono, 24 kHz), cut anywhere by the network.
// No resampling here or later: the audio clock runs at this rate.

export const SAMPLE_RATE_HZ = 24_000;

/** Bytes in, whole samples out; the half sample at the end of a piece waits for the next one. */
export class SampleReader {
  #half = new Uint8Array(0);

  /** @param {Uint8Array} bytes @returns {Int16Array} */
  push(bytes) {
    const joined = new Uint8Array((this.#half.length + bytes.length + 1) & ~1);
    joined.set(this.#half);
    joined.set(bytes, this.#half.length);
    const length = this.#half.length + bytes.length;
    this.#half = joined.slice(length & ~1, length);
    // Every browser's machine is little-endian; the copy above also aligns the samples.
    return new Int16Array(joined.buffer, 0, length >> 1);
  }

  /** A stream that ends inside a sample was cut, whatever the transport said. */
  get endsInsideSample() {
    return this.#half.length > 0;
  }
}
