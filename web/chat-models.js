// The menu of chat models, and whether the chosen one is in memory.
// Asks `/v1/models` often while a model is loading, seldom otherwise, and never while nobody looks.

import { listModels } from "./api.js";
import { setText } from "./dom.js";
import { recall, remember } from "./settings.js";

const LOADING_MS = 1_000;
const AWAY_MS = 4_000;
const SETTLED_MS = 30_000;

export class ChatModels {
  /** Someone can be asked to read answers aloud. */
  speaks = false;

  #models = [];
  #parts;
  #onChange;
  #timer = 0;
  #looking = false;

  /** @param {{select: HTMLSelectElement, state: HTMLElement, stateText: HTMLElement}} parts */
  constructor(parts, onChange) {
    this.#parts = parts;
    this.#onChange = onChange;
    parts.select.addEventListener("change", () => {
      remember({ chatModel: parts.select.value });
      this.#show();
    });
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** The chosen one; none while none are known. */
  get chosen() {
    return this.#models.find(({ id }) => id === this.#parts.select.value) ?? null;
  }

  /** The chat is on the screen, or no longer. */
  set watched(watched) {
    this.#looking = watched;
    this.look();
  }

  async look() {
    clearTimeout(this.#timer);
    if (!this.#looking || document.hidden) return;
    const nextMs = await this.#refresh();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), nextMs);
  }

  async #refresh() {
    try {
      const all = await listModels();
      this.speaks = all.some(({ kind }) => kind === "speech");
      this.#fill(all.filter(chats));
      this.#show();
      return this.chosen?.state === "loading" ? LOADING_MS : SETTLED_MS;
    } catch (error) {
      this.#say("away", error.message);
      return AWAY_MS;
    }
  }

  /** An open menu is left alone unless there is something new in it. */
  #fill(models) {
    const { select } = this.#parts;
    const wanted = this.chosen?.id ?? recall().chatModel;
    const same = models.length === select.length && models.every(({ id }, index) => select.options[index].value === id);
    this.#models = models;
    if (same) return;
    select.replaceChildren(...models.map(({ id, name }) => new Option(name, id)));
    if (models.some(({ id }) => id === wanted)) select.value = wanted;
    select.disabled = models.length === 0;
  }

  #show() {
    const { chosen } = this;
    if (chosen) this.#say(STATES[chosen.state]?.dot ?? "unknown", `${chosen.name} ${STATES[chosen.state]?.text ?? "is there"}`);
    else this.#say("down", "No chat model yet");
    this.#onChange();
  }

  #say(dot, text) {
    this.#parts.state.dataset.state = dot;
    setText(this.#parts.stateText, text);
  }
}

/** A model without a template only continues texts. */
function chats({ kind, capabilities }) {
  return kind === "chat" && capabilities.includes("chat");
}

const STATES = {
  warm: { dot: "ready", text: "is warm" },
  cold: { dot: "cold", text: "is asleep; the first message wakes it" },
  loading: { dot: "loading", text: "is warming up" },
  down: { dot: "down", text: "does not start" },
};
