// The menu of chat models, and whether the chosen model is in memory.
// Polls `/v1/models` every second while a model loads, otherwise every 30 s, and never while the tab is hidden.

import { listModels } from "./api.js";
import { setText } from "./dom.js";
import { recall, remember } from "./settings.js";

const LOADING_MS = 1_000;
const AWAY_MS = 4_000;
const SETTLED_MS = 30_000;

export class ChatModels {
  /** Whether a voice model can read answers aloud. */
  speaks = false;

  #models = [];
  #parts;
  #onChange;
  #timer = 0;
  #isShown = false;

  /** @param {{select: HTMLSelectElement, state: HTMLElement, stateText: HTMLElement}} parts */
  constructor(parts, onChange) {
    this.#parts = parts;
    this.#onChange = onChange;
    parts.select.addEventListener("change", () => {
      remember({ chatModel: parts.select.value });
      this.#show();
    });
    document.addEventListener("visibilitychange", () => this.refresh());
  }

  /** The chosen model, or null while no models are known. */
  get chosen() {
    return this.#models.find(({ id }) => id === this.#parts.select.value) ?? null;
  }

  /** Whether the tab is shown. */
  set watched(watched) {
    this.#isShown = watched;
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.#timer);
    if (!this.#isShown || document.hidden) return;
    const nextMs = await this.#update();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), nextMs);
  }

  async #update() {
    try {
      const all = await listModels();
      this.speaks = all.some(({ kind }) => kind === "speech");
      this.#fill(all.filter(chats));
      this.#show();
      return this.chosen?.state === "loading" ? LOADING_MS : SETTLED_MS;
    } catch (error) {
      this.#setState("away", error.message);
      return AWAY_MS;
    }
  }

  /** Changes the menu only if the models changed, because a change closes an open menu. */
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
    if (chosen) this.#setState(STATES[chosen.state]?.dot ?? "unknown", `${chosen.name} ${STATES[chosen.state]?.text ?? "is available"}`);
    else this.#setState("down", "No chat model yet");
    this.#onChange();
  }

  #setState(dot, text) {
    this.#parts.state.dataset.state = dot;
    setText(this.#parts.stateText, text);
  }
}

/** A model without a chat template only completes texts. */
function chats({ kind, capabilities }) {
  return kind === "chat" && capabilities.includes("chat");
}

const STATES = {
  warm: { dot: "ready", text: "is loaded" },
  cold: { dot: "cold", text: "is not loaded; the first message loads it" },
  loading: { dot: "loading", text: "is loading" },
  down: { dot: "down", text: "failed to start" },
};
