// The Speak tab: wires the form to one Speech at a time and draws its state.
// All state is in `recorded` and in the Speech. The screen is derived from them.

import { clockText } from "./clock.js";
import { listVoices } from "./api.js";
import { setText } from "./dom.js";
import { download, isPart } from "./download.js";
import { ErrorLine } from "./error-line.js";
import { watchModel } from "./model-state.js";
import { SPEEDS, recall, remember } from "./settings.js";
import { beginSpeech, currentSpeech } from "./current-speech.js";
import { fillVoices } from "./voices.js";
import { Waveform } from "./waveform.js";

// A first guess for the scale of the waveform. The sound corrects it.
const CHARACTERS_PER_SECOND = 15;
// After this time, the page reports an audio clock that has not started.
const HELD_BACK_MS = 1_500;
// Codes of hob's errors: it has no voice model at all, or lacks the one that is its default.
const NO_MODEL_CODES = ["no_target", "model_not_found"];

const element = (id) => document.getElementById(id);
const page = Object.fromEntries(
  ["form", "text", "count", "voice", "speed", "speed-text", "speak-button", "speak-text", "speak-key", "error", "error-text",
    "retry", "waveform", "played", "length", "ttfa", "ahead", "gaps", "again", "download", "format", "status", "model",
    "model-text", "speak-panel"].map((id) => [id, element(id)]),
);
const errorLine = new ErrorLine({ line: page.error, text: page["error-text"], retry: page.retry });
const waveform = new Waveform(page.waveform);

let speech = null; // the speech of this tab that plays, or played last
let recorded = null; // for "play again" and "download"
let lacksModel = false; // hob has no voice model

/** The chosen voice and speed. The Chat tab reads answers aloud with them, too. */
export function chosenVoice() {
  return { voice: page.voice.value, speed: SPEEDS[page.speed.valueAsNumber] };
}

function begin() {
  errorLine.clear();
  speech = beginSpeech(waveform);
  return speech;
}

async function speak() {
  const text = page.text.value;
  if (text.trim() === "") return errorLine.show(new Error("There is no text to speak. Write something first."));
  const started = begin();
  const request = { text, ...chosenVoice() };
  recorded = null;
  waveform.begin(text.length / CHARACTERS_PER_SECOND / request.speed);
  setStatus("Waiting for the first sound.");
  await follow(started, started.run(request));
  if (speech !== started) return;
  recorded = started.recording && { request, recording: started.recording, recordedAs: started.format, complete: started.complete };
  render();
}

async function playAgain() {
  const { recording, recordedAs } = recorded;
  const started = begin();
  if (started.format !== recordedAs) return errorLine.show(new Error("This recording is for another player. Speak the text again."));
  waveform.begin(0);
  await follow(started, started.replay(recording));
}

/** Draws until the speech has ended, then shows how it ended. */
async function follow(started, ending) {
  requestAnimationFrame(() => draw(started));
  render();
  await ending;
  if (speech !== started) return;
  if (started.error) errorLine.show(started.error);
  setStatus(endText(started));
  render();
}

function endText(ended) {
  if (ended.error && ended.scheduledSeconds === 0) return "Nothing was spoken.";
  const seconds = clockText(ended.playedSeconds);
  if (ended.state === "finished") return `Finished, ${seconds}.`;
  return ended.state === "stopped" ? `Stopped at ${seconds}.` : `Incomplete, ended at ${seconds}.`;
}

function draw(started) {
  if (speech !== started) return;
  if (started.player === "mse") waveform.reach(started.scheduledSeconds);
  if (started.responseEndedAt !== null || !started.active) waveform.complete();
  if (started.error && errorLine.hidden) errorLine.show(started.error); // now, and not after the buffered sound
  if (started.active) setStatus(nowText(started));
  render();
  waveform.draw(started.state === "finished" ? Infinity : started.playedSeconds);
  if (started.active || !waveform.settled) requestAnimationFrame(() => draw(started));
}

function nowText(active) {
  if (active.heldBack && performance.now() - active.clickedAt > HELD_BACK_MS) {
    return "The sound has arrived, but the browser does not play it. Check the sound device and this page's permission to use it.";
  }
  if (active.firstScheduledAt === null) return active.state === "asking" ? "Waiting for the first sound." : "Receiving.";
  return active.responseEndedAt === null ? "Speaking, and still receiving." : "Speaking.";
}

function render() {
  const active = speech?.active ?? false;
  page["speak-button"].dataset.action = active ? "stop" : "speak";
  page["speak-text"].textContent = active ? "Stop" : "Speak";
  page["speak-key"].textContent = active ? "Esc" : "Ctrl ↵";
  page.again.disabled = active || recorded === null;
  page.download.disabled = active || recorded === null;
  page.download.textContent = recorded && isPart(recorded, page.format.value) ? "Download the part" : "Download";
  if (speech) renderFigures();
}

function renderFigures() {
  const { ttfaMs, bufferedSeconds, underruns, playedSeconds } = speech;
  const length = waveform.expectedSeconds;
  // A replay makes no request, so it keeps the figure of the speech that it repeats.
  if (!speech.replayed) page.ttfa.textContent = ttfaMs === null ? "–" : `${Math.round(ttfaMs)} ms`;
  page.ahead.textContent = `${bufferedSeconds.toFixed(1)} s`;
  page.gaps.textContent = String(underruns);
  page.played.textContent = clockText(playedSeconds);
  page.length.textContent = `${waveform.isComplete ? "" : "about "}${clockText(length)}`;
  const known = waveform.isComplete ? "Waveform of" : "Waveform, still filling, of about";
  page.waveform.setAttribute("aria-label", `${known} ${Math.round(length)} seconds`);
}

/** Screen readers announce changes only, so this may be called every frame. */
function setStatus(text) {
  setText(page.status, text);
}

async function loadVoices() {
  try {
    fillVoices(page.voice, await listVoices(), recall().voice);
    lacksModel = false;
    errorLine.clear();
  } catch (error) {
    lacksModel = NO_MODEL_CODES.includes(error.code);
    // Once, because a screen reader reads each error that appears.
    if (errorLine.hidden) errorLine.show(error);
  }
}

/** Asks for the voices as long as there are none: hob may have been restarted, or have a voice model since. */
async function hasModel() {
  if (page.voice.length === 0) await loadVoices();
  return !lacksModel;
}

async function save() {
  page.download.disabled = true;
  try {
    await download(recorded, page.format.value);
    errorLine.clear();
  } catch (error) {
    errorLine.show(error);
  }
  render();
}

function showSpeed() {
  const text = `${SPEEDS[page.speed.valueAsNumber]}×`;
  page["speed-text"].textContent = text;
  page.speed.setAttribute("aria-valuetext", text);
}

function showCount() {
  const count = [...page.text.value].length;
  page.count.textContent = `${count.toLocaleString("en")} ${count === 1 ? "character" : "characters"}`;
}

function restore() {
  const { speed, format } = recall();
  if (SPEEDS.includes(speed)) page.speed.valueAsNumber = SPEEDS.indexOf(speed);
  if ([...page.format.options].some((option) => option.value === format)) page.format.value = format;
  showSpeed();
  showCount();
}

function onKey(event) {
  if (page["speak-panel"].hidden) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    speak();
  } else if (event.key === "Escape" && currentSpeech()?.active) {
    event.preventDefault();
    currentSpeech().stop();
  }
}

page.form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (speech?.active) speech.stop();
  else speak();
});
document.addEventListener("keydown", onKey);
page.again.addEventListener("click", playAgain);
page.download.addEventListener("click", save);
page.text.addEventListener("input", showCount);
page.speed.addEventListener("input", () => { showSpeed(); remember({ speed: SPEEDS[page.speed.valueAsNumber] }); });
page.voice.addEventListener("change", () => remember({ voice: page.voice.value }));
page.format.addEventListener("change", () => { render(); remember({ format: page.format.value }); });

restore();
waveform.begin(0);
waveform.draw(0);
watchModel(page.model, page["model-text"], hasModel);
