// A row of the Now tab's table "Last hour": one requested name with its medians, 95th percentiles and counts.

import { make, setText } from "./dom.js";
import { msText } from "./now-text.js";

export class HourRow {
  element = make("tr");
  #name = make("th", { scope: "row" });
  #requests = new Cell();
  #warm = new Cell();
  #cold = new Cell();
  #total = new Cell();
  #rate = new Cell();

  constructor() {
    const cells = [this.#requests, this.#warm, this.#cold, this.#total, this.#rate];
    this.element.append(this.#name, ...cells.map(({ element }) => element));
  }

  draw({ name, requests, more, failed, ttft_warm, ttft_cold, total, tokens_per_s: rate }) {
    setText(this.#name, name);
    this.#requests.draw(`${requests.toLocaleString("en")}${more ? "+" : ""}`, failed > 0 ? `${failed} failed` : "");
    this.#warm.drawTimes(ttft_warm);
    this.#cold.drawTimes(ttft_cold);
    this.#total.drawTimes(total);
    this.#rate.draw(rate.n === 0 ? "–" : rate.p50.toFixed(rate.p50 < 10 ? 1 : 0), countText(rate.n));
  }
}

/** A number with notes below it. */
class Cell {
  element = make("td");
  #value = make("span", { className: "value" });
  #extra = make("span", { className: "more" });
  #count = make("span", { className: "more" });

  constructor() {
    this.element.append(this.#value, this.#extra, this.#count);
  }

  draw(value, extra, count = "") {
    setText(this.#value, value);
    setText(this.#extra, extra);
    setText(this.#count, count);
  }

  drawTimes({ p50, p95, n }) {
    if (n === 0) this.draw("–", "");
    else if (p95 === null) this.draw(msText(p50), countText(n));
    else this.draw(msText(p50), `p95 ${msText(p95)}`, countText(n));
  }
}

function countText(n) {
  return n === 0 ? "" : `of ${n.toLocaleString("en")}`;
}
