// What a plan takes of each memory: a bar as long as what is free, its terms one after the other, and a table of them.

import { make, setText } from "./dom.js";
import { basisText, gigabytes } from "./fit-text.js";

// Each has a colour of its own, in fit.css; a name that is new here shares the last.
const KINDS = ["weights", "repacked weights", "KV cache", "recurrent state", "computation", "process and vocabulary"];

/** One memory; drawn again for each answer, so that what is selected or focused stays. */
export class PoolRow {
  element = make("section", { className: "pool" });
  #name = make("h3");
  #said = make("p", { className: "pool-said" });
  #bar = make("div", { className: "pool-bar" });
  #margin = make("i", { className: "pool-margin" });
  #end = make("i", { className: "pool-end" });
  #terms = make("tbody");

  constructor() {
    this.#bar.setAttribute("role", "img");
    const heads = ["Part", "Size", "How it is known"].map((text) => make("th", { scope: "col", textContent: text }));
    const table = make("table", {}, [make("thead", {}, [make("tr", {}, heads)]), this.#terms]);
    this.element.append(make("div", { className: "pool-head" }, [this.#name, this.#said]), this.#bar, table);
    this.caption = make("caption", { className: "unseen" });
    table.prepend(this.caption);
  }

  /** @param {{pool: object, terms: object[]}} entry */
  draw({ pool, terms }) {
    const { name, free, margin, lacks, fits } = pool;
    // What does not fit goes beyond the end of what is free.
    const whole = Math.max(free + lacks, 1);
    const said = saidOf(pool);
    setText(this.#name, pool.pool === name ? name : `${name} (${pool.pool})`);
    setText(this.#said, said);
    setText(this.caption, `What is needed of ${name}`);
    this.element.dataset.fits = String(fits);
    this.#bar.setAttribute("aria-label", `${name}: ${said}`);
    this.#bar.replaceChildren(...terms.map((term) => partOf(term, pool, whole)), this.#margin, this.#end);
    place(this.#margin, { left: Math.max(0, free - margin), width: Math.min(margin, free) }, whole);
    place(this.#end, { left: free, width: whole - free }, whole);
    this.#end.hidden = free >= whole;
    this.#terms.replaceChildren(...terms.map(rowOf));
  }
}

function saidOf({ need, reclaimable, free, margin, lacks, fits }) {
  const back = reclaimable > 0 ? `, of which ${gigabytes(reclaimable)} can be given back` : "";
  const kept = margin > 0 ? `, and ${gigabytes(margin)} left alone` : "";
  const all = `${gigabytes(need)} of ${gigabytes(free)} free${back}${kept}`;
  return fits ? all : `${all}: lacks ${gigabytes(lacks)}`;
}

function kindOf(name) {
  const at = KINDS.indexOf(name);
  return String(at < 0 ? KINDS.length - 1 : at);
}

/** Pages of a mapped file that are given back are none that memory fills with. */
function partOf({ name, bytes }, { reclaimable }, whole) {
  const part = make("b");
  part.dataset.kind = kindOf(name);
  // Styles in markup are forbidden by the page's policy; those of the object model are not.
  const stays = name === "weights" ? Math.max(0, bytes - reclaimable) : bytes;
  part.style.width = `${(100 * stays) / whole}%`;
  return part;
}

function place(element, { left, width }, whole) {
  element.style.left = `${(100 * left) / whole}%`;
  element.style.width = `${(100 * width) / whole}%`;
}

function rowOf({ name, bytes, formula, basis }) {
  const swatch = make("i", { className: "swatch" });
  swatch.dataset.kind = kindOf(name);
  const head = make("th", { scope: "row" }, [swatch, name]);
  const known = make("td", {}, [basisText(basis), make("span", { className: "more", textContent: formula })]);
  return make("tr", {}, [head, make("td", { textContent: gigabytes(bytes) }), known]);
}
