// A WAV file from samples that are all here, so that its sizes are exact.
// Streaming headers (sizes 0xFFFFFFFF) are the server's business; a saved file has the truth.

import { SAMPLE_RATE_HZ } from "./pcm.js";

const HEADER_BYTES = 44;
const BYTES_PER_SAMPLE = 2;

/** @param {Int16Array[]} pieces */
export function wavBlob(pieces) {
  const dataBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  return new Blob([wavHeader(dataBytes), ...pieces], { type: "audio/wav" });
}

function wavHeader(dataBytes) {
  const view = new DataView(new ArrayBuffer(HEADER_BYTES));
  ascii(view, 0, "RIFF");
  view.setUint32(4, HEADER_BYTES - 8 + dataBytes, true);
  ascii(view, 8, "WAVEfmt ");
  view.setUint32(16, 16, true); // size of the fmt chunk
  view.setUint16(20, 1, true); // integer PCM
  view.setUint16(22, 1, true); // mono
  view.setUint32(24, SAMPLE_RATE_HZ, true);
  view.setUint32(28, SAMPLE_RATE_HZ * BYTES_PER_SAMPLE, true);
  view.setUint16(32, BYTES_PER_SAMPLE, true);
  view.setUint16(34, 8 * BYTES_PER_SAMPLE, true);
  ascii(view, 36, "data");
  view.setUint32(40, dataBytes, true);
  return view.buffer;
}

function ascii(view, offset, text) {
  [...text].forEach((letter, index) => view.setUint8(offset + index, letter.charCodeAt(0)));
}
