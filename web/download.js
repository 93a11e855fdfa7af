// Saves the recording, or requests the same text from hob in another format. Other tabs save their files with it, too.

import { requestSpeech } from "./api.js";
import { wavBlob } from "./wav.js";

// Every browser has read the file by then.
const KEPT_MS = 60_000;

/** Whether the file ends where the speech was stopped or broke off. A file in another format has the whole text, because hob speaks it again. */
export function isPart({ recordedAs, complete }, format) {
  return !complete && isRecordedAs(recordedAs, format);
}

/** @param {{request: object, recording: ArrayBufferView[], recordedAs: string, complete: boolean}} recorded */
export async function download(recorded, format) {
  const name = isPart(recorded, format) ? "hob-incomplete" : "hob";
  save(await fileOf(recorded, format), `${name}.${format}`);
}

async function fileOf({ request, recording, recordedAs }, format) {
  if (isRecordedAs(recordedAs, format)) return format === "wav" ? wavBlob(recording) : new Blob(recording, { type: "audio/mpeg" });
  // `stream: false`, so that the file's header has its true length.
  const response = await requestSpeech({ ...request, format, stream: false });
  return response.blob();
}

function isRecordedAs(recordedAs, format) {
  return recordedAs === (format === "wav" ? "pcm" : format);
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
