// What stands inside a line of Markdown: code, emphasis, links. Runs of `*`, `_` and `~` are paired with a stack,
// so the work stays in proportion to the text. Only http and https become links.

import { make } from "./dom.js";

// A paragraph this long is not prose; it is shown as it stands.
const INLINE_MAX_CHARACTERS = 5_000;
// Where something other than plain text may begin.
const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const ATOMS = [
  [/\\([!-/:-@[-`{-~])/y, ([, character]) => character],
  [/(`+)(?!`)([^]*?[^`])\1(?!`)/y, ([, , code]) => make("code", { textContent: code.replace(/^ (.*) $/s, "$1") })],
  [/!?\[((?:[^[\]\\]|\\.)*)\]\(<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\)/y, ([whole, text, address]) => link(address, labelNodes(text), whole)],
  [/<(https?:\/\/[^\s<>]+)>/y, ([whole, address]) => link(address, [address], whole)],
  // Brackets belong to the address in pairs only.
  [/https?:\/\/(?:[^\s<>"'`()]|\([^\s<>"'`()]*\))*(?:[^\s<>"'`().,:;!?*_~\]}]|\([^\s<>"'`()]*\))/y, ([address]) => link(address, [address], address)],
  [/\n/y, () => make("br")],
];
const ELEMENTS = { "*1": "em", "*2": "strong", "_1": "em", "_2": "strong", "~2": "del" };

/** @returns {(Node|string)[]} */
export function inlineNodes(text) {
  if (text.length > INLINE_MAX_CHARACTERS) return [text];
  return emphasised(piecesOf(text)).map((piece) => (isRun(piece) ? piece.mark.repeat(piece.count) : piece));
}

/** No link inside a link. */
function labelNodes(text) {
  return text.includes("://") ? [text] : inlineNodes(text);
}

function link(address, children, whole) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return whole;
  // A new tab: the conversation is only in this one's memory.
  return make("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, children);
}

/** Texts, finished nodes, and runs of emphasis marks that are not paired yet. */
function piecesOf(text) {
  const pieces = [];
  let plainFrom = 0;
  SPECIAL.lastIndex = 0;
  for (let found; (found = SPECIAL.exec(text)) !== null;) {
    const [length, piece] = runAt(text, found.index) ?? atomAt(text, found.index) ?? [0];
    if (length === 0) {
      SPECIAL.lastIndex = found.index + skipped(text, found.index);
      continue;
    }
    pieces.push(text.slice(plainFrom, found.index), piece);
    plainFrom = SPECIAL.lastIndex = found.index + length;
  }
  pieces.push(text.slice(plainFrom));
  return pieces.filter((piece) => piece !== "");
}

/** An unpaired run of backticks is passed as a whole: a part of it must not open code. */
function skipped(text, at) {
  return Math.max(1, /`*/y.exec(text.slice(at, at + 100))[0].length);
}

function atomAt(text, at) {
  for (const [pattern, draw] of ATOMS) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) return [match[0].length, draw(match)];
  }
  return null;
}

function runAt(text, at) {
  const mark = text[at];
  if (!"*_~".includes(mark)) return null;
  let end = at;
  while (text[end] === mark) end += 1;
  const [before, after] = [text[at - 1] ?? " ", text[end] ?? " "];
  // Next to a letter, `_` is part of a name or of a formula such as `x_{i}`.
  const isPart = (neighbour) => mark === "_" && /[\p{L}\p{N}]/u.test(neighbour);
  const opens = /\S/.test(after) && !isPart(before);
  const closes = /\S/.test(before) && !isPart(after);
  return [end - at, { mark, count: end - at, opens, closes }];
}

function isRun(piece) {
  return piece.mark !== undefined;
}

/** Each closing run is paired with the nearest run before it that can open the same kind. */
function emphasised(pieces) {
  const done = [];
  for (const piece of pieces) {
    done.push(piece);
    if (isRun(piece) && piece.closes) close(done);
  }
  return done;
}

function close(done) {
  const closer = done.pop();
  while (closer.count > 0) {
    const at = done.findLastIndex((piece) => isRun(piece) && piece.opens && piece.mark === closer.mark && pairs(piece, closer));
    if (at < 0) break;
    const opener = done[at];
    const count = Math.min(opener.count, closer.count, 2);
    const inner = done.splice(at + 1).map((piece) => (isRun(piece) ? piece.mark.repeat(piece.count) : piece));
    opener.count -= count;
    closer.count -= count;
    if (opener.count === 0) done.pop();
    done.push(make(ELEMENTS[closer.mark + count], {}, inner));
  }
  if (closer.count > 0) done.push(closer);
}

/** As in CommonMark: of runs that could both open and close, `**` does not end inside `***`. */
function pairs(opener, closer) {
  if (closer.mark === "~") return opener.count >= 2 && closer.count >= 2;
  const ambiguous = opener.closes || closer.opens;
  const uneven = (opener.count + closer.count) % 3 === 0 && (opener.count % 3 !== 0 || closer.count % 3 !== 0);
  return !(ambiguous && uneven);
}
