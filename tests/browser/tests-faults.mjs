// What goes wrong between page and server, as a person meets it: a reason, never silence.
// Only the mock can fail on demand, so these tests need it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { LIMIT, openPage, saved } from "./browsers.mjs";
import { clickSpeak, metrics, secondsLeft, textOf, untilSounding, untilState, untilText } from "./pilot.mjs";

export function faultTests(setting) {
  test("Stop ends the request at the server", LIMIT, () => stopAborts(setting));
  test("a cut stream is an error, not an end", LIMIT, () => breaks(setting, "[cut]"));
  test("a stream without its last chunk is an error, too", LIMIT, () => breaks(setting, "[leave]"));
  test("so is one that breaks before the first sound", LIMIT, () => breaksEarly(setting));
  test("a stream that ends inside a sample is one, too", LIMIT, () => endsInsideSample(setting));
  test("an answer without sound is one, too", LIMIT, () => noSound(setting));
  test("a server that is gone is named", LIMIT, () => gone(setting));
  test("a browser that holds the sound back is named", LIMIT, () => heldBack(setting));
  test("a busy server says when to come back", LIMIT, () => busy(setting));
  test("a refusal is shown in the server's words", LIMIT, () => refusal(setting));
  test("a key is asked for where one is needed", LIMIT, () => apiKey(setting));
  test("without a voice model the page says so, until there is one", LIMIT, () => noModel(setting));
  test("a wrong key hides no list", LIMIT, () => wrongKey(setting));
  test("a key may have any letters", LIMIT, () => foreignKey(setting));
  test("a browser without storage has all of the page, and a key until a reload", LIMIT, () => withoutStorage(setting));
  test("running dry is counted, and speech goes on", LIMIT, () => runsDry(setting));
  test("speaking again replaces the speech that sounds", LIMIT, () => replaces(setting));
}

async function stopAborts(setting) {
  const { page, complaints } = await openPage(setting, setting.url);
  const { events } = setting.mock;
  const [closed, stalled] = [once(events, "closed"), once(events, "stalled")];
  await clickSpeak(page, "Stop me. [stall]");
  await Promise.all([stalled, untilSounding(page)]);
  await page.click("#speak-button");
  await untilState(page, "stopped");
  assert.deepEqual((await closed)[0], { input: "Stop me. [stall]", whole: false });
  events.emit("go on");
  await untilText(page, "#status", /^Stopped at/);
  assert.equal(await textOf(page, "#error"), "");
  assert.equal(await textOf(page, "#download"), "Download the part");
  await page.select("#format", "mp3");
  assert.equal(await textOf(page, "#download"), "Download", "hob speaks the whole text again for another format");
  const stalledAgain = once(events, "stalled");
  await page.click("#download");
  await stalledAgain;
  events.emit("go on");
  await saved(setting, "hob.mp3", null);
  await page.evaluate(() => localStorage.clear());
  assert.deepEqual(complaints, []);
  await page.close();
}

/** Breaks the stream once the page has received a second of sound. */
async function breaks(setting, fault) {
  const { page } = await openPage(setting, setting.url);
  const { events } = setting.mock;
  const stalled = once(events, "stalled");
  await clickSpeak(page, `Cut me. ${fault}`);
  await stalled;
  await page.waitForFunction(() => window.hob.speech.receivedSeconds >= 1);
  events.emit("go on");
  await showsCut(page);
}

/** Without a network: a browser may drop an answer whose connection breaks at once. */
async function breaksEarly(setting) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluate(() => {
    window.fetch = async () => new Response(new ReadableStream({ pull: (stream) => stream.error(new TypeError("network error")) }));
  });
  await clickSpeak(page, "Cut me.");
  await untilText(page, "#error-text", /^The speech was cut off: the connection broke before the end\.$/);
  await page.close();
}

async function endsInsideSample(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "Cut me. [half]");
  await showsCut(page);
}

async function showsCut(page) {
  await untilState(page, "failed");
  await untilText(page, "#error-text", /cut off/);
  const seen = await metrics(page);
  assert.equal(seen.complete, false);
  assert.ok(seen.playedSeconds > 0.5, "the received sound is played");
  await untilText(page, "#status", /^Incomplete/);
  await page.close();
}

async function noSound(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "[empty]");
  await untilText(page, "#error-text", /contains no sound/);
  await page.close();
}

async function gone(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "[gone]");
  await untilText(page, "#error-text", /^hob does not answer/);
  await untilText(page, "#status", /^Nothing was spoken/);
  assert.equal(await page.$eval("#again", (button) => button.disabled), true);
  await page.close();
}

/** As on a machine without a sound device: the clock exists and never starts. */
async function heldBack(setting) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluate(() => {
    window.AudioContext = class extends AudioContext {
      constructor(options) { super(options); this.suspend(); }
      resume() { return new Promise(() => {}); }
    };
  });
  await clickSpeak(page, "Can you hear me?");
  await untilText(page, "#status", /the browser does not play it/);
  await page.keyboard.press("Escape");
  await untilText(page, "#status", /^Stopped at 0:00/);
  await page.close();
}

async function busy(setting) {
  const { page } = await openPage(setting, setting.url);
  const from = performance.now();
  await clickSpeak(page, "[busy]");
  await untilState(page, "failed");
  await untilText(page, "#error", /4 speeches are waiting/);
  const left = await secondsLeft(page, "#retry");
  assert.ok(left <= 7 && left >= 7 - (performance.now() - from) / 1000, `${left} of 7 s`);
  await page.close();
}

async function refusal(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "[refuse]");
  await untilText(page, "#error-text", /speed must be from 0\.25 to 4, and is 9/);
  assert.equal(await page.$eval("#error", (element) => element.role ?? element.getAttribute("role")), "alert");
  assert.match(await textOf(page, "#speak-button"), /^Speak/);
  await page.close();
}

async function apiKey(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "[key]");
  await untilText(page, "#error-text", /wants an API key/);
  await page.type("#key", "sesame");
  await page.click("#speak-button");
  await untilState(page, "finished");
  assert.equal(setting.mock.requests.at(-1).authorization, "Bearer sesame");
  await page.close();
}

/** The page, opened again with this key. */
async function openWithKey(setting, key) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluate((stored) => sessionStorage.setItem("hob.apiKey", stored), key);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("#voice option").length > 0);
  return page;
}

async function wrongKey(setting) {
  const page = await openWithKey(setting, "wrong");
  await page.close();
}

async function noModel(setting) {
  const { mock } = setting;
  const { page } = await openPage(setting, setting.url);
  const { voices } = mock;
  mock.voices = null;
  await page.reload();
  await untilText(page, "#model", /^No voice model yet$/);
  assert.equal(await textOf(page, "#error-text"), "this hob has no speech model; get one with `hob pull`");
  mock.voices = voices;
  // As when the page was hidden for a while.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await untilText(page, "#model", /^Voice model is loaded$/);
  assert.equal(await textOf(page, "#error"), "");
  assert.equal(await page.$$eval("#voice option", (all) => all.length), voices.length);
  await page.close();
}

async function foreignKey(setting) {
  const page = await openWithKey(setting, "Schlüssel €");
  await clickSpeak(page, "With a key.");
  await untilState(page, "finished");
  // In UTF-8, as other clients send it. Node shows each byte as a character.
  assert.equal(setting.mock.requests.at(-1).authorization, `Bearer ${Buffer.from("Schlüssel €").toString("latin1")}`);
  await page.close();
}

/** As with all cookies blocked: reading the property is an error. */
async function withoutStorage(setting) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluateOnNewDocument(() => {
    for (const name of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, { get() { throw new DOMException("no storage", "SecurityError"); } });
    }
  });
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("#voice option").length > 0);
  await clickSpeak(page, "[key]");
  await untilText(page, "#error-text", /wants an API key/);
  await page.type("#key", "sesame");
  await page.click("#speak-button");
  await untilState(page, "finished");
  assert.equal(setting.mock.requests.at(-1).authorization, "Bearer sesame");
  await page.close();
}

async function runsDry(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, "[stall]");
  await untilSounding(page);
  await page.waitForFunction(() => window.hob.speech.bufferedSeconds === 0);
  setting.mock.events.emit("go on");
  await untilState(page, "finished");
  const seen = await metrics(page);
  assert.equal(seen.underruns, 1);
  assert.equal(await textOf(page, "#gaps"), "1");
  assert.equal(seen.scheduledSeconds, setting.mock.samples.length / 24_000);
  await page.close();
}

/** The time after which an idle audio clock rests is over at once, so a speech that counts as idle is never heard to its end. */
async function replaces(setting) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluate(() => {
    const later = window.setTimeout;
    window.setTimeout = (run, ms, ...rest) => later(run, ms === 20_000 ? 0 : ms, ...rest);
  });
  const { events } = setting.mock;
  const firstStalled = once(events, "stalled");
  await clickSpeak(page, "First. [stall]");
  await Promise.all([firstStalled, untilSounding(page)]);
  const [closed, secondStalled] = [once(events, "closed"), once(events, "stalled")];
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  assert.equal((await closed)[0].whole, false);
  await secondStalled;
  events.emit("go on");
  await untilState(page, "finished");
  assert.equal((await metrics(page)).receivedSeconds, setting.mock.samples.length / 24_000);
  await page.close();
}
