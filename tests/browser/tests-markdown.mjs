// Markdown and event streams as data: what goes in, what must come out. No server is asked.
// `innerHTML` is only read here, to say in one line what was built.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, openPage } from "./browsers.mjs";

const LINK = 'target="_blank" rel="noopener noreferrer"';
const CASES = [
  ["One\ntwo\n\nthree", "<p>One<br>two</p><p>three</p>"],
  ["# A\n## B ##\n####### C\n#no", "<h3>A</h3><h4>B</h4><p>####### C<br>#no</p>"],
  ["**b** *i* ***both*** _u_ __s__ ~~gone~~", "<p><strong>b</strong> <em>i</em> <em><strong>both</strong></em> <em>u</em> <strong>s</strong> <del>gone</del></p>"],
  ["**b *i* b** and *i **b** i*", "<p><strong>b <em>i</em> b</strong> and <em>i <strong>b</strong> i</em></p>"],
  ["snake_case_name, 2 * 3 * 4, **open, a*b*c, ~one~", "<p>snake_case_name, 2 * 3 * 4, **open, a<em>b</em>c, ~one~</p>"],
  ["\\*not\\* `a * b` ``c ` d`` `open", "<p>*not* <code>a * b</code> <code>c ` d</code> `open</p>"],
  ["- a\n- b\n  - c\n    more\n- d\n\n  e", "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c<br>more</p></li></ul></li><li><p>d</p><p>e</p></li></ul>"],
  ["3. a\n4. b\n   ```\n   x\n     y\n   ```\n5. c", "<ol start=\"3\"><li><p>a</p></li><li><p>b</p>[code::x\n  y]</li><li><p>c</p></li></ol>"],
  ["1. a\n\n2. b\n- c", "<ol start=\"1\"><li><p>a</p></li><li><p>b</p></li></ol><ul><li><p>c</p></li></ul>"],
  ["Text:\n```rust\nlet a = 1 < 2;\n\n**x**\n```\nafter", "<p>Text:</p>[code:rust:let a = 1 &lt; 2;\n\n**x**]<p>after</p>"],
  ["~~~\n```\n~~~\n```js\nopen", "[code::```][code:js:open]"],
  ["> a\n> > b\n\nc\n***", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p><hr>"],
  ["| a | b |\n|:--|--:|\n| 1 | `2` |\n\na | b", "[table:<tr><th>a</th><th>b</th></tr>:<tr><td>1</td><td><code>2</code></td></tr>]<p>a | b</p>"],
  ["[a *b*](https://x.org/y_(z)) <http://x.org> https://x.org/a, ok", `<p><a href="https://x.org/y_(z)" ${LINK}>a <em>b</em></a> <a href="http://x.org/" ${LINK}>http://x.org</a> <a href="https://x.org/a" ${LINK}>https://x.org/a</a>, ok</p>`],
  ["[https://a.org](https://b.org) ![pic](https://x.org/p.png)", `<p><a href="https://b.org/" ${LINK}>https://a.org</a> <a href="https://x.org/p.png" ${LINK}>pic</a></p>`],
  ["[a](javascript:alert(1)) [b](data:text/html,x) [c](//x.org) [d](JaVaScRiPt:1) [e](file:///etc)", "<p>[a](javascript:alert(1)) [b](data:text/html,x) [c](//x.org) [d](JaVaScRiPt:1) [e](file:///etc)</p>"],
  ["<script>alert(1)</script> <img src=x onerror=alert(1)> &lt;b&gt;", "<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt; &amp;lt;b&amp;gt;</p>"],
  ["[x](https://x.org/\"onclick=\"alert(1))", `<p><a href="https://x.org/%22onclick=%22alert(1)" ${LINK}>x</a></p>`],
  ["| a \\| b | `c \\|\\| d` |\n|--|--|\n| 1 \\| | 2 |", "[table:<tr><th>a | b</th><th><code>c || d</code></th></tr>:<tr><td>1 |</td><td>2</td></tr>]"],
  ["$x_{i} + y_{j}$ and _(u)_ and f(_v_)", "<p>$x_{i} + y_{j}$ and <em>(u)</em> and f(<em>v</em>)</p>"],
  ["See https://x.org/y_(z). (https://x.org/a), (https://x.org/b)", `<p>See <a href="https://x.org/y_(z)" ${LINK}>https://x.org/y_(z)</a>. (<a href="https://x.org/a" ${LINK}>https://x.org/a</a>), (<a href="https://x.org/b" ${LINK}>https://x.org/b</a>)</p>`],
  ["```\"><img src=x onerror=alert(1)>\n</code><script>\n```", "[code:\"&gt;&lt;img:&lt;/code&gt;&lt;script&gt;]"],
];
// What would take for ever, or overflow, if the work were not in proportion to the text.
const HEAVY = ["http://(", "http://a(b)", "*a _b ", "`a ``b ", "[", "![a](", "> ", "- ", "  - a\n", "- \n", "*a**", "| a |\n|-|\n", "**", "http://", "# ", "\\", "_a*_a*", "\n", " #"];
const HEAVY_LINES = ["a | b\n" + " ".repeat(100_000) + "x", "- a\n" + " ".repeat(100_000) + "x", "# " + " ".repeat(100_000) + "x"];

export function markdownTests(setting) {
  test("Markdown becomes elements, and markup stays text", LIMIT, () => becomesElements(setting));
  test("a text that grows looks as if it had come at once", LIMIT, () => grows(setting));
  test("settled blocks are not drawn again", LIMIT, () => settles(setting));
  test("no text takes the page down", LIMIT, () => heavy(setting));
  test("an answer cannot run code", LIMIT, () => harmless(setting));
  test("wherever events are cut, the same come out", LIMIT, () => eventsInPieces(setting));
}

async function becomesElements(setting) {
  const { page, complaints } = await openPage(setting, setting.url);
  const drawn = await page.evaluate(async (texts) => {
    const { markdownNodes } = await import("./markdown.js");
    return texts.map((text) => {
      const element = document.createElement("div");
      element.append(...markdownNodes(text));
      return element.innerHTML;
    });
  }, CASES.map(([text]) => text));
  assert.deepEqual(drawn.map(brief), CASES.map(([, html]) => html));
  assert.deepEqual(complaints, []);
  await page.close();
}

/** The frame around code and tables is the same for all. */
function brief(html) {
  return html
    .replace(/<div class="code"><div class="code-head"><span>(.*?)<\/span><button type="button">Copy<\/button><\/div><pre tabindex="0"><code>(.*?)<\/code><\/pre><\/div>/gs, "[code:$1:$2]")
    .replace(/<div class="table" tabindex="0"><table><thead>(.*?)<\/thead><tbody>(.*?)<\/tbody><\/table><\/div>/gs, "[table:$1:$2]");
}

async function grows(setting) {
  const { page } = await openPage(setting, setting.url);
  const differing = await page.evaluate(async (texts) => {
    const { MarkdownView, markdownNodes } = await import("./markdown.js");
    const whole = (text) => {
      const element = document.createElement("div");
      element.append(...markdownNodes(text));
      return element.innerHTML;
    };
    const all = [...texts, texts.join("\n\n"), texts.join("\n")];
    return all.filter((text) => [1, 2, 7].some((step) => {
      const element = document.createElement("div");
      const view = new MarkdownView(element);
      for (let end = 0; end <= text.length + step; end += step) view.show(text.slice(0, end));
      return element.innerHTML !== whole(text);
    }));
  }, CASES.map(([text]) => text));
  assert.deepEqual(differing, []);
  await page.close();
}

async function settles(setting) {
  const { page } = await openPage(setting, setting.url);
  const kept = await page.evaluate(async () => {
    const { MarkdownView } = await import("./markdown.js");
    const element = document.createElement("div");
    const view = new MarkdownView(element);
    view.show("First.\n\nSecond.\n\nThird.\n\nFou");
    const before = [...element.children];
    view.show("First.\n\nSecond.\n\nThird.\n\nFourth.");
    const same = [...element.children].map((child, index) => child === before[index]);
    view.show("Another.");
    return { same, text: element.textContent };
  });
  assert.deepEqual(kept, { same: [true, true, false, false], text: "Another." });
  await page.close();
}

async function heavy(setting) {
  const { page } = await openPage(setting, setting.url);
  const slow = await page.evaluate(async ([seeds, lines]) => {
    const { markdownNodes } = await import("./markdown.js");
    const tookMs = (text) => {
      const from = performance.now();
      markdownNodes(text);
      return performance.now() - from;
    };
    const texts = seeds.flatMap((seed) => [4_900, 100_000].map((length) => [seed, seed.repeat(length / seed.length)]));
    texts.push(...lines.map((line) => [line.slice(0, 10), line]));
    return texts.map(([seed, text]) => [seed, text.length, tookMs(text)]).filter(([, , ms]) => ms > 10_000);
  }, [HEAVY, HEAVY_LINES]);
  assert.deepEqual(slow, []);
  await page.close();
}

async function harmless(setting) {
  const { page, complaints } = await openPage(setting, setting.url);
  const seen = await page.evaluate(async (texts) => {
    const { MarkdownView } = await import("./markdown.js");
    const element = document.createElement("div");
    document.body.append(element);
    new MarkdownView(element).show(texts.join("\n\n"));
    const count = (selector) => element.querySelectorAll(selector).length;
    const handlers = [...element.querySelectorAll("*")].flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith("on"));
    return { foreign: count("script, img, iframe, style, object, form, input, svg"), handlers, shown: element.innerText.includes("<script>alert(1)</script>") };
  }, CASES.map(([text]) => text));
  assert.deepEqual(seen, { foreign: 0, handlers: [], shown: true });
  assert.deepEqual(complaints, []);
  await page.close();
}

async function eventsInPieces(setting) {
  const { page } = await openPage(setting, setting.url);
  const seen = await page.evaluate(async () => {
    const { SseReader } = await import("./sse.js");
    const stream = ": hob\n\nevent: x\ndata: {\"a\":\"☕ é\"}\n\ndata:one\r\ndata: two\r\n\r\nid: 3\rdata:  three\r\r\n\ndata\n\ndata: [DONE]\n\ndata: never ended";
    const bytes = new TextEncoder().encode(stream);
    const read = (step) => {
      const reader = new SseReader();
      const events = [];
      for (let at = 0; at < bytes.length; at += step) events.push(...reader.push(bytes.slice(at, at + step)));
      return JSON.stringify(events);
    };
    const all = new Set(Array.from({ length: bytes.length }, (_, index) => read(index + 1)));
    let refused = "";
    try {
      const reader = new SseReader();
      for (let i = 0; i < 30; i++) reader.push(new Uint8Array(100_000).fill(65));
    } catch (error) {
      refused = error.message;
    }
    return { all: [...all].map((events) => JSON.parse(events)), refused };
  });
  assert.deepEqual(seen, {
    all: [["{\"a\":\"☕ é\"}", "one\ntwo", " three", "[DONE]"]],
    refused: "The server sent an event that is too long.",
  });
  await page.close();
}
