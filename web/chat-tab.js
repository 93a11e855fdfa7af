// The Chat tab: one conversation, one answer at a time, each turn drawn by its own view.
// The page remembers only the chosen model, because texts may be private.

import { Answer } from "./answer.js";
import { askForKey } from "./api-key.js";
import { startComposer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { setText } from "./dom.js";
import { ModelMenu } from "./model-menu.js";
import { beginSpeech, currentSpeech } from "./current-speech.js";
import { chosenVoice } from "./speak-tab.js";
import { TurnView } from "./turn-view.js";

// A reader this near to the end follows the answer.
const AT_END_PX = 80;
// A longer message is not sent. `maxlength` would cut off its end without a word.
const QUESTION_MAX_CHARACTERS = 200_000;
// The chat shows no waveform.
const NO_WAVEFORM = { add() {} };

const element = (id) => document.getElementById(id);
const page = Object.fromEntries(
  ["chat-panel", "turns", "greeting", "dropped", "no-model", "ask", "question", "send", "send-text", "send-key", "chat-status",
    "chat-model", "effort-field", "effort", "system", "new-chat", "chat-state", "chat-state-text"].map((id) => [id, element(id)]),
);
const conversation = new Conversation();
const parts = { select: page["chat-model"], state: page["chat-state"], stateText: page["chat-state-text"] };
const wish = {
  // A model without a chat template only completes texts.
  suits: ({ kind, capabilities }) => kind === "chat" && capabilities.includes("chat"),
  setting: "chatModel",
  none: "No chat model yet",
  cold: "is not loaded; the first message loads it",
};
const models = new ModelMenu(parts, wish, showModel);

let views = [];
let droppedTurns = 0;

export function currentAnswer() {
  return conversation.turns.at(-1)?.answer ?? null;
}

/** Called when this tab is shown or hidden. */
export function showChat(shown) {
  models.watched = shown;
  if (shown) scrollToEnd();
}

function answering() {
  return currentAnswer()?.active ?? false;
}

/** @returns {boolean} whether the question was sent */
function ask(question) {
  if (answering() || !models.chosen) return false;
  if (question.length > QUESTION_MAX_CHARACTERS) {
    const [length, most] = [question.length, QUESTION_MAX_CHARACTERS].map((count) => count.toLocaleString("en"));
    setStatus(`The message has ${length} characters. The page sends at most ${most}.`);
    return false;
  }
  const turn = { question, answer: new Answer() };
  droppedTurns += conversation.add(turn).length;
  for (const view of views.splice(0, views.length + 1 - conversation.turns.length)) discard(view);
  show(turn);
  follow(views.at(-1));
  return true;
}

/** Sends the last question again, and replaces its answer. */
function askAgain(view) {
  if (answering() || view !== views.at(-1) || !models.chosen) return;
  view.turn.answer = new Answer();
  discard(views.pop());
  show(view.turn);
  follow(views.at(-1));
}

function show(turn) {
  const view = new TurnView(turn, { speak, again: askAgain });
  views.push(view);
  page.turns.append(view.element);
  render();
  scrollToEnd();
}

function discard(view) {
  view.speech?.stop();
  view.close();
}

/** Draws until the answer has ended, then shows how it ended. */
async function follow(view) {
  const { answer } = view;
  requestAnimationFrame(() => drawWhileActive(view));
  setStatus("Waiting for the first token.");
  const ending = answer.run(request());
  models.refresh();
  await ending;
  drawFollowing(view);
  if (conversation.turns.at(-1)?.answer !== answer) return;
  setStatus(endTexts[answer.state]);
  render();
  models.refresh();
  if (answer.error?.status === 401) askForKey();
}

function request() {
  const effort = page["effort-field"].hidden ? "" : page.effort.value;
  return {
    model: models.chosen.id,
    messages: conversation.messages(page.system.value),
    ...(effort !== "" && { reasoning_effort: effort }),
  };
}

function drawWhileActive(view) {
  if (!view.answer.active) return;
  drawFollowing(view);
  setStatus(stateTexts[view.answer.state]);
  requestAnimationFrame(() => drawWhileActive(view));
}

/** Does not scroll while the reader is further up. */
function drawFollowing(view) {
  const { scrollHeight } = document.documentElement;
  const atEnd = scrollY + innerHeight >= scrollHeight - AT_END_PX;
  view.draw();
  if (atEnd) scrollToEnd();
}

function scrollToEnd() {
  if (!page["chat-panel"].hidden) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

const stateTexts = { asking: "Waiting for the first token.", thinking: "Thinking.", answering: "Answering." };
// A screen reader says nothing about an empty text, so each end has a word.
const endTexts = { finished: "Finished.", stopped: "Stopped.", failed: "Incomplete." };

async function speak(view) {
  if (view.speech?.active) return view.speech.stop();
  const started = beginSpeech(NO_WAVEFORM);
  view.speech = started;
  view.drawSpeech(started);
  await started.run({ text: view.answer.text, ...chosenVoice() });
  if (view.speech !== started) return;
  view.drawSpeech(started);
  if (started.error?.status === 401) askForKey();
}

function startNew() {
  currentAnswer()?.stop();
  for (const view of views.splice(0)) discard(view);
  conversation.clear();
  droppedTurns = 0;
  setStatus("");
  render();
  page.question.focus();
}

function render() {
  const active = answering();
  page.send.dataset.action = active ? "stop" : "send";
  setText(page["send-text"], active ? "Stop" : "Send");
  setText(page["send-key"], active ? "Esc" : "↵");
  page.send.disabled = !active && !models.chosen;
  page["new-chat"].disabled = views.length === 0;
  page.greeting.hidden = views.length > 0;
  page.dropped.hidden = droppedTurns === 0;
  setText(page.dropped, `The conversation is long, so the page removed ${droppedTurns === 1 ? "the first turn" : `the first ${droppedTurns} turns`}.`);
}

function showModel() {
  page["no-model"].hidden = models.chosen !== null;
  page["effort-field"].hidden = !models.chosen?.capabilities.includes("thinking");
  page["chat-panel"].dataset.voice = models.all.some(({ kind }) => kind === "speech") ? "there" : "none";
  render();
}

/** Screen readers announce changes only, so this may be called every frame. */
function setStatus(text) {
  setText(page["chat-status"], text);
}

function onKey(event) {
  if (page["chat-panel"].hidden || event.key !== "Escape" || event.isComposing) return;
  const active = [currentAnswer(), currentSpeech()].find((one) => one?.active);
  if (!active) return;
  event.preventDefault();
  active.stop();
}

startComposer(page.ask, page.question, ask);
page.send.addEventListener("click", (event) => {
  if (!answering()) return;
  event.preventDefault(); // otherwise the click would also send the text in the field
  currentAnswer().stop();
});
page["new-chat"].addEventListener("click", startNew);
document.addEventListener("keydown", onKey);
render();
