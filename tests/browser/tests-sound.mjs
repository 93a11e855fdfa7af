// Sound: it starts while the answer is still arriving, is exactly what was sent, and can be had again.
// The main player only; the others are in tests-fallbacks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, openPage, saved } from "./browsers.mjs";
import { clickSpeak, metrics, painted, speakHeldBack, textOf, untilSounding, untilState } from "./pilot.mjs";
import { bytesOf } from "./tone.mjs";

const TEXT = "The kettle is on. Sit down, and let the house do the reading for a while.";

export function soundTests(setting) {
  test("sound is scheduled before the response ends", LIMIT, () => speaksEarly(setting));
  test("the waveform fills as sound arrives", LIMIT, () => waveformFills(setting));
  test("wherever the pieces are cut, the samples are the same and seamless", LIMIT, () => exactSamples(setting));
  test("a long speech waits as samples, and its reader pauses", LIMIT, () => boundedAhead(setting));
  test("what was heard can be heard again without asking", LIMIT, () => playsAgain(setting));
  test("a download is a WAV with its true length", LIMIT, () => downloadsWav(setting));
}

async function speaksEarly(setting) {
  const { mock } = setting;
  const { page, complaints } = await openPage(setting, setting.url);
  await speakHeldBack(page, mock, TEXT);
  await untilState(page, "finished");
  const seen = await metrics(page);
  assert.equal(seen.player, "pcm");
  assert.ok(seen.firstScheduledAt < seen.responseEndedAt, JSON.stringify(seen));
  assert.equal(seen.complete, true);
  assert.ok(Math.abs(seen.playedSeconds - seen.receivedSeconds) < 0.001, JSON.stringify(seen));
  assert.match(await textOf(page, "#ttfa"), /^\d+ ms$/);
  assert.equal(await textOf(page, "#ttfa"), `${Math.round(seen.ttfaMs)} ms`);
  assert.match(await textOf(page, "#status"), /^Finished, \d+:\d\d\.$/);
  if (mock) assert.equal(seen.scheduledSeconds, mock.samples.length / 24_000);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function waveformFills(setting) {
  const { page } = await openPage(setting, setting.url);
  const empty = await painted(page);
  await clickSpeak(page, TEXT);
  await untilSounding(page);
  await untilState(page, "finished");
  await page.waitForFunction(() => document.querySelector("#waveform").ariaLabel.startsWith("Waveform of"));
  const full = await painted(page);
  const width = await page.$eval("#waveform", (canvas) => canvas.width);
  // At rest there is a two-pixel line; sound is much taller, all the way to the right.
  for (const half of [0, 1]) assert.ok(full[half] > 3 * empty[half], JSON.stringify({ empty, full }));
  // A phone that is turned draws it again.
  await page.setViewport({ width: 700, height: 900 });
  await page.waitForFunction((before) => document.querySelector("#waveform").width !== before, {}, width);
  await page.waitForFunction(() => {
    const canvas = document.querySelector("#waveform");
    const pen = canvas.getContext("2d");
    const colour = [...pen.getImageData(0, Math.round(canvas.height / 2), 1, 1).data.slice(0, 3)];
    pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--wave-heard").trim();
    return pen.fillStyle === `#${colour.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  });
  await page.close();
}

/** The player on an offline clock: what comes out must be what went in, sample for sample. */
async function exactSamples(setting) {
  const { page } = await openPage(setting, setting.url);
  const worst = await page.evaluate(async () => {
    const { SampleReader } = await import("./pcm.js");
    const { PcmPlayer } = await import("./player-pcm.js");
    const sent = Int16Array.from({ length: 48_000 }, (_, i) => 30_000 * Math.sin(i / 7) * Math.cos(i / 900));
    const clock = new OfflineAudioContext(1, sent.length, 24_000);
    const player = new PcmPlayer(clock);
    const reader = new SampleReader();
    for (let at = 0, step = 1; at < sent.byteLength; at += step, step = (step * 7 + 13) % 5_003 + 1) {
      player.feed(reader.push(new Uint8Array(sent.buffer).slice(at, at + step)));
    }
    player.finish();
    const heard = (await clock.startRendering()).getChannelData(0);
    const misses = sent.map((sample, i) => Math.abs(sample - heard[i] * 32768));
    return { miss: misses.reduce((a, b) => Math.max(a, b)), underruns: player.underruns };
  });
  assert.deepEqual(worst, { miss: 0, underruns: 0 });
  await page.close();
}

/** Eleven minutes at once: seconds go to the clock, minutes wait, and more is not welcome yet. */
async function boundedAhead(setting) {
  const { page } = await openPage(setting, setting.url);
  const seen = await page.evaluate(async () => {
    const { PcmPlayer } = await import("./player-pcm.js");
    const player = new PcmPlayer(new OfflineAudioContext(1, 24_000, 24_000));
    const roomNow = () => Promise.race([player.room().then(() => true), new Promise((resolve) => setTimeout(resolve, 0, false))]);
    const before = await roomNow();
    for (let second = 0; second < 660; second++) player.feed(new Int16Array(24_000));
    const full = await roomNow();
    const { scheduledSeconds, bufferedSeconds } = player;
    const pausedReader = player.room();
    player.stop();
    await pausedReader;
    return { before, full, scheduledSeconds, bufferedSeconds };
  });
  assert.deepEqual(seen, { before: true, full: false, scheduledSeconds: 20, bufferedSeconds: 660 });
  await page.close();
}

async function playsAgain(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, TEXT);
  await untilState(page, "finished");
  const first = await metrics(page);
  const figure = await textOf(page, "#ttfa");
  const asked = setting.mock?.requests.length;
  await page.waitForSelector("#again:not(:disabled)");
  await page.click("#again");
  await untilState(page, "speaking");
  await untilState(page, "finished");
  const second = await metrics(page);
  assert.equal(second.playedSeconds, first.playedSeconds);
  assert.equal(setting.mock?.requests.length, asked);
  assert.equal(await textOf(page, "#ttfa"), figure, "a replay is not a time to first audio");
  await page.close();
}

async function downloadsWav(setting) {
  const { page } = await openPage(setting, setting.url);
  await clickSpeak(page, TEXT);
  await untilState(page, "finished");
  await page.waitForSelector("#download:not(:disabled)");
  await page.click("#download");
  const wav = await saved(setting, "hob.wav", null);
  const { receivedSeconds } = await metrics(page);
  assert.equal(wav.toString("latin1", 0, 4), "RIFF");
  assert.equal(wav.readUInt32LE(4), wav.length - 8);
  assert.equal(wav.toString("latin1", 8, 16), "WAVEfmt ");
  assert.deepEqual([wav.readUInt16LE(20), wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34)], [1, 1, 24_000, 16]);
  assert.equal(wav.readUInt32LE(40), wav.length - 44);
  assert.equal((wav.length - 44) / 48_000, receivedSeconds);
  if (setting.mock) assert.ok(wav.subarray(44).equals(bytesOf(setting.mock.samples)));
  await page.close();
}
