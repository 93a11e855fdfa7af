// The mock's transcription model: the file's name says what it hears and how it fails.
// `[stall]` waits after the first segment; `[untimed]`, `[long]`, `[error]`, `[cut]`, … choose how it comes.

import { event, inOddPieces, refuse, stall } from "./mock.mjs";

/** What was said, with times. Words are written as OpenAI's servers do in the second segment: without marks. */
export const SEGMENTS = [
  { start: 0, end: 1.25, text: " Good morning.", words: [["Good", 0.1, 0.5], ["morning.", 0.5, 1.2]] },
  { start: 1.5, end: 2.75, text: " The bread's rising, \"it\" is.", words: [["The", 1.5, 1.6], ["bread's", 1.6, 2], ["rising", 2, 2.4], ["it", 2.4, 2.5], ["is", 2.5, 2.7]] },
];
export const TEXT = SEGMENTS.map(({ text }) => text).join("").trim();
export const DAMAGE = "the file is damaged after 3.0 s";
export const DURATION_S = 3;
// As many lines and words as an hour of speech has.
const LONG_SEGMENTS = 1_200;

export async function hear(mock, request, response) {
  const headers = { "content-type": request.headers["content-type"] };
  const form = await new Response(Buffer.concat(await request.toArray()), { headers }).formData();
  const { name, type, size } = form.get("file");
  const fields = [...form].filter(([field]) => field !== "file");
  mock.heard.push({ path: request.url, name, type, size, fields });
  if (name.includes("[key]") && request.headers.authorization !== "Bearer sesame") return refuse(response, 401, "This hob wants an API key.");
  if (name.includes("[refuse]")) return refuse(response, 400, "'file' is not a sound format that hob knows");
  if (mock.busyTimes > 0) {
    mock.busyTimes -= 1;
    response.setHeader("Retry-After", "7");
    return refuse(response, 503, "whisper-base is loading");
  }
  response.on("close", () => mock.events.emit("hear closed", { name, whole: response.writableFinished }));
  response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" });
  await transcribe(mock, name, response);
}

async function transcribe(mock, name, response) {
  if (name.includes("[long]")) return response.end(longEvents());
  if (name.includes("[silence]")) return response.end(done(""));
  const [first, ...rest] = SEGMENTS;
  await inOddPieces(response, `: hob\n\n${heard(name, [first])}`);
  if (name.includes("[stall]")) await stall(mock);
  if (name.includes("[cut]")) return response.destroy();
  if (name.includes("[error]")) return response.end(event({ type: "error", error: { message: "the model's process died" } }));
  await inOddPieces(response, heard(name, rest));
  response.end(done(TEXT, name.includes("[damaged]") ? DAMAGE : undefined));
}

/** Text, then its times, as hob's own engine sends them. */
function heard(name, segments) {
  const delta = (text) => event({ type: "transcript.text.delta", delta: text });
  if (name.includes("[untimed]")) return segments.map(({ text }) => delta(text)).join("");
  return segments.map((segment) => delta(segment.text) + timed(segment)).join("");
}

function timed({ words, ...segment }) {
  const events = words.map(([word, start, end]) => event({ type: "transcript.text.word", word, start, end }));
  return event({ type: "transcript.text.segment", id: "seg_0", ...segment }) + events.join("");
}

function done(text, warning) {
  return event({ type: "transcript.text.done", text, language: "english", duration: DURATION_S, warning });
}

/** Through another server a transcript comes whole: its text, all segments, then all words. */
function longEvents() {
  const segments = Array.from({ length: LONG_SEGMENTS }, (_, at) => ({ start: at * 3, end: at * 3 + 2.9, text: ` One two three four five six seven ${at}.` }));
  const words = segments.flatMap(({ start, text }) => text.trim().split(" ").map((word, at) => ({ word, start: start + at / 4, end: start + at / 4 + 0.2 })));
  const text = segments.map((segment) => segment.text).join("");
  return event({ type: "transcript.text.delta", delta: text })
    + segments.map((segment) => event({ type: "transcript.text.segment", ...segment })).join("")
    + words.map((word) => event({ type: "transcript.text.word", ...word })).join("")
    + event({ type: "transcript.text.done", text: text.trim(), duration: 3_600 });
}
