// What a person does in the Hear tab, and what they can see there.

import { mkdtemp, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { openPage } from "./browsers.mjs";
import { textOf } from "./pilot.mjs";

const folder = await mkdtemp(path.join(os.tmpdir(), "hob-hear-"));

export async function openHear(setting, size, url = setting.url) {
  const opened = await openPage(setting, `${url}#hear`, size);
  await opened.page.waitForSelector("#hear-model:not(:disabled)");
  return opened;
}

/** Gives the page a file with the mock's sound, or with other bytes. */
export async function choose(setting, page, name, bytes = setting.mock.sound.mp3) {
  const file = path.join(folder, name);
  await writeFile(file, bytes);
  const input = await page.$("#hear-file");
  await input.uploadFile(file);
}

export function untilHeard(page, ...states) {
  return page.waitForFunction((wanted) => wanted.includes(window.hob.transcript?.state), {}, states);
}

/** Lines as they can be read, and once they are on the page. */
export async function linesOf(page, count) {
  await page.waitForFunction((wanted) => document.querySelectorAll("#hear-lines li").length === wanted, {}, count);
  // `$$eval` would make a handle for each of a thousand lines.
  return page.evaluate(() => [...document.querySelectorAll("#hear-lines li")].map((line) => [...line.children].map((part) => part.textContent)));
}

/** The word that is marked as playing. */
export function playingWord(page) {
  return page.evaluate(() => document.querySelector(".word[aria-current]")?.textContent ?? null);
}

export async function untilPlaying(page, word) {
  await page.waitForFunction((wanted) => document.querySelector(".word[aria-current]")?.textContent === wanted, {}, word);
}

export async function figures(page) {
  const ids = ["first", "audio-length", "time", "factor"];
  return Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await textOf(page, `#hear-${id}`)])));
}

/** Drops files on a part of the page, as a file manager does. */
export function drop(page, selector, names) {
  return page.$eval(selector, (target, wanted) => {
    const dataTransfer = new DataTransfer();
    for (const name of wanted) dataTransfer.items.add(new File(["RIFF"], name, { type: "audio/wav" }));
    const drag = (type) => target.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    drag("dragover");
    const over = document.getElementById("hear-source").classList.contains("over");
    drag("drop");
    return over;
  }, names);
}
