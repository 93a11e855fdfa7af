// The Hear tab: one recording at a time, from a file or the microphone, and its transcript.
// All state is in `recorder`, `file` and `transcript`. The screen is derived from them.

import { ClipPlayer } from "./clip-player.js";
import { copyText } from "./clipboard.js";
import { clockText } from "./clock.js";
import { setText } from "./dom.js";
import { save } from "./download.js";
import { ErrorLine } from "./error-line.js";
import { fillLanguages } from "./languages.js";
import { MicrophoneMenu } from "./microphone-menu.js";
import { ModelMenu } from "./model-menu.js";
import { Recorder, whyNoRecording } from "./recorder.js";
import { recall, remember } from "./settings.js";
import { transcriptFile } from "./subtitles.js";
import { Transcript } from "./transcript.js";
import { TranscriptView } from "./transcript-view.js";

// The server's limit. A browser that is refused while it sends reports only a broken connection.
const FILE_MAX_MIB = 100;
// After this time without any sound, the page says so.
const SILENT_MS = 3_000;

const element = (id) => document.getElementById(id);
const page = Object.fromEntries(
  ["model", "language", "translate", "translate-field", "no-model", "source", "prompt", "recording", "level", "recorded", "record",
    "record-text", "record-key", "choose", "file", "microphone-field", "microphone", "no-microphone", "error", "error-text", "retry", "result",
    "name", "audio", "unplayable", "progress", "at", "status", "length", "first", "audio-length", "time", "factor", "again", "copy", "save",
    "format", "warning", "help", "lines", "tail", "state", "state-text", "panel"].map((id) => [id, element(`hear-${id}`)]),
);
const parts = { select: page.model, state: page.state, stateText: page["state-text"] };
const wish = {
  // Lists of other servers do not say what a model does, but its name may.
  suits: ({ kind, id }) => kind === "transcription" || /whisper|transcri/i.test(id),
  setting: "hearModel",
  none: "No transcription model yet",
  cold: "is not loaded; the first recording loads it",
};
const models = new ModelMenu(parts, wish, showModel);
const player = new ClipPlayer(page.audio, { onTime: (seconds) => view.mark(seconds), onChange: render });
const view = new TranscriptView(page.lines, page.tail, playWord);
const errorLine = new ErrorLine({ line: page.error, text: page["error-text"], retry: page.retry });
const noMicrophone = whyNoRecording();
const microphones = new MicrophoneMenu(page.microphone, page["microphone-field"]);

let recorder = null; // while it records
let lastSoundAt = 0; // of the recorder
let file = null;
let transcript = null;

export function currentTranscript() {
  return transcript;
}

/** Called when this tab is shown or hidden. */
export function showHear(shown) {
  models.watched = shown;
  if (!shown) player.pause();
}

async function record() {
  errorLine.clear();
  page.record.disabled = true; // while the browser asks
  try {
    recorder = await Recorder.start(microphones.chosen);
  } catch (error) {
    return errorLine.show(error);
  } finally {
    page.record.disabled = false;
  }
  player.pause();
  lastSoundAt = performance.now();
  microphones.refresh();
  requestAnimationFrame(drawRecording);
  render();
  const recorded = await recorder.file;
  recorder = null;
  await hear(recorded);
}

function drawRecording() {
  if (!recorder) return;
  const { level, seconds } = recorder;
  if (level > 0) lastSoundAt = performance.now();
  page.level.firstElementChild.style.transform = `scaleX(${level})`;
  setText(page.recorded, clockText(seconds));
  const isSilent = performance.now() - lastSoundAt > SILENT_MS;
  setText(page.prompt, isSilent ? "No sound comes from the microphone. Is it muted?" : "Recording.");
  requestAnimationFrame(drawRecording);
}

/** Replaces the transcript before. */
async function hear(heard) {
  errorLine.clear();
  const mib = heard.size / 2 ** 20;
  if (mib > FILE_MAX_MIB) return errorLine.show(new Error(`The file has ${Math.ceil(mib)} MiB, and hob takes at most ${FILE_MAX_MIB} MiB.`));
  transcript?.stop();
  if (heard !== file) player.load(heard);
  file = heard;
  const started = new Transcript();
  transcript = started;
  view.begin(started);
  page.result.hidden = false;
  requestAnimationFrame(() => draw(started));
  // OpenAI's name for the default model of every hob. Without one, the server says how to get it.
  const model = models.chosen?.id ?? "whisper-1";
  const ending = started.run({ file, model, language: page.language.value, isTranslated: isTranslated() });
  models.refresh();
  await ending;
  models.refresh();
  if (started === transcript && started.error) errorLine.show(started.error);
}

/** Draws until the transcript has ended and every line is on the page. */
function draw(started) {
  if (transcript !== started) return;
  view.draw();
  render();
  if (started.active || !view.settled) requestAnimationFrame(() => draw(started));
}

function isTranslated() {
  return page.translate.checked && !page["translate-field"].hidden;
}

function playWord({ start, segmentEnd }, isPlaying) {
  if (isPlaying) player.pause();
  else player.playFrom(start, segmentEnd);
}

function busy() {
  return recorder !== null || (transcript?.active ?? false);
}

function stop() {
  if (recorder) recorder.stop();
  else transcript.stop();
}

function render() {
  const active = busy();
  page.record.dataset.action = active ? "stop" : "record";
  page.record.hidden = !active && noMicrophone !== null;
  setText(page["record-text"], active ? "Stop" : "Record");
  page["record-key"].hidden = !active;
  page.choose.disabled = active;
  page.recording.hidden = recorder === null;
  if (!recorder) setText(page.prompt, noMicrophone ? "Drop a recording here." : "Drop a recording here, or record one.");
  if (transcript) renderTranscript();
}

function renderTranscript() {
  const { state, text, active } = transcript;
  setText(page.name, file.name);
  setText(page.warning, transcript.warning ?? "");
  page.unplayable.hidden = !player.failed;
  page.audio.hidden = player.failed;
  setText(page.status, state === "finished" && text.trim() === "" ? "No speech was heard." : STATUS[state]);
  page.again.disabled = busy();
  page.copy.disabled = page.save.disabled = active || text === "";
  page.help.hidden = player.failed || transcript.closed === 0;
  renderFigures();
}

function renderFigures() {
  const { active, askedAt, firstTextAt, endedAt, durationS, heardS } = transcript;
  const lengthS = durationS ?? player.lengthS;
  const tookS = ((endedAt ?? performance.now()) - askedAt) / 1000;
  const known = (value, text) => (value === null ? "–" : text(value));
  setText(page.first, known(firstTextAt, (at) => secondsText((at - askedAt) / 1000)));
  setText(page["audio-length"], known(lengthS, clockText));
  setText(page.time, secondsText(tookS));
  setText(page.factor, transcript.state === "finished" && lengthS > 0 ? (tookS / lengthS).toPrecision(2) : "–");
  setText(page.at, clockText(transcript.state === "finished" && lengthS ? lengthS : heardS));
  setText(page.length, known(lengthS, clockText));
  page.progress.hidden = !active;
  // Without a length, the bar shows only that hob works.
  if (lengthS > 0 && heardS > 0) page.progress.value = heardS / lengthS;
  else page.progress.removeAttribute("value");
}

const STATUS = { asking: "Waiting for the first words.", hearing: "Transcribing.", finished: "Finished.", stopped: "Stopped.", failed: "Incomplete." };

function secondsText(seconds) {
  return seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : clockText(seconds);
}

function showModel() {
  page["no-model"].hidden = models.chosen !== null;
  const languages = models.chosen?.languages ?? [];
  fillLanguages(page.language, languages);
  page["translate-field"].hidden = languages.length === 1;
}

function take(files) {
  if (files.length === 0) return;
  if (recorder) return errorLine.show(new Error("Stop the recording first."));
  hear(files[0]);
  if (files.length > 1) errorLine.show(new Error(`hob hears one file at a time. It took the first: ${files[0].name}.`));
}

function hasFiles(event) {
  return !page.panel.hidden && event.dataTransfer?.types.includes("Files");
}

/** The whole page takes files, because a browser opens a file that is dropped elsewhere. */
function onDrag(event) {
  if (!hasFiles(event)) return;
  event.preventDefault();
  page.source.classList.toggle("over", event.type === "dragover");
  if (event.type === "drop") take([...event.dataTransfer.files]);
}

function onKey(event) {
  if (page.panel.hidden || event.key !== "Escape") return;
  if (busy()) stop();
  else if (player.playing) player.pause();
  else return;
  event.preventDefault();
}

function saveAs(format) {
  const name = file.name.replace(/\.\w+$/, "");
  save(transcriptFile(transcript, format), `${name}.${format}`);
}

function restore() {
  const { hearLanguage, hearFormat } = recall();
  fillLanguages(page.language, []);
  if ([...page.language.options].some(({ value }) => value === hearLanguage)) page.language.value = hearLanguage;
  if (["srt", "vtt", "txt"].includes(hearFormat)) page.format.value = hearFormat;
  page["no-microphone"].hidden = noMicrophone === null;
  setText(page["no-microphone"], noMicrophone ?? "");
  if (!noMicrophone) microphones.watch();
}

page.record.addEventListener("click", () => (busy() ? stop() : record()));
page.choose.addEventListener("click", () => page.file.click());
page.file.addEventListener("change", () => {
  take([...page.file.files]);
  page.file.value = ""; // so that the same file can be chosen again
});
for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, onDrag);
document.addEventListener("keydown", onKey);
page.again.addEventListener("click", () => hear(file));
page.copy.addEventListener("click", () => copyText(page.copy, transcript.text.trim()));
page.save.addEventListener("click", () => saveAs(page.format.value));
page.format.addEventListener("change", () => remember({ hearFormat: page.format.value }));
page.language.addEventListener("change", () => remember({ hearLanguage: page.language.value }));

restore();
render();
