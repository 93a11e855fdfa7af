// The Talk tab: one conversation at a time, its captions, and the times of its last turn.
// All state is in `talk`. The screen is derived from it.

import { listVoices } from "./api.js";
import { CaptionRow } from "./caption-row.js";
import { currentSpeech } from "./current-speech.js";
import { setText } from "./dom.js";
import { ErrorLine } from "./error-line.js";
import { whyNoMicrophone } from "./microphone.js";
import { MicrophoneMenu } from "./microphone-menu.js";
import { ModelMenu } from "./model-menu.js";
import { Rows } from "./rows.js";
import { recall, remember } from "./settings.js";
import { drawStages } from "./stage-bar.js";
import { Talk } from "./talk.js";
import { fillVoices } from "./voices.js";

// If a microphone gives no sound at all for this time, the page says so.
const SILENT_MS = 3_000;
// A reader this near to the end follows the captions.
const AT_END_PX = 60;

const element = (id) => document.getElementById(id);
const page = Object.fromEntries(
  ["panel", "model", "voice", "microphone", "microphone-field", "no-model", "toggle", "toggle-text", "key", "level", "status", "no-microphone",
    "error", "error-text", "retry", "again", "notice", "captions", "lines", "stages", "stages-title", "bar", "stage-list", "state",
    "state-text"].map((id) => [id, element(`talk-${id}`)]),
);
const parts = { select: page.model, state: page.state, stateText: page["state-text"] };
const wish = {
  // A model without a chat template only completes texts.
  suits: ({ kind, capabilities }) => kind === "chat" && capabilities.includes("chat"),
  setting: "talkModel",
  none: "No chat model yet",
  cold: "is not loaded; the conversation loads it",
};
const models = new ModelMenu(parts, wish, showModel);
const microphones = new MicrophoneMenu(page.microphone, page["microphone-field"]);
const errorLine = new ErrorLine({ line: page.error, text: page["error-text"], retry: page.retry });
const rows = new Rows(page.lines, ({ id }) => id, () => new CaptionRow());
const stageView = { title: page["stages-title"], bar: page.bar, list: page["stage-list"] };
const noMicrophone = whyNoMicrophone();

let talk = null; // the conversation that runs, or the last one
let shownError = null;
let shownStages = null;
let areCaptionsDue = false;
let silentSince = 0; // infinite once the microphone was heard, because a user who listens is silent

export function currentTalk() {
  return talk;
}

/** Called when this tab is shown or hidden. A hidden conversation would go on listening, so it ends. */
export function showTalk(shown) {
  models.watched = shown;
  if (!shown) talk?.end();
  else if (!noMicrophone) microphones.refresh();
}

function active() {
  return talk?.active ?? false;
}

async function start() {
  if (active() || !models.chosen) return;
  currentSpeech()?.stop();
  const started = new Talk({ model: models.chosen.id, voice: page.voice.value }, () => started === talk && render());
  talk = started;
  silentSince = performance.now();
  const starting = started.start(microphones.chosen);
  render();
  requestAnimationFrame(() => drawLevel(started));
  await starting;
  microphones.refresh();
  models.refresh();
}

function toggle() {
  if (active()) talk.end();
  else start();
}

function drawLevel(started) {
  if (started !== talk || !talk.active) return;
  const { level } = talk;
  if (level > 0) silentSince = Infinity;
  else if (talk.state !== "talking") silentSince = performance.now();
  page.level.firstElementChild.style.transform = `scaleX(${level})`;
  drawStatus();
  requestAnimationFrame(() => drawLevel(started));
}

function render() {
  page.panel.dataset.talk = talk?.state ?? "none";
  page.toggle.hidden = noMicrophone !== null;
  page.toggle.disabled = !active() && !models.chosen;
  page.toggle.dataset.action = active() ? "stop" : "start";
  setText(page["toggle-text"], active() ? "End" : "Start talking");
  page.key.hidden = !active();
  page.model.disabled = active() || page.model.length === 0;
  page.voice.disabled = active() || page.voice.length === 0;
  page.level.hidden = !active();
  drawStatus();
  if (talk) renderTalk();
}

function renderTalk() {
  setText(page.notice, talk.notice);
  page.again.hidden = active();
  if (talk.error !== shownError) showError(talk.error);
  scheduleCaptions();
  page.stages.hidden = talk.stages === null;
  if (talk.stages !== shownStages && talk.stages) drawStages(stageView, talk.stages);
  shownStages = talk.stages;
}

function showError(error) {
  shownError = error;
  if (error) errorLine.show(error);
  else errorLine.clear();
}

/** At most once per frame: each drawing measures the whole list, and events may arrive much faster. */
function scheduleCaptions() {
  if (areCaptionsDue) return;
  areCaptionsDue = true;
  requestAnimationFrame(renderCaptions);
}

/** Does not scroll while the reader is further up. */
function renderCaptions() {
  areCaptionsDue = false;
  const { lines } = talk.captions;
  page.captions.hidden = lines.length === 0;
  const { scrollHeight, scrollTop, clientHeight } = page.captions;
  const isAtEnd = scrollTop + clientHeight >= scrollHeight - AT_END_PX;
  rows.show(lines);
  if (isAtEnd) page.captions.scrollTop = page.captions.scrollHeight;
}

/** Screen readers announce changes only, so this may be called every frame. */
function drawStatus() {
  // hob would hear a screen reader as the user, so these texts are not read out while it listens.
  page.status.ariaLive = talk?.state === "talking" && !isMute() ? "off" : "polite";
  setText(page.status, statusText());
}

function isMute() {
  return performance.now() - silentSince > SILENT_MS;
}

function statusText() {
  if (noMicrophone) return "";
  // A conversation that failed to start was none.
  if (!talk || (!talk.active && talk.captions.lines.length === 0)) return "Speak with a model, and interrupt it as you like.";
  if (!talk.active && talk.isRecorded) return "The conversation has ended. Its recording is on hob's disk.";
  if (talk.state !== "talking") return STATES[talk.state];
  if (isMute()) return "No sound comes from the microphone. Is it muted?";
  if (talk.isUserSpeaking) return "Hearing you.";
  if (talk.isSpeaking) return "Speaking. Talk to interrupt.";
  return talk.isAnswering ? "Thinking." : "Listening.";
}

const STATES = {
  asking: "Waiting for the microphone.",
  connecting: "Connecting.",
  loading: "Waiting for the models to load.",
  ended: "The conversation has ended. hob forgets it.",
};

function showModel() {
  page["no-model"].hidden = models.chosen !== null;
  if (page.voice.length === 0) loadVoices();
  render();
}

async function loadVoices() {
  const { talkVoice, voice } = recall();
  // Without a list, hob chooses the voice. The Speak tab shows why the list is missing.
  const voices = await listVoices().catch(() => []);
  fillVoices(page.voice, voices, talkVoice ?? voice);
  render();
}

function onKey(event) {
  if (page.panel.hidden || event.key !== "Escape" || !active()) return;
  event.preventDefault();
  talk.end();
}

page.toggle.addEventListener("click", toggle);
page.again.addEventListener("click", () => {
  page.toggle.focus(); // the other button disappears
  start();
});
page.voice.addEventListener("change", () => remember({ talkVoice: page.voice.value }));
page.microphone.addEventListener("change", () => {
  silentSince = performance.now();
  if (active()) talk.useMicrophone(microphones.chosen);
});
document.addEventListener("keydown", onKey);
addEventListener("pagehide", () => talk?.end());
page["no-microphone"].hidden = noMicrophone === null;
setText(page["no-microphone"], noMicrophone ?? "");
if (!noMicrophone) microphones.watch();
render();
