// The Markdown that chat models write, as elements: headings, paragraphs, lists, quotes, tables, code.
// No markup is ever parsed: HTML in an answer is text, pictures are links, and nothing is fetched.

import { copyText } from "./clipboard.js";
import { make } from "./dom.js";
import { inlineNodes } from "./markdown-inline.js";

// A block is settled when this many complete lines follow it: two lines make a table, and the last line may still change.
const LOOKAHEAD_LINES = 2;
// Deeper lists and quotes are shown as text; recursion has an end whatever the model repeats.
const DEPTH_MAX = 8;

// Models indent what belongs to an item by two to four, whatever its mark's width.
const CHILD_INDENT = 2;

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,}) *(\S*)/;
const HEADING = /^ {0,3}(#{1,6})(?= |$)(.*)$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|(\d{1,9})[.)])( +|$)/;
// Expects a trimmed line: two patterns in a row that both take spaces would try every way to share them.
const TABLE_RULE = /^\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?$/;
const BLANK = /^\s*$/;

/** The whole text as nodes. */
export function markdownNodes(text, depth = 0) {
  return blocksOf(text.split("\n"), depth).map((block) => block.draw());
}

/** Shows a text that grows. It redraws only the end: settled blocks stay as they are. */
export class MarkdownView {
  #element;
  #text = "";
  #settled = 0; // characters whose elements stay
  #open = []; // elements after those

  constructor(element) {
    this.#element = element;
  }

  show(text) {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text)) this.#clear();
    this.#text = text;
    const lines = text.slice(this.#settled).split("\n");
    const blocks = blocksOf(lines, 0);
    const nodes = blocks.map((block) => block.draw());
    for (const node of this.#open) node.remove();
    for (const node of nodes) this.#element.append(node);
    const settled = blocks.findLastIndex((_, index) => blocks[index + 1]?.start < lines.length - LOOKAHEAD_LINES) + 1;
    this.#open = nodes.slice(settled);
    if (settled > 0) this.#settled += lines.slice(0, blocks[settled - 1].end).join("\n").length + 1;
  }

  #clear() {
    this.#element.replaceChildren();
    this.#settled = 0;
    this.#open = [];
  }
}

/** @returns {{start: number, end: number, draw: () => Node}[]} `start` is its first line, `end` the one after its last */
function blocksOf(lines, depth) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (BLANK.test(lines[at])) {
      at += 1;
      continue;
    }
    const block = blockAt(lines, at, depth);
    blocks.push({ start: at, ...block });
    at = block.end;
  }
  return blocks;
}

function blockAt(lines, at, depth) {
  const line = lines[at];
  if (FENCE.test(line)) return codeAt(lines, at);
  if (HEADING.test(line)) return headingAt(lines, at);
  if (RULE.test(line)) return { end: at + 1, draw: () => make("hr") };
  if (isTable(lines, at)) return tableAt(lines, at);
  if (depth < DEPTH_MAX && QUOTE.test(line)) return quoteAt(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return listAt(lines, at, depth);
  return paragraphAt(lines, at);
}

/** Of a paragraph: what may follow it without a blank line. */
function beginsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

/** The first line, `from` on, for which it holds, or the end. */
function lineWhere(lines, from, holds) {
  let at = from;
  while (at < lines.length && !holds(lines[at], at)) at += 1;
  return at;
}

/** Without its closing fence, the code goes to the end: it is still being written. */
function codeAt(lines, at) {
  const [, fence, language] = FENCE.exec(lines[at]);
  const closing = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}\\s*$`);
  const close = lineWhere(lines, at + 1, (line) => closing.test(line));
  const code = lines.slice(at + 1, close).join("\n");
  return { end: Math.min(close + 1, lines.length), draw: () => codeBlock(code, language) };
}

function codeBlock(code, language) {
  const copy = make("button", { type: "button", textContent: "Copy", onclick: () => copyText(copy, code) });
  // Reached by keyboard, so that long lines can be scrolled without a mouse.
  const pre = make("pre", { tabIndex: 0 }, [make("code", { textContent: code })]);
  const head = make("div", { className: "code-head" }, [make("span", { textContent: language }), copy]);
  return make("div", { className: "code" }, [head, pre]);
}

/** Under the page's own headings, so that its outline stays true. */
function headingAt(lines, at) {
  const [, marks, rest] = HEADING.exec(lines[at]);
  const text = rest.trim().replace(/(?:^| )#+$/, "");
  return { end: at + 1, draw: () => make(`h${Math.min(6, marks.length + 2)}`, {}, inlineNodes(text)) };
}

function quoteAt(lines, at, depth) {
  const end = lineWhere(lines, at, (line) => !QUOTE.test(line));
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return { end, draw: () => make("blockquote", {}, markdownNodes(inner.join("\n"), depth + 1)) };
}

function listAt(lines, at, depth) {
  const [, indent, mark, start] = ITEM.exec(lines[at]);
  const items = [];
  let end = at;
  for (let next = at; next < lines.length && isItemLike(lines[next], indent.length, mark);) {
    end = itemEnd(lines, next);
    items.push(itemText(lines.slice(next, end)));
    next = lineWhere(lines, end, (line) => !BLANK.test(line));
  }
  const drawItem = (text) => make("li", {}, markdownNodes(text, depth + 1));
  const list = start === undefined ? ["ul", {}] : ["ol", { start: Number(start) }];
  return { end, draw: () => make(...list, items.map(drawItem)) };
}

/** Another item of the same list: the same kind of mark, and no deeper than a child's would be. */
function isItemLike(line, indent, mark) {
  const item = RULE.test(line) ? null : ITEM.exec(line);
  return item !== null && Math.abs(item[1].length - indent) < CHILD_INDENT && item[2].at(-1) === mark.at(-1);
}

/** What is indented belongs to the item, after blank lines, too; so does the rest of its paragraph. */
function itemEnd(lines, at) {
  const inner = indentOf(lines[at]) + CHILD_INDENT;
  let end = at + 1;
  for (let next = end; next < lines.length; next += 1) {
    const line = lines[next];
    if (BLANK.test(line)) continue;
    const afterBlank = next > end;
    const belongs = indentOf(line) >= inner || (!afterBlank && !beginsBlock(line));
    if (!belongs) break;
    end = next + 1;
  }
  return end;
}

function itemText([first, ...rest]) {
  const width = ITEM.exec(first)[0].length;
  const shift = rest.map(indentOf).filter((indent) => indent > 0).reduce((least, indent) => Math.min(least, indent), width);
  const inner = rest.map((line) => line.slice(Math.min(indentOf(line), shift)));
  return [first.slice(width), ...inner].join("\n");
}

function indentOf(line) {
  return BLANK.test(line) ? 0 : line.search(/\S/);
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1].trim());
}

function tableAt(lines, at) {
  const end = lineWhere(lines, at + 2, (line) => BLANK.test(line) || !line.includes("|"));
  const row = (line, tag) => make("tr", {}, cellsOf(line).map((cell) => make(tag, {}, inlineNodes(cell))));
  const head = () => make("thead", {}, [row(lines[at], "th")]);
  const body = () => make("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td")));
  return { end, draw: () => make("div", { className: "table", tabIndex: 0 }, [make("table", {}, [head(), body()])]) };
}

/** A bar after a backslash is part of its cell, also in code. */
function cellsOf(line) {
  const cells = line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraphAt(lines, at) {
  const ends = (line, index) => BLANK.test(line) || beginsBlock(line) || isTable(lines, index);
  const end = lineWhere(lines, at + 1, ends);
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return { end, draw: () => make("p", {}, inlineNodes(text)) };
}
