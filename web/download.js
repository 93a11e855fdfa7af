// Saves what was heard, or asks hob for the same text in another format.

import { requestSpeech } from "./api.js";
import { wavBlob } from "./wav.js";

// Long enough for any browser to have taken the file over.
const KEPT_MS = 60_000;

/** @param {{request: object, recording: ArrayBufferView[]|null, recordedAs: string, complete: boolean}} heard */
export async function download(heard, format) {
  const name = heard.complete ? "hob" : "hob-incomplete";
  save(await fileOf(heard, format), `${name}.${format}`);
}

async function fileOf({ request, recording, recordedAs }, format) {
  if (recording && recordedAs === "pcm" && format === "wav") return wavBlob(recording);
  if (recording && recordedAs === format) return new Blob(recording, { type: "audio/mpeg" });
  // `stream: false`, so that the file's header has its true length.
  const response = await requestSpeech({ ...request, format, stream: false });
  return response.blob();
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
