// The page of benchmarks. `records.js` defines `benchmarks`; this script draws it and changes nothing.
// Texts of records become text nodes only, so that no record can add markup.
"use strict";

const SVG_ELEMENTS = new Set(["svg", "g", "path", "rect", "circle", "text"]);

/** Makes an element: `h("td.number", { title: "…" }, "text", element, [more])`. Absent children and attributes are skipped. */
function h(selector, ...rest) {
  const [tag, ...classes] = selector.split(".");
  const made = SVG_ELEMENTS.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  if (classes.length > 0) made.setAttribute("class", classes.join(" "));
  const isAttributes = rest[0]?.constructor === Object;
  for (const [name, value] of Object.entries(isAttributes ? rest.shift() : {})) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...rest.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return made;
}

const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];
const joined = (parts, by = " · ") => parts.filter((part) => part !== undefined && part !== null && part !== false && part !== "").join(by);

/** Three significant digits, or two below 1, with at most three decimals. Keeps all digits before the point: `0.19`, `17.8`, `195,072`. */
function number(value) {
  const size = Math.abs(value);
  const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;
  let text = value.toFixed(decimals);
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  const [whole, rest] = text.split(".");
  return joined([whole.replace(/\B(?=(\d{3})+$)/g, ","), rest], ".");
}

/** Milliseconds from here on are written as seconds. */
const MS_MAX = 10_000;

/** A value with its unit. */
function figure(value, unit) {
  if (value === undefined || value === null) return "";
  if (unit === "ms" && Math.abs(value) >= MS_MAX) return `${number(value / 1000)} s`;
  return unit === "×" ? `${number(value)}×` : joined([number(value), unit], " ");
}

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A spread as text: its median, or its mean, or the range that stands for it. */
function spreadText(spread, unit) {
  const write = (value) => figure(value, unit);
  if (spread.p50 !== undefined) return write(spread.p50);
  if (spread.mean !== undefined) return `${write(spread.mean)} (mean)`;
  if (spread.min !== undefined && spread.max !== undefined) return `${write(spread.min)} to ${write(spread.max)}`;
  if (spread.min !== undefined) return `at least ${write(spread.min)}`;
  if (spread.max !== undefined) return `at most ${write(spread.max)}`;
  return spread.p95 === undefined ? "–" : `p95 ${write(spread.p95)}`;
}

/** A range as elements: `9–12`, `84 ms`. The column's title names `tok/s`. */
function rangeText(range, unit) {
  if (!range) return null;
  const inSeconds = unit === "ms" && Math.abs(range[1]) >= MS_MAX;
  const [low, high] = range.map((value) => number(inSeconds ? value / 1000 : value));
  const shown = inSeconds ? "s" : unit;
  return [low === high ? low : `${low}–${high}`, shown && shown !== "tok/s" ? [" ", h("span.unit", shown)] : null];
}

const TERMS = new Map(benchmarks.terms.map((term) => [term.name, term]));
const unitOf = (metric) => TERMS.get(metric)?.unit ?? "";
const titleOf = (metric) => TERMS.get(metric)?.title ?? metric;
const isMoreBetter = (metric) => TERMS.get(metric)?.better === "more";

/** The definition of a term: meaning and formula. */
const meaningOf = (name) => (TERMS.has(name) ? joined([TERMS.get(name).meaning, TERMS.get(name).formula], " ") : undefined);

/** A word that explains itself. */
const term = (name, shown = titleOf(name)) => (TERMS.has(name) ? h("span.term", { tabindex: 0, title: meaningOf(name) }, shown) : shown);

const DOUBTS = new Map(benchmarks.doubts);

/** The state in the address: `#conc=4&sort=gen`. */
const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function writeAddress(state) {
  const known = Object.entries(state).filter(([, value]) => value);
  const hash = `#${new URLSearchParams(known)}`;
  try {
    history.replaceState(null, "", hash === "#" ? location.pathname + location.search : hash);
  } catch {
    location.hash = hash;
  }
}

const addressOf = (view, state) => `${view}.html#${new URLSearchParams(state)}`;
const modelLink = (run) => h("a", { href: addressOf("model", { name: run.model_slug }) }, run.record.model.name);
const machineLink = (run) => h("a", { href: addressOf("machine", { name: run.machine_slug }) }, run.hardware);
const runLink = (run) => h("a.run", { href: addressOf("run", { id: run.record.id }) }, run.short_id);

/** Whether a run's figures can be relied on, with the reasons, and who measured if that was not hob. */
function badge(run, label = run.label) {
  const reasons = label === "failed" ? run.record.invalid_reasons : run.doubts.map((doubt) => DOUBTS.get(doubt));
  const title = label === "verified" ? undefined : reasons.join("; ");
  return [
    h(`span.badge.${label}`, { title, tabindex: title === undefined ? undefined : 0 }, label),
    run.origin === "hob" ? null : [" ", h("span.origin", run.origin)],
  ];
}

/** The head of a page. */
const titled = (title, ...sub) => h("div.title", h("h1", title), h("p.sub", sub));
const section = (title, ...children) => h("section", h("h2", title), children);
const none = (...children) => h("p.none", children);
