// The players behind the main one: MP3 through Media Source, and one Blob at the end.
// Forced by `?player=`, and chosen by the page itself where a browser lacks what comes first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, openPage } from "./browsers.mjs";
import { clickSpeak, metrics, speakHeldBack, textOf, untilState, untilText } from "./pilot.mjs";

const TEXT = "There is always another way to the kitchen.";

export function fallbackTests(setting) {
  const canMse = setting.name === "chromium";
  test(canMse ? "MSE plays MP3 before the response ends" : "without audio/mpeg in MSE the Blob plays", LIMIT, () => mse(setting, canMse));
  test("the Blob player plays the whole file", LIMIT, () => blob(setting));
  if (canMse && setting.mock) test("what MSE cannot decode is an error", LIMIT, () => undecodable(setting));
  test("without an audio clock the next player is taken", LIMIT, () => withoutClock(setting, canMse));
}

async function mse(setting, canMse) {
  const seen = await speakWith(setting, "mse", canMse ? setting.mock : null);
  assert.equal(seen.player, canMse ? "mse" : "blob");
  if (canMse) assert.ok(seen.firstScheduledAt < seen.responseEndedAt, JSON.stringify(seen));
  if (canMse && setting.mock) assert.equal(setting.mock.requests.at(-1).body.response_format, "mp3");
}

async function blob(setting) {
  const seen = await speakWith(setting, "blob");
  assert.equal(seen.player, "blob");
  assert.ok(seen.firstScheduledAt >= seen.responseEndedAt);
  assert.ok(Math.abs(seen.playedSeconds - seen.receivedSeconds) < 0.1, JSON.stringify(seen));
}

/** @param {?object} holding the mock, where it shall hold the rest back until the page sounds */
async function speakWith(setting, player, holding = null) {
  const { page, complaints } = await openPage(setting, `${setting.url}?player=${player}`);
  await speakHeldBack(page, holding, TEXT);
  await untilState(page, "finished");
  const seen = await metrics(page);
  assert.equal(seen.complete, true);
  assert.ok(seen.playedSeconds > 1, JSON.stringify(seen));
  assert.match(await textOf(page, "#ttfa"), /^\d+ ms$/);
  assert.deepEqual(complaints, []);
  await page.close();
  return seen;
}

async function undecodable(setting) {
  const { page } = await openPage(setting, `${setting.url}?player=mse`);
  await clickSpeak(page, "[noise]");
  await untilState(page, "failed");
  await untilText(page, "#error-text", /could not play the sound/);
  await page.close();
}

async function withoutClock(setting, canMse) {
  const { page } = await openPage(setting, setting.url);
  await page.evaluate(() => { window.AudioContext = class { constructor() { throw new DOMException("no device", "NotSupportedError"); } }; });
  await clickSpeak(page, TEXT);
  await untilState(page, "finished");
  const { player } = await metrics(page);
  assert.equal(player, canMse ? "mse" : "blob");
  await page.close();
}
