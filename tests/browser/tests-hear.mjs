// The Hear tab where all goes well: a file becomes lines with times, words play, and the text can be saved.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, saved } from "./browsers.mjs";
import { choose, drop, figures, linesOf, openHear, playingWord, untilHeard, untilPlaying } from "./hear-pilot.mjs";
import { checkAccessibility, checkLayout, shoot } from "./looks.mjs";
import { SEGMENTS, TEXT } from "./mock-hear.mjs";
import { textOf, untilText } from "./pilot.mjs";

const LINES = [["0:00", "Good morning."], ["0:01", "The bread's rising, \"it\" is."]];
const SRT = "1\n00:00:00,000 --> 00:00:01,250\nGood morning.\n\n2\n00:00:01,500 --> 00:00:02,750\nThe bread's rising, \"it\" is.\n\n";
const VTT = "WEBVTT\n\n00:00:00.000 --> 00:00:01.250\nGood morning.\n\n00:00:01.500 --> 00:00:02.750\nThe bread's rising, \"it\" is.\n\n";

export function hearTests(setting) {
  test("a file becomes lines with times", LIMIT, () => file(setting));
  test("text appears as it is made, each line once", LIMIT, () => appears(setting));
  test("a dropped file is heard, wherever it falls", LIMIT, () => dropped(setting));
  test("a click on a word plays from it to the end of its segment", LIMIT, () => plays(setting));
  test("the keyboard reaches every word, and plays it", LIMIT, () => keyboard(setting));
  test("text is saved in each format, and not heard again", LIMIT, () => saves(setting));
  test("model, language and translation are sent, and remembered", LIMIT, () => remembers(setting));
  test("an hour of text comes at once, and the page stays responsive", LIMIT, () => long(setting));
  test("text without times is one cue", LIMIT, () => untimed(setting));
  test("what axe can see of the tab is in order", LIMIT, () => accessible(setting));
  for (const width of WIDTHS_PX) test(`the Hear tab looks whole at ${width} px`, LIMIT, () => looksWhole(setting, width));
  test("the Hear tab looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function file(setting) {
  const { page, complaints } = await openHear(setting);
  await untilText(page, "#hear-state", /^whisper-base is loaded$/);
  await choose(setting, page, "morning.mp3");
  await untilHeard(page, "finished");
  assert.deepEqual(await linesOf(page, 2), LINES);
  const { path: route, name, size, fields } = setting.mock.heard.at(-1);
  assert.deepEqual({ route, name, size }, { route: "/v1/audio/transcriptions", name: "morning.mp3", size: setting.mock.sound.mp3.length });
  assert.deepEqual(fields, [
    ["model", "whisper-base"], ["language", ""], ["stream", "true"],
    ["timestamp_granularities[]", "segment"], ["timestamp_granularities[]", "word"],
  ]);
  await untilText(page, "#hear-status", /^Finished\.$/);
  const seen = await figures(page);
  assert.match(seen.first, /^0\.\d\d s$|^\d/);
  assert.equal(seen["audio-length"], "0:03");
  const { tookS } = await page.evaluate(() => ({ tookS: (window.hob.transcript.endedAt - window.hob.transcript.askedAt) / 1000 }));
  assert.equal(Number(seen.factor), Number((tookS / 3).toPrecision(2)));
  assert.equal(await textOf(page, "#hear-name"), "morning.mp3");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function appears(setting) {
  const { page } = await openHear(setting);
  await page.$eval("#hear-lines", (list) => {
    window.added = [];
    new MutationObserver((records) => records.forEach(({ addedNodes }) => addedNodes.forEach((node) => window.added.push(node.textContent))))
      .observe(list, { childList: true, subtree: true });
  });
  const stalled = once(setting.mock.events, "stalled");
  await choose(setting, page, "[stall].mp3");
  await stalled;
  // The words of the last segment may still come, so its text waits below the lines.
  await untilText(page, "#hear-tail", /^Good morning\.$/);
  assert.equal(await textOf(page, "#hear-status"), "Transcribing.");
  assert.equal(await page.$eval("#hear-record-text", (text) => text.textContent), "Stop");
  setting.mock.events.emit("go on");
  await untilHeard(page, "finished");
  await linesOf(page, 2);
  assert.deepEqual(await page.evaluate(() => window.added), LINES.map((line) => line.join("")));
  assert.equal(await textOf(page, "#hear-tail"), "");
  await page.close();
}

async function dropped(setting) {
  const { page } = await openHear(setting);
  assert.equal(await drop(page, "h1", ["one.wav"]), true, "the page shows where a file goes");
  await untilHeard(page, "finished");
  assert.equal(setting.mock.heard.at(-1).name, "one.wav");
  // The player reads the file on its own, and may know later than hob.
  await untilText(page, "#hear-unplayable", /^This browser cannot play this recording, so a click on a word stays silent\.$/);
  await drop(page, "#hear-panel", ["two.wav", "three.wav"]);
  await untilText(page, "#hear-error-text", /^hob hears one file at a time\. It took the first: two\.wav\.$/);
  await untilHeard(page, "finished");
  assert.deepEqual(setting.mock.heard.slice(-2).map(({ name }) => name), ["one.wav", "two.wav"]);
  await page.close();
}

async function heardFile(setting, size) {
  const opened = await openHear(setting, size);
  await choose(setting, opened.page, "morning.mp3");
  await untilHeard(opened.page, "finished");
  await linesOf(opened.page, 2);
  await opened.page.waitForFunction(() => document.getElementById("hear-audio").readyState > 0);
  return opened;
}

const audioOf = (page) => page.$eval("#hear-audio", ({ currentTime, paused }) => ({ currentTime, paused }));

async function plays(setting) {
  const { page, complaints } = await heardFile(setting);
  await page.evaluate(() => {
    window.marked = [];
    new MutationObserver(() => window.marked.push(document.querySelector(".word[aria-current]")?.textContent))
      .observe(document.getElementById("hear-lines"), { attributes: true, subtree: true, attributeFilter: ["aria-current"] });
  });
  const words = await page.$$(".word");
  assert.equal(await words[3].evaluate((word) => word.textContent), "bread's");
  await words[0].click();
  await untilPlaying(page, "morning.");
  await page.waitForFunction(() => document.getElementById("hear-audio").paused);
  const { currentTime } = await audioOf(page);
  assert.ok(currentTime >= SEGMENTS[0].end && currentTime < SEGMENTS[1].start, `${currentTime}`);
  assert.equal(await playingWord(page), null);
  assert.deepEqual((await page.evaluate(() => window.marked)).filter(Boolean), ["Good", "morning."]);
  // Another word, and Escape.
  await words[3].click();
  await untilPlaying(page, "bread's");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.getElementById("hear-audio").paused);
  assert.ok((await audioOf(page)).currentTime >= 1.6);
  // The player itself plays on.
  await page.$eval("#hear-audio", (audio) => { audio.currentTime = 0; return audio.play(); });
  await page.waitForFunction(() => document.getElementById("hear-audio").ended);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function keyboard(setting) {
  const { page } = await heardFile(setting);
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.focus("#hear-format");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Good");
  for (const [key, word] of [["ArrowRight", "morning."], ["ArrowDown", "The"], ["ArrowRight", "bread's"], ["End", "is"], ["ArrowUp", "Good"], ["ArrowLeft", "Good"], ["ArrowDown", "The"], ["Home", "Good"]]) {
    await page.keyboard.press(key);
    assert.equal(await focused(), word, key);
  }
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await untilPlaying(page, "bread's");
  assert.equal(await page.$$eval(".word[tabindex='0']", (all) => all.length), 1, "one stop for Tab");
  await page.keyboard.press("Escape");
  await page.close();
}

async function saves(setting) {
  const { page } = await heardFile(setting);
  const asked = setting.mock.heard.length;
  for (const [format, expected] of [["srt", SRT], ["vtt", VTT], ["txt", `${TEXT}\n`]]) {
    await page.select("#hear-format", format);
    await page.click("#hear-save");
    assert.equal(await saved(setting, `morning.${format}`), expected, format);
  }
  assert.equal(setting.mock.heard.length, asked);
  await page.click("#hear-copy");
  await untilText(page, "#hear-copy", /^Copied$/);
  await page.close();
}

async function remembers(setting) {
  const { page } = await openHear(setting);
  assert.deepEqual(await page.$$eval("#hear-model option", (all) => all.map(({ value }) => value)), ["whisper-base", "whisper-tiny.en"]);
  assert.deepEqual(await page.$$eval("#hear-language option", (all) => all.map(({ textContent }) => textContent)), ["Detect", "English", "French", "German"]);
  await page.select("#hear-language", "de");
  await page.click("#hear-translate");
  await choose(setting, page, "morning.mp3");
  await untilHeard(page, "finished");
  const { path: route, fields } = setting.mock.heard.at(-1);
  assert.equal(route, "/v1/audio/translations");
  assert.deepEqual(fields.slice(0, 2), [["model", "whisper-base"], ["language", "de"]]);
  await page.select("#hear-model", "whisper-tiny.en");
  await untilText(page, "#hear-state", /^whisper-tiny\.en is not loaded; the first recording loads it$/);
  assert.deepEqual(await page.$$eval("#hear-language option", (all) => all.map(({ textContent }) => textContent)), ["English"]);
  assert.equal(await textOf(page, "#hear-translate-field"), "", "a model for English does not translate");
  await page.click("#hear-again");
  await untilHeard(page, "finished");
  assert.equal(setting.mock.heard.at(-1).path, "/v1/audio/transcriptions");
  await page.reload();
  await page.waitForSelector("#hear-model:not(:disabled)");
  assert.equal(await page.$eval("#hear-model", (select) => select.value), "whisper-tiny.en");
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function long(setting) {
  const { page } = await openHear(setting);
  await page.evaluate(() => {
    window.perFrame = [];
    const list = document.getElementById("hear-lines");
    let before = 0;
    const count = () => {
      window.perFrame.push(list.children.length - before);
      before = list.children.length;
      requestAnimationFrame(count);
    };
    count();
  });
  await choose(setting, page, "[long].mp3");
  await untilHeard(page, "finished");
  const lines = await linesOf(page, 1_200);
  assert.deepEqual(lines.at(-1), ["59:57", "One two three four five six seven 1199."]);
  assert.ok(Math.max(...(await page.evaluate(() => window.perFrame))) <= 100, "few lines in one frame");
  assert.equal(await page.evaluate(() => document.querySelectorAll(".word").length), 1_200 * 8);
  assert.equal(await textOf(page, "#hear-audio-length"), "1:00:00");
  await page.close();
}

async function untimed(setting) {
  const { page } = await openHear(setting);
  await choose(setting, page, "[untimed].mp3");
  await untilHeard(page, "finished");
  await untilText(page, "#hear-tail", new RegExp(`^${TEXT}$`));
  await page.select("#hear-format", "srt");
  await page.click("#hear-save");
  assert.equal(await saved(setting, "[untimed].srt"), `1\n00:00:00,000 --> 00:00:03,000\n${TEXT}\n\n`);
  await page.close();
}

async function accessible(setting) {
  for (const open of [openHear, heardFile]) {
    const { page } = await open(setting);
    await checkAccessibility(page);
    await page.close();
  }
}

async function looksWhole(setting, width) {
  const { scheme } = setting;
  const { page, complaints } = await heardFile(setting, { width, height: 1_000 });
  await (await page.$$(".word"))[3].click();
  await untilPlaying(page, "bread's");
  await shoot(page, `hear-${setting.name}-${scheme}-${width}`);
  await checkLayout(page, setting);
  assert.deepEqual(complaints, []);
  await page.close();
}
