// Draws entries as rows. An entry keeps its row and element as long as its key is shown, so focus and selection stay.

/** A row is an object with an `element` and `draw(entry)`. */
export class Rows {
  #list;
  #keyOf;
  #makeRow;
  #rows = new Map();

  constructor(list, keyOf, makeRow) {
    this.#list = list;
    this.#keyOf = keyOf;
    this.#makeRow = makeRow;
  }

  show(entries) {
    const kept = new Map();
    for (const entry of entries) {
      const key = this.#keyOf(entry);
      const row = this.#rows.get(key) ?? this.#makeRow();
      row.draw(entry);
      kept.set(key, row);
    }
    for (const [key, row] of this.#rows) if (!kept.has(key)) row.element.remove();
    this.#rows = kept;
    this.#order([...kept.values()]);
  }

  /** A moved element loses its selection, so only rows in the wrong place are moved. */
  #order(rows) {
    rows.forEach(({ element }, index) => {
      const there = this.#list.children[index] ?? null;
      if (there !== element) this.#list.insertBefore(element, there);
    });
  }
}
