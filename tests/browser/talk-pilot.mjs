// What a person does in the Talk tab, and what they can see there.

import { once } from "node:events";

import { openPage } from "./browsers.mjs";

export async function openTalk(setting, size, url = setting.url) {
  const opened = await openPage(setting, `${url}#talk`, size);
  await opened.page.waitForSelector("#talk-model:not(:disabled)");
  await opened.page.waitForSelector("#talk-voice:not(:disabled)");
  return opened;
}

/** Opens the tab and starts a conversation. */
export async function converse(setting, size) {
  const opened = await openTalk(setting, size);
  const conversation = await startTalking(setting, opened.page);
  return { ...opened, conversation };
}

/** @returns {Promise<import("./mock-talk.mjs").MockConversation>} the conversation at the server */
export async function startTalking(setting, page, selector = "#talk-toggle") {
  await countTracks(page);
  const opened = once(setting.mock.events, "talk");
  await page.click(selector);
  const [conversation] = await opened;
  return conversation;
}

export function untilTalk(page, ...states) {
  return page.waitForFunction((wanted) => wanted.includes(window.hob.talk?.state), {}, states);
}

export function untilHeardMs(page, ms) {
  return page.waitForFunction((wanted) => window.hob.talk.heardMs >= wanted, {}, ms);
}

/** Lines as they can be read: who, text, note. */
export async function captionsOf(page) {
  // The page draws them once per frame.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn)));
  // `$$eval` would make a handle for each line.
  return page.evaluate(() => [...document.querySelectorAll("#talk-lines li")].map((line) => [...line.children].map((part) => (part.hidden ? "" : part.textContent))));
}

export function untilCaptions(page, count) {
  return page.waitForFunction((wanted) => document.querySelectorAll("#talk-lines li").length === wanted, {}, count);
}

/** Keeps the tracks of microphones, to see whether they are free. */
export function countTracks(page) {
  return page.evaluate(() => {
    if (window.tracks) return;
    window.tracks = [];
    const { mediaDevices } = navigator;
    const original = mediaDevices.getUserMedia.bind(mediaDevices);
    mediaDevices.getUserMedia = async (wish) => {
      window.asked = wish.audio;
      const stream = await original({ audio: { ...wish.audio, deviceId: undefined } });
      window.tracks.push(...stream.getTracks());
      return stream;
    };
  });
}

/** States of all tracks: `live` or `ended`. */
export function tracksOf(page) {
  return page.evaluate(() => window.tracks.map(({ readyState }) => readyState));
}
