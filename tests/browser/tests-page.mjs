// The Speak tab without its sound: voices, the model's state, keyboard, remembered choices, themes, small screens.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, openPage } from "./browsers.mjs";
import { checkLayout, shoot } from "./looks.mjs";
import { clickSpeak, metrics, textOf, untilSounding, untilState, untilText, write } from "./pilot.mjs";

const TEXT = "Morning. The bread is rising, the cat is out, and there is nothing to do before eight.";
const STATES = [
  [{ status: "cold", ready_in_s: null }, /not loaded/],
  [{ status: "loading", ready_in_s: 1.4 }, /loading, about 2 s/],
  [{ status: "down", ready_in_s: null, error: { message: "the model does not start: no memory" } }, /no memory/],
];

export function pageTests(setting) {
  test("voices are there, grouped by language", LIMIT, () => voicesAreThere(setting));
  test("the page links to the benchmarks", LIMIT, () => linksToBenchmarks(setting));
  test("the model's state is shown", LIMIT, () => modelState(setting));
  test("Ctrl+Enter speaks and Esc stops", LIMIT, () => keyboard(setting));
  test("voice and speed are sent, and remembered", LIMIT, () => remembers(setting));
  test("an empty text is answered by the page itself", LIMIT, () => emptyText(setting));
  for (const width of WIDTHS_PX) test(`looks whole at ${width} px, light`, LIMIT, () => looksWhole(setting, width));
  test("looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function voicesAreThere(setting) {
  const { page, complaints } = await openPage(setting, setting.url);
  const groups = await page.$$eval("#voice optgroup", (all) => all.map((group) => [group.label, group.children.length]));
  assert.ok(groups.some(([label]) => label === "American English"), JSON.stringify(groups));
  assert.ok(groups.every(([, count]) => count > 0));
  assert.equal(await page.$eval("#voice", (select) => select.disabled), false);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function linksToBenchmarks(setting) {
  const { page } = await openPage(setting, setting.url);
  const { shown, href } = await page.$eval("nav .benchmarks", (link) => ({ shown: link.checkVisibility(), href: link.href }));
  assert.ok(shown);
  assert.equal(href, new URL("benchmarks/", setting.url).href);
  await page.close();
}

async function modelState(setting) {
  setting.mock?.states.push(...STATES.map(([state]) => state));
  const { page } = await openPage(setting, setting.url);
  for (const [, shown] of setting.mock ? STATES : []) {
    await untilText(page, "#model", shown);
    setting.mock.states.shift();
  }
  await untilText(page, "#model", /Voice model is loaded$/);
  await page.close();
}

async function keyboard(setting) {
  const { page } = await openPage(setting, setting.url);
  // The mock holds the answer back, so it does not end before the test presses Esc.
  await write(page, `${TEXT.repeat(5)}${setting.mock ? " [stall]" : ""}`);
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  await untilSounding(page);
  await page.keyboard.press("Escape");
  await untilState(page, "stopped");
  setting.mock?.events.emit("go on");
  assert.match(await textOf(page, "#speak-button"), /^Speak/);
  // Tab leaves the text for voice, speed and the button, and each shows where it is.
  const stops = [];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press("Tab");
    stops.push(await page.evaluate(() => {
      const { activeElement } = document;
      return [activeElement.id, getComputedStyle(activeElement).outlineStyle];
    }));
  }
  assert.deepEqual(stops, [["voice", "solid"], ["speed", "solid"], ["speak-button", "solid"]]);
  await page.close();
}

async function remembers(setting) {
  const { page } = await openPage(setting, setting.url);
  const wanted = await page.$eval("#voice optgroup", (group) => group.lastElementChild.value);
  await page.select("#voice", wanted);
  await page.focus("#speed");
  await page.keyboard.press("ArrowRight");
  assert.equal(await textOf(page, "#speed-text"), "1.05×");
  await clickSpeak(page, TEXT);
  await untilState(page, "speaking", "finished");
  if (setting.mock) {
    const { body } = setting.mock.requests.at(-1);
    assert.deepEqual(body, { model: "tts-1", input: TEXT, voice: wanted, speed: 1.05, response_format: "pcm", stream: true });
  }
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("#voice option").length > 0);
  assert.equal(await page.$eval("#voice", (select) => select.value), wanted);
  assert.equal(await textOf(page, "#speed-text"), "1.05×");
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function emptyText(setting) {
  const { page } = await openPage(setting, setting.url);
  const asked = setting.mock?.requests.length;
  await clickSpeak(page, "  ");
  await untilText(page, "#error-text", /no text to speak/);
  assert.equal(setting.mock?.requests.length, asked);
  await page.close();
}

async function looksWhole(setting, width) {
  const { scheme } = setting;
  const { page, complaints } = await openPage(setting, setting.url, { width, height: 860 });
  await page.click("#speak-button");
  await page.waitForFunction(() => window.hob.speech?.playedSeconds > 1.2);
  await shoot(page, `${setting.name}-${scheme}-${width}`, { fullPage: false });
  await checkLayout(page, setting);
  assert.equal((await metrics(page)).error, null);
  assert.deepEqual(complaints, []);
  await page.close();
}
