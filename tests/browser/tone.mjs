// Sound for the mock: something with the shape of speech, the same in every run.
// A voice would need a model; a plain sine would make a waveform that proves little.

import { execFileSync } from "node:child_process";

export const SAMPLE_RATE_HZ = 24_000;

/** Harmonics of 120 Hz under syllables of changing loudness; audible from the first sample on. */
export function tone(seconds) {
  const samples = new Int16Array(Math.round(seconds * SAMPLE_RATE_HZ));
  for (let i = 0; i < samples.length; i++) {
    const t = i / SAMPLE_RATE_HZ;
    samples[i] = Math.round(32767 * 0.55 * loudness(t) * voice(t));
  }
  return samples;
}

export function bytesOf(samples) {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
}

export function mp3Of(samples) {
  const raw = ["-f", "s16le", "-ar", String(SAMPLE_RATE_HZ), "-ac", "1", "-i", "pipe:0"];
  const out = ["-b:a", "64k", "-write_xing", "0", "-f", "mp3", "pipe:1"];
  return execFileSync("ffmpeg", ["-v", "error", ...raw, ...out], { input: bytesOf(samples), maxBuffer: 1 << 26 });
}

function loudness(t) {
  const syllable = Math.abs(Math.cos(2 * Math.PI * 2.3 * t));
  const phrase = 0.55 + 0.45 * Math.cos(2 * Math.PI * 0.37 * t);
  const stress = 0.7 + 0.3 * Math.sin(2 * Math.PI * 0.91 * t + 1);
  return 0.05 + 0.95 * syllable ** 1.7 * phrase * stress;
}

function voice(t) {
  const phase = 2 * Math.PI * 120 * t;
  return 0.5 * Math.cos(phase) + 0.3 * Math.cos(2 * phase) + 0.2 * Math.cos(5 * phase);
}
