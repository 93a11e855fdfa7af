// Speed by context: a line with its range, and the chosen context as a point on it.
// The drawing is as wide as its place, so that letters keep their size. A table below has the same figures.

import { pace, range, shortTokens, tokens } from "./fit-text.js";

const NS = "http://www.w3.org/2000/svg";
const HEIGHT = 240;
const EDGE = { left: 44, right: 14, top: 14, bottom: 34 };
const SHORTEST = 512;
const ROWS = 4;
// Labels of ticks nearer to each other would overlap.
const TICK_PX = 40;

/** @param {{plan: object, trained: number}} entry with one known speed at least */
export function drawChart(svg, { plan, trained }) {
  const width = Math.max(240, svg.parentElement.clientWidth);
  const points = pointsOf(plan);
  const top = niceTop(Math.max(...points.map(({ high }) => high)));
  const scale = scaleOf(width, trained, top);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("height", HEIGHT);
  svg.setAttribute("aria-label", wordsOf(points, plan));
  svg.replaceChildren(
    ...beyond(plan, scale, trained),
    ...rows(scale, top),
    ...ticks(scale, trained),
    path("fit-range", `${line(points, scale, "high")} L${line([...points].reverse(), scale, "low").slice(1)} Z`),
    path("fit-line", line(points, scale, "tok_s")),
    ...points.map((point) => dot(point, scale, point === points.requested)),
    ...said(points.requested, scale),
  );
}

/** By context; the requested one is among them. */
function pointsOf({ decode, decode_requested: requested }) {
  const others = decode.filter(({ tok_s, context }) => tok_s !== null && context !== requested.context);
  const points = [...others, requested].sort((one, other) => one.context - other.context);
  return Object.assign(points, { requested });
}

function scaleOf(width, trained, top) {
  const [from, to] = [Math.log2(SHORTEST), Math.log2(Math.max(trained, 2 * SHORTEST))];
  const [wide, high] = [width - EDGE.left - EDGE.right, HEIGHT - EDGE.top - EDGE.bottom];
  return {
    width,
    x: (context) => EDGE.left + (wide * (Math.log2(Math.max(context, SHORTEST)) - from)) / (to - from),
    y: (tokS) => EDGE.top + high * (1 - tokS / top),
  };
}

/** 1, 2 or 5 of some power of ten for each row. */
function niceTop(high) {
  const row = high / ROWS;
  const power = 10 ** Math.floor(Math.log10(row));
  return ROWS * power * [1, 2, 2.5, 5, 10].find((step) => step * power >= row * 0.999);
}

function line(points, { x, y }, field) {
  return points.map((point, index) => `${index === 0 ? "M" : "L"}${x(point.context).toFixed(1)} ${y(point[field]).toFixed(1)}`).join(" ");
}

/** Where it no longer fits. */
function beyond({ context: { max } }, { x, y, width }, trained) {
  if (max === null || max >= trained) return [];
  const [left, right] = [x(max), width - EDGE.right];
  const area = { class: "fit-beyond", x: left, y: EDGE.top, width: Math.max(0, right - left), height: y(0) - EDGE.top };
  const roomy = right - left > 70;
  return [node("rect", area), ...(roomy ? [text("does not fit", { class: "fit-note", x: right - 6, y: EDGE.top + 16, "text-anchor": "end" })] : [])];
}

function rows({ y, width }, top) {
  return Array.from({ length: ROWS + 1 }, (_, row) => (top * row) / ROWS).flatMap((tokS) => [
    node("line", { class: "fit-row", x1: EDGE.left, x2: width - EDGE.right, y1: y(tokS), y2: y(tokS) }),
    text(tokS === 0 ? "0" : String(Number(tokS.toPrecision(3))), { class: "fit-tick", x: EDGE.left - 8, y: y(tokS) + 4, "text-anchor": "end" }),
  ]);
}

/** Doublings, as many as there is room for, and the end. */
function ticks({ x }, trained) {
  const doublings = [];
  for (let context = SHORTEST; context < trained; context *= 2) doublings.push(context);
  const kept = [trained];
  for (const context of doublings.reverse()) if (x(kept[0]) - x(context) >= TICK_PX) kept.unshift(context);
  return kept.map((context) => text(shortTokens(context), { class: "fit-tick", x: x(context), y: HEIGHT - 12, "text-anchor": "middle" }));
}

function dot({ context, tok_s: tokS }, { x, y }, isRequested) {
  return node("circle", { class: isRequested ? "fit-requested" : "fit-dot", cx: x(context), cy: y(tokS), r: isRequested ? 6 : 3 });
}

/** Beside the point, on the side where there is room; the curve falls, so that it is free below on the left and above on the right. */
function said(requested, { x, y, width }) {
  const at = x(requested.context);
  const isLeft = at > width / 2;
  const height = isLeft ? Math.min(y(requested.low) + 20, y(0) - 6) : Math.max(y(requested.high) - 6, EDGE.top + 12);
  const place = { class: "fit-said", x: at + (isLeft ? -10 : 10), y: height, "text-anchor": isLeft ? "end" : "start" };
  return [text(`${pace(requested.tok_s)} tokens/s`, place)];
}

function wordsOf(points, { context: { max } }) {
  const [first, last] = [points[0], points.at(-1)];
  const { requested } = points;
  const falls = points.length > 1 ? `From ${pace(first.tok_s)} tokens per second at ${tokens(first.context)} tokens of context to ${pace(last.tok_s)} at ${tokens(last.context)}. ` : "";
  const ends = max === null ? "" : ` It fits up to ${tokens(max)}.`;
  return `${falls}At ${tokens(requested.context)}: ${pace(requested.tok_s)} tokens per second, ${range(requested)}.${ends}`;
}

function path(name, d) {
  return node("path", { class: name, d });
}

function text(content, attributes) {
  const element = node("text", attributes);
  element.textContent = content;
  return element;
}

function node(tag, attributes) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
