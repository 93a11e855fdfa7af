// The time from the user's last word to the first sound of the answer, as a bar with a part for each stage.

import { make, setText } from "./dom.js";

// In the order in which they follow each other.
const STAGES = [
  ["endpoint", "end of speech", "From your last word until hob is sure that you have finished"],
  ["stt", "transcript", "Until your words are text"],
  ["llm_ttfat", "first words", "Until the model has written the first words"],
  ["sentence", "first sentence", "Until they are enough to be spoken"],
  ["tts_ttfa", "first sound", "Until the voice sounds"],
  ["transport", "sending", "Until this sound is on its way to the browser"],
];

/** @param {{title: HTMLElement, bar: HTMLElement, list: HTMLElement}} elements @param {Record<string, number>} stages in milliseconds */
export function drawStages({ title, bar, list }, stages) {
  const parts = STAGES.map(([key, label, meaning]) => ({ key, label, meaning, ms: Math.max(0, Number(stages[key]) || 0) }));
  const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  setText(title, `Last turn: ${Math.round(totalMs)} ms from your last word to the first sound`);
  bar.replaceChildren(...parts.map(({ key, ms }) => barPart(key, ms)));
  list.replaceChildren(...parts.map(listEntry));
}

function barPart(key, ms) {
  const part = make("i");
  part.dataset.stage = key;
  // The page's policy forbids styles in markup. It allows styles that a script sets.
  part.style.flexGrow = ms;
  part.hidden = ms === 0;
  return part;
}

function listEntry({ key, label, meaning, ms }) {
  const swatch = make("i", { className: "swatch" });
  swatch.dataset.stage = key;
  return make("div", { title: meaning }, [make("dt", {}, [swatch, label]), make("dd", { textContent: `${Math.round(ms)} ms` })]);
}
