// Tables from descriptions of their columns. A `sortable` table sorts by any column, with blanks last; a `plain` one keeps its order.

/**
 * A column: `title` and `show(row)`; optional: `key`, its name in the page's address and in the style sheet, `sort(row)` for the value
 * to sort by, `term` for the definition or `meaning` for its text, `number` for right alignment, `first` for the first direction of
 * sorting (without it, `asc`), `head` for a row head, `look(row)` for a class.
 */
const column = (title, show, more = {}) => ({ title, show, ...more });
const numberColumn = (title, sort, show, more = {}) => ({ title, sort, show, number: true, ...more });

function cell(row, { title, show, sort, look, number: isNumber, head }) {
  const value = sort?.(row);
  const attributes = { "data-s": value === "" ? undefined : value, "data-label": title, scope: head ? "row" : undefined };
  return h(`${head ? "th" : "td"}${isNumber ? ".number" : ""}${look ? `.${look(row)}` : ""}`, attributes, show(row));
}

/** The value that a cell sorts by, or null. */
function sortValue(row, at) {
  const sorted = row.cells[at];
  const value = sorted.dataset.s ?? sorted.textContent.trim().toLowerCase();
  return value === "" ? null : value;
}

function order(one, other, way) {
  if (one === null || other === null) return (one === null) - (other === null);
  const difference = Number(one) - Number(other);
  const found = Number.isNaN(difference) ? one.localeCompare(other, "en", { numeric: true }) : difference;
  return way === "desc" ? -found : found;
}

function sortRows(rows, at, way) {
  const keyed = rows.map((row) => [sortValue(row, at), row]);
  return keyed.sort(([one], [other]) => order(one, other, way)).map(([, row]) => row);
}

/** The heads of a table, as buttons that call `act(column, index)`. */
function heads(columns, act) {
  return h("thead", h("tr", columns.map((one, at) => {
    const meaning = one.meaning ?? meaningOf(one.term);
    const button = h("button.sort", { type: "button", title: meaning }, h(meaning ? "span.term" : "span", one.title));
    button.addEventListener("click", () => act(one, at));
    return h(`th${one.number ? ".number" : ""}`, { scope: "col", "data-key": one.key }, button);
  })));
}

function markSorted(table, at, way) {
  findAll("thead th", table).forEach((head, index) => {
    if (index === at) head.setAttribute("aria-sort", way === "desc" ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

/** The direction after a press: the other one, or the first one of a column that was not sorted. */
const nextWay = (isSorted, way, one) => (isSorted ? (way === "desc" ? "asc" : "desc") : one.first ?? "asc");

/** A table that scrolls sideways where there is no room. */
const wide = (label, table) => h("div.wide", { role: "region", "aria-label": label, tabindex: 0 }, table);

/** A table that sorts by the column whose head is pressed. */
function sortable(label, className, columns, rows) {
  const body = h("tbody", rows.map((row) => h(`tr.${row.label ?? row.run?.label ?? "row"}`, columns.map((one) => cell(row, one)))));
  let [sortedBy, way] = [-1, ""];
  const table = h(`table.sortable.${className}`, heads(columns, (one, at) => {
    way = nextWay(sortedBy === at, way, one);
    sortedBy = at;
    body.replaceChildren(...sortRows([...body.rows], at, way));
    markSorted(table, at, way);
  }), body);
  return wide(label, table);
}

/** A table in its given order. */
function plain(label, className, columns, rows) {
  const head = ({ title, term: name, number: isNumber }) => h(`th${isNumber ? ".number" : ""}`, { scope: "col" }, name ? term(name, title) : title);
  const body = rows.map((row) => h("tr", columns.map((one) => cell(row, one))));
  return wide(label, h(`table.${className}`, h("thead", h("tr", columns.map(head))), h("tbody", body)));
}
