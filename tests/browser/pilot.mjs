// What a person does with the page, and what they can see of it.
// Tests read the screen where there is something to read, and `window.hob.speech` for exact times.

import { once } from "node:events";

export async function write(page, text) {
  await page.$eval("#text", (element) => { element.value = ""; });
  await typeInto(page, "#text", text);
}

/** Characters that a test types. What stands before them is put into the field, because each key takes two round trips to the browser. */
const TYPED = 8;

/** Adds text to a field, as a person does who pastes most of it. */
export async function typeInto(page, selector, text) {
  const characters = [...text];
  await page.$eval(selector, (field, pasted) => {
    field.value += pasted;
    field.setSelectionRange(field.value.length, field.value.length);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }, characters.slice(0, -TYPED).join(""));
  await page.focus(selector);
  await page.keyboard.type(characters.slice(-TYPED).join(""));
}

export async function clickSpeak(page, text) {
  await write(page, text);
  await page.click("#speak-button");
}

/** A mock holds the rest of the answer back until the page sounds: a player that waits for the end would wait for ever. */
export async function speakHeldBack(page, mock, text) {
  if (!mock) return clickSpeak(page, text);
  const stalled = once(mock.events, "stalled");
  await clickSpeak(page, `${text} [stall]`);
  await Promise.all([stalled, untilSounding(page)]);
  mock.events.emit("go on");
}

export function untilState(page, ...states) {
  return page.waitForFunction((wanted) => wanted.includes(window.hob.speech?.state), {}, states);
}

export function untilSounding(page) {
  return page.waitForFunction(() => window.hob.speech?.firstAudibleAt > 0);
}

export function textOf(page, selector) {
  return page.$eval(selector, (element) => (element.checkVisibility() ? element.textContent.trim() : ""));
}

export function untilText(page, selector, pattern) {
  const matches = (at, source) => new RegExp(source).test(document.querySelector(at).textContent);
  return page.waitForFunction(matches, {}, selector, pattern.source);
}

/** What a reader sees of each row of a list. The texts of closed `details` are not in it. */
export function rowsOf(page, list) {
  return page.$$eval(`#${list} > *`, (rows) => rows.map((row) => row.innerText.replace(/\s+/g, " ").trim()));
}

/** The seconds of a countdown on the screen, or NaN if the screen shows no countdown. */
export async function secondsLeft(page, selector) {
  const text = await textOf(page, selector);
  return text === "Try again now." ? 0 : Number(/^Try again in (\d+) s\.$/.exec(text)?.[1]);
}

/** The Speech as data; times on the page's clock. */
export function metrics(page) {
  return page.evaluate(() => {
    const speech = window.hob.speech;
    const names = ["player", "state", "complete", "ttfaMs", "receivedSeconds", "scheduledSeconds", "playedSeconds",
      "bufferedSeconds", "underruns", "firstScheduledAt", "responseEndedAt", "clickedAt"];
    const seen = Object.fromEntries(names.map((name) => [name, speech[name]]));
    return { ...seen, error: speech.error?.message ?? null };
  });
}

/** Share of the canvas that is painted, left and right half. */
export function painted(page) {
  return page.$eval("#waveform", (canvas) => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const halves = [0, 0];
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) halves[((i >> 2) % width) * 2 < width ? 0 : 1] += 1;
    return halves.map((count) => count / (width * height * 0.5));
  });
}
