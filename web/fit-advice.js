// What follows from a plan: warnings with their remedy, other ways to run the model, and flags for each engine.

import { copyText } from "./clipboard.js";
import { make, setText } from "./dom.js";
import { gigabytes, kvText, pace, tokens } from "./fit-text.js";

export class WarningRow {
  element = make("li", { className: "fit-warning" });
  #text = make("span");
  #action = make("span", { className: "fit-action" });

  constructor() {
    this.element.append(this.#text, " ", this.#action);
  }

  draw({ text, action }) {
    setText(this.#text, sentence(text));
    setText(this.#action, `What helps: ${action}.`);
  }
}

export class FlagsRow {
  element = make("li", { className: "fit-flags" });
  #engine = make("h3");
  #copy = make("button", { className: "quiet", type: "button", textContent: "Copy" });
  #code = make("code");

  constructor() {
    this.#copy.onclick = () => copyText(this.#copy, this.#code.textContent);
    // The text scrolls sideways, with keys too.
    const shown = make("pre", { tabIndex: 0 }, [this.#code]);
    this.element.append(make("div", { className: "fit-flags-head" }, [this.#engine, this.#copy]), shown);
  }

  draw({ engine, text }) {
    setText(this.#engine, engine);
    setText(this.#code, text);
    this.#copy.setAttribute("aria-label", `Copy the flags for ${engine}`);
  }
}

export class WayRow {
  element = make("tr");
  #cells = [make("th", { scope: "row" }), make("td"), make("td"), make("td")];

  constructor() {
    this.element.append(...this.#cells);
  }

  draw(plan) {
    const { placement, fits, context, decode_requested: rate } = plan;
    const longest = context.max === null ? "none" : tokens(context.max);
    const said = [placeText(placement), kvText(plan), longest, fits ? pace(rate.tok_s) : "does not fit"];
    said.forEach((text, index) => setText(this.#cells[index], text));
  }
}

/** An alternative for the same model. It is a link where this hob has the model in that quant. */
export class InsteadRow {
  element = make("li", { className: "fit-instead" });
  #toward = make("b");
  #what = make("a");
  #said = make("span");

  constructor() {
    this.element.append(this.#toward, " ", this.#what, this.#said);
  }

  draw({ toward, quant, placement, tok_s: tokS, max, bytes, address, ...kv }) {
    const speed = tokS === null ? [] : [`${pace(tokS)} tokens/s`];
    const said = [placeText(placement), ...speed, `${tokens(max)} tokens at most`, gigabytes(bytes)];
    setText(this.#toward, TOWARD[toward] ?? toward);
    setText(this.#what, `${quant}, ${kvText(kv)}`);
    setText(this.#said, `: ${said.join(", ")}.`);
    // Without an address, it is text and not a link.
    if (address) this.#what.href = address;
    else this.#what.removeAttribute("href");
  }
}

const TOWARD = { faster: "Faster", longer: "Longer", better: "More exact", fits: "Fits" };

const PLACES = {
  vram: () => "All on the card",
  unified: () => "In unified memory",
  ram: () => "In RAM, by the processor",
  experts_in_ram: (layers) => `Experts of ${layers} layers in RAM, all else on the card`,
  split: (layers) => `${layers} layers on the card, the others by the processor`,
};

function placeText({ kind, layers, text }) {
  // With several cards, it has their numbers.
  if (text.includes("GPU")) return capitalised(text);
  return PLACES[kind]?.(layers) ?? text;
}

function sentence(text) {
  return `${capitalised(text)}.`;
}

function capitalised(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
