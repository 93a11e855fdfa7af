// Saves the recording, or requests the same text from hob in another format. Other tabs save their files with it, too.

import { requestSpeech } from "./api.js";
import { wavBlob } from "./wav.js";

// Every browser has read the file by then.
const KEPT_MS = 60_000;

/** @param {{request: object, recording: ArrayBufferView[]|null, recordedAs: string, complete: boolean}} recorded */
export async function download(recorded, format) {
  const name = recorded.complete ? "hob" : "hob-incomplete";
  save(await fileOf(recorded, format), `${name}.${format}`);
}

async function fileOf({ request, recording, recordedAs }, format) {
  if (recording && recordedAs === "pcm" && format === "wav") return wavBlob(recording);
  if (recording && recordedAs === format) return new Blob(recording, { type: "audio/mpeg" });
  // `stream: false`, so that the file's header has its true length.
  const response = await requestSpeech({ ...request, format, stream: false });
  return response.blob();
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
