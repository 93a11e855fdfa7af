// Recording: with the browsers' fake microphone, several microphones, none, and where a browser refuses.
// The fake microphone beeps. No text is expected of it: the mock hears what the file's name says.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, OTHER_NAME } from "./browsers.mjs";
import { linesOf, openHear, untilHeard } from "./hear-pilot.mjs";
import { textOf, untilText } from "./pilot.mjs";

export function microphoneTests(setting) {
  test("a recording shows its level, and becomes a transcript whose words can be heard", LIMIT, () => records(setting));
  test("Esc ends a recording", LIMIT, () => escape(setting));
  test("one of several microphones can be chosen", LIMIT, () => several(setting));
  test("a microphone without sound says so", LIMIT, () => silent(setting));
  for (const [name, message] of REFUSALS) test(`a microphone that fails with ${name} has a sentence`, LIMIT, () => refused(setting, name, message));
  test("over plain HTTP in a network, the page says how to record", LIMIT, () => insecure(setting));
}

const REFUSALS = [
  ["NotAllowedError", /^The browser does not let this page use the microphone\./],
  ["NotFoundError", /^The browser finds no microphone\./],
  ["NotReadableError", /^The microphone does not start\. Another program may be using it\.$/],
];

async function untilRecorded(page, seconds) {
  await page.waitForFunction((wanted) => {
    const [minutes, rest] = document.getElementById("hear-recorded").textContent.split(":").map(Number);
    return minutes * 60 + rest >= wanted;
  }, {}, seconds);
}

async function records(setting) {
  const { page, complaints } = await openHear(setting);
  await page.click("#hear-record");
  await page.waitForFunction(() => new DOMMatrix(getComputedStyle(document.querySelector("#hear-level i")).transform).a > 0.2);
  await untilRecorded(page, 2);
  assert.equal(await textOf(page, "#hear-prompt"), "Recording.");
  assert.match(await textOf(page, "#hear-record"), /^Stop/);
  await page.click("#hear-record");
  await untilHeard(page, "finished");
  await linesOf(page, 2);
  const { name, type, size } = setting.mock.heard.at(-1);
  assert.match(name, /^recording \d{4}-\d\d-\d\d \d\d\.\d\d\.(webm|ogg)$/);
  assert.match(type, /^audio\/(webm|ogg)$/);
  assert.ok(size > 1_000, `${size} bytes`);
  // The file has no length in its header. The page finds it, and plays from a word.
  await page.waitForFunction(() => document.getElementById("hear-audio").duration >= 1.5 && document.getElementById("hear-audio").duration < 60);
  await (await page.$$(".word"))[1].click();
  await page.waitForFunction(() => !document.getElementById("hear-audio").paused && document.querySelector(".word[aria-current]")?.textContent === "morning.");
  await page.waitForFunction(() => document.getElementById("hear-audio").paused);
  const { currentTime } = await page.$eval("#hear-audio", (audio) => ({ currentTime: audio.currentTime }));
  assert.ok(currentTime >= 1.2 && currentTime < 2, `${currentTime}`);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function escape(setting) {
  const { page } = await openHear(setting);
  await page.click("#hear-record");
  await untilRecorded(page, 1);
  await page.keyboard.press("Escape");
  await untilHeard(page, "finished");
  assert.match(await textOf(page, "#hear-name"), /^recording /);
  await page.close();
}

/** Both browsers, with the same two microphones. */
async function several(setting) {
  const { page } = await openHear(setting);
  await page.evaluate(() => {
    const { mediaDevices } = navigator;
    mediaDevices.enumerateDevices = async () => ["Desk", "Headset"].map((label) => ({ kind: "audioinput", label, deviceId: label.toLowerCase() }));
    const original = mediaDevices.getUserMedia.bind(mediaDevices);
    mediaDevices.getUserMedia = ({ audio }) => {
      window.asked = audio.deviceId ?? null;
      return original({ audio: true });
    };
  });
  await page.click("#hear-record");
  // The menu may be filled before the recording has begun, and then Esc would end nothing.
  await page.waitForSelector("#hear-recording:not([hidden])");
  await page.waitForSelector("#hear-microphone-field:not([hidden])");
  await page.keyboard.press("Escape");
  await untilHeard(page, "finished");
  await page.select("#hear-microphone", "headset");
  await page.click("#hear-record");
  await page.waitForSelector("#hear-recording:not([hidden])");
  assert.deepEqual(await page.evaluate(() => window.asked), { ideal: "headset" });
  await page.keyboard.press("Escape");
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function silent(setting) {
  const { page } = await openHear(setting);
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = async () => new AudioContext().createMediaStreamDestination().stream;
  });
  await page.click("#hear-record");
  await untilText(page, "#hear-prompt", /^No sound comes from the microphone\. Is it muted\?$/);
  await page.close();
}

async function refused(setting, name, message) {
  const { page } = await openHear(setting);
  await page.evaluate((wanted) => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", wanted));
  }, name);
  await page.click("#hear-record");
  await untilText(page, "#hear-error-text", message);
  assert.equal(await textOf(page, "#hear-record-text"), "Record");
  assert.equal(await page.$eval("#hear-record", (button) => button.disabled), false);
  await page.close();
}

async function insecure(setting) {
  const url = setting.url.replace("127.0.0.1", OTHER_NAME);
  const { page } = await openHear(setting, undefined, url);
  assert.equal(await page.evaluate(() => isSecureContext), false);
  assert.equal(await textOf(page, "#hear-record"), "", "no dead button");
  const said = await textOf(page, "#hear-no-microphone");
  const { port } = new URL(url);
  for (const part of ["over HTTPS", "hob serve --tls", "--tls-certificate", "reverse proxy", `http://localhost:${port}`, `ssh -L ${port}:localhost:${port} ${OTHER_NAME}`, "Files work here, too."]) {
    assert.ok(said.includes(part), `${part}: ${said}`);
  }
  await page.close();
}
