// One question and its answer on the page. It only draws the state of the Answer.

import { copyText } from "./clipboard.js";
import { countDown } from "./countdown.js";
import { make, setText } from "./dom.js";
import { MarkdownView } from "./markdown.js";
import { thinkingText, timingText } from "./timing-text.js";

export class TurnView {
  element;
  turn;

  #parts = {};
  #prose;
  #drawn = { version: -1, state: null };
  #endCountdown = () => {};

  /** @param {{speak: (view: TurnView) => void, again: (view: TurnView) => void}} actions */
  constructor(turn, actions) {
    this.turn = turn;
    this.#build(actions);
    this.draw();
  }

  get answer() {
    return this.turn.answer;
  }

  /** Cheap without a change, so it may be called every frame. */
  draw() {
    const { version, state } = this.answer;
    if (this.answer.thinkingFrom !== null) this.#drawThinking();
    if (version === this.#drawn.version && state === this.#drawn.state) return;
    this.#drawn = { version, state };
    this.#prose.show(this.answer.text);
    this.#drawEnd();
  }

  /** @param {import("./speech.js").Speech} speech of this answer */
  drawSpeech(speech) {
    setText(this.#parts.speak, speech.active ? "Stop speaking" : "Speak");
    this.#parts.speak.dataset.action = speech.active ? "stop" : "speak";
    setText(this.#parts.speechError, speech.error?.message ?? "");
    this.#parts.speechError.hidden = !speech.error;
  }

  /** Call this before the turn is removed. */
  close() {
    this.#endCountdown();
    this.element.remove();
  }

  #build(actions) {
    const button = (name, textContent, onclick) => (this.#parts[name] = make("button", { type: "button", textContent, onclick }));
    const part = (name, tag, properties, children) => (this.#parts[name] = make(tag, properties, children));
    this.element = make("li", { className: "turn" }, [
      make("div", { className: "question" }, [unseen("You"), make("p", { textContent: this.turn.question, dir: "auto" })]),
      part("body", "div", { className: "answer" }, [
        unseen("Answer"),
        part("thinking", "details", { className: "thinking", hidden: true, ontoggle: () => this.#drawThinking() }, [
          part("summary", "summary"),
          part("thought", "p", { dir: "auto" }),
        ]),
        part("prose", "div", { className: "prose", dir: "auto" }),
        part("waiting", "p", { className: "waiting", textContent: "Waiting for the first token" }),
        part("note", "p", { className: "note", hidden: true }),
        part("error", "div", { className: "error", hidden: true }, [
          part("errorText", "span"), " ", part("retry", "span", { className: "retry" }),
          button("tryAgain", "Try again", () => actions.again(this)),
        ]),
        part("after", "div", { className: "after", hidden: true }, [
          part("timings", "p", {
            className: "timings",
            title: "This page measures the first token, from sending to the first piece of the answer. The server measures the rest.",
          }),
          make("div", { className: "answer-actions" }, [
            button("speak", "Speak", () => actions.speak(this)),
            button("copy", "Copy", () => copyText(this.#parts.copy, this.answer.text)),
            button("again", "Regenerate", () => actions.again(this)),
          ]),
        ]),
        part("speechError", "p", { className: "error", hidden: true }),
      ]),
    ]);
    const classes = { speak: "quiet speak", copy: "quiet", again: "quiet again", tryAgain: "again" };
    for (const [name, className] of Object.entries(classes)) this.#parts[name].className = className;
    for (const alert of [this.#parts.error, this.#parts.speechError]) alert.setAttribute("role", "alert");
    this.#prose = new MarkdownView(this.#parts.prose);
  }

  /** The text of the thinking is drawn only while it is unfolded. */
  #drawThinking() {
    const { thinking, summary, thought } = this.#parts;
    thinking.hidden = false;
    setText(summary, thinkingText(this.answer, performance.now()));
    if (thinking.open) setText(thought, this.answer.thinking);
  }

  #drawEnd() {
    const { active, state, text, error } = this.answer;
    const { body, waiting, after, speak, copy, again, timings } = this.#parts;
    body.setAttribute("aria-busy", String(active));
    waiting.hidden = state !== "asking";
    after.hidden = active || (error !== null && text === "");
    speak.hidden = copy.hidden = text === "";
    again.hidden = error !== null; // it has "Try again"
    setText(timings, timingText(this.answer));
    timings.hidden = timings.textContent === "";
    this.#drawNote();
    this.#drawError();
  }

  #drawNote() {
    const note = noteText(this.answer);
    setText(this.#parts.note, note);
    this.#parts.note.hidden = note === "";
  }

  #drawError() {
    const { error } = this.answer;
    this.#parts.error.hidden = error === null;
    if (!error) return;
    setText(this.#parts.errorText, error.message);
    this.#endCountdown();
    if (error.retryAfterS) this.#endCountdown = countDown(this.#parts.retry, error.retryAfterS);
  }
}

/** A note on an answer that did not end normally. */
function noteText({ state, finish, text, thinking }) {
  if (state === "stopped") return text === "" ? "Stopped before the answer began." : "Stopped.";
  if (state !== "finished") return "";
  if (finish === "length") return text === "" ? "All tokens went into thinking; none were left for the answer." : "Cut off: the token limit or the end of the context was reached.";
  if (text !== "") return "";
  return thinking === "" ? "The model's answer is empty." : "The model only thought, and its answer is empty.";
}

/** Names the speaker for screen readers. */
function unseen(textContent) {
  return make("h3", { className: "unseen", textContent });
}
