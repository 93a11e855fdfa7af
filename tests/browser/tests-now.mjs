// The Now tab: what it shows, that its rows stay the same rows, and that it polls only while it is visible.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, openPage } from "./browsers.mjs";
import { checkLayout, shoot } from "./looks.mjs";
import { BUSY, EMPTY, job } from "./mock-now.mjs";
import { rowsOf, textOf, untilText } from "./pilot.mjs";

// How long the page waits after an answer, and after each failure in a row; a browser's timer may be a little early.
const EVERY_MS = 1_000;
const AWAY_MS = [2_000, 4_000, 8_000, 16_000, 30_000];
const EARLY_MS = 10;

export function nowTests(setting) {
  test("an idle hob says what would be here", LIMIT, () => idle(setting));
  test("requests stand with their stages and the way they went", LIMIT, () => busy(setting));
  test("warm and cold are apart, and a p95 of few is not shown", LIMIT, () => hour(setting));
  test("models and servers say how they are", LIMIT, () => things(setting));
  test("a request that goes on is the same row", LIMIT, () => sameRow(setting));
  test("the tab does not poll while it is hidden", LIMIT, () => seldom(setting));
  test("a server that is away is said, asked less, and found again", LIMIT, () => away(setting));
  test("a wanted key is asked for once", LIMIT, () => wantsKey(setting));
  test("names are text, never markup", LIMIT, () => markup(setting));
  for (const width of WIDTHS_PX) test(`the board looks whole at ${width} px, light`, LIMIT, () => looksWhole(setting, width));
  test("the board looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function openNow(setting, now, size) {
  Object.assign(setting.mock, { now, nowKey: false });
  const opened = await openPage(setting, `${setting.url}#now`, size);
  await opened.page.waitForFunction(() => document.getElementById("now-state").dataset.state !== "unknown");
  return opened;
}

/** Records when the page polls, and whether it got an answer. */
function noteQuestions(page) {
  return page.evaluate(() => {
    const { fetch } = window;
    window.questions = [];
    window.fetch = (url, options) => {
      const at = performance.now();
      const answer = fetch(url, options);
      if (!String(url).endsWith("/api/hob/now")) return answer;
      const question = { at, answered: null };
      window.questions.push(question);
      answer.then(() => { question.answered = true; }, () => { question.answered = false; });
      return answer;
    };
  });
}

/** The questions of so long a time, on the page's own clock: on a machine that stands still, both are late. */
function asked(page, ms) {
  return page.evaluate(async (pauseMs) => {
    const before = window.questions.length;
    await new Promise((resolve) => { setTimeout(resolve, pauseMs); });
    return window.questions.slice(before);
  }, ms);
}

/** Waits until the page has asked so many times more. */
async function untilAsked(page, times) {
  const before = await page.evaluate(() => window.questions.length);
  await page.waitForFunction((wanted) => window.questions.length >= wanted, {}, before + times);
  return page.evaluate((from) => window.questions.slice(from), before);
}

function pausesMs(questions) {
  return questions.slice(1).map(({ at }, i) => at - questions[i].at);
}

async function idle(setting) {
  const { page, complaints } = await openNow(setting, EMPTY);
  assert.equal(await page.title(), "hob activity");
  assert.match(await textOf(page, "#now-state"), /Idle/);
  for (const [id, said] of [["running", /No request is running/], ["names", /in the last hour/], ["memory", /No model is in memory/], ["servers", /hob\.toml/], ["lately", /No request has ended/]]) {
    assert.match(await textOf(page, `#${id}-none`), said);
  }
  assert.equal(await textOf(page, "#names-table"), "");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function busy(setting) {
  const { page, complaints } = await openNow(setting, BUSY);
  assert.deepEqual(await rowsOf(page, "running"), [
    "fast answering 1.2 s gpu/qwen3 chat · first token 180 ms · 42 tokens · laptop",
    "fast asking 1.2 s spare/qwen3-30b-a3b-instruct was overloaded after 31 ms, then cloud/qwen3 sent no first token in time after 4.00 s, then gpu/qwen3 chat",
    "narrator answering 1.2 s kokoro speech · first sound 180 ms · 2.3 s of sound",
    "smol loading its model, about 3 s 0.4 s chat · cold start",
    "fast waiting 1:15 min spare/qwen3-30b-a3b-instruct was overloaded after 31 ms, then no target yet chat",
  ]);
  const struck = await page.$$eval("#running s", (all) => all.map((one) => one.textContent));
  assert.deepEqual(struck, ["spare/qwen3-30b-a3b-instruct", "cloud/qwen3", "spare/qwen3-30b-a3b-instruct"]);
  assert.deepEqual(await rowsOf(page, "lately"), [
    "fast answered 2.4 s gpu/qwen3 chat · first token 180 ms · 42 tokens · 63 tokens/s · hob overhead 0.6 ms",
    "smol failed: queue full 0.3 ms chat",
    "fast client disconnected 1.2 s spare/qwen3-30b-a3b-instruct was overloaded after 31 ms, then gpu/qwen3 chat · first token 180 ms · 42 tokens · 63 tokens/s · hob overhead 0.6 ms · thought although thinking is off",
  ]);
  assert.equal(await textOf(page, "#running-count"), "7, of which 3 waiting");
  assert.equal(await textOf(page, "#running-more"), "And 2 more.");
  assert.equal(await textOf(page, "#now-state"), "7 requests running");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function hour(setting) {
  const { page } = await openNow(setting, BUSY);
  assert.deepEqual(await rowsOf(page, "names"), [
    "fast 44 2 failed 182 ms p95 411 ms of 41 3.20 s of 3 2.41 s p95 12.4 s of 40 63 of 40",
    "narrator 512+ 61 ms p95 89 ms of 512 – 4.80 s p95 9.90 s of 512 –",
  ]);
  await page.close();
}

async function things(setting) {
  const { page } = await openNow(setting, BUSY);
  assert.deepEqual(await rowsOf(page, "memory"), [
    "kokoro loaded speech · 326 MB · 1 in flight",
    "qwen3-8b loaded chat · 6.2 GB · 5.1 GB on the graphics card · 16,384 tokens of context · unloads in 4 min",
    "smol loading, about 3 s chat · 8,192 tokens of context · 1 in flight",
  ]);
  assert.equal(await textOf(page, "#asleep"), "Not loaded: sleeper.");
  assert.deepEqual(await rowsOf(page, "servers"), [
    "gpu answers llama-server · http://gpu:8081 · 1 model · lists models in 12 ms · 2 of 4 slots in use, 1 waiting",
    "spare answers ollama · http://spare:11434 · 2 models · lists models in 40 ms · spare/qwen3 is paused for 5 s (spare/qwen3: overloaded)",
    "attic connection refused openai · http://attic:9000 · 0 models",
  ]);
  await page.close();
}

async function sameRow(setting) {
  const { page } = await openNow(setting, { ...EMPTY, requests: [job(1), job(2, { stage: "asking", ttft_ms: null, tokens: 0 })] });
  await page.$$eval("#running > li", ([, second]) => { second.marked = true; });
  setting.mock.now = { ...EMPTY, requests: [job(2, { tokens: 7 }), job(3)] };
  await page.waitForFunction(() => document.querySelector("#running").innerText.includes("7 tokens"));
  const marks = await page.$$eval("#running > li", (rows) => rows.map((row) => [row.title, row.marked === true]));
  assert.deepEqual(marks, [["hob-2", true], ["hob-3", false]]);
  await page.close();
}

async function seldom(setting) {
  const { page } = await openNow(setting, EMPTY);
  await noteQuestions(page);
  const pauses = pausesMs(await untilAsked(page, 4));
  assert.ok(pauses.every((pause) => pause >= EVERY_MS - EARLY_MS), `asked after ${pauses.join(", ")} ms`);
  // A busy machine may be late, but not each time.
  assert.ok(Math.min(...pauses) <= EVERY_MS * 1.75, `asked after ${pauses.join(", ")} ms`);
  await page.click("#tab-chat");
  await page.waitForSelector("#now-panel[hidden]");
  assert.deepEqual(await asked(page, 1_500), [], "another tab of the page");
  await page.click("#tab-now");
  await page.waitForSelector("#now-panel:not([hidden])");
  await untilAsked(page, 1);
  const pretend = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await pretend(true);
  assert.deepEqual(await asked(page, 1_500), [], "another tab of the browser");
  await pretend(false);
  await untilAsked(page, 1);
  await page.close();
}

async function away(setting) {
  const { page } = await openNow(setting, BUSY);
  const { mock } = setting;
  await noteQuestions(page);
  mock.now = null;
  await untilText(page, "#now-trouble", /hob does not answer\. Is it still running\? The data below is from \d\d:\d\d:\d\d\./);
  assert.equal(await page.$eval("#now-trouble", (one) => one.role ?? one.getAttribute("role")), "alert");
  assert.equal((await rowsOf(page, "running")).length, 5, "what was known stays");
  await page.waitForFunction(() => window.questions.filter(({ answered }) => answered === false).length >= 2);
  mock.now = EMPTY;
  await page.waitForFunction(() => document.getElementById("now-trouble").hidden);
  const questions = await page.evaluate(() => window.questions);
  const lost = questions.findIndex(({ answered }) => answered === false);
  const found = questions.findIndex(({ answered }, i) => i > lost && answered);
  const pauses = pausesMs(questions.slice(lost, found + 1));
  assert.ok(pauses.length >= 2, `${pauses.length} questions until hob was there again`);
  assert.ok(pauses.every((pause, i) => pause >= AWAY_MS[i] - EARLY_MS), `asked after ${pauses.join(", ")} ms`);
  assert.equal(await page.$eval("#now-board", (board) => "stale" in board.dataset), false);
  await page.close();
}

async function wantsKey(setting) {
  const { mock } = setting;
  Object.assign(mock, { now: BUSY, nowKey: true });
  const { page } = await openPage(setting, `${setting.url}#now`);
  await untilText(page, "#now-trouble", /wants an API key/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.focus("#tab-now");
  await noteQuestions(page);
  await page.waitForFunction(() => window.questions[0]?.answered);
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-now", "the focus stays");
  await page.focus("#key");
  await page.keyboard.type("sesame");
  await page.keyboard.press("Enter");
  await untilText(page, "#running", /fast/);
  assert.equal(await textOf(page, "#now-trouble"), "");
  await page.evaluate(() => sessionStorage.clear());
  await page.close();
}

async function markup(setting) {
  const bad = "<img src=x onerror=alert(1)>";
  const { page, complaints } = await openNow(setting, {
    ...BUSY,
    requests: [job(1, { alias: bad, target: bad, key: bad, failed: [{ target: bad, reason: bad, ms: 1 }] })],
    aliases: BUSY.aliases.map((alias) => ({ ...alias, name: bad + alias.name })),
    models: BUSY.models.map((model) => ({ ...model, name: bad + model.name })),
  });
  assert.equal(await page.$$eval("#now-panel img", (all) => all.length), 0);
  assert.match((await rowsOf(page, "running"))[0], /^<img src=x/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function looksWhole(setting, width) {
  const { scheme } = setting;
  for (const [name, now] of [["busy", BUSY], ["idle", EMPTY]]) {
    const { page, complaints } = await openNow(setting, now, { width, height: 1_000 });
    await shoot(page, `now-${name}-${setting.name}-${scheme}-${width}`);
    await checkLayout(page, setting);
    assert.deepEqual(complaints, []);
    await page.close();
  }
}
