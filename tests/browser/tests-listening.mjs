// The listening page of `hob quantize`, opened from disk: blind until the end, answered by keys, with its figures and its
// record. The example `listening_page` makes it of short synthetic sounds.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { DEADLINE_MS, LIMIT, saved } from "./browsers.mjs";
import { checkAccessibility } from "./looks.mjs";

const KINDS = ["source", "target"];

export function listeningTests(setting, file) {
  const at = { file };
  test("a listening test hides which model is which, and answers come after listening", LIMIT, () => isBlind(setting, at));
  test("ABX counts what was heard right, in both orders", LIMIT, () => countsRight(setting, at));
  test("a preference is counted in both orders", LIMIT, () => countsPreference(setting, at));
  test("a listening test can be stopped, and another one begun", LIMIT, () => stops(setting, at));
  test("the record of a listening test is saved", LIMIT, () => savesRecord(setting, at));
}

/** The page from disk, what it has in it, and every complaint and request. */
async function open({ browser }, { file }) {
  const data = JSON.parse((await readFile(file, "utf8")).match(/^const data = (.*);$/m)[1]);
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || complaints.push(request.url()));
  await page.evaluateOnNewDocument(() => {
    window.played = [];
    const play = HTMLMediaElement.prototype.play;
    HTMLMediaElement.prototype.play = function record() {
      window.played.push(this.src);
      return play.call(this);
    };
  });
  await page.goto(pathToFileURL(file).href);
  return { page, data, complaints };
}

const begin = (page, kind) => page.click(`[data-do="${kind}"]`);

/** Plays by key, waits until everything counts as heard, and says what was played: the sounds in the order of the keys. */
async function hear(page, keys) {
  await page.evaluate(() => { window.played.length = 0; });
  for (const key of keys) {
    await page.keyboard.press(key);
    // A key that comes before the sound begins would cut it off.
    await page.waitForSelector(`#players [data-key="${key}"][data-heard]`);
  }
  await page.waitForFunction(() => [...document.querySelectorAll("#answers button")].every((answer) => !answer.disabled));
  return page.evaluate(() => window.played);
}

/** Answers each trial with the key that `choose` gives for its sounds, its text and its number. */
async function walk(page, keys, choose) {
  for (let at = 0; await page.$eval("#result", (result) => result.hidden); at += 1) {
    const [count, text] = await page.evaluate(() => ["count", "text"].map((id) => document.getElementById(id).textContent));
    assert.match(count, new RegExp(`^${at + 1} of `));
    await page.keyboard.press(choose(await hear(page, keys), text, at));
  }
}

const recordOf = (page) => page.$eval("#record", (shown) => JSON.parse(shown.textContent));

const rowsOf = (page) => page.$$eval("#rows tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(": ")));

/** Each sentence comes twice: with both values of what is mixed. */
function isMixed(record, what) {
  for (const sentence of record.sentences.keys()) {
    const values = record.answers.filter((answer) => answer.sentence === sentence + 1).map((answer) => answer[what]);
    assert.deepEqual(values.sort(), KINDS, `${what} of sentence ${sentence + 1}`);
  }
}

const near = (found, expected) => assert.ok(Math.abs(found - expected) < 0.0001, `${found}, expected ${expected}`);

async function isBlind(setting, at) {
  const { page, data, complaints } = await open(setting, at);
  const revealing = [data.source, data.target, ...KINDS, ...data.sentences.flatMap((one) => [one.source, one.target])];
  const revealed = async () => {
    const html = await page.evaluate(() => document.documentElement.outerHTML);
    return revealing.filter((word) => html.includes(word));
  };
  assert.deepEqual(await revealed(), [], "before the test");
  await checkAccessibility(page);
  await begin(page, "abx");
  const counted = () => page.$eval("#count", (count) => count.textContent);
  assert.equal(await counted(), `1 of ${2 * data.sentences.length}`);
  assert.ok(await page.$$eval("#answers button", (all) => all.length === 2 && all.every((answer) => answer.disabled)));
  await page.keyboard.press("1");
  assert.equal(await counted(), `1 of ${2 * data.sentences.length}`, "an answer without listening does not count");
  const [a, b, x] = await hear(page, ["a", "b", "x"]);
  assert.ok(a !== b && (x === a || x === b));
  assert.deepEqual(await revealed(), [], "in the test");
  await page.keyboard.press("2");
  assert.match(await counted(), /^2 of /);
  assert.ok(await page.$$eval("#answers button", (all) => all.every((answer) => answer.disabled)), "the next one is not heard yet");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function countsRight(setting, at) {
  const { page, data, complaints } = await open(setting, at);
  const right = ([a, , x]) => (x === a ? "1" : "2");
  await begin(page, "abx");
  await walk(page, ["a", "b", "x"], right);
  const { summary, ...record } = await recordOf(page);
  const { schema, kind, source, target } = record;
  assert.deepEqual({ schema, kind, source, target }, { schema: "listening/1", kind: "abx", source: data.source, target: data.target });
  isMixed(record, "x");
  assert.ok(record.answers.every(({ a, x, answer, correct }) => correct && (answer === "a") === (a === x)));
  assert.deepEqual([summary.trials, summary.correct], [6, 6]);
  near(summary.p, 1 / 64);
  near(summary.share_low, 0.6097);
  assert.equal(summary.share_high, 1);
  assert.deepEqual(await rowsOf(page), ["correct: 6 of 6 (95 % interval 61 % to 100 %)",
    "by guessing: at least as many with a chance of 0.016", "verdict: you can hear the difference"]);
  await page.click('[data-do="again"]');
  await begin(page, "abx");
  await page.keyboard.press(right(await hear(page, ["a", "b", "x"])));
  await page.keyboard.press(String(3 - right(await hear(page, ["a", "b", "x"]))));
  await page.click('[data-do="finish"]');
  const second = (await recordOf(page)).summary;
  assert.deepEqual([second.trials, second.correct, second.p], [2, 1, 3 / 4]);
  near(second.share_low, 0.0945);
  near(second.share_high, 0.9055);
  assert.equal((await rowsOf(page)).at(-1), "verdict: no difference was shown");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function countsPreference(setting, at) {
  const { page, data, complaints } = await open(setting, at);
  await begin(page, "preference");
  assert.equal(await page.$('[data-key="x"]'), null);
  const target = (text) => data.sentences.find((sentence) => sentence.text === text).target;
  await walk(page, ["a", "b"], ([a], text, trial) => (trial === 0 ? "0" : a === target(text) ? "1" : "2"));
  const { summary, ...record } = await recordOf(page);
  isMixed(record, "a");
  assert.equal(record.kind, "preference");
  assert.deepEqual([summary.source, summary.target, summary.none], [0, 5, 1]);
  near(summary.p, 1 / 16);
  near(summary.target_low, 0.5655);
  assert.equal(summary.target_high, 1);
  assert.deepEqual(await rowsOf(page), [`${data.source}: 0 times better`, `${data.target}: 5 times better`, "no difference: 1 times",
    `share of ${data.target}: 100 % (95 % interval 57 % to 100 %)`, "verdict: no preference was shown (p = 0.063)"]);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function stops(setting, at) {
  const { page, complaints } = await open(setting, at);
  await begin(page, "preference");
  await page.click('[data-do="finish"]');
  const { summary, answers } = await recordOf(page);
  assert.deepEqual([summary.source, summary.target, summary.none, summary.p, answers], [0, 0, 0, 1, []]);
  await page.click('[data-do="again"]');
  assert.ok(await page.$eval("#start", (start) => !start.hidden));
  assert.deepEqual(complaints, []);
  await page.close();
}

async function savesRecord(setting, at) {
  const { page, data, complaints } = await open(setting, at);
  await begin(page, "preference");
  await hear(page, ["a", "b"]);
  await page.keyboard.press("1");
  await page.click('[data-do="finish"]');
  await page.click('[data-do="save"]');
  const record = JSON.parse(await saved(setting, `listening-preference-${data.target}.json`));
  assert.deepEqual(record, await recordOf(page));
  assert.equal(record.answers.length, 1);
  assert.deepEqual(complaints, []);
  await page.close();
}
