// The events of a run as a tree: agents indented by their depth, long texts folded. All texts are text, never markup.

import { make, setText } from "./dom.js";
import { stepOf } from "./team-text.js";

// Rows of one run on the page. A run of 40 turns has some hundred.
const STEPS_MAX = 2_000;
// A longer text, or one with several lines, is folded.
const SHORT_MAX_CHARACTERS = 120;
const SHOWN_MAX_CHARACTERS = 100_000;
const DEPTH_MAX = 5;

export class RunTrace {
  #list;
  #more;
  #steps = []; // { seq, element }
  #dropped = 0;
  /** The number of the last event. */
  last = 0;

  constructor(list, more) {
    this.#list = list;
    this.#more = more;
  }

  clear() {
    this.#list.replaceChildren();
    this.#steps = [];
    this.#dropped = this.last = 0;
    this.#showDropped();
  }

  take(event) {
    // After a crash, numbers are used again, for what really happened.
    if (event.seq <= this.last) this.#forget(event.seq);
    this.last = event.seq;
    const step = stepOf(event);
    if (step === null) return;
    const element = rowOf(step, event);
    this.#steps.push({ seq: event.seq, element });
    this.#list.append(element);
    if (this.#steps.length <= STEPS_MAX) return;
    this.#steps.shift().element.remove();
    this.#dropped += 1;
    this.#showDropped();
  }

  #forget(seq) {
    for (const step of this.#steps.filter((one) => one.seq >= seq)) step.element.remove();
    this.#steps = this.#steps.filter((one) => one.seq < seq);
  }

  #showDropped() {
    this.#more.hidden = this.#dropped === 0;
    setText(this.#more, `The first ${this.#dropped} steps are not shown.`);
  }
}

function rowOf({ head = "", note = "", text = "", short, isBad = false, isAgent = false, who = "" }, { type, depth }) {
  const row = make("li", { className: "run-step" });
  row.dataset.depth = String(Math.min(depth, DEPTH_MAX));
  row.dataset.type = type;
  if (isBad) row.dataset.bad = "";
  const line = [];
  if (who !== "") line.push(make("span", { className: "beside", textContent: `${who}:` }));
  if (head !== "") line.push(make(isAgent ? "strong" : "b", { textContent: head }));
  if (note !== "") line.push(make("span", { className: "beside", textContent: note }));
  const parts = line.flatMap((part) => [part, " "]);
  const whole = text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}\n… (${text.length.toLocaleString("en")} characters)` : text;
  const [first] = whole.trim().split("\n", 1);
  if (whole.trim() === first && first.length <= SHORT_MAX_CHARACTERS) {
    row.append(...parts, make("span", { className: "run-text", textContent: first }));
  } else {
    const summary = make("summary", {}, [...parts, make("span", { className: "run-text", textContent: `${(short ?? first).slice(0, SHORT_MAX_CHARACTERS)}…` })]);
    row.append(make("details", {}, [summary, make("pre", { tabIndex: 0, textContent: whole })]));
  }
  return row;
}
