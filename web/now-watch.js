// Polls the server while a tab is shown: the activity every second, or something else. After failures it polls less often, and while hidden never.

import { askForKey } from "./api-key.js";
import { listActivity } from "./api.js";

const EVERY_MS = 1_000;
const AWAY_MS = [2_000, 4_000, 8_000, 16_000, 30_000];
const TIMEOUT_MS = 10_000;

export class NowWatch {
  #callbacks;
  #isShown = false;
  #isPolling = false;
  #failures = 0;
  #wantsKey = false;
  #timer = 0;

  /** @param {{onNews: (now: object) => void, onTrouble: (error: Error) => void, load?: (timeoutMs: number) => Promise<object>, everyMs?: number}} callbacks */
  constructor(callbacks) {
    this.#callbacks = { load: listActivity, everyMs: EVERY_MS, ...callbacks };
    document.addEventListener("visibilitychange", () => this.poll());
  }

  /** Whether the tab is shown. */
  set watched(watched) {
    this.#isShown = watched;
    this.poll();
  }

  /** Polls now and then repeatedly. The next request waits for the answer to the one before. */
  async poll() {
    clearTimeout(this.#timer);
    if (this.#isPolling || !this.#isNeeded) return;
    this.#isPolling = true;
    await this.#request();
    this.#isPolling = false;
    if (this.#isNeeded) this.#timer = setTimeout(() => this.poll(), this.#nextMs);
  }

  async #request() {
    try {
      const now = await this.#callbacks.load(TIMEOUT_MS);
      this.#failures = 0;
      this.#wantsKey = false;
      this.#callbacks.onNews(now);
    } catch (error) {
      this.#failures += 1;
      this.#callbacks.onTrouble(error);
      // Only once, so that the page does not take the focus every few seconds.
      const isKey = error.status === 401;
      if (isKey && !this.#wantsKey) askForKey();
      this.#wantsKey = isKey;
    }
  }

  get #isNeeded() {
    return this.#isShown && !document.hidden;
  }

  get #nextMs() {
    return this.#failures === 0 ? this.#callbacks.everyMs : AWAY_MS[Math.min(this.#failures, AWAY_MS.length) - 1];
  }
}
