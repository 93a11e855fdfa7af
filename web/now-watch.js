// Asks what runs: every second while somebody looks, ever more seldom while nobody answers, else never.

import { whatRuns } from "./api.js";

const EVERY_MS = 1_000;
const AWAY_MS = [2_000, 4_000, 8_000, 16_000, 30_000];
const PATIENCE_MS = 10_000;

export class NowWatch {
  #tell;
  #looking = false;
  #asking = false;
  #failures = 0;
  #timer = 0;

  /** @param {{onNews: (now: object) => void, onTrouble: (error: Error) => void}} tell */
  constructor(tell) {
    this.#tell = tell;
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** The tab is on the screen, or no longer. */
  set watched(watched) {
    this.#looking = watched;
    this.look();
  }

  /** At once, and then again and again. One question at a time: the next waits for its answer. */
  async look() {
    clearTimeout(this.#timer);
    if (this.#asking || !this.#wanted) return;
    this.#asking = true;
    await this.#ask();
    this.#asking = false;
    if (this.#wanted) this.#timer = setTimeout(() => this.look(), this.#pauseMs);
  }

  async #ask() {
    try {
      const now = await whatRuns(PATIENCE_MS);
      this.#failures = 0;
      this.#tell.onNews(now);
    } catch (error) {
      this.#failures += 1;
      this.#tell.onTrouble(error);
    }
  }

  get #wanted() {
    return this.#looking && !document.hidden;
  }

  get #pauseMs() {
    return this.#failures === 0 ? EVERY_MS : AWAY_MS[Math.min(this.#failures, AWAY_MS.length) - 1];
  }
}
