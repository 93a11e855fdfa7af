// The menu of one kind of models, and whether the chosen model is in memory.
// Polls `/v1/models` every second while a model loads, otherwise every 30 s, and never while the tab is hidden.

import { listModels } from "./api.js";
import { setText } from "./dom.js";
import { recall, remember } from "./settings.js";

const LOADING_MS = 1_000;
const AWAY_MS = 4_000;
const SETTLED_MS = 30_000;

export class ModelMenu {
  /** Models of every kind. */
  all = [];

  #models = [];
  #wanted; // the user's choice; a server that restarts may lack it for a while
  #parts;
  #wish;
  #onChange;
  #timer = 0;
  #isShown = false;

  /**
   * @param {{select: HTMLSelectElement, state: HTMLElement, stateText: HTMLElement}} parts
   * @param {{suits: (model: object) => boolean, setting: string, none: string, cold: string}} wish which models the
   * menu shows, the setting that remembers the choice, and the texts without a model and without a loaded one
   */
  constructor(parts, wish, onChange) {
    this.#parts = parts;
    this.#wish = wish;
    this.#onChange = onChange;
    this.#wanted = recall()[wish.setting];
    parts.select.addEventListener("change", () => {
      this.#wanted = parts.select.value;
      remember({ [wish.setting]: this.#wanted });
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
      this.all = await listModels();
      this.#fill(this.all.filter(this.#wish.suits));
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
    const wanted = [this.#wanted, this.chosen?.id].find((name) => models.some(({ id }) => id === name));
    const same = models.length === select.length && models.every(({ id }, index) => select.options[index].value === id);
    this.#models = models;
    if (same) return;
    select.replaceChildren(...models.map(({ id, name }) => new Option(name, id)));
    if (wanted) select.value = wanted;
    select.disabled = models.length === 0;
  }

  #show() {
    const { chosen } = this;
    if (chosen) this.#setState(STATES[chosen.state]?.dot ?? "unknown", `${chosen.name} ${this.#stateText(chosen.state)}`);
    else this.#setState("down", this.#wish.none);
    this.#onChange();
  }

  #stateText(state) {
    return state === "cold" ? this.#wish.cold : STATES[state]?.text ?? "is available";
  }

  #setState(dot, text) {
    this.#parts.state.dataset.state = dot;
    setText(this.#parts.stateText, text);
  }
}

const STATES = {
  warm: { dot: "ready", text: "is loaded" },
  cold: { dot: "cold" },
  loading: { dot: "loading", text: "is loading" },
  down: { dot: "down", text: "failed to start" },
};
