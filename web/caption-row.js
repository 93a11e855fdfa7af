// One line of the captions of a conversation: who spoke, the text so far, and how it ended.

import { make, setText } from "./dom.js";

export class CaptionRow {
  element;
  #name = make("span", { className: "unseen" });
  #text = make("p", { className: "caption-text", dir: "auto" });
  #note = make("p", { className: "note" });

  constructor() {
    this.element = make("li", { className: "caption" }, [this.#name, this.#text, this.#note]);
  }

  draw({ who, text, isOpen, note }) {
    this.element.dataset.who = who;
    // Screen readers wait for the whole line instead of reading it piece by piece.
    this.element.setAttribute("aria-busy", String(isOpen));
    setText(this.#name, who === "user" ? "You:" : "hob:");
    setText(this.#text, text === "" && isOpen ? "…" : text);
    this.#text.hidden = text === "" && !isOpen;
    setText(this.#note, note);
    this.#note.hidden = note === "";
  }
}
