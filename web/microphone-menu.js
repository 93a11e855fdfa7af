// The menu of microphones. Every tab has one, and they share the remembered choice.

import { listMicrophones } from "./microphone.js";
import { recall, remember } from "./settings.js";

export class MicrophoneMenu {
  #select;
  #field;

  /** @param {HTMLSelectElement} select @param {HTMLElement} field is hidden without a choice */
  constructor(select, field) {
    this.#select = select;
    this.#field = field;
    select.addEventListener("change", () => remember({ microphone: select.value }));
  }

  get chosen() {
    return this.#select.value;
  }

  /** Only where there is a microphone to ask for. */
  watch() {
    this.refresh();
    navigator.mediaDevices.addEventListener("devicechange", () => this.refresh());
  }

  async refresh() {
    const microphones = await listMicrophones();
    // Another tab of the page may have changed it.
    const chosen = recall().microphone ?? this.#select.value;
    this.#select.replaceChildren(...microphones.map(({ id, name }) => new Option(name, id)));
    if (microphones.some(({ id }) => id === chosen)) this.#select.value = chosen;
    this.#field.hidden = microphones.length < 2;
  }
}
