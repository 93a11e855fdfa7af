// A transcript as files: SRT, VTT and text, as the server writes them.
// They are made of the received segments, so the recording is not heard twice.

/** Names of the formats, and their content types. */
const TYPES = { srt: "application/x-subrip", vtt: "text/vtt", txt: "text/plain" };

/** @param {"srt"|"vtt"|"txt"} format */
export function transcriptFile(transcript, format) {
  const write = { srt, vtt, txt };
  return new Blob([write[format](transcript)], { type: `${TYPES[format]};charset=utf-8` });
}

export function srt(transcript) {
  return cues(transcript).map(({ start, end, text }, index) => `${index + 1}\n${stamp(start, ",")} --> ${stamp(end, ",")}\n${text.replaceAll("-->", "-- >")}\n\n`).join("");
}

export function vtt(transcript) {
  return `WEBVTT\n\n${cues(transcript).map(({ start, end, text }) => `${stamp(start, ".")} --> ${stamp(end, ".")}\n${escaped(text)}\n\n`).join("")}`;
}

/** In WebVTT, "<" begins a tag, and "&" the name of a character. */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function txt({ text }) {
  return `${text.trim()}\n`;
}

/** Text without times is one cue. */
function cues({ segments, text, durationS }) {
  if (segments.length === 0 && text.trim() !== "") return [{ start: 0, end: durationS ?? 0, text: lines(text) }];
  return segments.map(({ start, end, text: said }) => ({ start, end, text: lines(said) }));
}

/** An empty line would end the cue. */
function lines(text) {
  return text.split(/[\r\n]/).map((line) => line.trim()).filter((line) => line !== "").join("\n");
}

/** `00:01:02,345`. */
function stamp(seconds, point) {
  const ms = Math.round(Math.max(0, seconds) * 1000);
  const parts = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  const clock = parts.map((part) => String(part).padStart(2, "0")).join(":");
  return `${clock}${point}${String(ms % 1000).padStart(3, "0")}`;
}
