// The line of a tab that shows an error, with a countdown if the server said when to try again.

import { askForKey } from "./api-key.js";
import { countDown } from "./countdown.js";

export class ErrorLine {
  #line;
  #text;
  #retry;
  #endCountdown = () => {};

  /** @param {{line: HTMLElement, text: HTMLElement, retry: HTMLElement}} elements of the line: the whole, its message, its countdown */
  constructor({ line, text, retry }) {
    this.#line = line;
    this.#text = text;
    this.#retry = retry;
  }

  get hidden() {
    return this.#line.hidden;
  }

  clear() {
    this.#endCountdown();
    this.#line.hidden = true;
    this.#retry.textContent = "";
  }

  /** Asks for a key, too, if the server wants one. */
  show(error) {
    this.clear();
    this.#text.textContent = error.message;
    this.#line.hidden = false;
    if (error.status === 401) askForKey();
    if (error.retryAfterS) this.#endCountdown = countDown(this.#retry, error.retryAfterS);
  }
}
