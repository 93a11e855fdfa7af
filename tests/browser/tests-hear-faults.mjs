// Faults in the Hear tab, as a user meets them: a reason, and no recording is lost.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { LIMIT, openPage } from "./browsers.mjs";
import { choose, linesOf, openHear, untilHeard } from "./hear-pilot.mjs";
import { DAMAGE } from "./mock-hear.mjs";
import { secondsLeft, textOf, untilText } from "./pilot.mjs";

const BROKEN = "The answer was cut off: the connection closed before the end.";

export function hearFaultTests(setting) {
  test("Stop ends the transcript at the server, and keeps what came", LIMIT, () => stops(setting, (page) => page.click("#hear-record")));
  test("Esc stops a transcript, too", LIMIT, () => stops(setting, (page) => page.keyboard.press("Escape")));
  test("an error in the stream is shown after the text before it", LIMIT, () => fails(setting, "[error].mp3", "the model's process died", 1));
  test("so is a connection that breaks", LIMIT, () => breaks(setting));
  test("a refusal of a file is shown in the server's words", LIMIT, () => fails(setting, "[refuse].mp3", "'file' is not a sound format that hob knows", 0));
  test("a busy server says when to come back, and the recording is still here", LIMIT, () => busy(setting));
  test("a file that is too large is not sent", LIMIT, () => tooLarge(setting));
  test("a damaged file says which sound is missing", LIMIT, () => damaged(setting));
  test("silence says so", LIMIT, () => silence(setting));
  test("a key is asked for to transcribe, and used", LIMIT, () => apiKey(setting));
  test("without a transcription model the page says how to get one", LIMIT, () => noModel(setting));
}

async function stops(setting, stop) {
  const { page, complaints } = await openHear(setting);
  const { events } = setting.mock;
  const [closed, stalled] = [once(events, "hear closed"), once(events, "stalled")];
  await choose(setting, page, "[stall].mp3");
  await stalled;
  await untilText(page, "#hear-tail", /^Good morning\.$/);
  await stop(page);
  assert.deepEqual((await closed)[0], { name: "[stall].mp3", whole: false });
  events.emit("go on");
  await untilHeard(page, "stopped");
  await untilText(page, "#hear-status", /^Stopped\.$/);
  assert.deepEqual(await linesOf(page, 1), [["0:00", "Good morning."]]);
  assert.equal(await textOf(page, "#hear-error"), "");
  assert.equal(await textOf(page, "#hear-factor"), "–");
  assert.equal(await page.$eval("#hear-save", (button) => button.disabled), false);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function fails(setting, name, message, lines) {
  const { page } = await openHear(setting);
  await choose(setting, page, name);
  await showsFailure(page, message, lines);
}

/** Once its words are on the screen: a browser drops what it has not handed over when a connection breaks. */
async function breaks(setting) {
  const { page } = await openHear(setting);
  const stalled = once(setting.mock.events, "stalled");
  await choose(setting, page, "[stall][cut].mp3");
  await stalled;
  await untilText(page, "#hear-tail", /^Good morning\.$/);
  setting.mock.events.emit("go on");
  await showsFailure(page, BROKEN, 1);
}

async function showsFailure(page, message, lines) {
  await untilHeard(page, "failed");
  await untilText(page, "#hear-error-text", /./);
  assert.equal(await textOf(page, "#hear-error-text"), message);
  await untilText(page, "#hear-status", /^Incomplete\.$/);
  await linesOf(page, lines);
  assert.equal(await page.$eval("#hear-again", (button) => button.disabled), false);
  await page.close();
}

async function busy(setting) {
  const { page } = await openHear(setting);
  setting.mock.busyTimes = 1;
  const from = performance.now();
  await choose(setting, page, "morning.mp3");
  await untilHeard(page, "failed");
  await untilText(page, "#hear-error-text", /^whisper-base is loading$/);
  const left = await secondsLeft(page, "#hear-retry");
  assert.ok(left <= 7 && left >= 7 - (performance.now() - from) / 1000, `${left} of 7 s`);
  await page.click("#hear-again");
  await untilHeard(page, "finished");
  await linesOf(page, 2);
  assert.equal(await textOf(page, "#hear-error"), "");
  await page.close();
}

async function tooLarge(setting) {
  const { page } = await openHear(setting);
  const asked = setting.mock.heard.length;
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([new Uint8Array((100 << 20) + 1)], "film.wav"));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  });
  await untilText(page, "#hear-error-text", /^The file has 101 MiB, and hob takes at most 100 MiB\.$/);
  assert.equal(setting.mock.heard.length, asked);
  await page.close();
}

async function damaged(setting) {
  const { page } = await openHear(setting);
  await choose(setting, page, "[damaged].mp3");
  await untilHeard(page, "finished");
  await untilText(page, "#hear-warning", new RegExp(`^${DAMAGE}$`));
  await page.close();
}

async function silence(setting) {
  const { page } = await openHear(setting);
  await choose(setting, page, "[silence].mp3");
  await untilHeard(page, "finished");
  await untilText(page, "#hear-status", /^No speech was heard\.$/);
  assert.equal(await page.$eval("#hear-save", (button) => button.disabled), true);
  await page.close();
}

async function apiKey(setting) {
  const { page } = await openHear(setting);
  await choose(setting, page, "[key].mp3");
  await untilText(page, "#hear-error-text", /wants an API key/);
  await page.type("#key", "sesame");
  await page.click("#hear-again");
  await untilHeard(page, "finished");
  await page.close();
}

async function noModel(setting) {
  const { mock } = setting;
  const { models } = mock;
  mock.models = models.filter(({ hob }) => hob.kind !== "transcription");
  const { page } = await openPage(setting, `${setting.url}#hear`);
  await untilText(page, "#hear-state", /^No transcription model yet$/);
  mock.models = models;
  assert.match(await textOf(page, "#hear-no-model"), /^hob has no transcription model yet\. hob pull whisper-base downloads one\.$/);
  await page.close();
}
