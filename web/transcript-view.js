// The transcript on the page: a line for each segment, in which every word can be played.
// A line is added once, with all its words, so a screen reader reads it once.

import { clockText } from "./clock.js";
import { make, setText } from "./dom.js";

// A transcript that comes whole must not stop the page.
const LINES_PER_FRAME = 50;

export class TranscriptView {
  #list;
  #tail;
  #onPlay;
  #transcript = null;
  #lines = 0;
  #words = []; // of all lines, in order
  #cursor = 0; // the word that Tab reaches
  #playing = null;

  /** @param {(word: {start: number, segmentEnd: number}, isPlaying: boolean) => void} onPlay */
  constructor(list, tail, onPlay) {
    this.#list = list;
    this.#tail = tail;
    this.#onPlay = onPlay;
    list.addEventListener("click", ({ target }) => this.#play(target.closest(".word")));
    list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  begin(transcript) {
    this.#transcript = transcript;
    this.#lines = 0;
    this.#words = [];
    this.#cursor = 0;
    this.#playing = null;
    this.#list.replaceChildren();
    this.draw();
  }

  /** Every segment is on the page. */
  get settled() {
    return this.#lines === this.#transcript.closed;
  }

  /** Cheap without news, so it may be called every frame. */
  draw() {
    const { segments, closed, tail } = this.#transcript;
    const until = Math.min(closed, this.#lines + LINES_PER_FRAME);
    for (; this.#lines < until; this.#lines += 1) this.#list.append(this.#line(segments[this.#lines], this.#lines));
    setText(this.#tail, tail.trim());
  }

  /** Marks the word that sounds at this time; none for `null`. */
  mark(seconds) {
    const word = seconds === null ? null : this.#wordAt(seconds);
    if (word === this.#playing) return;
    this.#playing?.element.removeAttribute("aria-current");
    word?.element.setAttribute("aria-current", "true");
    if (word && word.line !== this.#playing?.line) word.element.scrollIntoView({ block: "nearest" });
    this.#playing = word;
  }

  #line(segment, line) {
    const time = make("span", { className: "when", textContent: clockText(segment.start) });
    return make("li", {}, [time, make("p", { dir: "auto" }, this.#pieces(segment, line))]);
  }

  /** The text, with its words as elements. A segment without words is one word. */
  #pieces({ start, end, text, words }, line) {
    const said = text.trimStart();
    const cut = text.length - said.length;
    const whole = [{ start, end, from: cut, to: text.trimEnd().length }];
    const pieces = [];
    let at = cut;
    for (const word of words.length > 0 ? words : whole) {
      pieces.push(text.slice(at, word.from), this.#word(text.slice(word.from, word.to), { start: word.start, end: word.end, segmentEnd: end, line }));
      at = word.to;
    }
    return [...pieces, text.slice(at)];
  }

  #word(textContent, word) {
    const index = this.#words.length;
    const element = make("span", { className: "word", textContent, tabIndex: -1 });
    element.dataset.index = index;
    this.#words.push({ ...word, element });
    if (index === this.#cursor) makeReachable(element);
    return element;
  }

  #play(element) {
    if (!element) return;
    this.#moveTo(Number(element.dataset.index));
    const word = this.#words[this.#cursor];
    this.#onPlay(word, word === this.#playing);
  }

  /** Only one word is a button that Tab reaches. A thousand buttons would be in the way of a screen reader. */
  #moveTo(index) {
    const old = this.#words[this.#cursor].element;
    old.tabIndex = -1;
    old.removeAttribute("role");
    this.#cursor = index;
    makeReachable(this.#words[index].element);
    this.#words[index].element.focus();
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !event.target.matches(".word")) return;
    const { key } = event;
    if (key === "Enter" || key === " ") this.#play(event.target);
    else if (this.#target(key) !== null) this.#moveTo(this.#target(key));
    else return;
    event.preventDefault();
  }

  /** The word to which a key moves. */
  #target(key) {
    const last = this.#words.length - 1;
    const { line } = this.#words[this.#cursor];
    const firstOf = (wanted) => this.#words.findIndex((word) => word.line === wanted);
    switch (key) {
      case "ArrowLeft": return Math.max(0, this.#cursor - 1);
      case "ArrowRight": return Math.min(last, this.#cursor + 1);
      case "ArrowUp": return firstOf(Math.max(0, line - 1));
      case "ArrowDown": return firstOf(Math.min(this.#words[last].line, line + 1));
      case "Home": return 0;
      case "End": return last;
      default: return null;
    }
  }

  /** The last word that began, unless it has ended long ago. */
  #wordAt(seconds) {
    let [low, high] = [0, this.#words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#words[middle].start <= seconds) low = middle + 1;
      else high = middle;
    }
    const word = this.#words[low - 1];
    return word && seconds < word.segmentEnd ? word : null;
  }
}

function makeReachable(element) {
  element.tabIndex = 0;
  element.setAttribute("role", "button");
}
