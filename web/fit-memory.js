// The memory that a plan needs, by pool: a bar as long as the free memory, with a part for each term, and a table of them.

import { make, setText } from "./dom.js";
import { basisText, gigabytes } from "./fit-text.js";

// Each kind has its own colour in fit.css. Unknown kinds share the last colour.
const KINDS = ["weights", "repacked weights", "KV cache", "recurrent state", "computation", "process and vocabulary"];

/** One memory pool. It is redrawn for each answer, so that selection and focus stay. */
export class PoolRow {
  element = make("section", { className: "pool" });
  #name = make("h3");
  #summary = make("p", { className: "pool-said" });
  #bar = make("div", { className: "pool-bar" });
  #margin = make("i", { className: "pool-margin" });
  #end = make("i", { className: "pool-end" });
  #terms = make("tbody");

  constructor() {
    this.#bar.setAttribute("role", "img");
    const heads = ["Part", "Size", "Source"].map((text) => make("th", { scope: "col", textContent: text }));
    const table = make("table", {}, [make("thead", {}, [make("tr", {}, heads)]), this.#terms]);
    this.element.append(make("div", { className: "pool-head" }, [this.#name, this.#summary]), this.#bar, table);
    this.caption = make("caption", { className: "unseen" });
    table.prepend(this.caption);
  }

  /** @param {{pool: object, terms: object[]}} entry */
  draw({ pool, terms }) {
    const { name, free, margin, lacks, fits } = pool;
    // A part that does not fit extends beyond the free memory.
    const whole = Math.max(free + lacks, 1);
    const summary = summaryOf(pool);
    setText(this.#name, pool.pool === name ? name : `${name} (${pool.pool})`);
    setText(this.#summary, summary);
    setText(this.caption, `Memory needed in ${name}`);
    this.element.dataset.fits = String(fits);
    this.#bar.setAttribute("aria-label", `${name}: ${summary}`);
    this.#bar.replaceChildren(...terms.map((term) => partOf(term, pool, whole)), this.#margin, this.#end);
    place(this.#margin, { left: Math.max(0, free - margin), width: Math.min(margin, free) }, whole);
    place(this.#end, { left: free, width: whole - free }, whole);
    this.#end.hidden = free >= whole;
    this.#terms.replaceChildren(...terms.map(rowOf));
  }
}

function summaryOf({ need, reclaimable, free, margin, lacks, fits }) {
  const back = reclaimable > 0 ? `, of which ${gigabytes(reclaimable)} can be reclaimed` : "";
  const kept = margin > 0 ? `, and ${gigabytes(margin)} kept in reserve` : "";
  const all = `${gigabytes(need)} of ${gigabytes(free)} free${back}${kept}`;
  return fits ? all : `${all}: ${gigabytes(lacks)} missing`;
}

function kindOf(name) {
  const at = KINDS.indexOf(name);
  return String(at < 0 ? KINDS.length - 1 : at);
}

/** Reclaimable pages of a mapped file do not count as used memory. */
function partOf({ name, bytes }, { reclaimable }, whole) {
  const part = make("b");
  part.dataset.kind = kindOf(name);
  // The page's policy forbids styles in markup. It allows styles that a script sets.
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
